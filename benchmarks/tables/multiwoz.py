"""The rule system with agenda users in MultiWOZ's city, beside ConvLab-2's own figures for it.

    python -m benchmarks.tables.multiwoz FOLDER [--dialogues 20000]

FOLDER has ConvLab-2's database and goal model. Writes a record and prints its three tables, of
drawn goals with seeds of their own: the scores with ``fidelity="convlab2"``, those of ConvLab-2 and
whether our means are within its 95 % intervals, and the same with the faults mended; success with
each fault alone and with all others; and the users. Exits with 1 where a mean over all dialogues is
not within.
"""

import argparse
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.tables.records import (
    RECORDS,
    Figures,
    counted,
    from_counts,
    make_record,
    mean_and_half,
)
from dialgym.experiments.statistics import Estimate
from dialgym.experiments.tables import markdown_table
from dialgym.tasks.multiwoz.data import World, load_world
from dialgym.tasks.multiwoz.dialogue import Rules, Settings
from dialgym.tasks.multiwoz.fidelity import FAULTS
from dialgym.tasks.multiwoz.user import BEHAVIOURS, MultiWOZUser

ORIGINAL = {
    "success": Estimate(0.969, 0.9605, 0.9757),
    "complete": Estimate(0.980, 0.9729, 0.9853),
    "inform precision": Estimate(0.8706, 0.8612, 0.8801),
    "inform recall": Estimate(0.9871, 0.9828, 0.9913),
    "inform F1": Estimate(0.9064, 0.8992, 0.9136),
    "book rate": Estimate(0.9862, 0.9785, 0.9940),
    "match": Estimate(0.9881, 0.9849, 0.9913),
    "turns": Estimate(10.621, 10.446, 10.796),
    "return": Estimate(35.860, 35.530, 36.189),
}
"""Means of ConvLab-2 (commit b014b81) and their 95 % intervals, 2,000 dialogues. Turns count both
parties; returns leave out the user's first words."""
BY_DOMAINS = {
    1: Estimate(1.0, 0.9946, 1.0),
    2: Estimate(0.9604, 0.9463, 0.9709),
    3: Estimate(0.9246, 0.8894, 0.9492),
}
"""Success by number of domains, of 710, 985 and 305 dialogues."""
NAME, COMMAND = "multiwoz", "python -m benchmarks.tables.multiwoz FOLDER"
BY_USER = ("success", "strict success", "inform F1", "turns", "return")
"""Metrics of each user."""
Scores = dict[str, list[float]]


def scores(world: World, settings: Settings, dialogues: int, user: str = "agenda") -> Scores:
    """Metric -> values, one a dialogue in which there is one."""
    rules = Rules(world, settings)
    speaker, found = MultiWOZUser(rules.agenda, user), dict[str, list[float]]()
    for seed in range(dialogues):
        rng = np.random.default_rng([0, seed])
        state, total = rules.begin(world.draw_goal(rng), rng), 0.0
        while True:
            turn = rules.user_turn(state, speaker.acts(state, rng), rng)
            total += sum(turn.components.values())
            if state.ended:
                break
            rules.system_turn(state, rules.system.acts(state.belief, rng), rng)
        metrics, counts = rules.metrics(state), rules.metrics(state).counts
        values = {
            "success": metrics.success,
            "strict success": metrics.strict_success,
            "complete": metrics.complete,
            "inform precision": counts.precision,
            "inform recall": counts.recall,
            "inform F1": counts.f1,
            "book rate": metrics.book_rate,
            "match": metrics.match,
            "turns": 2 * (state.turns + 1),
            "return": total,
            f"success, {len(state.goal.domains)}": metrics.success,
        }
        for name, value in values.items():
            if value is not None:
                found.setdefault(name, []).append(float(value))
    return found


def measure(world: World, dialogues: int) -> dict[str, Any]:
    """Values of each metric, counted; those of single faults and of users of a tenth as many."""
    few, original = dialogues // 10, Settings(fidelity="convlab2", reward="convlab2")
    return {
        "convlab2": _counted(scores(world, original, dialogues)),
        "mended": _counted(scores(world, Settings(reward="convlab2"), dialogues)),
        "faults": {name: [*_with_and_without(world, name, few)] for name in FAULTS},
        "users": {
            user: _counted(scores(world, Settings(), few, user), BY_USER) for user in BEHAVIOURS
        },
    }


def _counted(found: Scores, names: Iterable[str] | None = None) -> dict[str, dict[str, int]]:
    return {name: counted(np.array(found[name])) for name in names or found}


def _with_and_without(world: World, fault: str, dialogues: int) -> Iterator[float]:
    """Success with a fault alone, and with all but it."""
    for kept in (fault, "+".join(other for other in FAULTS if other != fault)):
        yield float(np.mean(scores(world, Settings(fidelity=kept), dialogues)["success"]))


def beside(figures: Figures) -> tuple[list[list[str]], bool]:
    """The scores beside those of ConvLab-2, and True where all are as they should be."""
    table, right = [["", "`convlab2`", "ConvLab-2", "its interval", "within", "mended"]], True
    rows = ORIGINAL | {f"success, {number}": row for number, row in BY_DOMAINS.items()}
    for name, (mean, low, high) in rows.items():
        faulty, mended = (from_counts(figures[kind][name]) for kind in ("convlab2", "mended"))
        within = low <= float(np.mean(faulty)) <= high
        label = f"{name} domain{'s' * (name[-1] != '1')}" if "," in name else name
        theirs = [str(mean), f"{low:g} to {high:g}", "yes" if within else "no"]
        table.append([label, mean_and_half(faulty, 3), *theirs, mean_and_half(mended, 3)])
        right &= within or "," in name
    return table, right


def by_fault(figures: Figures) -> list[list[str]]:
    """Cost of each fault, alone and among all others."""
    head = ["fault", "the original", "success with it alone", "with all but it"]
    return [
        head,
        *(
            [f"`{name}`", FAULTS[name].original, *(f"{mean:.3f}" for mean in means)]
            for name, means in figures["faults"].items()
        ),
    ]


def by_user(figures: Figures) -> list[list[str]]:
    """Scores of the rule system with each user."""
    return [
        ["user", *BY_USER],
        *(
            [f"`{user}`", *(mean_and_half(from_counts(found[name]), 3) for name in BY_USER)]
            for user, found in figures["users"].items()
        ),
    ]


def table(figures: Figures) -> str:
    """The three tables."""
    return "\n".join(map(markdown_table, (beside(figures)[0], by_fault(figures), by_user(figures))))


def main() -> None:
    """Measure, write the record and print the tables."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("folder", type=Path)
    parser.add_argument("--dialogues", type=int, default=20000)
    parser.add_argument("--records", type=Path, default=RECORDS, help="folder of the record")
    given = parser.parse_args()
    world = load_world(given.folder)
    figures = make_record(NAME, COMMAND, lambda: measure(world, given.dialogues), given.records)
    print(table(figures), end="")
    sys.exit(not beside(figures)[1])


if __name__ == "__main__":
    main()
