"""GRPO and expert iteration over dialogue acts."""

import random

import gymnasium as gym
import numpy as np
import pytest
import torch
from stable_baselines3.common.logger import Logger
from stable_baselines3.common.utils import LinearSchedule
from stable_baselines3.common.vec_env import DummyVecEnv

import agents
import dialgym
from agents import ActExpertIteration, ActGRPO
from agents.online.surrogates import LOSS_TYPES
from tests.support.by_day import by_day

ID = "tests.support.toy_acts:Wishes-act"
KINDS = {"grpo": ActGRPO, "expert-iteration": ActExpertIteration}


def collected(kind=ActGRPO, id=ID, rows=12, settings=None, **kwargs):
    """A learner that has held a dialogue in each row."""
    env = dialgym.sb3_vec_env(id, rows, seed=0, **(settings or {}))
    model = kind("MlpPolicy", env, seed=0, **{"group_size": 4, "batch_size": None, **kwargs})
    model.set_logger(Logger(None, []))
    _, model.callback = model._setup_learn(10_000)
    assert model.collect_rollouts(model.env, model.callback, None, 1)
    return model


def held_by(model):
    """One more dialogue in each row."""
    return model.hold(model.env, model.callback, model._begin(model.env))


def test_a_group_begins_alike_and_groups_differ():
    model = collected(id="Bargain-act-v0")
    seen = model._begin(model.env).reshape(3, 4, -1)
    assert (seen == seen[:, :1]).all()
    assert len(np.unique(seen[:, 0], axis=0)) == 3


def slow_loss(model, batch):
    """The loss of `ActGRPO` in float64, decision by decision."""
    total = 0.0
    for i in range(len(batch.weights)):
        part = batch.select(torch.tensor([i]))
        with torch.no_grad():
            _, new, entropy = model.policy.evaluate_actions(*part[:3])
        new, old, gain = (float(x) for x in (new, part.log_probs, part.advantages))
        ratio = np.exp(new - old)
        if model.loss_type == "cispo":
            loss = -min(ratio, 5.0) * gain * new
        else:
            loss = -min(ratio * gain, min(max(ratio, 0.8), 1.3) * gain)
        apart = float(part.reference_log_probs) - new
        loss += 0.3 * (np.exp(apart) - 1 - apart)
        total += float(part.weights) * loss - 0.1 * float(entropy)
    return total / len(batch.weights)


@pytest.mark.parametrize("loss_type", LOSS_TYPES)
def test_the_loss_is_that_of_a_slow_version(loss_type):
    more = {} if loss_type == "cispo" else {"epsilon_high": 0.3}
    model = collected(loss_type=loss_type, kl={"coef": 0.3}, ent_coef=0.1, **more)
    with torch.no_grad():  # away from where ratios and divergences are flat
        model.policy.action_net.weight += 0.3 * torch.randn_like(model.policy.action_net.weight)
    loss, metrics = model.loss(model.rollout)
    assert metrics["clip_fraction"] > 0 or loss_type == "cispo"
    assert loss.item() == pytest.approx(slow_loss(model, model.rollout), rel=1e-5)


def weights_by_hand(loss_type, sizes, longest):
    if loss_type == "grpo":  # each dialogue alike
        return np.concatenate([np.full(n, sum(sizes) / (len(sizes) * n)) for n in sizes])
    if loss_type == "dr_grpo":
        return np.full(sum(sizes), sum(sizes) / (len(sizes) * longest))
    return np.ones(sum(sizes))


@pytest.mark.parametrize("loss_type", by_day(LOSS_TYPES, "grpo", "dr_grpo", "dapo"))
def test_advantages_and_weights_are_those_of_the_formula(loss_type):
    model = collected(loss_type=loss_type, id="CamRestaurants-Env1-act-v0")
    held = held_by(model)
    advantages, weights = model._credit(held)
    returns = held.rewards.sum(0)
    for group in range(3):
        own = returns[4 * group : 4 * group + 4]
        wanted = np.zeros(4) if np.ptp(own) == 0 else (own - own.mean()) / (own.std() + 1e-6)
        for row in range(4):
            played = held.played[:, 4 * group + row]
            np.testing.assert_allclose(
                advantages[played, 4 * group + row], wanted[row], rtol=1e-5, atol=1e-6
            )
    sizes = held.played.sum(0).tolist()
    assert len(set(sizes)) > 1
    by_row = [weights[held.played[:, row], row] for row in range(12)]
    wanted = weights_by_hand(loss_type, sizes, len(held.played))
    np.testing.assert_allclose(np.concatenate(by_row), wanted, rtol=1e-12)


