"""Type checkers, as a user runs them."""

import subprocess
import sys
from pathlib import Path

import pytest


def checker(name: str, folder: Path) -> list[str]:
    """The command of a type checker; the test is skipped where it does not start."""
    commands = {
        "mypy": [sys.executable, "-m", "mypy", "--cache-dir", str(folder), "--no-error-summary",
                 "--ignore-missing-imports", "--follow-imports=silent", "--config-file="],
        "pyright": [sys.executable, "-m", "pyright", "--pythonpath", sys.executable],
    }  # fmt: skip
    command = commands[name]
    try:  # pyright runs in node, which it would fetch where there is none
        version = [*command[:3], "--version"]
        done = subprocess.run(version, capture_output=True, timeout=60, check=False)
    except subprocess.TimeoutExpired:
        pytest.skip(f"{name} does not start")
    if done.returncode:
        pytest.skip(f"{name} does not start: {done.stderr.decode()[-200:]}")
    return command
