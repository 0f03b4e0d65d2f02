"""GRPO: no value function; eight games on the same secret are compared with one another."""

import torch

import dialgym
from agents import GRPO

torch.set_num_threads(1)  # the fastest on batches as small as these
ID = "dialgym/Wordle-20-v0"

model = GRPO(
    "GPTPolicy",
    dialgym.sb3_vec_env(ID, n_envs=128, seed=0),
    n_steps=128,
    batch_size=1024,
    n_epochs=2,
    group_size=8,
    learning_rate=1.5e-3,
    ent_coef=0.01,
    seed=0,
)
for iteration in range(1, 6):
    model.learn(1, reset_num_timesteps=iteration == 1)
    returns = model.rollout_buffer.steps("rewards").sum(0).mean()
    print(f"iteration {iteration}: mean return {returns:.2f}")
