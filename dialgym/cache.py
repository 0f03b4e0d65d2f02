"""Where computed tables are kept between runs."""

import os
from collections.abc import Callable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any
from zipfile import BadZipFile

import numpy as np

from dialgym.files import write_atomically


def cache_dir() -> Path:
    """`$DIALGYM_CACHE`, else `dialgym` in `$XDG_CACHE_HOME` or `~/.cache`."""
    if "DIALGYM_CACHE" in os.environ:
        return Path(os.environ["DIALGYM_CACHE"])
    base = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(base) / "dialgym"


def cached_array(name: str, compute: Callable[[], np.ndarray]) -> np.ndarray:
    """The array of that name, read-only and memory-mapped; computed where it is not yet kept.

    A cache that cannot be written is not an error: the array is then kept in memory only.
    """
    path = cache_dir() / f"{name}.npy"
    try:
        return np.asarray(np.load(path, mmap_mode="r"))
    except (OSError, ValueError, EOFError):
        array = compute()
    with suppress(OSError):
        write_atomically(path, lambda temporary: np.save(temporary, array))
    array.flags.writeable = False
    return array


def cached_arrays(
    name: str, compute: Callable[[], Mapping[str, np.ndarray]]
) -> Mapping[str, np.ndarray]:
    """The arrays of that name, by names of their own; computed where they are not yet kept."""
    path = cache_dir() / f"{name}.npz"
    try:
        with np.load(path) as kept:
            return dict(kept)
    except (OSError, ValueError, EOFError, BadZipFile):
        arrays = compute()
    named: dict[str, Any] = dict(arrays)
    with suppress(OSError):
        write_atomically(path, lambda temporary: np.savez(temporary, **named))
    return arrays
