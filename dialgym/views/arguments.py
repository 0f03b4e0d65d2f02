"""Checks of actions, seeds, masks, options and states, and the errors of calls out of turn."""

import pickle
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

import gymnasium as gym
import numpy as np
from gymnasium.error import ResetNeeded
from gymnasium.utils.seeding import np_random

Options = Mapping[str, Any] | Sequence[Mapping[str, Any]]
"""Of a reset: those of all rows, or N of them, one for each row."""


BEFORE = "before the first reset()"
AFTER_THE_END = "after the end of the episode"
FAILED = "after a step that failed halfway"
CLOSED = "after close()"
"""Reasons why there is no dialogue to go on with."""


class SeedError(gym.error.Error, ValueError):
    """An impossible seed: Gymnasium's error, and a `ValueError` as those of all arguments."""


def check_seed(seed: Any, name: str) -> int | None:
    """The seed as an int; a `SeedError` unless it is None or a whole number from 0."""
    if seed is None or (isinstance(seed, (int, np.integer)) and seed >= 0):
        return None if seed is None else int(seed)
    raise SeedError(f"seed of {name}: expected a whole number from 0, or None; got {seed!r}.")


def check_actions(actions: Any, space: gym.Space, name: str) -> np.ndarray:
    """The actions of a batch as an array: (N,) integer, or (N, A) int8 of 0 and 1.

    Args:
        actions: of all N dialogues.
        space: of a batch of N `Discrete` or `MultiBinary` actions.
        name: of the task.

    Raises:
        ValueError: the actions are not of the space.
    """
    chosen = np.asarray(actions)
    multiple = isinstance(space, gym.spaces.Box)  # Gymnasium's batch of MultiBinary
    most = 1 if multiple else int(space.nvec[0]) - 1  # type: ignore[attr-defined]
    right = chosen.shape == space.shape and chosen.dtype.kind in ("biuf" if multiple else "iu")
    if right and chosen.min() >= 0 and chosen.max() <= most:
        whole = chosen.astype(np.int8) if multiple else chosen
        if whole is chosen or (whole == chosen).all():
            return whole
    got = f"values from {chosen.min()} to {chosen.max()}" if right else ""
    raise ValueError(
        f"actions of {name}: expected {space.shape} whole numbers from 0 to {most}; "
        f"got {got or f'{chosen.dtype} {chosen.shape}'}. Choose from action_space."
    )


def seeds_of_rows(
    seed: int | Sequence[int | None] | None, num_envs: int, name: str
) -> list[int | None] | None:
    """The seed of each row: seed + i, or the i-th of a list; None where none is given.

    Raises:
        ValueError: it is neither, or a list is not of N seeds.
    """
    if seed is None:
        return None
    if isinstance(seed, (int, np.integer)):
        return [check_seed(int(seed) + i, name) for i in range(num_envs)]
    several = seed.ndim > 0 if isinstance(seed, np.ndarray) else isinstance(seed, Sequence)
    if several and not isinstance(seed, (str, bytes)):
        if len(seed) == num_envs:
            return [check_seed(one, name) for one in seed]
        got = f"{len(seed)}"
    else:
        got = f"{seed!r}"
    raise ValueError(f"seed of {name}: expected one whole number or {num_envs} of them; got {got}.")


def generators(
    before: Sequence[np.random.Generator],
    seeds: Sequence[int | None] | None,
    rows: np.ndarray,
    num_envs: int,
) -> list[np.random.Generator]:
    """The generators of N rows: in `rows` new ones where there are seeds, or none `before`."""
    seeds = seeds or [None] * num_envs
    rngs: list[Any] = [*before] or [None] * num_envs
    for row in rows.tolist():
        if seeds[row] is not None or not before:
            rngs[row] = np_random(seeds[row])[0]
    return rngs


def split_reset_mask(
    options: Options | None, num_envs: int, name: str
) -> tuple[np.ndarray | None, Options]:
    """The option ``reset_mask``, None where it is not given, and the other options.

    Options of each row by itself have no mask.

    Raises:
        ValueError: it is not an array (N,) of bool with at least one True; or the options are
            neither a mapping nor N of them.
    """
    if options is not None and not isinstance(options, Mapping):
        return None, _options_of_rows(options, num_envs, name)
    others = dict(options or {})
    if "reset_mask" not in others:
        return None, others
    mask = others.pop("reset_mask")
    right = isinstance(mask, np.ndarray) and mask.dtype == bool and mask.shape == (num_envs,)
    if right and mask.any():
        return mask, others
    raise ValueError(
        f"reset_mask of {name}: expected an array ({num_envs},) of bool with at least one True, "
        f"such as terminated | truncated; got {mask!r}."
    )


def _options_of_rows(options: Any, num_envs: int, name: str) -> list[Mapping[str, Any]]:
    given = list(options) if isinstance(options, (list, tuple)) else None
    if given is not None and len(given) == num_envs:
        rows = [{} if own is None else own for own in given]
        if all(isinstance(own, Mapping) and "reset_mask" not in own for own in rows):
            return rows
    got = f"{options!r}" if given is None or len(given) == num_envs else f"{len(given)}"
    raise ValueError(
        f"options of {name}: expected a mapping for all rows, or a list of {num_envs}, one for "
        f"each row and without reset_mask; got {got}."
    )


def rows_by_options(
    rows: np.ndarray, options: Options
) -> Iterator[tuple[np.ndarray, Mapping[str, Any]]]:
    """The rows that begin with the same options, and those options; every row comes once."""
    if isinstance(options, Mapping):
        yield rows, options
        return
    alike: dict[bytes, list[int]] = {}
    for row in rows.tolist():
        alike.setdefault(pickle.dumps(dict(options[row])), []).append(row)
    for same in alike.values():
        yield np.array(same, np.int64), options[same[0]]


@contextmanager
def undrawn_on_error(rngs: Iterable[np.random.Generator]) -> Iterator[None]:
    """Put generators back to where they were if an error leaves the block."""
    before = [(rng, rng.bit_generator.state) for rng in rngs]
    try:
        yield
    except Exception:
        for rng, state in before:
            rng.bit_generator.state = state
        raise


def check_count(state: Any, num_envs: int, name: str) -> None:
    """Raise a ValueError unless a state has `num_envs` dialogues, or none yet."""
    got = f"{len(state)}" if isinstance(state, list) else type(state).__name__
    if got not in ("0", f"{num_envs}"):
        raise ValueError(
            f"the state of {name} cannot be read: expected a list of {num_envs} dialogues, "
            f"got {got}."
        )


def reset_needed(name: str, when: str, call: str = "step") -> ResetNeeded:
    """The error of a call for which there is no dialogue to go on with."""
    return ResetNeeded(f"{name}: {call}() was called {when}. Call reset() first.")


def after_the_end(name: str, rows: np.ndarray) -> ResetNeeded:
    """The error of a step where the caller has to begin rows that are over."""
    return ResetNeeded(
        f"{name}: step() was called after the end of the episodes of rows {rows.tolist()}, and "
        "autoreset is disabled. Call reset(options={'reset_mask': terminated | truncated}) first."
    )
