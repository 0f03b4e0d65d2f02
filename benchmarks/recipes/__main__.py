"""Train, score and tabulate (`python -m benchmarks.recipes NAME`); done runs are not repeated."""

from __future__ import annotations

import argparse
from pathlib import Path

from benchmarks.recipes.job import jobs_of, perform
from benchmarks.recipes.plots import plot
from benchmarks.recipes.recipe import names, read_recipe
from benchmarks.recipes.tables import report
from dialgym.cli.common import job_progress
from dialgym.io.files import write_text
from dialgym.io.objects import load


def main() -> None:
    """Perform a recipe and write its table."""
    parser = argparse.ArgumentParser("python -m benchmarks.recipes", description=__doc__)
    parser.add_argument("name", choices=names())
    parser.add_argument("--seeds", type=int, default=5, help="trainings of each method")
    parser.add_argument("--workers", type=int, default=1, help="processes, one thread each; or 0")
    parser.add_argument("--out", type=Path, help="folder of the runs; default runs/recipes/NAME")
    parser.add_argument("--table", type=Path, help="Markdown file to write the table into")
    parser.add_argument("--plot", type=Path, help="PNG file to draw the table into")
    parser.add_argument("--only", nargs="+", help="methods of the table, or patterns; else all")
    parser.add_argument("--data", help="the dialogues of a recipe that learns from yours")
    given = parser.parse_args()
    out = (given.out or Path("runs/recipes") / given.name).resolve()
    try:
        recipe = read_recipe(given.name, out, given.data)
        with job_progress("runs") as progress:
            table = perform(jobs_of(recipe, out, given.seeds, given.only), given.workers, progress)
    except (OSError, ValueError) as error:
        parser.error(str(error))
    text = report(recipe, table)
    print("\n" + text)
    if given.table:
        write_text(given.table, text)
    if given.plot:
        (load(recipe.plot) if recipe.plot else plot)(table, given.plot)


if __name__ == "__main__":
    main()
