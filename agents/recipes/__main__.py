"""Train, score and tabulate: ``python -m agents.recipes NAME``; what is done is not done again."""

from __future__ import annotations

import argparse
from importlib import import_module
from pathlib import Path

from agents.recipes.plots import plot
from agents.recipes.runs import perform
from agents.recipes.tables import lines, markdown
from dialgym.files import write_text

RECIPES = ("ppo", "adversarial", "mixed")


def main() -> None:
    """Perform a recipe and write its table."""
    parser = argparse.ArgumentParser("python -m agents.recipes", description=__doc__)
    parser.add_argument("name", choices=RECIPES)
    parser.add_argument("--seeds", type=int, default=5, help="trainings of each method")
    parser.add_argument("--jobs", type=int, default=1, help="processes, one thread each")
    parser.add_argument("--out", type=Path, help="folder of the runs; default runs/recipes/NAME")
    parser.add_argument("--table", type=Path, help="Markdown file to write the table into")
    parser.add_argument("--plot", type=Path, help="PNG file to draw the table into")
    arguments = parser.parse_args()
    recipe = import_module(f"agents.recipes.{arguments.name}")
    out = arguments.out or Path("runs/recipes") / arguments.name
    scores = perform(recipe.runs(out, arguments.seeds), recipe.EPISODES, arguments.jobs)
    table = lines(scores)
    text = markdown(table, getattr(recipe, "COLUMNS", None)) + "\n" + recipe.NOTE
    print("\n" + text)
    if arguments.table:
        write_text(arguments.table, text)
    if arguments.plot:
        plot(table, arguments.plot)


if __name__ == "__main__":
    main()
