"""Rows of the leaderboard as files: one training, or one policy, in one environment of a panel.

``PANEL/NAME/ID-seedN.json`` has the return, success and length of every episode, what made them and
what they depend on (`dialgym.experiments.row_checks`).
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

from dialgym.experiments.panel import Panel
from dialgym.experiments.row_checks import AS_NAMED, SCRIPTED, problems
from dialgym.experiments.rules import Fingerprint, RowOrigin
from dialgym.io.checksums import read_json_sealed

RETURN = "return"
Values = Mapping[str, Any]


@dataclass(frozen=True, eq=False)
class Submission:
    """A row's file.

    Attributes:
        values: its content, in which `problems` has found nothing wrong.
        file: where it is from.
        sealed: whether it has the checksum of its content.
    """

    values: Values
    file: Path
    sealed: bool = True

    @property
    def name(self) -> str:
        """What tables call the row."""
        return str(self.values["name"])

    @property
    def id(self) -> str:
        """The environment."""
        return str(self.values["id"])

    @property
    def seed(self) -> int:
        """Of the training; it chooses the episodes, too."""
        return int(self.values["seed"])

    @property
    def way(self) -> str:
        """The way the policy was trained, by which it is ranked."""
        return str(self.values["way"])

    @property
    def model_file(self) -> Path:
        """Path of its model, if it is here."""
        return self.file.with_suffix("") / "model.zip"

    @property
    def is_replayable(self) -> bool:
        """True if its policy is here, so that `dialgym leaderboard check --replay` can play it."""
        return self.values["kind"] == SCRIPTED or self.model_file.is_file()

    def measure(self, name: str, way: str) -> np.ndarray | None:
        """(E,) a measure of each reply, (1,) where it is of all of them; None if not measured.

        The ``return`` is one, too.
        """
        if name == RETURN:
            return self.column(RETURN, way)
        part = self.values.get("measures", {}).get(way)
        if part is None or name not in part["figures"]:
            return None
        return np.asarray(part["replies"].get(name, [part["figures"][name]]), float)

    @cached_property
    def _references(self) -> tuple[float, float] | None:
        kept = self.values["hashes"].get("references")
        return None if kept is None else (float(kept[0]), float(kept[1]))

    @property
    def source(self) -> str:
        """``as named``, or what stood in for the data that the settings name."""
        return str(self.values["hashes"].get("source", AS_NAMED))

    @property
    def origin(self) -> RowOrigin:
        """The rules that it says it was played by."""
        settings = {**self.values.get("env_kwargs", {}), **self.values.get("held_out", {})}
        kept = self.values["hashes"].get("rules")
        rules = None if kept is None else Fingerprint.of_values(kept)
        stand_in = None if self.source == AS_NAMED else self.source
        return RowOrigin(self.name, self.id, settings, stand_in, rules)

    def column(self, metric: str, way: str | None = None) -> np.ndarray | None:
        """(E,) the score (None without references), the return or the success of each episode."""
        part = self.values["episodes"].get(way or self.way)
        if part is None:
            return None
        if metric == "success":
            return 100 * np.asarray(part["solved"], float)
        returns = np.asarray(part["returns"], float)
        if metric == "return":
            return returns
        if self._references is None:
            return None
        random, expert = self._references
        return np.asarray(100 * (returns - random) / (expert - random))


def read_submission(path: str | Path) -> Submission:
    """The row in a file.

    Raises:
        FileNotFoundError: there is none.
        ValueError: it is no row, is not complete, is damaged, or its statistics are not those of
            its episodes; the message says all that is wrong.
    """
    file = Path(path)
    return _checked(*_values(file), file)


def row_file(panel: str, name: str, env_id: str, seed: int) -> Path:
    """Where the file of a row lies, below the folder of all panels."""
    return Path(panel, name, f"{env_id.rpartition('/')[2]}-seed{seed}.json")


def misplaced(row: Submission) -> str | None:
    """What is wrong with the place of a row's file, where tables would pass over it; or None."""
    wanted = row_file(row.values["panel"], row.name, row.id, row.seed).parts
    found = Path(os.path.abspath(row.file)).parts[-len(wanted) :]
    if found == wanted:
        return None
    return (
        f"its path: expected {'/'.join(wanted)} at the end, as its content says, got "
        f"{'/'.join(found)}: move it there, or have the row made anew"
    )


def repeated(rows: Iterable[Submission]) -> Mapping[Path, str]:
    """Files of rows whose model is that of a row of the name with another seed, and what is wrong.

    One training would count as two.
    """
    first: dict[tuple[str, ...], Submission] = {}
    found = {}
    for row in rows:
        if row.values["kind"] == SCRIPTED:
            continue
        model = row.values["hashes"]["model"]
        known = first.setdefault((row.values["panel"], row.name, row.id, model), row)
        if known.seed != row.seed:
            found[row.file] = (
                f"hashes, model: expected another model than that of {str(known.file)!r}, got the "
                "same: one training counts once. Remove one of the two rows"
            )
    return found


def read_rows(folders: Iterable[Path], panel: Panel) -> list[Submission]:
    """The rows of a panel's version below some folders; of equal ones that of the first folder.

    Raises:
        ValueError: a file is no row, is damaged, or lies where another row should.
    """
    found: dict[tuple[str, str, int], Submission] = {}
    for folder in folders:
        for file in sorted((folder / panel.name).glob("*/*-seed*.json")):
            values, sealed = _values(file)
            if _of_another_version(values, panel):
                continue
            row = _checked(values, sealed, file)
            if wrong := misplaced(row):
                raise ValueError(f"{str(file)!r}: {wrong}.")
            found.setdefault((row.name, row.id, row.seed), row)
    return list(found.values())


def _values(file: Path) -> tuple[Any, bool]:
    return read_json_sealed(file, "a row of the leaderboard, as JSON")


def _checked(values: Any, sealed: bool, file: Path) -> Submission:
    wrong = list(problems(values))
    if wrong:
        raise ValueError(f"{str(file)!r} is no row of the leaderboard: {'; '.join(wrong)}.")
    return Submission(values, file, sealed)


def _of_another_version(values: Any, panel: Panel) -> bool:
    known = isinstance(values, Mapping) and values.get("panel") == panel.name
    return known and isinstance(values.get("version"), int) and values["version"] != panel.version
