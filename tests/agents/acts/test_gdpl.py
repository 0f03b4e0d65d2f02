"""PPO on rewards estimated from an expert."""

import numpy as np
import pytest
import torch
from stable_baselines3.common.logger import Logger
from stable_baselines3.common.vec_env import VecNormalize

import agents
import dialgym
from agents import GDPL
from agents.acts.gdpl import (
    RewardEstimator,
    TurnTransitions,
    at_the_end,
    clip_weights,
    discriminator_loss,
    entropy_loss,
)
from tests.support.close import assert_close

ID = "tests.support.toy_acts:Wishes-act"


@pytest.fixture(scope="module")
def expert():
    return dialgym.collect(ID, "ask-all", 80, seed=0)


def made(expert, rows=8, **settings):
    env = dialgym.sb3_vec_env(ID, rows, seed=0)
    sizes = {"n_steps": 16, "batch_size": 64, "seed": 0}
    model = GDPL("MlpPolicy", env, dataset=expert, **{**sizes, **settings})
    model.set_logger(Logger(None, []))
    return model


def turns(count=6, seed=0):
    rng = np.random.default_rng(seed)
    seen, after = rng.random((2, count, 3)).astype(np.float32)
    actions = rng.integers(0, 2, (count, 2)).astype(np.float32)
    over = rng.random(count) < 0.5
    return TurnTransitions(*(torch.from_numpy(a) for a in (seen, actions, after, over)))


def test_the_estimate_is_that_of_a_slow_version():
    """g(s, a) + gamma h(s') - h(s), where h is 0 after the end."""
    torch.manual_seed(0)
    network, given = RewardEstimator(3, 2, 4, gamma=0.7), turns()
    found = network(given)

    def slow(layers, x):
        for layer in (layers[0], layers[2]):
            x = layer.weight.detach().numpy() @ x + layer.bias.detach().numpy()
            x = np.maximum(x, 0) if layer is layers[0] else x
        return x.item()

    for i in range(6):
        seen, acts, after = (c[i].numpy() for c in (given.seen, given.actions, given.seen_after))
        value = slow(network.g, np.concatenate([seen, acts])) - slow(network.h, seen)
        if not given.terminated[i]:
            value += 0.7 * slow(network.h, after)
        assert found[i].item() == pytest.approx(value, rel=1e-5)
    assert 0 < given.terminated.sum() < 6


def test_losses_have_closed_forms():
    expert, sampled = torch.tensor([1.0, 3.0]), torch.tensor([0.0, 1.0, 2.0])
    assert entropy_loss(expert, sampled).item() == -1.0
    expert_log_prob, sampled_log_prob = torch.tensor([-1.0, -2.0]), torch.tensor([-0.5, 0, -1])
    found = discriminator_loss(expert, sampled, expert_log_prob, sampled_log_prob)
    theirs = np.exp([1, 3]) / (np.exp([1, 3]) + np.exp([-1, -2]))
    ours = np.exp([0, 1, 2]) / (np.exp([0, 1, 2]) + np.exp([-0.5, 0, -1]))
    assert found.item() == pytest.approx(-np.log(theirs).mean() - np.log(1 - ours).mean())


def test_rewards_of_a_session_come_at_its_end():
    rewards = np.array([[1.0, 2], [3, 4], [5, 6]])
    ends = np.array([[False, True], [True, False], [False, False]])
    assert at_the_end(rewards, ends).tolist() == [[0, 2], [4, 0], [5, 10]]


def test_weights_are_clipped():
    network = RewardEstimator(3, 2, 4, 0.9)
    clip_weights(network, 0.02)
    assert max(w.abs().max().item() for w in network.parameters()) <= 0.02
    model_weights = [w.clone() for w in network.parameters()]
    clip_weights(network, None)
    assert all(torch.equal(a, b) for a, b in zip(model_weights, network.parameters()))


def test_what_follows_a_turn_is_what_the_env_showed(expert):
    """Replayed in a second env: also at the ends of dialogues and of the rollout."""
    model = made(expert, rows=3, n_steps=20, batch_size=30)
    noted = {}
    model.update_estimator = lambda turns, log_probs: noted.update(turns=turns)
    model.learn(60)
    found = noted["turns"]
    again = dialgym.sb3_vec_env(ID, 3, seed=0)
    seen = again.reset()
    actions = found.actions.reshape(20, 3, -1).numpy()
    for step in range(20):
        rows = slice(3 * step, 3 * step + 3)
        assert np.array_equal(found.seen[rows].numpy(), seen)
        seen, _, dones, infos = again.step(actions[step].astype(np.int8))
        last = [i.get("terminal_observation", s) for i, s in zip(infos, seen)]
        assert np.array_equal(found.seen_after[rows].numpy(), np.stack(last))
        cut = [i.get("TimeLimit.truncated", False) for i in infos]
        assert found.terminated[rows].tolist() == (dones & ~np.array(cut)).tolist()


def test_advantages_are_those_of_the_estimated_rewards(expert):
    model = made(expert, gamma=0.9, gae_lambda=0.8, estimation={"normalize": False})
    model.learn(128)
    buffer = model.rollout_buffer
    # after the update the buffer is flat, dialogue by dialogue
    rewards, values = buffer.rewards, buffer.values.reshape(8, 16).T
    advantages = buffer.advantages.reshape(8, 16).T
    for row in range(8):
        for t in range(14, -1, -1):
            ended = buffer.episode_starts[t + 1, row]
            ahead = 0.0 if ended else values[t + 1, row]
            error = rewards[t, row] + 0.9 * ahead - values[t, row]
            later = 0.0 if ended else advantages[t + 1, row]
            assert advantages[t, row] == pytest.approx(error + 0.72 * later, abs=1e-4)


