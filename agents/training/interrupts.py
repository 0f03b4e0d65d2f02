"""Ctrl-C while a run learns: it stops where nothing is half done, and leaves a checkpoint."""

from __future__ import annotations

import os
import signal
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from types import FrameType

WAIT = (
    "\nInterrupted: a checkpoint follows the update that is under way. "
    "Ctrl-C again stops at once, with the checkpoint before."
)


class Interrupted(KeyboardInterrupt):
    """A run was interrupted, and goes on exactly from its checkpoint with ``resume=True``.

    Attributes:
        folder: of the run.
        timesteps: at which it stopped.
    """

    def __init__(self, folder: Path, timesteps: int) -> None:
        super().__init__(
            f"interrupted at {timesteps:,} timesteps; the checkpoint in {str(folder)!r} goes on "
            "from there (resume=True, --resume)"
        )
        self.folder, self.timesteps = folder, timesteps


@dataclass
class Interrupt:
    """Whether Ctrl-C was pressed."""

    wanted: bool = False


@contextmanager
def caught() -> Iterator[Interrupt]:
    """Take down that Ctrl-C was pressed; pressed again, it raises `KeyboardInterrupt` as ever.

    It is taken in the main thread only, where it is not ignored, and by a process that trains
    alone: several would not stop at the same update.
    """
    found, before = Interrupt(), signal.getsignal(signal.SIGINT)
    alone = threading.current_thread() is threading.main_thread() and "WORLD_SIZE" not in os.environ
    if not alone or before in (signal.SIG_IGN, None):
        yield found
        return

    def take(number: int, frame: FrameType | None) -> None:
        if found.wanted:
            raise KeyboardInterrupt
        found.wanted = True
        print(WAIT, file=sys.stderr, flush=True)

    signal.signal(signal.SIGINT, take)
    try:
        yield found
    finally:
        signal.signal(signal.SIGINT, before)
