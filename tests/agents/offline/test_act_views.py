"""Offline learning on act views: batches of beliefs and acts, losses, masks, files, errors."""

import gymnasium as gym
import numpy as np
import pytest
import torch
from stable_baselines3.common.vec_env import DummyVecEnv

import agents
import dialgym
from agents import BC, CQL, ILQL, PsiLearning, SingleStepRL
from dialgym.datasets import ActData, ActTransitions
from tests.support.slot_domains import write_bakeries
from tests.support.toy_dialogues import mean_losses
from tests.support.word_games import assert_two_parts_are_one_run

ID = "dialgym/SFRestaurants-Env1-act-v0"
SMALL = {"net_arch": [16]}
KINDS = [BC, SingleStepRL, ILQL, CQL, PsiLearning]


@pytest.fixture(scope="module")
def dialogues():
    return dialgym.collect(ID, "handcrafted", 12, seed=0)


@pytest.fixture(scope="module")
def env():
    return dialgym.sb3_vec_env(ID, 2, seed=0)


def made(algorithm, env, dialogues=None, policy=None, **settings):
    kwargs = {**SMALL, **(policy or {})}
    return algorithm("MlpPolicy", env, dialogues, policy_kwargs=kwargs, seed=0, **settings)


def randomised(model):
    """Heads and targets that differ, so that no term of a loss vanishes."""
    torch.manual_seed(1)
    for weight in model.policy.parameters():
        torch.nn.init.normal_(weight, std=0.2)
    return model


def cut(data):
    """The same data, its second dialogue cut off by a limit where it ended."""
    terminated, truncated = data.decisions.terminated.copy(), data.decisions.truncated.copy()
    last = data.offsets[2] - 1
    terminated[last], truncated[last] = False, True
    return ActData(
        data.decisions._replace(terminated=terminated, truncated=truncated), data.offsets, data.kind
    )


def test_a_batch_has_every_decision_and_the_state_at_which_a_limit_cut_off(env, dialogues):
    data = cut(dialogues.acts(gamma=0.9))
    stored = data.decisions
    batch = made(BC, env).batch(data)
    beliefs = batch.observations.flatten(0, 1)[batch.at].numpy()
    states = np.diff(data.offsets)
    states[1] += 1  # the one at which it was cut off
    n = 0
    for i in np.argsort(-states, kind="stable").tolist():  # longest first
        rows = range(data.offsets[i], data.offsets[i + 1])
        total = pytest.approx(stored.rewards[list(rows)].sum())
        for row in rows:
            np.testing.assert_array_equal(beliefs[n], stored.observations[row])
            np.testing.assert_array_equal(batch.allowed[n], stored.action_masks[row])
            assert (batch.actions[n], batch.rewards[n]) == (
                stored.actions[row],
                stored.rewards[row],
            )
            assert batch.returns[n] == pytest.approx(stored.returns_to_go[row])
            assert batch.total_returns[n] == total
            assert batch.is_action[n]
            assert batch.not_done[n] == (row < rows[-1] or i == 1)
            n += 1
        if i == 1:
            np.testing.assert_array_equal(beliefs[n], stored.next_observations[row])
            np.testing.assert_array_equal(batch.allowed[n], stored.next_action_masks[row])
            assert not batch.is_action[n]
            n += 1
    assert n == len(batch.at) == len(stored.rewards) + 1


@pytest.mark.parametrize("algorithm", [ILQL, CQL])
def test_losses_are_those_of_a_slow_version(algorithm, env, dialogues):
    settings = {"gamma": 0.9, "expectile": 0.8, "cql_weight": 0.3}
    model = randomised(made(algorithm, env, **settings))
    data, policy = cut(dialogues.acts(gamma=0.9)), model.policy
    stored, totals = data.decisions, dict.fromkeys(("q_loss", "v_loss", "policy_loss"), 0.0)

    def read(belief, mask):
        states = torch.from_numpy(belief)[None, None], torch.tensor([0])
        hidden, value_hidden, target_hidden = policy.hidden_states(*states)
        logits = policy.log_probs(hidden, torch.from_numpy(mask)[None])[0]
        q, target = policy.q_values(value_hidden)[:, 0], policy.target_q(target_hidden)[0]
        return logits.tolist(), q.tolist(), target.numpy(), policy.state_values(value_hidden).item()

    for row, (action, reward) in enumerate(zip(stored.actions, stored.rewards, strict=True)):
        log_probs, q, target, v = read(stored.observations[row], stored.action_masks[row])
        _, _, next_target, next_v = read(
            stored.next_observations[row], stored.next_action_masks[row]
        )
        ahead = next_target[stored.next_action_masks[row]].max() if algorithm is CQL else next_v
        wanted = reward + (0.0 if stored.terminated[row] else 0.9 * ahead)
        totals["q_loss"] += sum((wanted - one[action]) ** 2 for one in q)
        gap = target[action] - v
        totals["v_loss"] += (0.8 if gap > 0 else 0.2) * gap**2
        totals["policy_loss"] -= log_probs[action]
    found = mean_losses(model, data, most_tokens=20)
    for name, total in totals.items():
        assert found[name] == pytest.approx(total / len(stored.rewards), rel=1e-4), name
    grads = {n.split(".")[0] for n, p in policy.named_parameters() if p.grad is not None}
    assert {"mlp_extractor", "action_net", "value_net", "q_heads"} <= grads
    assert not any(name.startswith("target_") for name in grads)


