"""sb3-contrib: MaskablePPO, which plays only words, and RecurrentPPO."""

from sb3_contrib import MaskablePPO, RecurrentPPO
from sb3_contrib.common.maskable.evaluation import evaluate_policy

import dialgym

pool = dialgym.sb3_vec_env("dialgym/Wordle-20-v0", n_envs=16, seed=0)

masked = MaskablePPO("MlpPolicy", pool, n_steps=72, batch_size=288, gamma=1.0, seed=0)
masked.learn(3_000)
mean, _ = evaluate_policy(masked, pool, n_eval_episodes=20, warn=False)
print(f"MaskablePPO: mean return {mean:.2f} over 20 games")

recurrent = RecurrentPPO("MlpLstmPolicy", pool, n_steps=36, batch_size=144, n_epochs=2, seed=0)
recurrent.learn(1_200)
print(f"RecurrentPPO: {recurrent.num_timesteps} tokens")
