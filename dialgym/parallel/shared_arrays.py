"""Arrays that processes share in memory."""

import mmap
import os
import tempfile
from collections.abc import Mapping
from typing import Any, BinaryIO

import gymnasium as gym
import numpy as np

Layout = Mapping[str, tuple[str, tuple[int, ...]]]
"""Of shared arrays: dtype and shape by name."""

SEEN, FINAL = "observation", "final"


def layout_of(num_envs: int, seen: gym.Space, said: gym.Space) -> Layout:
    """The arrays that N dialogues exchange with their workers, widest entries first.

    Args:
        num_envs: N.
        seen: a `Box`, or a `Dict` of some, each an array of its own.
        said: `Discrete` or `MultiBinary`.
    """
    parts = seen.items() if isinstance(seen, gym.spaces.Dict) else [("", seen)]
    named = [(f"/{key}" if key else "", box) for key, box in parts]
    fields: dict[str, tuple[Any, Any]] = {
        "reward": (np.float64, ()),
        "action": (said.dtype, said.shape),
        "terminated": (np.bool_, ()),
        "truncated": (np.bool_, ()),
        "over": (np.bool_, ()),  # rows that begin again before they act
        "mask": (np.bool_, (said.n,)),  # type: ignore[attr-defined]
        **{name + key: (b.dtype, b.shape) for name in (SEEN, FINAL) for key, b in named},
    }
    widest = sorted(fields, key=lambda name: -np.dtype(fields[name][0]).itemsize)
    return {n: (np.dtype(fields[n][0]).str, (num_envs, *fields[n][1])) for n in widest}


class SharedArrays:
    """Arrays over all rows by name, in a file that each process maps into memory.

    The file has no name in any folder: it is handed on as a file descriptor, and its memory is
    given back when the last of the processes ends, however it ends.

    Args:
        file: a descriptor of the file; it may be closed afterwards.
        layout: of the arrays.
    """

    def __init__(self, file: int, layout: Layout) -> None:
        self.layout = layout
        sizes = _sizes(layout)
        memory, start = np.frombuffer(mmap.mmap(file, sum(sizes.values())), np.uint8), 0
        self._arrays: dict[str, np.ndarray] = {}
        for name, (dtype, shape) in layout.items():
            part = memory[start : start + sizes[name]]
            self._arrays[name] = part.view(dtype).reshape(shape)
            start += sizes[name]
        self._keys = [name.partition("/")[2] for name in layout if name.startswith(f"{SEEN}/")]

    def __getitem__(self, name: str) -> np.ndarray:
        return self._arrays[name]

    def get(self, name: str, rows: Any = slice(None)) -> Any:
        """A copy of the observations of some rows: an array, or a dict of arrays."""
        if not self._keys:
            return self._arrays[name][rows].copy()
        return {key: self._arrays[f"{name}/{key}"][rows].copy() for key in self._keys}

    def put(self, name: str, rows: Any, observations: Any) -> None:
        """Write the observations of some rows."""
        if not self._keys:
            self._arrays[name][rows] = observations
        for key in self._keys:
            self._arrays[f"{name}/{key}"][rows] = observations[key]


def open_memory(layout: Layout) -> BinaryIO:
    """A file without a name for arrays, in memory where the system has a file system for that.

    Raises:
        OSError: there is no room for it, in memory or in the folder of temporary files.
    """
    size = sum(_sizes(layout).values())
    folders = ["/dev/shm"] if os.access("/dev/shm", os.W_OK) else []
    for folder in (*folders, tempfile.gettempdir()):
        file: Any = tempfile.TemporaryFile(dir=folder)  # noqa: SIM115
        try:
            _reserve(file.fileno(), size)
        except OSError as error:
            file.close()
            full = error
        else:
            return file
    raise OSError(
        full.errno,
        f"workers: {size:,} bytes of memory to share are wanted, and {full.strerror} in "
        f"{' and '.join((*folders, tempfile.gettempdir()))}. Free some, or take fewer dialogues",
    ) from full


def _reserve(file: int, size: int) -> None:
    """Give the file its size: missing room is an error now, not a crash at a later write."""
    if hasattr(os, "posix_fallocate"):
        os.posix_fallocate(file, 0, size)
    else:
        os.truncate(file, size)


def _sizes(layout: Layout) -> dict[str, int]:
    return {k: np.dtype(t).itemsize * int(np.prod(s)) for k, (t, s) in layout.items()}
