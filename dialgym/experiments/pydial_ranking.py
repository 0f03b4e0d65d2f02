"""Ranking of PyDial's benchmark, whose tables have means of runs alone."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np

from dialgym.experiments.panel import Panel
from dialgym.experiments.ranking import BOUNDS, RankedPolicy, Ranking, SeedScores
from dialgym.experiments.result import DRAWN, GREEDY
from dialgym.experiments.row import SCRIPTED
from dialgym.experiments.row_files import PyDialRow, read_pydial_csv
from dialgym.experiments.rules import RowOrigin
from dialgym.io.files import read_json

DOMAINS = {"CR": "CamRestaurants", "SFR": "SFRestaurants", "LAP": "Laptops11"}
NAMED = "PyDial"
"""The source of domains for which nothing stood in."""
Tests = dict[tuple[str, int], PyDialRow]
"""The test at the end of each run, by environment and seed."""


def fidelity_of(panel: Panel) -> str:
    """The fidelity that a panel of PyDial's benchmark is played with."""
    return str(panel.environments[0].settings["fidelity"])


def ranking_of_csv(panel: Panel, folder: Path) -> Ranking:
    """Rank the methods of a folder's tables by their rows of the panel's fidelity.

    A training counts that was tested after all of the panel's dialogues; `Ranking.left_out` names
    the methods of others.

    Raises:
        ValueError: there are no such rows, or files are not of this form.
    """
    tables = {file: _rows_of(panel, file) for file in sorted(folder.glob("*.csv"))}
    made = [_ranked_policy(panel, file, rows) for file, rows in tables.items()]
    policies = [policy for policy in made if policy]
    if not policies:
        raise ValueError(
            f"panel {panel.name!r}: expected files such as dqn.csv in {str(folder)!r} with rows "
            f"of fidelity {fidelity_of(panel)} after {panel.stages[-1]} dialogues, got none. "
            f"Run `dialgym benchmark {panel.name} --results {folder}`."
        )
    ranking = Ranking.sorted(panel, policies, panel.metric)
    return replace(ranking, left_out=[*_left_out(panel, tables)])


def _left_out(panel: Panel, tables: Mapping[Path, Sequence[PyDialRow]]) -> Iterator[str]:
    """Names of methods with trainings that were cut short, and how many of them."""
    ids = {environment.id for environment in panel.environments}
    for file, rows in tables.items():
        own = [row for row in rows if _env_id(row) in ids]
        whole = {(row.domain, row.env, row.seed) for row in own if _is_whole(panel, row)}
        if cut := {(row.domain, row.env, row.seed) for row in own} - whole:
            yield f"{file.stem} ({len(cut)})"


def _is_whole(panel: Panel, row: PyDialRow) -> bool:
    """True for a test after all dialogues of training, or of a scripted policy."""
    return row.dialogues in (0, panel.stages[-1])


def has_rows(panel: Panel, folder: Path) -> bool:
    """Return True if a folder's tables have rows of the panel's fidelity."""
    return any(_rows_of(panel, file) for file in folder.glob("*.csv"))


def _rows_of(panel: Panel, file: Path) -> list[PyDialRow]:
    """The rows of a file that are of the panel's fidelity."""
    return [row for row in read_pydial_csv(file) if row.fidelity == fidelity_of(panel)]


def training_seconds(panel: Panel, folder: Path) -> float:
    """Sum up the CPU seconds of all trainings of a panel, tests left out, by a folder's tables.

    Raises:
        ValueError: a file is not of this form.
    """
    spent: dict[tuple[str, str, int, int], float] = {}
    for file in sorted(folder.glob("*.csv")):
        for row in _rows_of(panel, file):
            run = file.stem, row.domain, row.env, row.seed
            spent[run] = max(spent.get(run, 0.0), row.cpu_seconds)
    return sum(spent.values())


def _ranked_policy(panel: Panel, file: Path, rows: Sequence[PyDialRow]) -> RankedPolicy | None:
    """A method by the tests at the end of its runs, of one fidelity; drawn where it learned so."""
    tests: tuple[Tests, Tests] = {}, {}
    for row in rows:
        if _is_whole(panel, row):
            tests[row.drawn][_env_id(row), row.seed] = row
    greedy, drawn = tests
    main, rest = (drawn, greedy) if drawn else (greedy, {})
    column = "success" if panel.metric == "success" else "reward"
    scores = _scores(panel, main, column)
    if not scores:
        return None
    scripted = all(row.dialogues == 0 for row in main.values())
    actions = SCRIPTED if scripted else DRAWN if drawn else GREEDY
    success = {env_id: part.values for env_id, part in _scores(panel, main, "success").items()}
    origins = [*_origins(file, rows)]
    others = _scores(panel, rest, column)
    bounds = BOUNDS.get(column)
    cost = float(np.mean([row.cpu_seconds for row in main.values()]))
    return RankedPolicy(file.stem, actions, scores, others, success, (), origins, bounds, cost)


def _scores(panel: Panel, tests: Tests, column: str) -> dict[str, SeedScores]:
    """Success in per cent, or reward, by environment of the panel."""
    scores = {}
    for environment in panel.environments:
        own = {seed: row for (env_id, seed), row in sorted(tests.items(), key=lambda item: item[0])
               if env_id == environment.id}  # fmt: skip
        if own:
            factor = 100 if column == "success" else 1
            values = [[factor * getattr(row, column)] for row in own.values()]
            scores[environment.id] = SeedScores(tuple(own), np.array(values, float))
    return scores


def origins_of(file: Path) -> list[RowOrigin]:
    """The rules that the rows of a method say they were played by; the earliest name none.

    Raises:
        ValueError: a row is not of this form.
    """
    return [*_origins(file, read_pydial_csv(file))]


def _origins(file: Path, rows: Sequence[PyDialRow]) -> Iterator[RowOrigin]:
    runs = None
    for row in rows:
        if row.fingerprint and runs is None:
            runs = read_json(file.with_suffix(".json"), "what made the rows")
        source = runs[row.run]["source"] if row.fingerprint and runs else NAMED
        stand_in = None if source == NAMED else source
        env_id = _env_id(row) if row.domain in DOMAINS else row.domain  # others are unregistered
        settings = {"fidelity": row.fidelity}
        yield RowOrigin(file.stem, env_id, settings, stand_in, row.fingerprint)


def _env_id(row: PyDialRow) -> str:
    return f"dialgym/{DOMAINS.get(row.domain, row.domain)}-Env{row.env}-act-v0"
