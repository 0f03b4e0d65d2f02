"""Train and score a recipe, a row each (`python -m benchmarks.recipes NAME`).

What has a row is not done again; what was killed goes on. `python -m benchmarks.tables --write`
makes the table of the rows.
"""

from __future__ import annotations

import argparse
from pathlib import Path

from benchmarks.recipes.job import jobs_of, perform
from benchmarks.recipes.plots import plot
from benchmarks.recipes.recipe import names, read_recipe
from benchmarks.recipes.rows import RUNS
from benchmarks.recipes.tables import lines, report
from dialgym.cli.common import job_progress, parse_seeds


def main() -> None:
    """Perform a recipe and print its table."""
    parser = argparse.ArgumentParser("python -m benchmarks.recipes", description=__doc__)
    parser.add_argument("name", choices=names())
    parser.add_argument("--seeds", default="5", help="how many, or which: 5, 0,2 or 3-4")
    parser.add_argument("--workers", type=int, default=1, help="processes, one thread each; or 0")
    parser.add_argument("--runs", type=Path, default=RUNS, help="folder of the trainings")
    parser.add_argument(
        "--rows", type=Path, default=Path("benchmarks/results/recipes"), help="folder of the rows"
    )
    parser.add_argument("--plot", type=Path, help="PNG file to draw the table into")
    parser.add_argument("--device", default="cpu", help="of the trainings: cpu, cuda or auto")
    parser.add_argument("--only", nargs="+", help="methods, or patterns of them; else all")
    given = parser.parse_args()
    try:
        recipe = read_recipe(given.name)
        seeds, runs = parse_seeds(given.seeds), given.runs / given.name
        jobs = jobs_of(recipe, runs, given.rows, seeds, given.only, given.device)
        with job_progress("runs") as progress:
            table = lines(perform(jobs, given.workers, progress))
    except (OSError, ValueError) as error:
        parser.error(str(error))
    print("\n" + report(recipe, table))
    if given.plot:
        plot(table, given.plot, recipe.pictured)


if __name__ == "__main__":
    main()
