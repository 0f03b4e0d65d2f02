"""rl-zoo3: Stable-Baselines3's PPO on acts, trained and saved by its command line.

``pip install rl_zoo3 requests``; ``--gym-packages dialgym`` registers the ids.
"""

import subprocess
import sys
import tempfile
from pathlib import Path

import gymnasium as gym
from common import ACTS, chosen_view, mean_return, report
from stable_baselines3 import PPO

HYPERPARAMETERS = f"""
{ACTS}:
  n_envs: 16
  n_timesteps: !!float 6e4
  policy: MlpPolicy
  n_steps: 128
  batch_size: 512
  n_epochs: 4
  learning_rate: !!float 1e-3
  ent_coef: 0.01
"""

view = chosen_view("act")
with tempfile.TemporaryDirectory() as folder:
    settings = Path(folder, "ppo.yml")
    settings.write_text(HYPERPARAMETERS, encoding="utf-8")
    command = [sys.executable, "-m", "rl_zoo3.train", "--algo", "ppo", "--env", ACTS]
    command += ["--gym-packages", "dialgym", "--conf-file", str(settings), "--seed", "0"]
    command += ["--eval-freq", "-1", "--log-folder", folder]
    subprocess.run(command, check=True)
    (saved,) = Path(folder).rglob(f"*{ACTS.split('/')[1]}.zip")
    model = PPO.load(saved)


def act(observation, info) -> int:
    return int(model.predict(observation, deterministic=True)[0])


report(view, mean_return(gym.make(ACTS), act))
