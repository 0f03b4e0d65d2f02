"""Caches: arrays on disk between runs; in memory the values used last, and values by task."""

import os
from collections import OrderedDict
from collections.abc import Callable, Hashable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, Generic, TypeVar
from weakref import WeakKeyDictionary

import numpy as np

from dialgym.io.checksums import check, write_checked

Value = TypeVar("Value")
UNREADABLE = (OSError, ValueError, EOFError)
"""Errors of a file of the cache that is missing, damaged or of an older form."""


def cache_dir() -> Path:
    """`$DIALGYM_CACHE`, else `dialgym` in `$XDG_CACHE_HOME` or `~/.cache`."""
    if "DIALGYM_CACHE" in os.environ:
        return Path(os.environ["DIALGYM_CACHE"])
    base = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(base) / "dialgym"


def cached_array(name: str, compute: Callable[[], np.ndarray]) -> np.ndarray:
    """The array of that name, read-only and memory-mapped; computed if it is not there yet.

    A damaged one is computed again. A cache that cannot be written is not an error: the array is
    then kept in memory only.
    """
    path = cache_dir() / f"{name}.npy"
    with suppress(*UNREADABLE):
        check(path, required=True)
        return np.asarray(np.load(path, mmap_mode="r"))
    array = compute()
    with suppress(OSError):
        write_checked(path, lambda temporary: np.save(temporary, array))
    array.flags.writeable = False
    return array


def cached_arrays(
    name: str, compute: Callable[[], Mapping[str, np.ndarray]]
) -> Mapping[str, np.ndarray]:
    """The arrays of that name, by their names; computed if they are not there yet."""
    path = cache_dir() / f"{name}.npz"
    with suppress(*UNREADABLE):
        check(path, required=True)
        with np.load(path) as stored:
            return dict(stored)
    arrays = compute()
    named: dict[str, Any] = dict(arrays)
    with suppress(OSError):
        write_checked(path, lambda temporary: np.savez(temporary, **named))
    return arrays


class LRU(Generic[Value]):
    """The `size` values used last; a copy or pickle of it is empty."""

    def __init__(self, size: int) -> None:
        self.size = size
        self._kept: OrderedDict[Hashable, Value] = OrderedDict()

    def __len__(self) -> int:
        return len(self._kept)

    def __reduce__(self) -> tuple[type["LRU[Value]"], tuple[int]]:
        return type(self), (self.size,)

    def get_many(
        self, keys: Sequence[Hashable], compute: Callable[[list[int]], Sequence[Value]]
    ) -> list[Value]:
        """The value of each key; `compute` gets the places of those not kept, each key once."""
        new: dict[Any, int] = {}
        for index, key in enumerate(keys):
            if key not in self._kept:
                new.setdefault(key, index)
        fresh = dict(zip(new, compute(list(new.values())))) if new else {}
        values = [fresh[key] if key in fresh else self._kept[key] for key in keys]
        self._keep(dict(zip(keys, values)))
        return values

    def get(self, key: Hashable) -> Value | None:
        """The value of a key, or None where it is not kept."""
        if key in self._kept:
            self._kept.move_to_end(key)
        return self._kept.get(key)

    def keep(self, key: Hashable, value: Value) -> None:
        """Keep a value."""
        self._keep({key: value})

    def _keep(self, values: dict[Any, Value]) -> None:
        for key, value in values.items():
            self._kept[key] = value
            self._kept.move_to_end(key)
        while len(self._kept) > self.size:
            self._kept.popitem(last=False)


class PerTask(WeakKeyDictionary[Any, Any]):
    """Weak cache of values by task, emptied on pickling."""

    def __reduce__(self) -> tuple[type["PerTask"], tuple[()]]:
        return PerTask, ()
