"""The loop that every RL library runs: one token a step."""

import gymnasium as gym
import numpy as np

import dialgym  # noqa: F401  (registers the ids)

env = gym.make("dialgym/Wordle-20-v0")
rng = np.random.default_rng(0)
observation, info = env.reset(seed=0)
total, over = 0.0, False
while not over:
    allowed = np.flatnonzero(env.unwrapped.action_masks())  # the letters that lead to a word
    observation, reward, terminated, truncated, info = env.step(rng.choice(allowed))
    total, over = total + reward, terminated or truncated

print(info["transcript"], end="")
print(f"return {total:g}, success {info['is_success']}, {(observation > 0).sum()} tokens")
