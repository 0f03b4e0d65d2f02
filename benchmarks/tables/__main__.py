"""Tables of docs/results: how each is made, and those with rows made again and compared.

python -m benchmarks.tables              list them
python -m benchmarks.tables --check      make those with committed rows, and compare
python -m benchmarks.tables --write      make those with committed rows
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from shutil import copyfile
from tempfile import TemporaryDirectory
from types import MappingProxyType, ModuleType

from benchmarks import doors, model_users, smollm2
from benchmarks.recipes.recipe import read_recipe
from benchmarks.recipes.rows import read_recipe_rows, recipe_table, recipes_table
from benchmarks.tables import (
    bargain,
    car_dealer,
    conformance,
    discount,
    fitted_evaluation,
    lmrl_suite,
    multiwoz,
    noise,
    pydial,
    questions,
    stitching,
    visual,
    worlds,
)
from benchmarks.tables.comments import comments_table
from benchmarks.tables.lmrl import lmrl_table
from benchmarks.tables.records import read_record
from benchmarks.training import gp
from dialgym.cli.app import app
from dialgym.io.files import write_text

ROOT = Path(__file__).parents[2]
ROWS = ROOT / "benchmarks" / "results"
DOCS = ROOT / "docs" / "results"
RECIPE = "python -m benchmarks.recipes"
TRANSFER = "python -m benchmarks.transfer --panel slot-filling-words"
LMRL: Mapping[str, str] = MappingProxyType(
    {
        "leaderboard_wordle": "wordle",
        "leaderboard_wordle_deep": "wordle-deep",
        "leaderboard_wordle_large": "wordle-large",
        "leaderboard_wordle_lmrl": "wordle-distilled",
    }
)
"""Panels of words by the file of their learners on LMRL-Gym's scale."""
COMMENTS = "leaderboard_comments"
ALL_RECIPES = "recipes"
PYDIAL = "pydial"
"""Folder of the rows of PyDial's benchmark, and the file of its tables in the documentation."""
LEADERBOARD: Mapping[str, str] = MappingProxyType(
    {
        "leaderboard": "show --all",
        "leaderboard_wordle_long": "compare wordle bc-long-ppo bc-6000",
        "leaderboard_wordle_ppo": "compare wordle-distilled bc-ppo-separate bc-30 --actions greedy",
        "leaderboard_wordle_greedy": "compare wordle-distilled ilql bc-long --actions greedy",
        "leaderboard_wordle_drawn": "compare wordle-distilled ilql bc-long --actions drawn",
        "leaderboard_words": "compare slot-filling-words ppo handcrafted",
        "leaderboard_words_cloned": "compare slot-filling-words-cloned bc-ppo handcrafted",
        "leaderboard_domains": "compare multi-domain bc-ppo bc",
        "leaderboard_questions": "compare questions bc-ppo bc-34",
        "leaderboard_questions_long": "compare questions bc-long ilql --actions greedy",
        "leaderboard_questions_distilled": "compare questions-distilled bc greedy",
        "leaderboard_held_out": "compare held-out bc-ppo bc",
        "leaderboard_language": "compare language grpo bc",
        "leaderboard_service_desk": "compare service-desk bc-ppo handcrafted",
    }
)
"""Commands of ``dialgym leaderboard`` by the name of the file that they write."""
RECIPES: Mapping[str, str] = MappingProxyType(
    {
        "adversarial": "adversarial --seeds 3",
        "bargain_learning": "bargain --seeds 5",
        "bargain_people": "bargain_people --seeds 5",
        "bargain_self_play": "bargain_self_play --seeds 5",
        "credit": "credit --seeds 5",
        "credit_scaling": "credit_scaling --seeds 5",
        "yes_no": "yesno --seeds 3",
        "pair": "pair --seeds 3",
        "persuasion": "persuasion --seeds 5",
        "service_desk_passes": "service_desk --seeds 5",
        "smollm2_policy": "smollm2 --seeds 5 --device cuda",
        "transfer": "transfer --seeds 5",
        "turn_learners": "turn_learners --seeds 5",
        "users": "users --seeds 3",
    }
)
"""Arguments of ``python -m benchmarks.recipes`` that make the rows of a table."""
RECORDS: Mapping[str, ModuleType] = MappingProxyType(
    {
        m.NAME: m
        for m in (
            bargain,
            car_dealer,
            conformance,
            discount,
            doors,
            fitted_evaluation,
            gp,
            lmrl_suite,
            model_users,
            multiwoz,
            noise,
            pydial,
            questions,
            smollm2,
            stitching,
            visual,
            worlds,
        )
    }
)
"""Modules that make the table of a record, by the name of the file."""
OTHERS: Mapping[str, str] = MappingProxyType(
    {
        "transfer_errors_slot_filling_words": f"{TRANSFER} errors",
        "transfer_users_slot_filling_words": f"{TRANSFER} users",
    }
)
"""Commands that make the files without committed rows; see their pages for all options."""


