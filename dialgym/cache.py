"""Where computed tables are kept between runs, and how they are written."""

import os
import tempfile
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import numpy as np


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


def write_atomically(path: Path, write: Callable[[Path], object]) -> None:
    """Let `write` fill a temporary file beside `path`, then move it into place.

    The temporary file keeps the suffix of `path`. It is removed when `write` fails.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    handle, name = tempfile.mkstemp(dir=path.parent, prefix=".", suffix=path.suffix)
    os.close(handle)
    try:
        write(Path(name))
        os.replace(name, path)
    finally:
        Path(name).unlink(missing_ok=True)
