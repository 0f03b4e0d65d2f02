"""Figures of PyDial's benchmark: as files, a method each, and as arrays over seeds."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

from agents.experiments.job import RESULT, read_result
from agents.experiments.pydial_panel import Task, domain_order
from dialgym.experiments.row_files import FIDELITIES, PyDialRow, read_pydial_csv
from dialgym.io.files import write_text

DESCRIBED = ("algorithm", "command", "versions", "source", "episodes", "settings")
"""Entries that jobs of one run have in common; the others of a job are its figures."""
CALIBRATION = "calibrations.json"


@dataclass
class Figures:
    """Figures of a method.

    Attributes:
        rows: of all jobs, in order.
        runs: command, versions and settings that made them.
        calibrations: of the models by job, see `agents.experiments.calibration`.
    """

    rows: list[PyDialRow] = field(default_factory=list)
    runs: list[dict[str, Any]] = field(default_factory=list)
    calibrations: dict[str, dict[str, Any]] = field(default_factory=dict)

    @classmethod
    def load(cls, file: Path) -> Figures:
        """Read the table of a method, and what made its rows."""
        return cls(read_pydial_csv(file), json.loads(file.with_suffix(".json").read_text("utf-8")))

    def add(self, result: Mapping[str, Any]) -> None:
        """Add the figures of a job, in the place of older ones."""
        described = {name: result[name] for name in DESCRIBED if name in result}
        if described not in self.runs:
            self.runs.append(described)
        task = result["domain"], result["env"], result["fidelity"], result["seed"]
        self.rows = [row for row in self.rows if row[:4] != task]
        run = self.runs.index(described)
        self.rows += [PyDialRow(*task, **stage, run=run) for stage in result["stages"]]
        if result.get("calibration"):
            self.calibrations["{2} {0}-Env{1} seed {3}".format(*task)] = result["calibration"]

    def merge(self, other: Figures) -> None:
        """Add the figures of another grid, in the place of older ones."""
        known = [json.dumps(run, sort_keys=True) for run in self.runs]
        numbers = []
        for run in other.runs:
            text = json.dumps(run, sort_keys=True)
            if text not in known:
                known.append(text)
                self.runs.append(run)
            numbers.append(known.index(text))
        newer = {row[:4] for row in other.rows}
        kept = [row for row in self.rows if row[:4] not in newer]
        self.rows = kept + [row._replace(run=numbers[row.run]) for row in other.rows]
        self.calibrations |= other.calibrations

    def of_fidelity(self, fidelity: str) -> Figures:
        """The figures of one fidelity, and the runs that made them."""
        rows = [row for row in self.rows if row.fidelity == fidelity]
        cells = {k: v for k, v in self.calibrations.items() if k.startswith(f"{fidelity} ")}
        found = Figures(rows, self.runs, cells)
        found.sort()
        return found

    def sort(self) -> None:
        """Put rows in order, and keep only runs that some are of."""
        used = sorted({row.run for row in self.rows})
        self.runs = [self.runs[number] for number in used]
        rows = sorted(
            self.rows,
            key=lambda r: (r.fidelity, r.env, domain_order(r.domain), r.seed, r.dialogues, r.drawn),
        )
        self.rows = [row._replace(run=used.index(row.run)) for row in rows]


@dataclass
class Results:
    """Figures by method."""

    methods: dict[str, Figures]

    @classmethod
    def of(cls, results: Iterable[Mapping[str, Any]]) -> Results:
        """Make the results of jobs."""
        methods: dict[str, Figures] = {}
        for result in results:
            methods.setdefault(result["method"], Figures()).add(result)
        return cls(methods)

    @classmethod
    def ended(cls, folder: Path) -> Results:
        """Results of all jobs that have ended below a folder, of any grid."""
        return cls.of(read_result(file) for file in sorted(folder.glob(f"*/*/*/seed*/{RESULT}")))

    @classmethod
    def load(cls, folder: Path) -> Results:
        """Read what `save` wrote.

        Raises:
            ValueError: there is nothing.
        """
        files = sorted(folder.glob("*.csv"))
        if not files:
            raise ValueError(
                f"results: expected files of methods, such as dqn.csv, in {str(folder)!r}; got "
                "none. Run the grid first, or give its --results."
            )
        found = cls({file.stem: Figures.load(file) for file in files})
        kept = folder / CALIBRATION
        for name, cells in json.loads(kept.read_text("utf-8")).items() if kept.is_file() else ():
            found.methods[name].calibrations = cells
        return found

    def save(self, folder: Path) -> None:
        """Write a CSV file of figures and a JSON file of their runs for each method."""
        for name, figures in self.methods.items():
            figures.sort()
            text = io.StringIO()
            writer = csv.writer(text, lineterminator="\n")
            writer.writerows([PyDialRow._fields, *figures.rows])
            write_text(folder / f"{name}.csv", text.getvalue())
            write_text(folder / f"{name}.json", json.dumps(figures.runs, indent=1) + "\n")
        cells = {name: f.calibrations for name, f in self.methods.items() if f.calibrations}
        write_text(folder / CALIBRATION, json.dumps(cells) + "\n")

    def merged_into(self, folder: Path) -> None:
        """Save, with what is in the folder of other jobs and methods."""
        before = Results.load(folder) if any(folder.glob("*.csv")) else Results({})
        for name, figures in self.methods.items():
            before.methods.setdefault(name, Figures()).merge(figures)
        before.save(folder)

    @cached_property
    def tasks(self) -> list[Task]:
        """In the order of PyDial's tables: by setting, then by domain; by fidelity first."""
        found = {_task(row) for figures in self.methods.values() for row in figures.rows}
        first = FIDELITIES.index
        return sorted(found, key=lambda t: (first(t.fidelity), t.env, domain_order(t.domain)))

    @property
    def fidelities(self) -> list[str]:
        """Fidelities that have figures, PyDial's first."""
        return list(dict.fromkeys(task.fidelity for task in self.tasks))

    def of_fidelity(self, fidelity: str) -> Results:
        """The figures of one fidelity; methods without any are left out."""
        found = {name: figures.of_fidelity(fidelity) for name, figures in self.methods.items()}
        return Results({name: figures for name, figures in found.items() if figures.rows})

    @cached_property
    def tests(self) -> list[int]:
        """After how many dialogues of training there are figures, ascending."""
        found = {row.dialogues for figures in self.methods.values() for row in figures.rows}
        return sorted(found - {0}) or [0]

    def draws(self, method: str) -> bool:
        """Return True if a method learned by drawing acts: it is scored by tests that do."""
        return method in self.methods and any(row.drawn for row in self.methods[method].rows)

    @cached_property
    def _arrays(self) -> dict[tuple[str, Task, int, bool], np.ndarray]:
        groups: dict[tuple[str, Task, int, bool], list[PyDialRow]] = {}
        for name, figures in self.methods.items():
            for row in figures.rows:
                key = name, _task(row), row.dialogues, bool(row.drawn)
                groups.setdefault(key, []).append(row)
        return {
            key: np.array(
                [[r.success, r.reward, r.turns, r.cpu_seconds, r.timesteps] for r in rows]
            )
            for key, rows in groups.items()
        }

    def of_task(
        self, method: str, task: Task, dialogues: int, drawn: bool | None = None
    ) -> np.ndarray:
        """(S, 5) of S seeds: success, reward, turns, CPU seconds, timesteps; S is 0 for none.

        What learns nothing is at any time as it is. `drawn` is that of the tests; None for that
        which the method is scored by.
        """
        drawn = self.draws(method) if drawn is None else drawn
        none = np.zeros((0, 5))
        fixed = self._arrays.get((method, task, 0, False), none)
        return self._arrays.get((method, task, dialogues, drawn), fixed)

    def success(self, method: str, task: Task, dialogues: int) -> np.ndarray:
        """(S,) per cent of the test dialogues of each seed."""
        return 100 * self.of_task(method, task, dialogues)[:, 0]

    def names(self) -> Sequence[str]:
        """Names of the methods, ordered by mean final success over their own tasks."""

        def mean(name: str) -> float:
            found = [self.success(name, task, self.tests[-1]) for task in self.tasks]
            return -float(np.mean([part.mean() for part in found if len(part)] or [0.0]))

        return sorted(self.methods, key=mean)


def _task(row: PyDialRow) -> Task:
    return Task(row.domain, row.env, fidelity=row.fidelity)
