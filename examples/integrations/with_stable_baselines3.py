"""Stable-Baselines3: DQN on acts, sb3-contrib's MaskablePPO on tokens.

``pip install stable-baselines3 sb3-contrib``; after the examples of the two documentations.
"""

import gymnasium as gym
from common import ACTS, TOKENS, chosen_view, mean_return, report
from sb3_contrib import MaskablePPO
from stable_baselines3 import DQN

import dialgym


def acts() -> float:
    env = gym.make(ACTS)
    model = DQN(
        "MlpPolicy",
        env,
        learning_rate=5e-4,
        learning_starts=500,
        target_update_interval=500,
        exploration_fraction=0.3,
        seed=0,
    )
    model.learn(30_000)
    return mean_return(env, lambda seen, _: model.predict(seen, deterministic=True)[0])


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
