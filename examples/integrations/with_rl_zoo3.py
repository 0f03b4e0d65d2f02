"""rl-zoo3: Stable-Baselines3's DQN on acts, trained and saved by its command line.

``pip install rl_zoo3 requests``; ``--gym-packages dialgym`` registers the ids.
"""

import subprocess
import sys
import tempfile
from pathlib import Path

import gymnasium as gym
from common import ACTS, chosen_view, mean_return, report
from stable_baselines3 import DQN

HYPERPARAMETERS = f"""
{ACTS}:
  n_timesteps: !!float 3e4
  policy: MlpPolicy
  learning_rate: !!float 5e-4
  learning_starts: 500
  target_update_interval: 500
  exploration_fraction: 0.3
"""

view = chosen_view("act")
with tempfile.TemporaryDirectory() as folder:
    settings = Path(folder, "dqn.yml")
    settings.write_text(HYPERPARAMETERS)
    command = [sys.executable, "-m", "rl_zoo3.train", "--algo", "dqn", "--env", ACTS]
    command += ["--gym-packages", "dialgym", "--conf-file", str(settings), "--seed", "0"]
    command += ["--eval-freq", "-1", "--log-folder", folder]
    subprocess.run(command, check=True)
    (saved,) = Path(folder).rglob(f"{ACTS.split('/')[1]}.zip")
    model = DQN.load(saved)
report(
    view, mean_return(gym.make(ACTS), lambda seen, _: model.predict(seen, deterministic=True)[0])
)
