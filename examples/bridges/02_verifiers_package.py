"""A dialogue as a package of verifiers, and its way back in: needs the extra `verifiers`."""

import subprocess
import sys
from pathlib import Path

import dialgym

site = Path("site").absolute()  # in a project of your own: pip install ./wordle
export = [sys.executable, "-m", "dialgym", "export", "verifiers", "Wordle-20-v0", "wordle"]
install = [sys.executable, "-m", "pip", "install", "--quiet", "--no-deps", "--target", str(site)]
subprocess.run(export, check=True)
subprocess.run([*install, "--no-build-isolation", "--no-index", "./wordle"], check=True)
sys.path.append(str(site))

# What any package of verifiers is here: its environment runs, and its agent is the one who speaks.
env = dialgym.make("verifiers:dialgym-wordle-20-v0")
env.reset(options={"seed": 3})
for word in ("quiet", "crisp"):
    text, reward, terminated, truncated, info = env.step(word)
    print(f"{word}: {reward:g}")
print(text)
env.close()
