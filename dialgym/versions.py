"""Versions, machine, commit and command of a result."""

import os
import platform
import shlex
import subprocess
import sys
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

VERSION = "0.1.0"
"""The version of dialgym."""
PACKAGES = ("dialgym", "torch", "numpy", "gymnasium", "stable-baselines3", "sb3-contrib")
_QUIET: dict[str, Any] = {"capture_output": True, "text": True, "check": False}


def versions() -> dict[str, str]:
    """Versions of Python and of the packages that results depend on, and the commit."""
    found = {"python": platform.python_version(), "machine": platform.machine()}
    for name in PACKAGES:
        try:
            found[name] = version(name)
        except PackageNotFoundError:
            found[name] = "none"
    found["dialgym"] = VERSION  # which runs, whatever is installed
    return {**found, "commit": _commit()}


def command_line() -> str:
    """The command of the project that this process runs, as it could be pasted; empty for none."""
    program = Path(sys.argv[0])
    if program.name == "__main__.py":
        module = ".".join(program.parent.parts[-2:])
        module = "dialgym" if module.endswith(".dialgym") else module
        if module == "dialgym" or module.startswith("benchmarks."):
            return shlex.join(["python", "-m", module, *sys.argv[1:]])
    return shlex.join(["dialgym", *sys.argv[1:]]) if program.stem == "dialgym" else ""


def hardware() -> dict[str, Any]:
    """Processor, cores and system of the machine."""
    try:
        text = Path("/proc/cpuinfo").read_text("utf-8")
        lines = [line for line in text.splitlines() if "model name" in line]
        names = [line.partition(":")[2].strip() for line in lines]
    except OSError:
        names = []
    return {
        "processor": names[0] if names else platform.processor() or platform.machine(),
        "cores": os.cpu_count(),
        "system": platform.system(),
    }


def _commit() -> str:
    """Commit of the checkout that this file is in, with + if files were changed; empty for none."""
    where = ["git", "-C", str(Path(__file__).parent)]
    try:
        head = subprocess.run([*where, "rev-parse", "--short=12", "HEAD"], **_QUIET).stdout.strip()
        changed = subprocess.run([*where, "status", "--porcelain", "-uno"], **_QUIET).stdout.strip()
    except OSError:
        return ""
    return f"{head}+" if head and changed else head
