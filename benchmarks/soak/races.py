"""Two processes that write the same at the same time.

One of them may be refused, as the other is writing; the result is whole, and that of one process.
"""

import os
import shutil
import time
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any
from unittest.mock import patch

import numpy as np

import dialgym
from benchmarks.soak.budget import Budget, Tally
from benchmarks.soak.children import Child
from benchmarks.soak.damage import train_briefly
from benchmarks.soak.runs import WORDS, weights_of
from dialgym.io.cache import cached_array
from dialgym.io.locks import FolderInUse

Write = Callable[[Path], object]
Check = Callable[[Path], None]


def races(budget: Budget, rng: np.random.Generator, folder: Path) -> Iterator[Tally]:
    """An attack; a tally of each race."""
    pairs, first = contests(folder), True
    while first or budget:
        first = False
        for name, writers, check in pairs:
            tally, place = Tally(f"races: {name}", tries=1), folder / "race"
            shutil.rmtree(place, ignore_errors=True)
            with tally.noting(name):
                _race(writers, place, folder, rng)
                check(place)
            yield tally


def _race(
    writers: tuple[Write, Write], place: Path, folder: Path, rng: np.random.Generator
) -> None:
    """Let both write, nearly at once."""
    told = [folder / f"told-{i}" for i in range(2)]
    for file in told:
        file.unlink(missing_ok=True)
    lead = float(rng.random() * 0.01)
    children = [
        Child(partial(_go, write, place, file, lead * i), folder / "race.log")
        for i, (write, file) in enumerate(zip(writers, told))
    ]
    for child in children:
        child.wait()
        child.leaves_nothing()
    assert not all(file.exists() for file in told), "neither has written"


def _go(write: Write, place: Path, told: Path, after: float) -> None:
    time.sleep(after)
    try:
        write(place)
    except (FolderInUse, FileExistsError):  # the other one writes, or has a run there by now
        told.touch()


def contests(folder: Path) -> list[tuple[str, tuple[Write, Write], Check]]:
    """Pairs of writers, and the check of their result."""
    whole = dialgym.collect(WORDS, "random", 80, seed=1).table
    weights = weights_of(train_briefly(folder / "run"))

    def collect(place: Path) -> Any:
        return dialgym.collect(WORDS, "random", 80, seed=1, path=place, shard_size=8).table

    def collected(place: Path) -> None:
        assert collect(place).equals(whole), "other dialogues"
        assert dialgym.load_dataset(place).table.equals(whole), "other dialogues"

    def trained(place: Path) -> None:
        import agents

        found = weights_of(agents.load(place / "model.zip"))
        assert all(np.array_equal(found[name], weights[name]) for name in weights), "other weights"

    def cached(place: Path) -> None:
        with patch.dict(os.environ, DIALGYM_CACHE=str(place)):
            found = cached_array("numbers", lambda: np.arange(100_000))
        assert np.array_equal(found, np.arange(100_000)), "other numbers"

    return [
        ("collect", (collect, collect), collected),
        ("train", (train_briefly, train_briefly), trained),
        ("cache", (cached, cached), cached),
    ]