@pytest.mark.parametrize("variant", ["turns", "session", "discriminator"])
def test_the_reward_is_f_less_the_log_probability(expert, variant):
    settings = {"variant": variant, "log_prob_weight": 0.5, "anneal": 100, "normalize": False}
    model = made(expert, estimation=settings)
    model.learn(1)
    model.num_timesteps = 50  # half of the weight
    log_probs = torch.linspace(-2, 0, 128)
    seen = torch.rand((128, 9))
    given = TurnTransitions(seen, torch.zeros(128, 4), seen, torch.zeros(128, dtype=torch.bool))
    model._ends = []
    found = model.rewards(given, log_probs)
    with torch.no_grad():
        wanted = (model.estimator(given) - 0.25 * log_probs).numpy().reshape(16, 8)
    if variant == "session":
        assert not found[:-1].any()
        assert_close(found[-1], wanted.sum(0))
    else:
        assert_close(found, wanted)


@pytest.mark.slow
def test_the_estimator_comes_to_tell_the_expert_from_a_bad_policy(expert):
    model = made(expert, learning_rate=1e-9, estimation={"batch_size": 64})
    model.learn(2000)
    good = model._turns(
        *(getattr(model.expert, n) for n in ("observations", "actions", "next_observations")),
        model.expert.terminated,
    )
    buffer = model.rollout_buffer
    bad = TurnTransitions(
        torch.as_tensor(buffer.observations), torch.zeros(128, 4),
        torch.as_tensor(buffer.observations), torch.zeros(128, dtype=torch.bool),
    )  # fmt: skip
    with torch.no_grad():
        assert model.estimator(good).mean() > model.estimator(bad).mean() + 0.5


@pytest.mark.parametrize(
    ("variant", "short"),  # a discriminator pays for each turn, so that dialogues grow long
    [
        ("turns", 0.05),
        pytest.param("session", 0.05, marks=pytest.mark.slow),
        pytest.param("discriminator", 0.16, marks=pytest.mark.slow),
    ],
)
def test_it_learns_what_the_expert_does_without_the_envs_rewards(expert, variant, short):
    model = made(expert, n_steps=32, batch_size=128, learning_rate=3e-3, ent_coef=0.0,
                 estimation={"variant": variant, "batch_size": 64, "passes": 2})  # fmt: skip
    model.learn(2500)
    scores = [dialgym.evaluate(who, ID, 200).mean_return for who in (model, "ask-all", "random")]
    assert scores[0] > scores[1] - short > scores[2] + 0.05


def test_a_loaded_model_needs_an_expert_to_learn_on(expert, tmp_path):
    model = made(expert, estimation={"variant": "session", "passes": 2})
    model.save(tmp_path / "model.zip")
    loaded = agents.load(tmp_path / "model.zip")
    assert loaded.estimation == model.estimation
    with pytest.raises(ValueError, match="GDPL: expected the dialogues of an expert, got none"):
        loaded.learn(1)


@pytest.mark.parametrize("variant", ["turns", "discriminator"])
def test_one_act_at_a_time_will_do(variant):
    """Acts are one-hot to the estimator."""
    id = "dialgym/SlotFilling-act-v0"
    talks = dialgym.collect(id, "handcrafted", 6, seed=0)
    env = dialgym.sb3_vec_env(id, 4, seed=0)
    settings = {"estimation": {"variant": variant}, "n_steps": 8, "batch_size": 16, "seed": 0}
    model = GDPL("MlpPolicy", env, dataset=talks, **settings).learn(32)
    data = model.expert
    found = model._turns(
        data.observations, data.actions, data.next_observations, data.terminated
    ).actions
    assert found.argmax(-1).tolist() == data.actions.tolist()
    assert (found.sum(-1) == 1).all()


def test_the_expert_is_seen_as_the_policy_sees():
    """Its beliefs are normalised as observations are, by the same statistics."""
    id = "SlotFilling-act-v0"
    expert = dialgym.collect(id, "handcrafted", 10, seed=0)
    env = VecNormalize(dialgym.sb3_vec_env(id, 4, seed=0), norm_reward=False, clip_obs=3.0)
    model = GDPL("MlpPolicy", env, dataset=expert, n_steps=16, batch_size=32, seed=0)
    model.learn(128)
    data, seen = model.expert, []
    drawn = np.arange(12)
    model.estimator.register_forward_hook(lambda _, given, __: seen.append(given[0]))
    turns = model._turns(
        np.zeros((3, *env.observation_space.shape)), np.zeros((3, 1)),
        np.zeros((3, *env.observation_space.shape)), np.zeros(3),
    )  # fmt: skip
    model.estimator_loss(drawn, turns, torch.zeros(3))
    mean, deviation = env.obs_rms.mean, np.sqrt(env.obs_rms.var + env.epsilon)
    for found, stored in (
        (seen[0].seen, data.observations),
        (seen[0].seen_after, data.next_observations),
    ):
        wanted = np.clip((stored[drawn].astype(float) - mean) / deviation, -3, 3)
        assert_close(found, wanted, 1e-5)
    assert deviation.std() > 0.01
