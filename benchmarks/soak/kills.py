"""Kills with SIGKILL at random moments, of processes that write files.

A killed process is started again, and has to end with what it makes when it is left alone.
"""

import shutil
import time
from collections.abc import Iterator
from functools import partial
from itertools import cycle
from pathlib import Path
from typing import Any

import numpy as np

import dialgym
from benchmarks.soak.budget import Budget, Tally
from benchmarks.soak.children import Child
from benchmarks.soak.runs import WISHES, dialogues, learned, play


def kills(budget: Budget, rng: np.random.Generator, folder: Path) -> Iterator[Tally]:
    """An attack; at least one round, in which each algorithm is killed once."""
    from agents.registry import ALGORITHMS

    stored = dialogues(folder)
    trainers: dict[str, Writer] = {}
    collections = Collections(rng, folder, 0), Collections(rng, folder, 2)
    writers = cycle((*collections, Grid(rng, folder)))
    exact = [name for name in ALGORITHMS if name != "policy-manager"]  # it begins new dialogues
    for number, name in enumerate(cycle(exact)):
        if number >= len(exact) and not budget:
            return
        if name not in trainers:
            trainers[name] = Trainer(rng, folder, name, stored)
        yield trainers[name].kill()
        yield next(writers).kill()


class Writer:
    """Work that writes into a folder, and its result without a kill.

    Args:
        rng: of the moments.
        folder: to work in.

    Attributes:
        kind: a row of the table.
    """

    kind: str

    def __init__(self, rng: np.random.Generator, folder: Path) -> None:
        self.rng, self.folder, self.log = rng, folder, folder / "log.txt"
        folder.mkdir(parents=True, exist_ok=True)
        self.whole: Any = None
        self.seconds = 0.0

    def work(self, place: Path, again: bool) -> None:
        """Start, or continue."""
        raise NotImplementedError

    def made(self, place: Path) -> Any:
        """The result, to be compared by `same`."""
        raise NotImplementedError

    def same(self, one: Any, other: Any) -> bool:
        return bool(one == other)

    def halfway(self, place: Path) -> None:
        """Check what lies there after a kill."""

    def kill(self) -> Tally:
        """Kill it once, twice or three times, then let it end."""
        tally, place = Tally(self.kind), self.folder / f"killed-{self.rng.integers(2**40)}"
        with tally.noting(str(self)):
            if self.whole is None:
                self.let_it_be()
            for again in range(int(self.rng.integers(1, 4))):
                child = Child(partial(self.work, place, bool(again)), self.log)
                ended = not child.kill(float(self.rng.random()) * 1.1 * self.seconds)
                tally.tries += not ended
                child.leaves_nothing()
                self.halfway(place)
                if ended:
                    break
            Child(partial(self.work, place, True), self.log).wait()
            assert self.same(self.made(place), self.whole), "not what an uninterrupted run makes"
        shutil.rmtree(place, ignore_errors=True)
        return tally

    def let_it_be(self) -> None:
        """Do the work without a kill."""
        place, began = self.folder / "whole", time.monotonic()
        Child(partial(self.work, place, False), self.log).wait()
        self.seconds, self.whole = time.monotonic() - began, self.made(place)

    def __str__(self) -> str:
        return self.folder.name


class Collections(Writer):
    """Dialogues collected by one process, or by several."""

    kind = "collectors killed"

    def __init__(self, rng: np.random.Generator, folder: Path, workers: int) -> None:
        super().__init__(rng, folder / f"collections-{workers}")
        self.workers = workers

    def work(self, place: Path, again: bool) -> None:
        kwargs: dict[str, Any] = {"seed": 5, "shard_size": 16, "workers": self.workers}
        dialgym.collect(WISHES, "handcrafted", 320, path=place, **kwargs)

    def made(self, place: Path) -> Any:
        return dialgym.load_dataset(place).table

    def same(self, one: Any, other: Any) -> bool:
        return bool(one.equals(other))

    def halfway(self, place: Path) -> None:
        """The shards that are there are those of the whole."""
        import pyarrow.parquet

        for file in place.glob("dialogues-*.parquet"):
            start = int(file.name.split("-")[1])
            found = pyarrow.parquet.read_table(file)
            expected = self.whole.slice(start, len(found))
            assert found.cast(expected.schema).equals(expected), f"{file.name} is another"


class Grid(Writer):
    """A grid of PyDial's benchmark: trained, tested at two stages, and tested again."""

    kind = "grids killed"

    def __init__(self, rng: np.random.Generator, folder: Path) -> None:
        super().__init__(rng, folder / "grid")

    def work(self, place: Path, again: bool) -> None:
        from agents.experiments.panel_jobs import jobs_of
        from agents.experiments.pydial_panel import pydial_panel, tasks_of
        from agents.experiments.run import run_jobs
        from dialgym.experiments.panel import PanelLearner

        small = {"n_envs": 4, "n_steps": 16, "batch_size": 64, "policy_kwargs": {"net_arch": [16]}}
        learners = {"small": PanelLearner("small", "maskable-ppo", small), "handcrafted": None}
        panel = pydial_panel(learners, tasks_of(["CR"], [1]), (10, 20), 10)
        _, failures = run_jobs(jobs_of(panel, [*learners], panel.environments, [0], place), 0)
        assert not failures, failures

    def made(self, place: Path) -> Any:
        """The figures, without what depends on the clock."""
        from agents.experiments.pydial_results import Results

        methods = Results.ended(place).methods
        return {
            name: [row._replace(cpu_seconds=0.0) for row in figures.rows]
            for name, figures in methods.items()
        }


class Trainer(Writer):
    """A training run of one algorithm, from `stored` dialogues where it learns from some."""

    kind = "trainers killed"

    def __init__(
        self, rng: np.random.Generator, folder: Path, name: str, stored: tuple[Path, Path]
    ) -> None:
        super().__init__(rng, folder / "trainers" / name)
        self.name, self.stored = name, stored

    def work(self, place: Path, again: bool) -> None:
        play(self.name, self.stored, place, resume=again)

    def made(self, place: Path) -> Any:
        return learned(place)

    def same(self, one: Any, other: Any) -> bool:
        return one.keys() == other.keys() and all(np.array_equal(one[k], other[k]) for k in one)
