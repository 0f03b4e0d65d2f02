"""The README's table of task families: games, views, speed, and learners that have rows."""

import csv
import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from make_env_pages import summary, table, tasks

from benchmarks.environments.families import ROWS as BATCH
from dialgym.io.checksums import read_json_checked
from dialgym.io.objects import load
from dialgym.registry import Row, entry_of

RESULTS = Path(__file__).parents[1] / "benchmarks" / "results"
SPEEDS = RESULTS / "token_steps.json"
PYDIAL_SCRIPTED = "handcrafted"
HEAD = ("environments", "what", "views", "token steps", "learners with rows")


def families() -> str:
    """A row for each family of tasks."""
    rates, scored = speeds(), learners()
    lines: dict[str, list[Any]] = {}
    for _, variants in tasks():
        family = folder(variants[0].task)
        lines.setdefault(family, []).extend(variants)
    made = table(HEAD, (_line(family, rows, rates, scored) for family, rows in lines.items()))
    return f"{made}\n{note()}"


def _line(
    family: str,
    rows: list[Row],
    rates: Mapping[str, str],
    scored: Mapping[str, Mapping[str, set[str]]],
) -> Iterator[str]:
    first, *others = sorted(rows, key=lambda row: ("token" not in row.views, row.task.count(".")))
    shown = first.id("token" if "token" in first.views else first.views[0])
    more = f", {len(others)} more, as `{others[0].name}`" if others else ""
    yield f"`{shown}`{more}"
    yield summary(load(first.task))
    yield ", ".join(dict.fromkeys(view for row in (first, *others) for view in row.views))
    yield rates.get(family, "")
    found = scored.get(family, {})
    where = len(set().union(*found.values()))
    names = ", ".join(sorted(found))
    yield f"{names}; {where} of {len(rows)} environments" if found else "none yet"


def folder(task: str) -> str:
    """The folder of a task's class, which names its family."""
    return task.split(":")[0].split(".")[2]


def note() -> str:
    """What the columns mean, and the command and machine of the speeds."""
    machine = read_json_checked(SPEEDS, "measured speeds, as JSON")["machine"]
    return (
        "Token steps: per CPU-second of one process, one dialogue / a batch of "
        f"{BATCH}; tokens that the masks\nallow, both made and drawn within "
        f"(`python -m benchmarks.environments families`, {machine['CPU']}).\n"
        "Learners: algorithms whose trained models have rows in [panels]"
        "(docs/leaderboard_results.md), and in how many\nof the environments.\n"
    )


def speeds() -> dict[str, str]:
    """By family, token steps per CPU-second: one dialogue, and a batch."""
    measured = read_json_checked(SPEEDS, "measured speeds, as JSON")["figures"]
    values = {figure["what"]: figure["value"] for figure in measured}
    names = dict.fromkeys(what.partition(":")[0] for what in values)
    return {
        name: f"{_rounded(values[f'{name}: one dialogue'])} / "
        f"{_rounded(values[f'{name}: batch of {BATCH}'])}"
        for name in names
    }


def _rounded(rate: float) -> str:
    return f"{float(f'{rate:.2g}'):,.0f}"


def learners() -> dict[str, dict[str, set[str]]]:
    """By family and algorithm, the environments in which trained models have committed rows."""
    found: dict[str, dict[str, set[str]]] = {}
    for algorithm, env_id in (*_of_panels(), *_of_pydial()):
        row = entry_of(env_id).row
        found.setdefault(folder(row.task), {}).setdefault(algorithm, set()).add(row.name)
    return found


def _of_panels() -> Iterator[tuple[str, str]]:
    for name in sorted({file.parent for file in RESULTS.glob("*/*/*-seed*.json")}):
        files = {file.name.rpartition("-seed")[0]: file for file in name.glob("*.json")}
        for file in files.values():
            values = json.loads(file.read_text("utf-8"))
            if values["kind"] != "scripted":
                yield values["policy"], values["id"]


def _of_pydial() -> Iterator[tuple[str, str]]:
    domains = {"CR": "CamRestaurants", "SFR": "SFRestaurants", "LAP": "Laptops11"}
    for file in sorted((RESULTS / "pydial").glob("*.csv")):
        if file.stem != PYDIAL_SCRIPTED:
            with file.open(encoding="utf-8", newline="") as lines:
                for row in csv.DictReader(lines):
                    domain = domains.get(row["domain"], row["domain"])
                    yield file.stem, f"dialgym/{domain}-Env{row['env']}-act-v0"
