"""A user's code, for type checkers: `tests/project/test_types.py` runs them on it."""

from typing import assert_type

import gymnasium as gym
import numpy as np

import agents
import dialgym


def use_it(path: str) -> float:
    """One of each public thing, with the types that a user counts on."""
    ids = dialgym.list_ids(tag="quick")
    assert_type(ids, list[str])
    env = gym.make(ids[0])
    env.reset(seed=0, options={"word": "sleep"})
    batch = dialgym.make_vec("Wordle-20-v0", 4)
    batch.close()
    vec = dialgym.sb3_vec_env("Wordle-20-v0", n_envs=8, seed=0)
    masks: list[np.ndarray] = vec.env_method("action_masks")
    model = agents.SequencePPO("GPTPolicy", vec, n_steps=36, device="cpu")
    assert_type(model, agents.SequencePPO)
    assert_type(model.learn(len(masks)), agents.SequencePPO)
    model.save(path)
    again = agents.SequencePPO.load(path)
    assert_type(again, agents.SequencePPO)
    games = dialgym.collect("Wordle-20-v0", "random", 10)
    assert_type(games, dialgym.Dataset)
    assert_type(dialgym.load_dataset(path), dialgym.Dataset)
    learner = agents.ILQL("GPTPolicy", vec, dataset=games)
    assert_type(learner.learn(10), agents.ILQL)
    beliefs = dialgym.sb3_vec_env("SlotFilling-act-v0", 4)
    assert_type(agents.DQN("MlpPolicy", beliefs, n_steps=2, double=False), agents.DQN)
    assert_type(agents.GDPL("MlpPolicy", beliefs, dataset=games, clip_range=0.1), agents.GDPL)
    agents.TRACER("MlpPolicy", beliefs, batch_size=None, gae_lambda=0.9, policy_kwargs={})
    agents.FeudalGain("MlpPolicy", beliefs, tau=0.01, reward_scale=0.05, learning_rate=1e-3)
    agents.Committee("GPPolicy", beliefs, members={}, kernel="rbf", gamma=0.9, seed=0)
    result = dialgym.evaluate(again, "Wordle-20-v0", episodes=10)
    assert_type(result, dialgym.Result)
    low, high = result["Wordle-20-v0"].interval
    return low + high + result.mean_return


def misuse_it() -> None:
    """Code that type checkers are to find fault with."""
    dialgym.list_ids(task=3)  # wrong
    dialgym.evaluate("random", "Wordle-20-v0", episodes="ten")  # wrong
    dialgym.collect("Wordle-20-v0", "random")  # wrong
    dialgym.Result.from_json(3)  # wrong
    vec = dialgym.sb3_vec_env("Wordle-20-v0", n_envs=8)
    agents.SequencePPO("GPTPolicy", vec, n_stps=36)  # wrong
    agents.GRPO("GPTPolicy", vec, batch_size="64")  # wrong
    agents.NLPO("GPTPolicy", vec, gama=0.9)  # wrong
    agents.ILQL("ValueGPTPolicy", vec, learning_rat=1e-3)  # wrong
    agents.CHAI("CHAIPolicy", vec, gamma="0.9")  # wrong
    agents.MLE("GPTPolicy", vec, seeed=1)  # wrong
    agents.DQN("MlpPolicy", vec, n_stps=2)  # wrong
    agents.ACER("MlpPolicy", vec, 1e-3)  # wrong
    agents.BBQN("MlpPolicy", vec, batch_size="64")  # wrong
    agents.FeudalDQN("MlpPolicy", vec, learning_rat=1e-3)  # wrong
    agents.A2C("MlpPolicy", vec, gama=0.9)  # wrong
    agents.TRACER("MlpPolicy", vec, gae_lamda=0.9)  # wrong
    agents.ENAC("MlpPolicy", vec, ent_coef="0")  # wrong
    agents.PG("MlpPolicy", vec, n_epoch=2)  # wrong
    agents.MADPL("MlpPolicy", vec, batchsize=64)  # wrong
    agents.GDPL("MlpPolicy", vec, clip_rnge=0.1)  # wrong
    agents.Committee("GPPolicy", vec, sigma="5")  # wrong
    agents.train("Wordle-20-v0", "ppo", total_timestep=64)  # wrong
    agents.TrainConfig(eval_freq="often")  # wrong
