"""Locks of folders: one writer at a time."""

import os
import re
import socket
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from filelock import FileLock, Timeout

from dialgym.io.files import explained

LOCK = ".lock"
_HOLDER = re.compile(r"process (?P<process>\d+) on (?P<host>.+)")
"""Content of a lock: the process that holds it."""
PATIENCE = 10.0
"""Seconds in which the children of a killed process end."""


class FolderInUse(OSError):
    """Another process is writing into the folder."""


@contextmanager
def locked(folder: Path, patience: float = 0.0) -> Iterator[None]:
    """Hold the only right to write into a folder, which is made where there is none.

    The right ends with the block, and with the process, however that ends. Within it a thread may
    ask for it again. The folder has a file ``.lock`` meanwhile, which says who writes.

    Args:
        folder: the folder.
        patience: seconds to wait for another writer, such as a child of a killed process that has
            not yet noticed.

    Raises:
        FolderInUse: another process, or another thread, has it.
        OSError: the folder cannot be written; the message says what to do.
    """
    with explained(folder):
        folder.mkdir(parents=True, exist_ok=True)
        file = folder.resolve() / LOCK
        lock = FileLock(file, timeout=0, is_singleton=True)
        try:
            lock.acquire(patience)
        except Timeout:
            raise FolderInUse(
                f"{str(folder)!r} is being written by {_holder(file)}. Wait until it has ended, or "
                "give another folder."
            ) from None
        with suppress(OSError):
            file.write_text(f"process {os.getpid()} on {socket.gethostname()}", "utf-8")
    try:
        yield
    finally:
        if lock.lock_counter == 1:
            with suppress(OSError):  # Windows removes no open file
                file.unlink()
        lock.release()


def _holder(file: Path) -> str:
    with suppress(OSError, UnicodeDecodeError):
        return file.read_text("utf-8").strip() or "another process"
    return "another process"


def is_locked(folder: Path) -> bool:
    """Return True if a process writes into a folder; a killed one leaves the file there."""
    try:
        holder = _HOLDER.fullmatch((folder / LOCK).read_text("utf-8"))
    except (OSError, UnicodeDecodeError):
        return False
    if holder is None or holder["host"] != socket.gethostname() or os.name != "posix":
        return True
    try:
        os.kill(int(holder["process"]), 0)
    except PermissionError:
        return True
    except (ProcessLookupError, OverflowError):
        return False
    return True
