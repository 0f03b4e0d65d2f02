"""Rows of the leaderboard as files: one training, or one policy, in one environment of a panel.

``PANEL/NAME/ID-seedN.json`` has the return, success and length of every episode, what made them and
what they depend on. `problems` finds out what does not fit, without playing anything.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

from dialgym.benchmark.result import Episodes
from dialgym.checksums import read_json_checked
from dialgym.errors import unknown
from dialgym.leaderboard.measures import CLOSE, misfits
from dialgym.leaderboard.panels import Panel, Place, panel_named, protocol_of

FORM = "dialgym leaderboard row 1"
WAYS = ("drawn", "greedy", "scripted")
"""How a policy is asked: what it says is drawn, or the likeliest; a scripted one knows no such."""
KINDS = ("trained", "model", "scripted")
ENTRIES: Mapping[str, type | tuple[type, ...]] = {
    "form": str, "panel": str, "version": int, "id": str, "name": str, "seed": int, "kind": str,
    "policy": str, "way": str, "settings": dict, "env_kwargs": dict, "hashes": dict,
    "episodes": dict, "statistics": dict, "trials": dict, "curve": list, "cost": dict,
    "hardware": dict, "versions": dict, "command": str, "seconds": (int, float),
}  # fmt: skip
"""What a row has, and of which type."""
RETURN = "return"
COLUMNS = ("returns", "solved", "lengths")
Values = Mapping[str, Any]


@dataclass(frozen=True, eq=False)
class Submission:
    """A row's file.

    Attributes:
        values: its content, as `check` has found it good.
        file: where it is from.
    """

    values: Values
    file: Path

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
        return str(self.values["hashes"].get("source", "as named"))

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
    values = read_json_checked(file, "a row of the leaderboard, as JSON")
    wrong = list(problems(values))
    if wrong:
        raise ValueError(f"{str(file)!r} is no row of the leaderboard: {'; '.join(wrong)}.")
    return Submission(values, file)


def read_rows(folders: Iterable[Path], panel: Panel) -> list[Submission]:
    """The rows of a panel below some folders; of equal ones that of the first folder.

    Raises:
        ValueError: a file is no row, or is damaged.
    """
    found: dict[tuple[str, str, int], Submission] = {}
    for folder in folders:
        for file in sorted((folder / panel.name).glob("*/*-seed*.json")):
            row = read_submission(file)
            if row.values["panel"] != panel.name:
                raise ValueError(
                    f"{str(file)!r} is of the panel {row.values['panel']}, not of {panel.name}: "
                    "rows of two panels do not compare. Move it to the folder of its panel."
                )
            if row.values["version"] == panel.version:
                found.setdefault((row.name, row.id, row.seed), row)
    return list(found.values())


# Figures


def columns(part: Episodes) -> dict[str, list[Any]]:
    """Return, success and length of each episode of one seed."""
    return {
        "returns": [round(float(r), 6) for r in part.returns[0]],
        "solved": [int(s) for s in part.solved[0]],
        "lengths": [int(n) for n in part.lengths[0]],
    }


def statistics(part: Values) -> dict[str, float]:
    """Means over the episodes."""
    names = {"returns": "return", "solved": "success", "lengths": "turns"}
    return {names[key]: round(float(np.mean(part[key])), 6) for key in COLUMNS}


# Checking


def problems(values: Any) -> Iterator[str]:
    """All that is wrong with the content of a file, as texts; nothing is played."""
    if not isinstance(values, Mapping) or values.get("form") != FORM:
        got = values.get("form") if isinstance(values, Mapping) else values
        yield f"expected an object whose form is {FORM!r}, got {str(got)[:60]!r}"
        return
    bad = [name for name in ENTRIES if not isinstance(values.get(name), ENTRIES[name])]
    yield from (f"{name}: expected {_kind(name)}, got {values.get(name)!r:.40}" for name in bad)
    if not bad:
        yield from _misfits(values)


def _kind(name: str) -> str:
    kind = ENTRIES[name]
    return {str: "a text", int: "a whole number", dict: "an object", list: "a list"}.get(
        kind if isinstance(kind, type) else float, "a number"
    )


def _misfits(values: Values) -> Iterator[str]:
    try:
        panel = panel_named(values["panel"])
        place = panel.place(values["id"])
    except ValueError as error:
        yield str(error)
        return
    if values["version"] != panel.version:
        yield f"version: expected {panel.version} of {panel.name!r}, got {values['version']}"
        return
    if values["hashes"].get("protocol") != protocol_of(panel, place):
        yield "hashes, protocol: expected the panel's, got another: made by another protocol"
    for name, known in (("kind", KINDS), ("way", WAYS)):
        if values[name] not in known:
            yield str(unknown(name, values[name], known))
    if values["way"] not in values["episodes"]:
        yield f"episodes: expected those of its way, {values['way']}, got {[*values['episodes']]}"
    for way, part in values["episodes"].items():
        yield from _of_episodes(way, part, values["statistics"].get(way), panel)
    if place.measures:
        yield from _of_measures(values, place, panel)


def _of_measures(values: Values, place: Place, panel: Panel) -> Iterator[str]:
    found = values.get("measures")
    if not isinstance(found, Mapping):
        yield f"measures: expected {', '.join(place.measures)} for each way, got {found!r:.40}"
        return
    for way in values["episodes"]:
        yield from misfits(place.measures, way, found.get(way), panel.evaluation.episodes)


def _of_episodes(way: str, part: Any, found: Any, panel: Panel) -> Iterator[str]:
    count = panel.evaluation.episodes
    for key in COLUMNS:
        column = part.get(key) if isinstance(part, Mapping) else None
        if not isinstance(column, Sequence) or len(column) != count or not _finite(column):
            got = f"{len(column)}" if isinstance(column, Sequence) else repr(column)
            yield f"episodes, {way}, {key}: expected {count} finite numbers, got {got}"
            return
    if not set(part["solved"]) <= {0, 1}:
        yield f"episodes, {way}, solved: expected 0 or 1"
    right = statistics(part)
    if not isinstance(found, Mapping) or any(
        abs(float(found.get(key, np.inf)) - value) > CLOSE for key, value in right.items()
    ):
        yield f"statistics, {way}: expected those of the episodes, {right}, got {found}"


def _finite(column: Sequence[Any]) -> bool:
    return all(isinstance(v, int | float) and np.isfinite(v) for v in column)
