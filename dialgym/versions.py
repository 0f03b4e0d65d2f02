"""Versions, machine, commit and command of a result."""

import os
import platform
import shlex
import subprocess
import sys
import time
from collections.abc import Callable
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


def stopwatch() -> Callable[[], dict[str, float]]:
    """A function that gives the wall and CPU seconds of this process since now, as in rows."""
    wall, cpu = time.monotonic(), time.process_time()
    return lambda: {
        "wall_seconds": round(time.monotonic() - wall, 1),
        "cpu_seconds": round(time.process_time() - cpu, 1),
    }


def hardware() -> dict[str, Any]:
    """Processor, cores and system of the machine; what torch uses of it, if loaded.

    The accelerator is the GPU that this process has computed on; without one there is none. A
    virtual machine may hide the name of its processor (``AMD EPYC``) and not its model, so that
    stands beside it. Instructions are those of ``ATEN_CPU_CAPABILITY``, by which sums are rounded.
    """
    facts = _cpu_facts()
    known = ("cpu family", "model", "stepping")
    model = ", ".join(f"{name} {facts[name]}" for name in known if name in facts)
    torch = sys.modules.get("torch")
    capability = torch.backends.cpu.get_cpu_capability() if torch else None
    used = torch is not None and torch.cuda.is_initialized()
    return {
        "processor": facts.get("model name") or platform.processor() or platform.machine(),
        **({"processor_model": model} if model else {}),
        **({"cpu_capability": capability} if capability else {}),
        **({"accelerator": torch.cuda.get_device_name()} if torch and used else {}),
        "cores": os.cpu_count(),
        "system": platform.system(),
    }


def _cpu_facts() -> dict[str, str]:
    """Lines of the first processor in /proc/cpuinfo; none where there is no such file."""
    try:
        first, _, _ = Path("/proc/cpuinfo").read_text("utf-8").partition("\n\n")
    except OSError:
        return {}
    pairs = (line.partition(":") for line in first.splitlines())
    return {name.strip(): value.strip() for name, _, value in pairs}


def _commit() -> str:
    """Commit of the checkout that this file is in, with + if files were changed; empty for none."""
    where = ["git", "-C", str(Path(__file__).parent)]
    try:
        head = subprocess.run([*where, "rev-parse", "--short=12", "HEAD"], **_QUIET).stdout.strip()
        changed = subprocess.run([*where, "status", "--porcelain", "-uno"], **_QUIET).stdout.strip()
    except OSError:
        return ""
    return f"{head}+" if head and changed else head
