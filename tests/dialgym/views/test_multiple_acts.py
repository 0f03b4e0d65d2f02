"""Act views in which several acts are chosen at once: `MultiBinary` actions, of either party."""

import gymnasium as gym
import numpy as np
import pytest

import dialgym
from dialgym.testing import check_batch, check_task, check_views
from dialgym.views.act_env import ActEnv
from dialgym.views.act_vector_env import ActVectorEnv
from dialgym.views.spaces import maskable
from tests.support.toy_acts import COST, THINGS, AskAll, Wishes

TASK = Wishes()
ID = "tests.support.toy_acts:Wishes-act"
PARTIES = ("system", "user")


def test_the_toy_is_sound():
    check_task(TASK, 10)
    check_views(TASK, 10)
    check_batch(TASK, steps=80)


def test_a_vector_becomes_one_utterance_of_several_acts():
    env = ActEnv(TASK)
    env.reset(seed=0, options={"wanted": [0, 2]})
    assert isinstance(env.action_space, gym.spaces.MultiBinary)
    assert env.act_names == ("ask_0", "ask_1", "ask_2", "ask_3")
    seen, reward, terminated, _, info = env.step(np.array([1, 1, 0, 0]))
    assert (info["utterance"], info["reply"]) == ("ask 0 1", "want 0")
    assert reward == pytest.approx(1 - COST)
    assert seen.tolist() == [1, 1, 0, 0, 1, 0, 0, 0, -1]
    assert env.action_masks().tolist() == [False, True, True, True]
    _, reward, terminated, _, info = env.step([False, False, True, True])
    assert terminated
    assert info["is_success"]


def test_an_empty_vector_is_an_utterance_too():
    env = ActEnv(TASK)
    env.reset(seed=0)
    _, reward, *_, info = env.step(np.zeros(THINGS, np.int8))
    assert (info["utterance"], info["reply"], reward) == ("ask", "want", -COST)


def test_floats_that_are_whole_will_do():
    """As the policies of Stable-Baselines3 have them."""
    env, batch = ActEnv(TASK), ActVectorEnv(TASK, 1)
    env.reset(seed=0)
    batch.reset(seed=0)
    *_, info = env.step(np.array([1.0, 0.0, 0.0, 1.0], np.float32))
    *_, infos = batch.step(np.array([[1.0, 0.0, 0.0, 1.0]], np.float32))
    assert info["utterance"] == infos["utterance"][0] == "ask 0 3"


def test_an_unknown_policy():
    with pytest.raises(ValueError, match=r"unknown act policy 'best'\. Known: "):
        ActEnv(TASK).acts.policy_named("best")


def test_masks_in_the_form_of_maskable_ppo():
    masks = np.array([[True, False], [False, True]])
    assert (maskable(masks, gym.spaces.Discrete(2)) == masks).all()
    spread = maskable(masks, gym.spaces.MultiBinary(2))
    assert spread.tolist() == [[True, True, True, False], [True, False, True, True]]
    pool = dialgym.sb3_vec_env(ID, 3, seed=0)
    pool.reset()
    assert np.stack(pool.env_method("action_masks")).shape == (3, 2 * THINGS)


@pytest.mark.slow
def test_ppo_learns_to_ask_for_everything_at_once():
    from stable_baselines3 import PPO

    pool = dialgym.sb3_vec_env(ID, 8, seed=0)
    model = PPO("MlpPolicy", pool, n_steps=16, batch_size=128, learning_rate=0.01, seed=0)
    before = score(model)
    model.learn(4000)
    assert score(model) > before + 0.1
    assert score(model) > score(AskAll()) - 0.1


def score(policy, seeds=40):
    """Mean return."""
    env, total = ActEnv(TASK), 0.0
    for seed in range(seeds):
        observation, _ = env.reset(seed=seed)
        over = False
        while not over:
            if hasattr(policy, "act"):
                action = policy.act(TASK, env.dialogue.state, None)
            else:
                action, _ = policy.predict(observation, deterministic=True)
            observation, reward, terminated, truncated, _ = env.step(action)
            over, total = terminated or truncated, total + reward
    return total / seeds


def test_maskable_ppo_keeps_to_the_masks():
    from sb3_contrib import MaskablePPO

    pool = dialgym.sb3_vec_env(ID, 4, seed=0, learner="user", simulator="ask-all")
    model = MaskablePPO("MlpPolicy", pool, n_steps=16, batch_size=64, seed=0)
    model.learn(64)
    env = ActEnv(TASK, learner="user", simulator="ask-all")
    for seed in range(10):
        seen, _ = env.reset(seed=seed)
        over = False
        while not over:
            masks = env.action_masks()
            action, _ = model.predict(seen, action_masks=maskable(masks, env.action_space))
            assert not (action.astype(bool) & ~masks).any()
            seen, _, terminated, truncated, _ = env.step(action)
            over = terminated or truncated
    result = dialgym.evaluate(model, ID, 4, env_kwargs={"learner": "user", "simulator": "ask-all"})
    assert len(result.overall.returns.ravel()) == 12
