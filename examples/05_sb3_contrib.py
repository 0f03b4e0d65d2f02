"""sb3-contrib: MaskablePPO, which asks nothing that is forbidden, and RecurrentPPO.

Random questions earn -6.3, the best -2.5.
"""

from sb3_contrib import MaskablePPO, RecurrentPPO
from sb3_contrib.common.maskable.evaluation import evaluate_policy

import dialgym

pool = dialgym.sb3_vec_env("dialgym/TwentyQuestions-8-act-v0", n_envs=16, seed=0)

masked = MaskablePPO("MlpPolicy", pool, n_steps=64, batch_size=256, gamma=1.0, seed=0)
masked.learn(12_000)
mean, _ = evaluate_policy(masked, pool, n_eval_episodes=50, warn=False)
print(f"MaskablePPO: mean return {mean:.2f} over 50 dialogues")

recurrent = RecurrentPPO("MlpLstmPolicy", pool, n_steps=36, batch_size=144, n_epochs=2, seed=0)
recurrent.learn(1_200)
print(f"RecurrentPPO: {recurrent.num_timesteps} acts")
