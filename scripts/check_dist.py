"""Build the wheel and the sdist, and try both in clean environments of every Python at hand.

    python scripts/check_dist.py [FOLDER] [--extra NAME ...]

Pip fetches what dialgym needs, as for any user. Each environment lies in a temporary folder and
knows nothing of this checkout.
"""

import argparse
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
PYTHONS = ("python3.11", "python3.12", "python3.13", "python3.14")
ADMITTED = "import sys; sys.exit(not (3, 11) <= sys.version_info < (3, 15))"
USE_IT = """
import dialgym, gymnasium as gym, pathlib
env = gym.make("dialgym/Wordle-20-utterance-v0")
env.reset(seed=0, options={"word": "sleep"})
assert env.step("sleep")[1:3] == (0.0, True)
assert dialgym.evaluate("optimal", "Wordle-20-v0", 5, seeds=(0,)).success == 1
assert (pathlib.Path(dialgym.__file__).parent / "py.typed").is_file()
"""
COMMANDS = (("list", "--task", "wordle"), ("evaluate", "random", "SlotFilling-act-v0", "-n", "3"))


def run(*command: str | Path, **more: object) -> None:
    """Run a command; the exit code ends this program where it is not 0."""
    result = subprocess.run(command, capture_output=True, text=True, **more)  # type: ignore[call-overload]
    if result.returncode:
        sys.exit(f"{' '.join(map(str, command))} failed:\n{result.stdout}{result.stderr}")


def build(folder: Path) -> list[Path]:
    """The wheel and the sdist, new ones."""
    for old in (*folder.glob("dialgym-*.whl"), *folder.glob("dialgym-*.tar.gz")):
        old.unlink()
    folder.mkdir(parents=True, exist_ok=True)
    for kind in ("wheel", "sdist"):
        run(sys.executable, "-m", "hatchling", "build", "-t", kind, "-d", folder, cwd=ROOT)
    return [*folder.glob("dialgym-*.whl"), *folder.glob("dialgym-*.tar.gz")]


def interpreters() -> dict[str, str]:
    """An interpreter of each version that is admitted, by its name."""
    found = {}
    for name in PYTHONS:
        beside = sorted(Path.home().glob(f".pyenv/versions/*/bin/{name}"))
        paths = [*filter(None, [shutil.which(name)]), *map(str, beside)]
        if works := [path for path in paths if _starts(path)]:  # pyenv's shims may not
            found[name] = works[0]
    return found or {Path(sys.executable).name: sys.executable}


def _starts(path: str) -> bool:
    done = subprocess.run([path, "-c", ADMITTED], capture_output=True, check=False)
    return done.returncode == 0


def try_out(python: str, package: Path, extras: list[str]) -> None:
    """Install a package into a new environment, and use it from an empty folder."""
    wanted = f"{package}[{','.join(extras)}]" if extras else str(package)
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place) / "venv"
        run(python, "-m", "venv", folder)
        own = folder / ("Scripts/python.exe" if sys.platform == "win32" else "bin/python")
        run(own, "-m", "pip", "install", "--disable-pip-version-check", "--quiet", wanted)
        clean = {k: v for k, v in os.environ.items() if not k.startswith(("PYTHON", "DIALGYM"))}
        run(own, "-c", USE_IT, cwd=place, env=clean)
        for command in COMMANDS:
            run(own, "-m", "dialgym", *command, cwd=place, env=clean)
        for extra in extras:
            if extra == "agents":
                run(own, "-c", "import agents; agents.SequencePPO", cwd=place, env=clean)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folder", nargs="?", type=Path, default=ROOT / "dist")
    parser.add_argument("--extra", action="append", default=[], help="install an extra too")
    arguments = parser.parse_args()
    packages = build(arguments.folder)
    found = interpreters()
    for name, python in found.items():
        for package in packages:
            try_out(python, package.resolve(), arguments.extra)
            print(f"{name}: {package.name} works", flush=True)
    if missing := [name for name in PYTHONS if name not in found]:
        print(f"not at hand: {', '.join(missing)}")


if __name__ == "__main__":
    main()
