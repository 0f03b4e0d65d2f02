"""Whether what is declared is held against what happens, at the cost of some speed."""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar

DEBUG = "DIALGYM_DEBUG"
"""The environment variable: with 1, declared bounds are enforced wherever dialogues are held."""
_enforced = ContextVar("enforced", default=False)


class BrokenPromise(AssertionError):
    """Something has left the bounds that were declared for it."""


def enforcing() -> bool:
    """Whether declared bounds are enforced here: within `enforced`, or with ``DIALGYM_DEBUG=1``."""
    return _enforced.get() or os.environ.get(DEBUG, "0") not in ("", "0")


@contextmanager
def enforced() -> Iterator[None]:
    """Enforce declared bounds within the block, as the checks of tasks do."""
    token = _enforced.set(True)
    try:
        yield
    finally:
        _enforced.reset(token)
