"""Train, score and tabulate (`python -m benchmarks.recipes NAME`); done runs are not repeated."""

from __future__ import annotations

import argparse
from importlib import import_module
from inspect import signature
from pathlib import Path

from benchmarks.recipes.plots import plot
from benchmarks.recipes.runs import perform, select
from benchmarks.recipes.tables import BASE, lines, markdown
from dialgym.cli.common import job_progress
from dialgym.io.files import write_text

RECIPES = (
    "ppo",
    "adversarial",
    "mixed",
    "language",
    "multiwoz",
    "multiwoz_offline",
    "multiwoz_words",
    "corpus",
    "transfer",
    "credit",
    "grpo",
    "pair",
    "yesno",
)


def main() -> None:
    """Perform a recipe and write its table."""
    parser = argparse.ArgumentParser("python -m benchmarks.recipes", description=__doc__)
    parser.add_argument("name", choices=RECIPES)
    parser.add_argument("--seeds", type=int, default=5, help="trainings of each method")
    parser.add_argument("--workers", type=int, default=1, help="processes, one thread each; or 0")
    parser.add_argument("--out", type=Path, help="folder of the runs; default runs/recipes/NAME")
    parser.add_argument("--table", type=Path, help="Markdown file to write the table into")
    parser.add_argument("--plot", type=Path, help="PNG file to draw the table into")
    parser.add_argument("--only", nargs="+", help="methods of the table, or patterns; else all")
    parser.add_argument("--data", help="the dialogues of a recipe that learns from yours")
    arguments = parser.parse_args()
    recipe = import_module(f"benchmarks.recipes.{arguments.name}")
    given = {} if arguments.data is None else {"data": arguments.data}
    if given and "data" not in signature(recipe.runs).parameters:
        parser.error(f"--data: the recipe {arguments.name!r} makes its own")
    out = (arguments.out or Path("runs/recipes") / arguments.name).resolve()
    runs = recipe.runs(out, arguments.seeds, **given)
    if arguments.only:
        runs = select(runs, arguments.only)
    try:
        with job_progress("runs") as report:
            scores = perform(runs, recipe.EPISODES, arguments.workers, report)
    except (OSError, ValueError) as error:
        parser.error(str(error))
    table = lines(scores)
    shown = markdown(table, getattr(recipe, "COLUMNS", None), getattr(recipe, "BASE", tuple(BASE)))
    more = recipe.MORE(table) + "\n" if hasattr(recipe, "MORE") else ""
    text = f"{shown}\n{more}{recipe.NOTE}"
    print("\n" + text)
    if arguments.table:
        write_text(arguments.table, text)
    if arguments.plot:
        getattr(recipe, "PLOT", plot)(table, arguments.plot)


if __name__ == "__main__":
    main()
