"""rl-zoo3 trains on a dialgym id with dialgym's own file of hyperparameters."""

import subprocess
import sys
import tempfile
from importlib.resources import files

with tempfile.TemporaryDirectory() as folder:
    command = [
        *(sys.executable, "-m", "rl_zoo3.train"),
        *("--algo", "ppo"),
        *("--env", "dialgym/Wordle-20-v0"),
        *("--gym-packages", "dialgym"),
        *("--conf-file", str(files("agents") / "configs" / "ppo.yml")),
        *("--hyperparams", "n_envs:8", "n_steps:72", "batch_size:288"),
        *("--n-timesteps", "1152"),
        *("--eval-freq", "-1"),
        *("--seed", "0"),
        *("--log-folder", folder),
    ]
    subprocess.run(command, check=True)
