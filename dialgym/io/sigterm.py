"""SIGTERM, by which schedulers end a program, taken as Ctrl-C is."""

import os
import signal
from types import FrameType


class Terminated(KeyboardInterrupt):
    """SIGTERM came: whoever keeps what is whole at Ctrl-C does so here too."""

    def __init__(self) -> None:
        super().__init__("terminated")


def take_sigterm() -> None:
    """Let SIGTERM raise `Terminated`, once, where nothing else has been said about it.

    Of several processes that train together none takes it: they would not stop at the same update.
    """
    if "WORLD_SIZE" not in os.environ and signal.getsignal(signal.SIGTERM) is signal.SIG_DFL:
        signal.signal(signal.SIGTERM, _terminate)


def _terminate(number: int, frame: FrameType | None) -> None:
    signal.signal(signal.SIGTERM, signal.SIG_IGN)  # what is whole is being kept
    raise Terminated


def exit_status(error: BaseException | None) -> int:
    """Compute the exit status of an interrupted program, 128 and the signal's number."""
    while error is not None:
        if isinstance(error, Terminated):
            return 128 + signal.SIGTERM
        error = error.__cause__ or error.__context__
    return 128 + signal.SIGINT
