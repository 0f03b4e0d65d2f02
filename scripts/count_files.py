"""Number of this project's files whose functions run in an update, or on the way to a rollout.

    python scripts/count_files.py update   # one SequencePPO.train()
    python scripts/count_files.py rollout  # from `dialgym train ppo` to the first rollout

A file counts if one of its functions or methods is called; what runs while a module is imported
does not count. `--list` shows the files with their functions.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from collections import defaultdict
from inspect import CO_OPTIMIZED
from pathlib import Path
from types import FrameType
from typing import Any, NoReturn

ROOT = Path(__file__).resolve().parents[1]
PACKAGES = (f"{ROOT / 'agents'}/", f"{ROOT / 'dialgym'}/")
ID = "dialgym/Wordle-20-v0"
SMALL = {"n_layer": 1, "n_head": 1, "n_embd": 16}


class RolloutBegins(BaseException):
    """The first rollout, up to which files are counted."""


class FileCounter:
    """Records which functions of the packages `agents` and `dialgym` are called.

    Attributes:
        functions: their qualified names, by the path of the file.
    """

    def __init__(self) -> None:
        self.functions: dict[str, set[str]] = defaultdict(set)

    def __enter__(self) -> FileCounter:
        sys.setprofile(self._called)
        return self

    def __exit__(self, *_: object) -> None:
        sys.setprofile(None)

    def _called(self, frame: FrameType, event: str, _: Any) -> None:
        code = frame.f_code
        is_function = event == "call" and code.co_flags & CO_OPTIMIZED
        if is_function and code.co_filename.startswith(PACKAGES):
            path = str(Path(code.co_filename).relative_to(ROOT))
            if code.co_qualname not in self.functions.get(path, ()) and not _importing(frame):
                self.functions[path].add(code.co_qualname)


def _importing(frame: FrameType | None) -> bool:
    """Return True if a module is being imported by which the frame is called."""
    while frame is not None:
        if frame.f_code.co_filename == "<frozen importlib._bootstrap>":
            return True
        frame = frame.f_back
    return False


def count_update() -> FileCounter:
    """Count the files of one `SequencePPO.train()`."""
    import agents
    import dialgym

    counter = FileCounter()

    class Counted(agents.SequencePPO):
        def train(self) -> None:
            with counter:
                super().train()

    env = dialgym.sb3_vec_env(ID, 4)
    Counted("GPTPolicy", env, n_steps=32, policy_kwargs=SMALL, device="cpu").learn(1)
    return counter


def count_rollout() -> FileCounter:
    """Count the files from the command `dialgym train ppo` to its first rollout."""
    from agents.online.ppo import SequencePPO
    from dialgym.cli import main as run_command

    def stop(*_: object, **__: object) -> NoReturn:
        raise RolloutBegins

    SequencePPO.collect_rollouts = stop  # type: ignore[method-assign, assignment]
    counter = FileCounter()
    with tempfile.TemporaryDirectory() as folder:
        sys.argv = ["dialgym", "train", "ppo", ID, "--out", f"{folder}/run"]
        try:
            with counter:
                run_command()
        except RolloutBegins:
            pass
    return counter


def main() -> None:
    """Print the number of files."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("what", choices=["update", "rollout"])
    parser.add_argument("--list", action="store_true", help="show the files and their functions")
    given = parser.parse_args()
    found = {"update": count_update, "rollout": count_rollout}[given.what]().functions
    for path in sorted(found) if given.list else ():
        print(f"{path}: {', '.join(sorted(found[path]))}")
    print(f"{given.what}: {len(found)} files")


if __name__ == "__main__":
    main()