def main(arguments: Sequence[str] | None = None) -> None:
    """List the tables, or make those with rows."""
    parser = argparse.ArgumentParser("python -m benchmarks.tables", description=__doc__)
    parser.add_argument("--check", action="store_true", help="compare what rows give")
    parser.add_argument("--write", action="store_true", help="write what rows give")
    given = parser.parse_args(arguments)
    if given.write:
        make(DOCS)
        make_pydial(ROWS / PYDIAL)
    elif given.check:
        if stale := differing():
            sys.exit(f"not of the committed rows: {', '.join(stale)}. Run with --write.")
        print("all tables with rows are of those rows")
    else:
        for name, command in commands().items():
            print(f"docs/results/{name}.md: {command}")


def commands() -> dict[str, str]:
    """The command that makes each file of docs/results."""
    rows = {name: f"dialgym leaderboard {command}" for name, command in LEADERBOARD.items()}
    recipes = {name: f"{RECIPE} {command}" for name, command in RECIPES.items()}
    own = dict.fromkeys(
        (*LMRL, COMMENTS, PYDIAL, ALL_RECIPES), "python -m benchmarks.tables --write"
    )
    records = {name: module.COMMAND for name, module in RECORDS.items()}
    return {**rows, **own, **recipes, **records, **OTHERS}


def make(out: Path, panels: Mapping[str, str] = LEADERBOARD) -> None:
    """Make the tables of docs/results with committed rows, in a folder; of panels those named."""
    for name, command in panels.items():
        where = ["--results", str(ROWS), "--markdown", str(out / f"{name}.md")]
        if app(["leaderboard", *command.split(), *where], standalone_mode=False):
            sys.exit(f"dialgym leaderboard {command}: failed, as it says above")
    found = {}
    for name, command in RECIPES.items():
        recipe = read_recipe(command.split()[0])
        found[recipe.name] = rows = read_recipe_rows(recipe, ROWS / "recipes")
        write_text(out / f"{name}.md", recipe_table(recipe, rows, f"{RECIPE} {command}"))
    write_text(out / f"{ALL_RECIPES}.md", recipes_table(found))
    for name, module in RECORDS.items():
        write_text(out / f"{name}.md", module.table(read_record(name)["figures"]))
    for name, panel in LMRL.items():
        write_text(out / f"{name}.md", lmrl_table(ROWS, panel))
    write_text(out / f"{COMMENTS}.md", comments_table(ROWS))
    write_text(out / f"{PYDIAL}.md", pydial_summary(ROWS / PYDIAL))


def pydial_summary(folder: Path) -> str:
    """The tables of PyDial's benchmark for the documentation, from its rows in the folder."""
    from agents.experiments.pydial_results import Results
    from agents.experiments.pydial_tables import summary

    return summary(Results.load(folder))


def make_pydial(folder: Path) -> None:
    """Make the tables of PyDial's benchmark from its rows in the folder."""
    from agents.experiments.pydial_report import TABLES, older_in
    from agents.experiments.pydial_results import Results
    from agents.experiments.pydial_tables import markdown

    write_text(folder / TABLES, markdown(Results.load(folder), older_in(folder)))


def differing(panels: Mapping[str, str] = LEADERBOARD) -> list[str]:
    """Names of the files that are not what the committed rows give; of panels those named."""
    with TemporaryDirectory() as name:
        folder = Path(name)
        make(folder, panels)
        pydial = folder / PYDIAL
        pydial.mkdir()
        for file in (ROWS / PYDIAL).iterdir():
            copyfile(file, pydial / file.name)
        make_pydial(pydial)
        pairs = [(file, DOCS / file.name) for file in sorted(folder.glob("*.md"))]
        pairs.append((pydial / "tables.md", ROWS / PYDIAL / "tables.md"))
        return [
            str(kept.relative_to(ROOT))
            for made, kept in pairs
            if made.read_text("utf-8") != kept.read_text("utf-8")
        ]


if __name__ == "__main__":
    main()
