"""A GPT policy in stock PPO: masked by the task, its environments sharded over two processes.

A token is a word here, so that a guess is one action. Random words earn -5.0, the best play -1.05.
"""

import torch
from stable_baselines3 import PPO

import dialgym
from agents import GPTPolicy

torch.set_num_threads(1)  # the fastest on batches as small as these

ID, WORDS = "dialgym/Wordle-20-v0", {"tokenizer": "word"}
pool = dialgym.sb3_vec_env(ID, n_envs=64, workers=2, seed=0, **WORDS)
model = PPO(
    GPTPolicy,
    pool,
    n_steps=24,
    batch_size=512,
    n_epochs=6,
    learning_rate=2e-3,
    gamma=1.0,
    gae_lambda=0.5,
    ent_coef=0.03,
    vf_coef=0.1,
    seed=0,
    policy_kwargs={"n_layer": 1, "n_head": 4},
)
model.learn(40 * 24 * 64)
pool.close()

result = dialgym.evaluate(model, ID, episodes=100, seeds=(0, 1), env_kwargs=WORDS)
print(result.to_markdown())