def test_exact_credit_is_the_rise_of_the_best_values_less_that_of_the_group():
    more = {"credit": "exact", "baseline": "batch", "scale_rewards": False}
    model = collected(id="CarDealer-act-v0", settings={"values": True, "turns": 3}, **more)
    held = held_by(model)
    rises = np.zeros(held.rewards.shape)
    for row in range(12):
        value = model._first_infos[row]["value"]
        for step in np.flatnonzero(held.played[:, row]):
            info = held.infos[step][row]
            last = step + 1 == len(held.played) or not held.played[step + 1, row]
            after = 0.0 if last else info["value"]
            rises[step, row] = held.rewards[step, row] + after - value
            value = after
    assert rises[held.played].mean() < 0  # of who does not play best
    wanted = rises.copy()
    wanted[held.played] -= rises[held.played].mean()
    np.testing.assert_allclose(
        model._credit(held)[0][held.played], wanted[held.played], rtol=1e-4, atol=1e-5
    )


def test_anchored_acts_are_compared_with_those_of_the_same_situation():
    more = {"credit": "anchor", "scale_rewards": False, "gamma": 0.9}
    model = collected(id="Bargain-act-v0", settings={"anchors": True}, rows=8, **more)
    held = held_by(model)
    known = model._known(held)
    to_come = np.zeros(held.rewards.shape)
    for step in reversed(range(len(held.played))):
        later = to_come[step + 1] if step + 1 < len(held.played) else 0.0
        to_come[step] = held.rewards[step] + 0.9 * later
    whole, found = held.rewards.sum(0), model._credit(held)[0]
    for row in range(8):
        group = slice(row // 4 * 4, row // 4 * 4 + 4)
        for step in np.flatnonzero(held.played[:, row]):
            alike = held.played[:, group] & (known[:, group] == known[step, row])
            among = to_come[step, row] - to_come[:, group][alike].mean()
            wanted = whole[row] - whole[group].mean() + among
            assert found[step, row] == pytest.approx(wanted, rel=1e-4, abs=1e-5)


def test_expert_iteration_clones_the_best_of_each_group():
    model = collected(ActExpertIteration, top=0.25, id="CamRestaurants-Env1-act-v0")
    held = held_by(model)
    kept, _ = model._credit(held)
    returns = held.rewards.sum(0).reshape(3, 4)
    assert kept[0].reshape(3, 4).argmax(1).tolist() == returns.argmax(1).tolist()
    assert kept[0].sum() == 3
    loss, _ = model.loss(model.rollout)
    with torch.no_grad():
        log_prob = model.policy.evaluate_actions(*model.rollout[:3])[1]
    assert loss.item() == pytest.approx(-float(log_prob.double().mean()), rel=1e-5)


CASES = {
    "episode": (ActGRPO, {}),
    "turn": (ActGRPO, {"credit": "turn"}),
    "cispo": (ActGRPO, {"loss_type": "cispo", "kl": {"coef": 0.01}}),
    "rloo": (ActGRPO, {"baseline": "leave-one-out", "scale_rewards": False, "loss_type": "grpo"}),
    "expert iteration": (ActExpertIteration, {"n_epochs": 4}),
}


@pytest.mark.parametrize("case", by_day([*CASES], "episode", "expert iteration"))
def test_it_learns_to_ask_for_everything_at_once(case):
    """The bar is near the best; what does not learn, or climbs the wrong way, stays at random."""
    kind, settings = CASES[case]
    env = dialgym.sb3_vec_env(ID, 64, seed=0)
    model = kind("MlpPolicy", env, learning_rate=0.01, seed=0, **settings)
    model.learn(3000)
    scores = [dialgym.evaluate(who, ID, 200).mean_return for who in (model, "ask-all", "random")]
    assert scores[0] > scores[1] - 0.05 > scores[2] + 0.1


def test_the_reference_stays_and_steers_the_coefficient(tmp_path):
    env = dialgym.sb3_vec_env(ID, 8, seed=0)
    kl = {"coef": 0.1, "target": 1e-4}
    model = ActGRPO("MlpPolicy", env, seed=0, group_size=4, kl=kl, learning_rate=0.05)
    before = [weight.clone() for weight in model.policy.parameters()]
    model.learn(200)
    kept = list(model.reference.parameters())
    assert all(torch.equal(a, b) for a, b in zip(before, kept, strict=True))
    assert model.kl_coef > 0.1
    model.save(tmp_path / "model")
    again = agents.load(tmp_path / "model.zip", env=env)
    assert again.kl_coef == model.kl_coef
    found = list(again.reference.parameters())
    assert all(torch.equal(a, b) for a, b in zip(before, found, strict=True))


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"group_size": 5}, "group_size must be at least 2 and divide the number of dialogues"),
        ({"group_size": 1}, "group_size must be at least 2"),
        ({"credit": "prefix"}, "credit"),
        ({"loss_type": "gspo"}, "loss_type"),
        ({"kl": {"coef": 0.1, "dtype": "bfloat16"}}, "dtype and offload of kl"),
        ({"clip_range": -1.0}, "clip_range"),
        ({"epsilon_high": -0.1}, "epsilon_high"),
        ({"anchor_weight": float("nan")}, "anchor_weight"),
        ({"credit": "exact", "gamma": 0.9}, "undiscounted values, got gamma=0.9"),
    ],
)
def test_what_cannot_be_is_named(settings, message):
    with pytest.raises(ValueError, match=message):
        ActGRPO("MlpPolicy", dialgym.sb3_vec_env(ID, 8, seed=0), **settings)


