"""Kills with SIGKILL at random moments: of workers, of their parents, and of whoever writes files.

Whoever is killed is begun again, and has to end with what it makes when it is left alone.
"""

import os
import shutil
import signal
import time
from collections.abc import Iterator
from functools import partial
from itertools import cycle
from pathlib import Path
from typing import Any

import numpy as np

import dialgym
from benchmarks.soak.budget import Budget, Tally, within
from benchmarks.soak.children import Child
from benchmarks.soak.runs import Run, dialogues, learned

WORDS, WISHES = "dialgym/Wordle-20-v0", "dialgym/SlotFilling-act-v0"


def kills(budget: Budget, rng: np.random.Generator, folder: Path) -> Iterator[Tally]:
    """An attack; at least one round, in which each algorithm is killed once."""
    trainers = Trainers(rng, folder / "trainers")
    collections = Collections(rng, folder, 0), Collections(rng, folder, 2)
    writers = cycle((*collections, Tables(rng, folder), Grid(rng, folder)))
    for number, name in enumerate(cycle(trainers.names)):
        if number >= len(trainers.names) and not budget:
            return
        yield trainers.kill(name)
        yield next(writers).kill()
        if number % 2:
            yield kill_worker(rng)
            yield kill_parent(rng, folder)


# Pools


def kill_worker(rng: np.random.Generator) -> Tally:
    """Kill a worker amid a step: the result of the step or one clear error, and nothing hangs."""
    tally = Tally("workers killed", tries=1)
    pool: Any = dialgym.make_vec(WORDS, 6, workers=3)
    twin: Any = dialgym.make_vec(WORDS, 6)
    with tally.noting("a pool"), within(60):
        pool.reset(seed=1), twin.reset(seed=1)
        for _ in range(int(rng.integers(5))):
            _step(pool, twin, rng)
        victim = pool.pool.workers[int(rng.integers(3))].process
        actions = twin.action_space.sample()
        pool.step_async(actions)
        time.sleep(float(rng.random() * 0.002))
        os.kill(victim.pid, signal.SIGKILL)
        expected = twin.step(actions)
        try:
            assert _alike(pool.step_wait(), expected), "a wrong result"
            victim.wait()
            pool.step(actions)
        except RuntimeError as error:
            if "ended unexpectedly (exit status -9)" not in str(error):
                raise
        else:
            raise AssertionError("a step without one of the workers")
    with tally.noting("closing a pool"), within(30):
        processes = [worker.process for worker in pool.pool.workers]
        pool.close()
        assert all(process.poll() is not None for process in processes), "orphans"
    return tally


def _step(pool: Any, twin: Any, rng: np.random.Generator) -> None:
    actions = rng.integers(0, twin.single_action_space.n, 6)
    assert _alike(pool.step(actions), twin.step(actions)), "a wrong result"


def _alike(first: Any, second: Any) -> bool:
    return all(np.array_equal(a, b) for a, b in zip(first[:-1], second[:-1], strict=True))


def kill_parent(rng: np.random.Generator, folder: Path) -> Tally:
    """Kill the process that has a pool: its workers end."""
    tally = Tally("parents of pools killed", tries=1)

    def play() -> None:
        pool: Any = dialgym.make_vec(WORDS, 6, workers=2)
        pool.reset(seed=0)
        while True:
            pool.step(pool.action_space.sample())

    with tally.noting("a parent"):
        child = Child(play, folder / "parent.log")
        child.kill(float(rng.random() * 1.5))
        child.leaves_nothing()
    return tally


# Writers of files


