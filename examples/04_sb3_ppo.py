"""Stock Stable-Baselines3 over its own pool of subprocesses.

`make_sb3_pool` is SB3's `make_vec_env(id, n, vec_env_cls=SubprocVecEnv)` with a fork server that
has SB3 loaded before the workers start. Random acts earn -4.4, the handcrafted policy 14.0.
"""

from stable_baselines3 import PPO
from stable_baselines3.common.env_util import make_vec_env
from stable_baselines3.common.evaluation import evaluate_policy
from stable_baselines3.common.vec_env import SubprocVecEnv

import dialgym

ID = "dialgym/SlotFilling-act-v0"

if __name__ == "__main__":
    pool = dialgym.make_sb3_pool(ID, n_envs=4, seed=0)
    model = PPO("MlpPolicy", pool, n_steps=256, batch_size=256, learning_rate=1e-3, seed=0)
    model.learn(40_000)
    pool.close()

    plain = make_vec_env(ID, 2, seed=1, vec_env_cls=SubprocVecEnv)
    mean, deviation = evaluate_policy(model, plain, n_eval_episodes=50)
    plain.close()
    print(f"mean return {mean:.2f} +/- {deviation:.2f} over 50 dialogues")
