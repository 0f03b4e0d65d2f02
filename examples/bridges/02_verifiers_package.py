"""A dialogue as a package of verifiers, and its way back in: needs the extra `verifiers`."""

import subprocess
import sys
from tempfile import TemporaryDirectory

import dialgym

with TemporaryDirectory() as folder:
    package, site = f"{folder}/wordle", f"{folder}/site"
    export = [sys.executable, "-m", "dialgym", "export", "verifiers", "Wordle-20-v0", package]
    subprocess.run(export, check=True)
    # In a project of your own: pip install ./wordle
    install = [sys.executable, "-m", "pip", "install", "--quiet", "--no-deps", "--target", site]
    subprocess.run([*install, "--no-build-isolation", "--no-index", package], check=True)
    sys.path.append(site)

    # What any package of verifiers is here: its environment runs, and its agent is who speaks.
    env = dialgym.make("verifiers:dialgym-wordle-20-v0")
    env.reset(options={"seed": 3})
    for word in ("quiet", "crisp"):
        text, reward, terminated, truncated, info = env.step(word)
        print(f"{word}: {reward:g}")
    print(text)
    env.close()
