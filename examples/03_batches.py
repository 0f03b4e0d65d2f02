"""A thousand dialogues at once, in one process and over two."""

import time

import gymnasium as gym
import numpy as np

import dialgym  # noqa: F401

DIALOGUES, STEPS = 1024, 200

for workers in (0, 2):
    envs = gym.make_vec("dialgym/Wordle-v0", num_envs=DIALOGUES, workers=workers)
    observations, _ = envs.reset(seed=0)
    tokens = np.random.default_rng(0).integers(5, 31, (STEPS, DIALOGUES))
    start = time.perf_counter()
    for actions in tokens:
        observations, rewards, terminated, truncated, infos = envs.step(actions)
    rate = STEPS * DIALOGUES / (time.perf_counter() - start)
    print(f"workers={workers}: observations {observations.shape}, {rate:,.0f} tokens a second")
    envs.close()
