"""Waiting for something to happen in another process, however slow the machine is."""

import os
import signal
import subprocess
import time
from collections.abc import Callable

import psutil

HANG_GUARD = 1800.0
"""Seconds after which a test hangs. No test expects anything to be done within a shorter time."""


def wait_until(condition: Callable[[], object], process: subprocess.Popen | None = None) -> None:
    """Wait until a condition holds, and fail where the process has ended before it did."""
    end = time.monotonic() + HANG_GUARD
    while not condition():
        if process is not None and process.poll() is not None:
            assert condition(), f"the process ended too early, with {process.returncode}"
            return
        assert time.monotonic() < end, "this test hangs"
        time.sleep(0.01)


def end_family(process: subprocess.Popen, blow: signal.Signals = signal.SIGKILL) -> None:
    """Send a signal to a process, and wait until it and all that it had started have ended.

    SIGINT goes to all of them, as Ctrl-C does, where the process leads a group of its own.
    """
    family = psutil.Process(process.pid).children(recursive=True)
    if blow == signal.SIGINT and os.getpgid(process.pid) == process.pid:
        os.killpg(process.pid, blow)
    else:
        process.send_signal(blow)
    process.wait()
    wait_until(lambda: not any(map(lives, family)))


def lives(process: psutil.Process) -> bool:
    """Return True unless the process has ended, as a zombie has."""
    try:
        return process.status() != psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return False
