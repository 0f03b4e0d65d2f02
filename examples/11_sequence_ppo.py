"""Cloned from scripted games, then improved by PPO that reads each dialogue once.

Every token pays for its divergence from the clone, at a price that keeps the policy near it.
"""

import torch

import dialgym
from agents import BC, SequencePPO, start_from

torch.set_num_threads(1)  # the fastest on batches as small as these
ID = "dialgym/Wordle-20-v0"

games = dialgym.collect(ID, "random-mixture", episodes=500, seed=0)
clone = BC("GPTPolicy", dialgym.sb3_vec_env(ID, 1), games, learning_rate=2e-3, seed=0)
clone.learn(300)

model = SequencePPO(
    "GPTPolicy",
    dialgym.sb3_vec_env(ID, n_envs=64, seed=0),
    n_steps=36,
    learning_rate=1e-3,
    gae_lambda=0.9,
    vf_coef=0.03,
    kl={"coef": 0.01, "target": 0.2},
    seed=0,
)
start_from(model.policy, clone)
model.learn(20 * 36 * 64)

for name, agent in {"cloned": clone, "PPO": model}.items():
    result = dialgym.evaluate(agent, ID, episodes=100, seeds=(0, 1), deterministic=False)
    print(f"{name}: mean return {result.mean_return:.2f}")
