"""Rows of a panel that another command has trained: those of PyDial's benchmark."""

from __future__ import annotations

import csv
from collections.abc import Iterator, Mapping
from pathlib import Path

import numpy as np

from dialgym.experiments.panel import Panel
from dialgym.experiments.ranking import Board, Contestant, Part
from dialgym.experiments.rules import Fingerprint, RowOrigin
from dialgym.io.files import read_json

DOMAINS = {"CR": "CamRestaurants", "SFR": "SFRestaurants", "LAP": "Laptops11"}
COLUMNS = ("domain", "env", "seed", "dialogues", "drawn", "success", "reward")
NAMED = "PyDial"
"""The source of domains for which nothing stood in."""
Cells = dict[tuple[str, int, int], tuple[int, float, float]]


def joined_board(panel: Panel, folder: Path) -> Board:
    """The table of a joined panel, of its files: means of runs alone.

    Raises:
        ValueError: there are no such files, or they are not of this form.
    """
    rows = [row for file in sorted(folder.glob("*.csv")) if (row := _contestant(panel, file))]
    if not rows:
        raise ValueError(
            f"panel {panel.name!r}: expected files such as dqn.csv in {str(folder)!r}, got none. "
            f"Run `dialgym benchmark {panel.joined} --results {folder}`."
        )
    return Board.sorted(panel, rows, panel.metric)


def cpu_seconds_of(folder: Path) -> float:
    """Of training all that the files are of, tests left out.

    Raises:
        ValueError: a file is not of this form.
    """
    spent: dict[tuple[str, ...], float] = {}
    for file in sorted(folder.glob("*.csv")):
        with file.open(encoding="utf-8", newline="") as lines:
            for row in csv.DictReader(lines):
                try:
                    cell = file.stem, row["domain"], row["env"], row["seed"]
                    spent[cell] = max(spent.get(cell, 0.0), float(row["cpu_seconds"]))
                except (KeyError, ValueError, TypeError) as error:
                    raise ValueError(
                        f"{str(file)!r}: expected CPU seconds (cpu_seconds), got {row}"
                    ) from error
    return sum(spent.values())


def _contestant(panel: Panel, file: Path) -> Contestant | None:
    """The last tests of a method; drawn where it learned so."""
    by_way: dict[int, Cells] = {0: {}, 1: {}}
    for env_id, seed, dialogues, drawn, share, reward in _rows(file):
        last = by_way[drawn].get((env_id, seed, 0), (-1, 0.0, 0.0))
        if dialogues >= last[0]:
            by_way[drawn][env_id, seed, 0] = dialogues, 100 * share, reward
    greedy, drawn_too = by_way[0], by_way[1]
    main, rest = (drawn_too, greedy) if drawn_too else (greedy, {})
    parts = _parts(panel, main, 1 if panel.metric == "success" else 2)
    if not parts:
        return None
    scripted = all(dialogues == 0 for dialogues, _, _ in main.values())
    way = "scripted" if scripted else "drawn" if drawn_too else "greedy"
    success = {env_id: part.values for env_id, part in _parts(panel, main, 1).items()}
    other = _parts(panel, rest, 1 if panel.metric == "success" else 2)
    return Contestant(file.stem, way, parts, other, success, origins=[*origins_of(file)])


def origins_of(file: Path) -> Iterator[RowOrigin]:
    """The rules that the rows of a method say they were played by; the earliest name none.

    Raises:
        ValueError: a row is not of this form.
    """
    runs = None
    with file.open(encoding="utf-8", newline="") as lines:
        for row in csv.DictReader(lines):
            rules = Fingerprint.parse(row["rules"]) if row.get("rules") else None
            if rules and runs is None:
                runs = read_json(file.with_suffix(".json"), "what made the rows")
            source = runs[int(row["run"])]["source"] if rules and runs else NAMED
            stand_in = None if source == NAMED else source
            known = row["domain"] in DOMAINS  # others are nowhere registered
            env_id = _env_id(row) if known else row["domain"]
            yield RowOrigin(file.stem, env_id, {}, stand_in, rules)


def _rows(file: Path) -> Iterator[tuple[str, int, int, int, float, float]]:
    with file.open(encoding="utf-8", newline="") as lines:
        for row in csv.DictReader(lines):
            try:
                yield _read(row)
            except (KeyError, ValueError, TypeError) as error:
                raise ValueError(
                    f"{str(file)!r}: expected columns {', '.join(COLUMNS)}, got {row}"
                ) from error


def _read(row: Mapping[str, str]) -> tuple[str, int, int, int, float, float]:
    whole = (int(row[name]) for name in ("seed", "dialogues", "drawn"))
    return _env_id(row), *whole, float(row["success"]), float(row["reward"])  # type: ignore[return-value]


def _env_id(row: Mapping[str, str]) -> str:
    return f"dialgym/{DOMAINS[row['domain']]}-Env{row['env']}-act-v0"


def _parts(panel: Panel, cells: Cells, column: int) -> dict[str, Part]:
    parts = {}
    for place in panel.environments:
        own = {
            seed: cell for (env_id, seed, _), cell in sorted(cells.items()) if env_id == place.id
        }
        if own:
            values = np.array([[cell[column]] for cell in own.values()], float)
            parts[place.id] = Part(tuple(own), values)
    return parts
