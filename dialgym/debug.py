"""Runtime checks of declared facts, such as bounds of returns; they cost some speed."""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar

DEBUG = "DIALGYM_DEBUG"
"""Environment variable: with 1, declared bounds are checked in every dialogue."""
_enforced = ContextVar("enforced", default=False)


class BrokenPromise(AssertionError):
    """Something has left the bounds that were declared for it."""


def enforcing() -> bool:
    """Return True within `enforced` or with ``DIALGYM_DEBUG=1``: declared bounds are checked."""
    return _enforced.get() or os.environ.get(DEBUG, "0") not in ("", "0")


@contextmanager
def enforced() -> Iterator[None]:
    """Enforce declared bounds within the block, as the checks of tasks do."""
    token = _enforced.set(True)
    try:
        yield
    finally:
        _enforced.reset(token)
