"""SIGTERM, which schedulers send to end a program, handled like Ctrl-C."""

import os
import signal
from types import FrameType


class Terminated(KeyboardInterrupt):
    """SIGTERM arrived: an interrupt, so that finished work is saved as at Ctrl-C."""

    def __init__(self) -> None:
        super().__init__("terminated")


def handle_sigterm() -> None:
    """Raise `Terminated` at the first SIGTERM, unless another handler is set.

    Not in processes that train together: they would not stop at the same update.
    """
    if "WORLD_SIZE" not in os.environ and signal.getsignal(signal.SIGTERM) is signal.SIG_DFL:
        signal.signal(signal.SIGTERM, _terminate)


def _terminate(number: int, frame: FrameType | None) -> None:
    signal.signal(signal.SIGTERM, signal.SIG_IGN)  # finished work is being saved
    raise Terminated


def exit_status(error: BaseException | None) -> int:
    """Compute the exit status of an interrupted program, 128 and the signal's number."""
    while error is not None:
        if isinstance(error, Terminated):
            return 128 + signal.SIGTERM
        error = error.__cause__ or error.__context__
    return 128 + signal.SIGINT