@pytest.mark.parametrize(("credit", "setting"), [("anchor", "anchors"), ("exact", "values")])
def test_a_credit_asks_for_what_it_needs(credit, setting):
    with pytest.raises(ValueError, match=f"{setting}=True"):
        collected(id="Bargain-act-v0", credit=credit)


def test_masks_are_asked_for():
    without = DummyVecEnv([lambda: gym.make("CartPole-v1")] * 4)
    with pytest.raises(ValueError, match=r"ActGRPO: expected an env with action_masks"):
        ActGRPO("MlpPolicy", without, group_size=4, seed=0).learn(8)


def test_a_schedule_may_clip_and_a_loaded_model_takes_other_settings(tmp_path):
    env = dialgym.sb3_vec_env(ID, 8, seed=0)
    model = ActGRPO("MlpPolicy", env, seed=0, clip_range=LinearSchedule(0.3, 0.1, 1.0))
    model.learn(100)
    model.save(tmp_path / "model")
    again = agents.load(tmp_path / "model", env=env, kl={"coef": 0.2}, clip_range=0.3)
    before = [weight.clone() for weight in again.policy.parameters()]
    again.learn(100)
    assert again.kl.coef == 0.2
    assert again.clip_range(0.5) == 0.3
    kept = list(again.reference.parameters())
    assert all(torch.equal(a, b) for a, b in zip(before, kept, strict=True))
    again.save(tmp_path / "again")
    assert agents.load(tmp_path / "again", kl=None).reference is None


def test_the_log_is_of_all_dialogues_of_a_rollout():
    assert collected(rows=120)._stats_window_size == 120


@pytest.mark.parametrize("kind", KINDS.values())
def test_the_divergence_from_the_old_policy_is_estimated_by_its_own_samples(kind):
    model = collected(kind)
    batch = model.rollout
    with torch.no_grad():
        later = batch.log_probs + torch.linspace(-1, 1, len(batch.weights))
        found = model.policy_loss(batch, later)[1]["approx_kl"]
    ratio = later - batch.log_probs
    torch.testing.assert_close(found, ratio.exp() - 1 - ratio)


def test_a_reference_from_a_file_leaves_the_draws_alone(tmp_path):
    """Its seed is not the learner's."""
    env = dialgym.sb3_vec_env(ID, 8, seed=0)
    ActGRPO("MlpPolicy", env, seed=5).save(tmp_path / "other")
    after = []
    for reference in (None, str(tmp_path / "other.zip")):
        kl = {"coef": 0.1, "reference": reference}
        model = ActGRPO("MlpPolicy", env, seed=0, kl=kl)
        model._setup_learn(8)
        after.append(
            (
                torch.rand(3),
                np.random.rand(3),  # noqa: NPY002
                random.random(),
            )
        )
    for one, other in zip(*after, strict=True):
        np.testing.assert_array_equal(one, other)
