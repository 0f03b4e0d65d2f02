"""Ctrl-C and SIGTERM while a run learns: it stops where nothing is half done, with a checkpoint."""

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

from dialgym.io.sigterm import Terminated

WAIT = (
    "\n{}: a checkpoint follows the update that is under way. "
    "Ctrl-C stops at once, with the checkpoint before."
)


class Interrupted(KeyboardInterrupt):
    """A run was interrupted, and goes on exactly from its checkpoint with ``resume=True``.

    `agents.load` reads the model in its folder.

    Attributes:
        folder: of the run.
        timesteps: at which it stopped.
    """

    def __init__(self, folder: Path, timesteps: int) -> None:
        super().__init__(
            f"interrupted at {timesteps:,} timesteps; the checkpoint in {str(folder)!r} goes on "
            "from there (resume=True, dialgym train --resume FOLDER), and the folder can be played "
            "and loaded as a model is (dialgym evaluate FOLDER, agents.load(FOLDER))"
        )
        self.folder, self.timesteps = folder, timesteps


@dataclass
class Interrupt:
    """The wish to stop, as the error that stands for it; None while there is none."""

    cause: KeyboardInterrupt | None = None

    @property
    def requested(self) -> bool:
        """Tell whether the run is to stop."""
        return self.cause is not None


@contextmanager
def interrupt_handler() -> Iterator[Interrupt]:
    """Record Ctrl-C and SIGTERM; Ctrl-C after either raises `KeyboardInterrupt` as ever.

    They are taken in the main thread only, where they are not ignored, and by a process that trains
    alone: several would not stop at the same update.
    """
    found = Interrupt()
    alone = threading.current_thread() is threading.main_thread() and "WORLD_SIZE" not in os.environ
    signals = (signal.SIGINT, signal.SIGTERM) if alone else ()
    before = {number: signal.getsignal(number) for number in signals}

    def take(number: int, frame: FrameType | None) -> None:
        if not found.requested:
            terminated = number == signal.SIGTERM
            found.cause = Terminated() if terminated else KeyboardInterrupt()
            said = WAIT.format("Terminated" if terminated else "Interrupted")
            print(said, file=sys.stderr, flush=True)
        elif number == signal.SIGINT:
            raise KeyboardInterrupt

    taken = [number for number in before if before[number] not in (signal.SIG_IGN, None)]
    for number in taken:
        signal.signal(number, take)
    try:
        yield found
    finally:
        for number in taken:
            signal.signal(number, before[number])
