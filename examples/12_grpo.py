"""GRPO: no value function; eight games on the same secret are compared with one another.

A token is a word here, so that a guess is one action. Random words earn -5.0, the best play -1.05.
"""

import torch

import dialgym
from agents import GRPO

torch.set_num_threads(1)  # the fastest on batches as small as these

model = GRPO(
    "GPTPolicy",
    dialgym.sb3_vec_env("dialgym/Wordle-20-v0", n_envs=256, seed=0, tokenizer="word"),
    n_steps=16,
    batch_size=512,
    n_epochs=4,
    group_size=8,
    learning_rate=3e-3,
    ent_coef=0.01,
    policy_kwargs={"n_layer": 1, "n_head": 4},
    seed=0,
)
for iteration in range(1, 73):
    model.learn(1, reset_num_timesteps=iteration == 1)
    returns = model.rollout_buffer.steps("rewards").sum(0).mean()
    if iteration % 12 == 0:
        print(f"iteration {iteration}: mean return {returns:.2f}")
