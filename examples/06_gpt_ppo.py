"""A GPT policy in stock PPO: masked by the task, its environments sharded over two processes."""

import torch
from stable_baselines3 import PPO

import dialgym
from agents import GPTPolicy

torch.set_num_threads(1)  # the fastest on batches as small as these

pool = dialgym.sb3_vec_env("dialgym/Wordle-20-v0", n_envs=64, workers=2, seed=0)
model = PPO(
    GPTPolicy,
    pool,
    n_steps=72,
    batch_size=1152,
    n_epochs=3,
    learning_rate=1e-3,
    gamma=1.0,
    seed=0,
    policy_kwargs={"preset": "nano"},
)
model.learn(3 * 72 * 64)
pool.close()

result = dialgym.evaluate(model, ["dialgym/Wordle-20-v0"], episodes=100, seeds=(0, 1))
print(result.to_markdown())
