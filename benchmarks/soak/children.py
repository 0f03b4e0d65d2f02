"""Work in forked processes, which can be killed, and a check for processes left behind."""

import os
import signal
import sys
import time
import traceback
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

PATIENCE = 20.0
"""Seconds in which what a killed process has started ends."""


class Child:
    """A fork of this process, and the group of all that it starts.

    What this process has imported need not be imported again: a run of a second takes a second.

    Args:
        work: what it does; it has failed where that raises an error.
        log: a file for what it prints.
    """

    def __init__(self, work: Callable[[], object], log: Path) -> None:
        self.log = log
        sys.stdout.flush()
        sys.stderr.flush()
        self.pid = os.fork()
        if self.pid == 0:
            _do(work, log)
        _lead(self.pid)

    def wait(self, seconds: float = 120.0) -> None:
        """Wait until it has done its work.

        Raises:
            AssertionError: it has failed, or takes longer.
        """
        status = self._ended(seconds)
        if status is None:
            self.kill()
            raise AssertionError(f"hangs: not done after {seconds:g} s; {self._said()}")
        assert status == 0, f"ended with status {status}: {self._said()}"

    def kill(self, after: float = 0.0) -> bool:
        """Kill it after some seconds, with SIGKILL; return True if it was still running."""
        alive = self._ended(after) is None
        if alive:
            os.kill(self.pid, signal.SIGKILL)
            os.waitpid(self.pid, 0)
        return alive

    def leaves_nothing(self) -> None:
        """Wait until what it has started has ended.

        Raises:
            AssertionError: some of that goes on.
        """
        until = time.monotonic() + PATIENCE
        while left := _living(self.pid):
            if time.monotonic() > until:
                for process in left:
                    os.kill(process, signal.SIGKILL)
                raise AssertionError(f"orphans: {len(left)} processes go on")
            time.sleep(0.01)

    def _ended(self, seconds: float) -> int | None:
        """Its exit status; None where it still runs after so many seconds."""
        until = time.monotonic() + seconds
        while True:
            found, status = os.waitpid(self.pid, os.WNOHANG)
            if found:
                return os.waitstatus_to_exitcode(status)
            if time.monotonic() >= until:
                return None
            time.sleep(0.002)

    def _said(self) -> str:
        lines = self.log.read_text("utf-8", "replace").strip().splitlines()
        return lines[-1] if lines else "it printed nothing"


def _do(work: Callable[[], object], log: Path) -> None:
    status = 1
    try:
        _lead(0)
        sys.stdout = sys.stderr = log.open("a", encoding="utf-8", errors="replace")
        for standard in (1, 2):
            os.dup2(sys.stdout.fileno(), standard)
        work()
        status = 0
    except BaseException:
        traceback.print_exc()
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(status)


def _lead(process: int) -> None:
    """Make it the first of a group; both sides do that, as either may be the first to come."""
    with suppress(OSError):
        os.setpgid(process, process)


def _living(group: int) -> list[int]:
    """The processes of a group that have not ended; none where the system does not list them."""
    found: list[int] = []
    if not os.path.isdir("/proc"):
        return found
    for entry in os.listdir("/proc"):
        if entry.isdigit():
            try:
                stat = Path("/proc", entry, "stat").read_text("utf-8", "replace")
            except OSError:
                continue
            state, _, own = stat.rpartition(")")[2].split()[:3]
            if int(own) == group and state not in "ZX":
                found.append(int(entry))
    return found
