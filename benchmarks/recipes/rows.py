"""Committed rows of recipes, checked, and the tables that they make."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import chain
from pathlib import Path
from typing import Any

from agents.experiments.job import finished
from benchmarks.recipes.job import RecipeJob
from benchmarks.recipes.recipe import Recipe
from benchmarks.recipes.tables import lines, report
from dialgym.experiments.row import AS_NAMED, COLUMNS, episode_means
from dialgym.experiments.rules import Fingerprint, RowOrigin, older_rules
from dialgym.experiments.tables import markdown_table
from dialgym.io.strict_reader import all_finite

RUNS = Path("runs/recipes")
ENTRIES: Mapping[str, type] = {
    "episodes": dict, "statistics": dict, "metrics": dict, "measured": dict, "hashes": dict,
    "cost": dict, "hardware": dict, "versions": dict, "command": str,
}  # fmt: skip
"""Entries of a row beside its description, and their types."""
Rows = Mapping[RecipeJob, Mapping[str, Any]]


def read_recipe_rows(recipe: Recipe, home: Path) -> dict[RecipeJob, dict[str, Any]]:
    """Read the rows of a recipe, method by method.

    Args:
        recipe: of which.
        home: the folder of the rows of all recipes.

    Raises:
        ValueError: a file is damaged, is no row of the recipe as it is now, lies where none
            belongs, or its statistics are not those of its episodes.
    """
    found: dict[RecipeJob, dict[str, Any]] = {}
    for method in recipe.methods.values():
        shown = RecipeJob(recipe, method, 0, RUNS, home)
        files = [] if method.hidden else shown.result.parent.glob("*-seed*.json")
        for seed in sorted(int(file.stem.rpartition("-seed")[2]) for file in files):
            job = RecipeJob(recipe, method, seed, RUNS, home)
            values = finished(job)
            if values is not None:
                _check(job, values)
                found[job] = values
    _check_paths(recipe, home, found)
    return found


def _check(job: RecipeJob, values: Mapping[str, Any]) -> None:
    wrong = "; ".join(recipe_row_problems(values))
    if wrong:
        raise ValueError(f"{str(job.result)!r} is no row of a recipe: {wrong}.")


def _check_paths(recipe: Recipe, home: Path, found: Rows) -> None:
    known = {job.result for job in found}
    for file in sorted((home.resolve() / recipe.name).glob("**/*.json")):
        if file not in known:
            raise ValueError(
                f"{str(file)!r} is no row of the recipe {recipe.name!r}: no method of it has a row "
                "there. Remove the file, or make the row again."
            )


def recipe_row_problems(values: Mapping[str, Any]) -> Iterator[str]:
    """All that is wrong with the content of a row; nothing is played."""
    bad = [name for name, kind in ENTRIES.items() if not isinstance(values.get(name), kind)]
    if bad:
        yield f"expected {', '.join(bad)}"
        return
    episodes, count = values["episodes"], values["count"]
    parts = {**{name: episodes.get(name, ()) for name in COLUMNS}, **values["metrics"]}
    yield from (
        f"{name}: expected {count} numbers, got {len(part)}"
        for name, part in parts.items()
        if len(part) != count
    )
    if not all_finite(chain(values["measured"].values(), *parts.values())):
        yield "expected finite numbers"
    elif [*map(len, parts.values())] == [count] * len(parts) and (
        values["statistics"] != episode_means(episodes)
    ):
        yield "statistics: expected the means of the episodes"
    named = values["hashes"].keys() & {"weights", "model"}  # the latter of older rows, of a file
    if values["method"]["policy"] is None and not named:
        yield "hashes: expected the SHA-256 of the weights"


def recipe_table(recipe: Recipe, rows: Rows, command: str) -> str:
    """The table of a recipe's committed rows, as Markdown; without rows, how to make them.

    Args:
        recipe: of which.
        rows: of it.
        command: that makes the rows.
    """
    if not rows:
        return f"Not yet made: no rows are committed. `{command}` makes them.\n"
    return report(recipe, lines(rows)) + _notes(recipe, rows)


def recipes_table(found: Mapping[str, Rows]) -> str:
    """How many rows recipes have, by name, and what they cost, as Markdown."""
    costs = {name: (len(rows), cpu_seconds(rows)) for name, rows in found.items()}
    costs["all"] = sum(n for n, _ in costs.values()), sum(cost for _, cost in costs.values())
    lines = [[name, f"{n:,}", f"{cost / 3600:.2f}"] for name, (n, cost) in costs.items()]
    return markdown_table([["recipe", "rows", "CPU h"], *lines])


def cpu_seconds(rows: Rows) -> float:
    """What rows cost in all."""
    return float(sum(values["cost"]["cpu_seconds"] for values in rows.values()))


def _notes(recipe: Recipe, rows: Rows) -> str:
    """Methods without rows, cost and older rules, in a paragraph."""
    made = {job.method.name for job in rows}
    missing = [n for n, method in recipe.methods.items() if not method.hidden and n not in made]
    notes = [f"{len(rows)} rows, {cpu_seconds(rows) / 60:,.0f} CPU-minutes."]
    if missing:
        notes.append(f"No rows yet: {', '.join(missing)}.")
    if older := older_rules(_origin(job, values) for job, values in rows.items()):
        notes.append(older)
    return "\n" + " ".join(notes) + "\n"


def _origin(job: RecipeJob, values: Mapping[str, Any]) -> RowOrigin:
    source = values["hashes"]["source"]
    rules = Fingerprint.of_values(values["hashes"]["rules"])
    stand_in = None if source == AS_NAMED else source
    return RowOrigin(job.method.name, job.method.environment, job.rules_settings, stand_in, rules)