class Writer:
    """Work that writes into a folder, and what it makes there when nobody disturbs it.

    Args:
        rng: of the moments.
        folder: to work in.
        kind: a row of the table.
    """

    def __init__(self, rng: np.random.Generator, folder: Path, kind: str) -> None:
        self.rng, self.folder, self.kind = rng, folder, kind
        folder.mkdir(parents=True, exist_ok=True)
        self.seconds, self.whole = 0.0, self._first()

    def work(self, place: Path, again: bool) -> None:
        """Begin, or go on."""
        raise NotImplementedError

    def made(self, place: Path) -> Any:
        """What has been made, to be compared by `same`."""
        raise NotImplementedError

    def same(self, one: Any, other: Any) -> bool:
        return bool(one == other)

    def halfway(self, place: Path) -> None:
        """Check what lies there after a kill."""

    def kill(self) -> Tally:
        """Kill it once, twice or three times, then let it end."""
        tally, place = Tally(self.kind), self.folder / f"killed-{self.rng.integers(2**40)}"
        with tally.noting(self.kind):
            for again in range(int(self.rng.integers(1, 4))):
                child = Child(partial(self.work, place, bool(again)), self._log)
                ended = not child.kill(float(self.rng.random()) * 1.1 * self.seconds)
                tally.tries += not ended
                child.leaves_nothing()
                self.halfway(place)
                if ended:
                    break
            Child(partial(self.work, place, True), self._log).wait()
            assert self.same(self.made(place), self.whole), "not what an uninterrupted run makes"
        shutil.rmtree(place, ignore_errors=True)
        return tally

    @property
    def _log(self) -> Path:
        return self.folder / "log.txt"

    def _first(self) -> Any:
        place, began = self.folder / "whole", time.monotonic()
        Child(partial(self.work, place, False), self._log).wait()
        self.seconds = time.monotonic() - began
        return self.made(place)


class Collections(Writer):
    """Dialogues collected by one process, or by several."""

    def __init__(self, rng: np.random.Generator, folder: Path, workers: int) -> None:
        self.workers = workers
        super().__init__(rng, folder / f"collections-{workers}", "collectors killed")

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


class Tables(Writer):
    """The benchmark and its files."""

    FILES = ("results.json", "table.md", "games.txt")

    def __init__(self, rng: np.random.Generator, folder: Path) -> None:
        super().__init__(rng, folder / "tables", "benchmarks killed")

    def work(self, place: Path, again: bool) -> None:
        from dialgym.experiments import benchmark

        benchmark({"random": "random", "optimal": "optimal"}, [WORDS], 60).save(place)

    def made(self, place: Path) -> Any:
        return {name: (place / name).read_bytes() for name in self.FILES}

    def halfway(self, place: Path) -> None:
        """What is there is whole."""
        for name in self.FILES:
            if (place / name).exists():
                assert (place / name).read_bytes() == self.whole[name], f"{name} is another"


class Grid(Writer):
    """A grid of PyDial's benchmark: trained, tested at two stages, and tested again."""

    def __init__(self, rng: np.random.Generator, folder: Path) -> None:
        super().__init__(rng, folder / "grid", "grids killed")

    def work(self, place: Path, again: bool) -> None:
        from agents.experiments.panel_jobs import jobs_of
        from agents.experiments.pydial_panel import pydial_panel, tasks_of
        from agents.experiments.run import run_jobs
        from dialgym.experiments.panel import Learner

        small = {"n_envs": 4, "n_steps": 16, "batch_size": 64, "policy_kwargs": {"net_arch": [16]}}
        learners = {"small": Learner("small", "maskable-ppo", small), "handcrafted": None}
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


class Trainers:
    """Training runs of all algorithms."""

    def __init__(self, rng: np.random.Generator, folder: Path) -> None:
        from agents.registry import ALGORITHMS

        self.rng, self.folder, self.names = rng, folder, list(ALGORITHMS)
        self.stored = dialogues(folder)
        self._writers: dict[str, _Trainer] = {}

    def kill(self, name: str) -> Tally:
        """Kill a run of an algorithm."""
        tally = Tally(_Trainer.KIND)
        with tally.noting(name):
            if name not in self._writers:
                run = Run(name, *self.stored)
                self._writers[name] = _Trainer(self.rng, self.folder / name, run)
            return self._writers[name].kill()
        return tally


class _Trainer(Writer):
    """A training run of one algorithm."""

    KIND = "trainers killed"

    def __init__(self, rng: np.random.Generator, folder: Path, run: Run) -> None:
        self.run = run
        super().__init__(rng, folder, self.KIND)
        self.kind = self.KIND

    def work(self, place: Path, again: bool) -> None:
        self.run.play(place, resume=again)

    def made(self, place: Path) -> Any:
        return learned(place)

    def same(self, one: Any, other: Any) -> bool:
        return one.keys() == other.keys() and all(np.array_equal(one[k], other[k]) for k in one)
