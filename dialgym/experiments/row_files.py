"""Files of rows: JSON of panels, and the CSV tables of PyDial's benchmark."""

from __future__ import annotations

import csv
import os
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, NamedTuple, get_type_hints

from dialgym.errors import one_of
from dialgym.experiments.panel import Panel
from dialgym.experiments.row import ExperimentRow, row_file
from dialgym.experiments.row_checks import row_problems
from dialgym.experiments.rules import Fingerprint
from dialgym.io.checksums import read_json_sealed


def read_row(path: str | Path) -> ExperimentRow:
    """Read the row in a file.

    Raises:
        FileNotFoundError: there is none.
        ValueError: it is no row, is not complete, is damaged, or its statistics are not those of
            its episodes; the message says all that is wrong.
    """
    file = Path(path)
    return _checked(*_values(file), file)


def read_rows(folders: Iterable[Path], panel: Panel) -> list[ExperimentRow]:
    """Read the rows of a panel's version below folders; of equal ones that of the first folder.

    Equal are those of one source of data, name, environment and seed.

    Raises:
        ValueError: a file is no row, is damaged, or lies where another row should.
    """
    rows: dict[tuple[str, str, str, int], ExperimentRow] = {}
    for folder in folders:
        for file in sorted((folder / panel.name).glob("*/*-seed*.json")):
            values, sealed = _values(file)
            if _is_of_another_version(values, panel):
                continue
            row = _checked(values, sealed, file)
            if wrong := path_problem(row):
                raise ValueError(f"{str(file)!r}: {wrong}.")
            rows.setdefault((row.source, row.name, row.id, row.seed), row)
    return list(rows.values())


def _values(file: Path) -> tuple[Any, bool]:
    return read_json_sealed(file, "a row of the leaderboard, as JSON")


def _checked(values: Any, sealed: bool, file: Path) -> ExperimentRow:
    wrong = list(row_problems(values))
    if wrong:
        raise ValueError(f"{str(file)!r} is no row of the leaderboard: {'; '.join(wrong)}.")
    return ExperimentRow(values, file, sealed)


def _is_of_another_version(values: Any, panel: Panel) -> bool:
    known = isinstance(values, Mapping) and values.get("panel") == panel.name
    return known and isinstance(values.get("version"), int) and values["version"] != panel.version


def path_problem(row: ExperimentRow) -> str | None:
    """Tell what is wrong with a file's path, where tables would pass over it; None for nothing."""
    wanted = row_file(row.values["panel"], row.name, row.id, row.seed).parts
    got = Path(os.path.abspath(row.file)).parts[-len(wanted) :]
    if got == wanted:
        return None
    return (
        f"its path: expected {'/'.join(wanted)} at the end, as its content says, got "
        f"{'/'.join(got)}: move it there, or make the row again"
    )


def repeated_models(rows: Iterable[ExperimentRow]) -> Mapping[Path, str]:
    """Files of rows whose model is that of a row of the name with another seed, and what is wrong.

    One training would count as two.
    """
    first: dict[tuple[str, ...], ExperimentRow] = {}
    repeated = {}
    for row in rows:
        if row.is_scripted:
            continue
        key = row.values["panel"], row.name, row.id, str(row.model_digits)
        known = first.setdefault(key, row)
        if known.seed != row.seed:
            repeated[row.file] = (
                f"hashes, model: expected another model than that of {str(known.file)!r}, got the "
                "same: one training counts once. Remove one of the two rows"
            )
    return repeated


# PyDial's benchmark


PYDIAL, CORRECT = FIDELITIES = "pydial", "correct"
"""With the faults of the original, so that figures compare with its own; and with them mended."""


class PyDialRow(NamedTuple):
    """A test of a method in a task of PyDial's benchmark.

    Attributes:
        domain, env, fidelity: the task, played like the original or with its faults mended.
        seed: of the training.
        dialogues: of training before the test; 0 of a scripted policy.
        drawn: 1 where the test drew acts, 0 where it took the best.
        success: share of the test's dialogues.
        reward: mean return.
        run: number of the run that made it, in the JSON file beside the table.
        turns: of the system, mean.
        timesteps: of training.
        cpu_seconds: of training.
        rules: by which it was tested, as `Fingerprint` spells them; empty in the earliest rows.
    """

    domain: str
    env: int
    fidelity: str
    seed: int
    dialogues: int
    drawn: int
    success: float
    reward: float
    turns: float
    timesteps: int
    cpu_seconds: float
    run: int
    rules: str = ""

    @property
    def fingerprint(self) -> Fingerprint | None:
        """The rules; None in the earliest rows.

        Raises:
            ValueError: the text is none.
        """
        return Fingerprint.parse(self.rules) if self.rules else None


def read_pydial_csv(file: Path) -> list[PyDialRow]:
    """Read the table of a method.

    Raises:
        ValueError: it is not of this form.
    """
    kinds = get_type_hints(PyDialRow)
    columns = ", ".join(PyDialRow._fields[:-1])
    with file.open(encoding="utf-8", newline="") as lines:
        rows = []
        for row in csv.DictReader(lines):
            try:
                found = PyDialRow(**{n: kinds[n](row[n]) for n in kinds if n in row})
                one_of("fidelity", found.fidelity, FIDELITIES)
            except (ValueError, TypeError) as error:
                raise ValueError(f"{str(file)!r}: expected columns {columns}, got {row}") from error
            rows.append(found)
    return rows
