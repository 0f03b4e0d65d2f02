"""Infos of environments: their keys, their form, and whether two are the same."""

import numpy as np

KEYS = ["utterance", "reply", "turn", "reward_components", "is_success", "transcript"]


def form(info):
    """Keys and types, of nested dicts too; of arrays their dtypes and shapes."""
    return {
        name: form(value)
        if isinstance(value, dict)
        else (value.dtype, value.shape)
        if isinstance(value, np.ndarray)
        else type(value)
        for name, value in info.items()
    }


def same_infos(ours, theirs):
    assert set(ours) == set(theirs)
    for name, values in ours.items():
        if isinstance(values, dict):
            same_infos(values, theirs[name])
            continue
        assert values.dtype == theirs[name].dtype, name
        rows = slice(None) if name.startswith("_") else np.flatnonzero(ours[f"_{name}"])
        for value, other in zip(values[rows], theirs[name][rows]):
            assert np.array_equal(value, other), name
