"""The infos of shards: what travels from the workers, and how it is joined."""

from typing import Any

import numpy as np

from dialgym.views.info import Info


def sparse_info(info: Info, masks: bool = True) -> Info:
    """What of a worker's info has to travel: no arrays in which every row is empty.

    Texts become the rows that have one, and the texts: most rows of an array of objects are empty,
    and each would be pickled. The masks of a final info are all the same, and stay behind.
    """
    return {
        name: sparse_info(value, masks=False) if isinstance(value, dict) else _sparse(value)
        for name, value in info.items()
        if isinstance(value, dict)
        or (value.flags.writeable and (masks or not name.startswith("_")))  # or it is shared
    }


def _sparse(values: np.ndarray) -> Any:
    if values.dtype != object:
        return values
    rows = np.flatnonzero(values)
    return rows, values[rows].tolist()


def join_infos(infos: list[Info], slices: list[slice], blank: Info) -> Info:
    """The sparse infos of consecutive rows as one info of all.

    Args:
        infos: of the workers; {} of one that has nothing to say.
        slices: the rows of each.
        blank: an info of all rows that says nothing, for what no worker has sent.
    """
    joined = dict(blank)
    for name in dict.fromkeys(name for info in infos for name in info):
        parts = [(rows, info[name]) for rows, info in zip(slices, infos) if name in info]
        if isinstance(parts[0][1], dict):
            inner = blank.get(name, blank)  # a final info is built as any other
            joined[name] = join_infos([info.get(name, {}) for info in infos], slices, inner)
        else:
            joined[name] = _joined(parts, blank.get(name), slices[-1].stop)
    return joined


def _joined(parts: list[tuple[slice, Any]], blank: np.ndarray | None, num_envs: int) -> np.ndarray:
    """One array of all rows, from what some workers sent of it."""
    first = parts[0][1]
    if blank is not None:
        values = blank.copy()
    elif isinstance(first, tuple):
        values = np.full(num_envs, "", object)
    else:
        values = np.zeros((num_envs, *first.shape[1:]), first.dtype)
    for rows, part in parts:
        if isinstance(part, tuple):
            values[rows.start + part[0]] = part[1]
        else:
            values[rows] = part
    return values
