"""The act view: beliefs in, summary acts out."""

import gymnasium as gym
import numpy as np

from dialgym.tasks.slot_filling import SlotFilling
from dialgym.views.act_env import ActEnv

TASK = SlotFilling("Restaurants", 6)


def test_it_shows_the_belief_and_says_the_act():
    env = ActEnv(TASK)
    observation, info = env.reset(seed=0)
    assert info["reward_components"] == {"turn": 0.0, "closing": 0.0, "success": 0.0}
    assert (observation == TASK.acts["system"].observe(env.dialogue.state)).all()
    chosen = env.act_names.index("request_food")
    observation, reward, terminated, truncated, info = env.step(chosen)
    assert (reward, terminated, truncated) == (-1, False, False)
    assert info["utterance"] == "request(food)"
    assert info["turn"] == 1
    assert info["reward_components"] == {"turn": -1, "closing": 0, "success": 0}
    assert observation.dtype == np.float32
    assert (observation == TASK.acts["system"].observe(env.dialogue.state)).all()


def test_masks_come_with_the_info_if_asked_for():
    env = gym.make("dialgym/CamRestaurants-Env3-act-v0", action_masks=True)
    _, info = env.reset(seed=0)
    assert info["action_mask"].dtype == np.int8
    info = env.step(0)[-1]
    assert (info["action_mask"] == env.unwrapped.action_masks()).all()
    assert env.unwrapped.action_masks().shape == (env.action_space.n,)