@pytest.mark.parametrize("algorithm", KINDS)
def test_each_learns_on_and_plays(algorithm, env, dialogues, tmp_path):
    _, model = assert_two_parts_are_one_run(
        lambda: made(algorithm, env, dialogues), dialogues, tmp_path, env
    )
    obs = env.reset()
    masks = np.stack(env.env_method("action_masks"))
    acts = model.predict(obs, deterministic=True, action_masks=masks)[0]
    assert masks[np.arange(2), acts].all()
    single = model.predict(obs[0], deterministic=True, action_masks=masks[0])[0]
    assert single == acts[0]
    result = dialgym.evaluate(model, ID, episodes=2, seeds=[0])
    assert np.isfinite(result.mean_return)


@pytest.mark.parametrize("algorithm", [BC, ILQL])
def test_masked_acts_are_never_chosen(algorithm, env):
    model, obs = made(algorithm, env), env.reset()
    rng = np.random.default_rng(0)
    for _ in range(20):
        masks = rng.random((2, env.action_space.n)) < 0.1
        masks[:, 3] = True
        for deterministic in (True, False):
            acts, _ = model.predict(obs, deterministic=deterministic, action_masks=masks)
            assert masks[np.arange(2), acts].all()


class Lamps(gym.Env):
    """Two lamps that are to be set as the belief says; the first may not be lit where it is 0."""

    observation_space = gym.spaces.Box(0, 1, (2,), np.float32)
    action_space = gym.spaces.MultiBinary(2)

    def reset(self, *, seed=None, options=None):
        return np.zeros(2, np.float32), {}


def lamps(count=64):
    """Dialogues of one decision, in which both lamps are set as the belief says."""
    seen = np.random.default_rng(0).integers(0, 2, (count, 2)).astype(np.float32)
    zeros, ones = np.zeros(count, np.float32), np.ones(count, bool)
    masks = np.stack([seen[:, 0] > 0, ones], 1)
    decisions = ActTransitions(
        seen, seen.astype(np.int8), zeros, seen, ones, ~ones, masks, masks, zeros
    )
    return ActData(decisions, np.arange(count + 1), "lamps")


def test_several_acts_at_once_are_cloned():
    model = made(BC, DummyVecEnv([Lamps]), lamps(), learning_rate=0.02)
    batch = model.batch(lamps(4))
    assert batch.allowed.shape == (4, 4)  # of each lamp, whether it may be off, and on
    model.learn(60)
    obs = np.array([[0, 0], [0, 1], [1, 0], [1, 1]], np.float32)
    masks = np.stack([[True] * 4, obs[:, 0] > 0, [True] * 4, [True] * 4], 1)
    acts, _ = model.predict(obs, deterministic=True, action_masks=masks)
    assert acts.tolist() == obs.astype(int).tolist()
    with pytest.raises(ValueError, match="expected Discrete actions, of which each has a Q value"):
        made(ILQL, DummyVecEnv([Lamps]), lamps())


def test_mistakes_are_one_clear_error(env, dialogues):
    words = dialgym.collect("dialgym/Wordle-20-v0", "random-mixture", 3, seed=0)
    with pytest.raises(ValueError, match="dialogues without acts"):
        made(BC, DummyVecEnv([Lamps]), words)
    with pytest.raises(ValueError, match=r"expected a dialgym Dataset, its ActData, or the path"):
        made(BC, env, words.tokens())
    with pytest.raises(ValueError, match="expected beliefs of 636 numbers and actions of Discrete"):
        made(BC, env, lamps())
    with pytest.raises(ValueError, match="both_parties is for words"):
        made(BC, env, dialogues, both_parties=True)
    tokens = dialgym.sb3_vec_env("dialgym/Wordle-20-v0", 1)
    with pytest.raises(ValueError, match="token views take a GPT policy"):
        BC("MlpPolicy", tokens, words)
    with pytest.raises(ValueError, match=r"agents.ValueBeliefPolicy, which speaks by values"):
        ILQL(agents.BeliefPolicy, env, dialogues)


def test_dialogues_whose_acts_have_other_names_are_refused(tmp_path):
    area, side = ({"domain": write_bakeries(tmp_path, slot)} for slot in ("area", "side"))
    dialogues = dialgym.collect("SlotFilling-act-v0", "handcrafted", 3, env_kwargs=area)
    made(BC, dialgym.sb3_vec_env("SlotFilling-act-v0", 1, **area), dialogues).learn(1)
    with pytest.raises(ValueError, match=r"expected dialogues in which the env's acts \('request_"):
        made(BC, dialgym.sb3_vec_env("SlotFilling-act-v0", 1, **side), dialogues)


def test_it_is_trained_by_name_evaluated_and_resumed(dialogues, tmp_path):
    arguments = {
        "data": dialogues,
        "log_dir": tmp_path,
        "hyperparameters": {"log_interval": 2, "learning_rate": 1e-3},
        "progress_bar": False,
        "eval_freq": 2,
        "eval_episodes": 2,
        "samples": 0,
        "checkpoint_every": 1,
    }
    first = agents.train(ID, "cql", total_timesteps=4, **arguments)
    assert type(first.policy) is agents.ValueBeliefPolicy
    assert first.policy.decoding.beta == 1
    assert (tmp_path / "best_model.zip").is_file()
    longer = agents.train(ID, "cql", total_timesteps=6, resume=True, **arguments)
    assert longer.num_timesteps == 6
    result = dialgym.evaluate(tmp_path / "model.zip", ID, episodes=2, seeds=[0])
    assert np.isfinite(result.mean_return)
