"""Slot filling under noise: beliefs in, summary acts out, with the masks of sb3-contrib.

The handcrafted policy is the one to beat. The domain is a built-in restaurant guide; `domain=PATH`
plays any other.
"""

import gymnasium as gym
import torch
from sb3_contrib import MaskablePPO

import dialgym

torch.set_num_threads(1)  # the fastest on networks as small as these
ID = "dialgym/SlotFilling-act-v0"

env = gym.make(ID, env=3, render_mode="ansi")  # 15 % errors, as in PyDial's third setting
env.reset(seed=0)
over = False
while not over:
    action = env.action_space.sample(env.unwrapped.action_masks().astype("int8"))
    _, _, terminated, truncated, _ = env.step(action)
    over = terminated or truncated
print(env.render(), "\n")

pool = dialgym.sb3_vec_env(ID, n_envs=32, seed=0, env=3)
model = MaskablePPO("MlpPolicy", pool, n_steps=64, batch_size=512, learning_rate=1e-3, seed=0)
model.learn(20_000)
for name, policy in {"MaskablePPO": model, "handcrafted": "handcrafted"}.items():
    result = dialgym.evaluate(policy, ID, 200, env_kwargs={"env": 3})
    print(f"{name}: {result.mean_return:.1f}")
