"""Stable-Baselines3: PPO on acts, sb3-contrib's MaskablePPO on tokens.

``pip install stable-baselines3 sb3-contrib``; after the examples of the two documentations.
"""

import gymnasium as gym
from common import ACTS, TOKENS, chosen_view, mean_return, report
from sb3_contrib import MaskablePPO
from stable_baselines3 import PPO

import dialgym


def acts() -> float:
    pool = dialgym.sb3_vec_env(ACTS, 32, seed=0)
    settings = {"n_steps": 64, "batch_size": 512, "n_epochs": 4, "learning_rate": 1e-3}
    model = PPO("MlpPolicy", pool, ent_coef=0.01, seed=0, **settings)
    model.learn(80_000)
    env = gym.make(ACTS)
    return mean_return(env, lambda seen, _: int(model.predict(seen, deterministic=True)[0]))


def tokens() -> float:
    pool = dialgym.sb3_vec_env(TOKENS, 32, seed=0)
    model = MaskablePPO("MlpPolicy", pool, n_steps=64, batch_size=512, learning_rate=1e-3, seed=0)
    model.learn(150_000)
    env = gym.make(TOKENS)

    def act(seen, _):
        masks = env.unwrapped.action_masks()
        return int(model.predict(seen, action_masks=masks, deterministic=True)[0])

    return mean_return(env, act)


if __name__ == "__main__":
    view = chosen_view("act", "tokens")
    report(view, acts() if view == "act" else tokens())
