"""Stock Stable-Baselines3 over its own pool of subprocesses.

`make_sb3_pool` is SB3's `make_vec_env(id, n, vec_env_cls=SubprocVecEnv)` with a fork server that
has SB3 loaded before the workers start.
"""

from stable_baselines3 import PPO
from stable_baselines3.common.env_util import make_vec_env
from stable_baselines3.common.evaluation import evaluate_policy
from stable_baselines3.common.vec_env import SubprocVecEnv

import dialgym

if __name__ == "__main__":
    pool = dialgym.make_sb3_pool("dialgym/Wordle-20-v0", n_envs=4, seed=0)
    model = PPO("MlpPolicy", pool, n_steps=128, batch_size=128, n_epochs=4, gamma=1.0, seed=0)
    model.learn(2_000)
    pool.close()

    plain = make_vec_env("dialgym/Wordle-20-v0", 2, seed=1, vec_env_cls=SubprocVecEnv)
    mean, deviation = evaluate_policy(model, plain, n_eval_episodes=10)
    plain.close()
    print(f"mean return {mean:.2f} +/- {deviation:.2f} over 10 games")
