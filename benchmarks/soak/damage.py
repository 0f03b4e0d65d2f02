"""Damaged files: shards, models and checkpoints, cache entries, results.

Opening one is one clear error that names it, or makes the lost part again, or does not need it. A
damaged file is never taken for another.
"""

import os
import shutil
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple
from unittest.mock import patch

import numpy as np

import dialgym
from benchmarks.soak.budget import Budget, Tally, within
from benchmarks.soak.runs import GPT, WORDS, weights_of
from dialgym.io.cache import cached_array, cached_arrays

COLLECTED: dict[str, Any] = {"seed": 3, "shard_size": 8}


class Store(NamedTuple):
    """Files of a kind, and how they are opened.

    Attributes:
        kind: what they are, a row of the table.
        whole: the folder with undamaged ones.
        names: the pattern of those that are damaged.
        open: what is read from a folder.
        same: True if two such are the same.
    """

    kind: str
    whole: Path
    names: str
    open: Callable[[Path], Any]
    same: Callable[[Any, Any], bool]


def damage(budget: Budget, rng: np.random.Generator, folder: Path) -> Iterator[Tally]:
    """An attack; a tally of each damaged file."""
    all_stores = stores(folder)
    place = folder / "damaged"
    expected = [store.open(_copy(store.whole, place)) for store in all_stores]
    first = True
    while first or budget:
        first = False
        for store, whole in zip(all_stores, expected):
            yield try_one(store, whole, _copy(store.whole, place), rng)


def _copy(folder: Path, place: Path) -> Path:
    shutil.rmtree(place, ignore_errors=True)
    return Path(shutil.copytree(folder, place))


def try_one(store: Store, whole: Any, place: Path, rng: np.random.Generator) -> Tally:
    """Damage a file of a folder, and open it."""
    file = Path(rng.choice(np.array(sorted(map(str, place.glob(store.names))))))
    how = DAMAGES[int(rng.integers(len(DAMAGES)))]
    damage_file(how, file, rng)
    tally = Tally(f"damaged {store.kind}", tries=1)
    with tally.noting(f"{file.name}: {how}"), within(60), _warnings() as told:
        try:
            same = store.same(store.open(place), whole)
        except (ValueError, OSError) as error:
            said = str(error)
            assert file.name in said or str(place) in said, f"names no file: {said}"
        else:
            lacks = any("is not whole" in str(warning.message) for warning in told)
            assert same or lacks, "taken for something else"
    return tally


@contextmanager
def _warnings() -> Iterator[list[warnings.WarningMessage]]:
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        yield told


# What is damaged


def stores(folder: Path) -> list[Store]:
    """Undamaged files of all kinds, made in a folder."""
    import agents
    from dialgym.experiments import benchmark, load_results

    def collect(place: Path) -> Any:
        return dialgym.collect(WORDS, "random", 24, path=place, **COLLECTED).table

    def resume(place: Path) -> Any:
        return weights_of(train_briefly(place, resume=True))

    def tables(place: Path) -> Any:
        return [result.as_dict() for result in load_results(place / "results.json")]

    def equal(one: Any, other: Any) -> bool:
        return bool(one.equals(other))

    dialogues, run, results = folder / "dialogues", folder / "run", folder / "results"
    collect(dialogues)
    train_briefly(run)
    benchmark({"random": "random"}, [WORDS], 20).save(results)
    _cached(folder / "cache")
    return [
        Store("shards, loaded", dialogues, "*", lambda f: dialgym.load_dataset(f).table, equal),
        Store("shards, collected again", dialogues, "*", collect, equal),
        Store(
            "models", run, "model.zip", lambda f: weights_of(agents.load(f / "model.zip")), _alike
        ),
        Store("checkpoints", run, "checkpoint.zip", resume, _alike),
        Store("cache entries", folder / "cache", "*", _cached, _alike),
        Store("results", results, "results.json", tables, lambda one, other: one == other),
    ]


def train_briefly(place: Path, resume: bool = False) -> Any:
    """A model that has played some words; its folder has checkpoints, too."""
    import agents

    short = {"n_steps": 8, "batch_size": 16, "n_epochs": 1, "policy_kwargs": GPT}
    return agents.train(
        WORDS,
        "ppo",
        total_timesteps=48,
        n_envs=2,
        log_dir=place,
        hyperparameters=short,
        progress_bar=False,
        checkpoint_every=1,
        resume=resume,
    )


def _cached(place: Path) -> dict[str, np.ndarray]:
    with patch.dict(os.environ, DIALGYM_CACHE=str(place)):
        one = cached_array("numbers", lambda: np.arange(5000))
        more = cached_arrays("more", lambda: {"a": np.arange(99.0), "b": np.arange(7)})
        return {"one": np.array(one), **more}


def _alike(one: Any, other: Any) -> bool:
    return one.keys() == other.keys() and all(np.array_equal(one[k], other[k]) for k in one)


# How


def _flipped(content: bytes, rng: np.random.Generator) -> bytes:
    changed = bytearray(content)
    if changed:
        changed[int(rng.integers(len(changed)))] ^= 1 << int(rng.integers(8))
    return bytes(changed)


def _zeroed(content: bytes, rng: np.random.Generator) -> bytes:
    start = int(rng.integers(len(content) + 1))
    lost = content[start : start + 512]
    return content[:start] + bytes(len(lost)) + content[start + len(lost) :]


def _exchanged(file: Path, rng: np.random.Generator) -> None:
    others = sorted(other for other in file.parent.iterdir() if other.is_file())
    file.write_bytes(others[int(rng.integers(len(others)))].read_bytes())


CHANGES: dict[str, Callable[[bytes, np.random.Generator], bytes]] = {
    "one bit is another": _flipped,
    "a block was never written": _zeroed,
    "the end is missing": lambda whole, rng: whole[: int(rng.integers(len(whole) + 1))],
    "nothing is there": lambda whole, rng: b"",
    "noise is there": lambda whole, rng: rng.bytes(len(whole)),
    "more is there": lambda whole, rng: whole + rng.bytes(int(rng.integers(1, 99))),
}
FILES: dict[str, Callable[[Path, np.random.Generator], None]] = {
    "it is gone": lambda file, rng: file.unlink(),
    "another file is there": _exchanged,
}
FLIP = "one bit is another"
DAMAGES = (FLIP, FLIP, *CHANGES, *FILES)
"""Kinds of damage; flips are the most frequent."""


def damage_file(how: str, file: Path, rng: np.random.Generator) -> None:
    """Damage a file in one way."""
    if how in FILES:
        FILES[how](file, rng)
    else:
        file.write_bytes(CHANGES[how](file.read_bytes(), rng))
