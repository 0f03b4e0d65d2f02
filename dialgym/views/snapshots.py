"""What an environment holds, to be put back where a reset is refused."""

from collections.abc import Iterable
from typing import Any

import numpy as np


class Snapshot:
    """The attributes of some objects as they are, and the states of generators.

    Arrays, lists and dicts are copied, what stands in lists is not: a batch puts new states there
    when rows begin anew, and leaves the old ones as they were. What a simulator remembers by itself
    is no part of it.

    Args:
        parts: the objects; None among them is skipped.
        rngs: generators that may be drawn from.
    """

    def __init__(self, parts: Iterable[Any], rngs: Iterable[np.random.Generator]) -> None:
        self._held = [
            (part.__dict__, _copied(part.__dict__)) for part in parts if hasattr(part, "__dict__")
        ]
        self._rngs = [(rng, rng.bit_generator.state) for rng in rngs]

    def restore(self) -> None:
        """Put everything back."""
        for held, before in self._held:
            held.clear()
            held.update(before)
        for rng, state in self._rngs:
            rng.bit_generator.state = state


def _copied(held: dict[Any, Any]) -> dict[Any, Any]:
    """The dict, and what may change within its values: every reset waits for this."""
    copied = held.copy()
    for name, value in held.items():
        kind = type(value)
        if kind is np.ndarray or kind is list:
            copied[name] = value.copy()
        elif kind is dict:
            copied[name] = _copied(value)
    return copied
