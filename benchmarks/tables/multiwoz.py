"""The rule system with agenda users in MultiWOZ's city, beside ConvLab-2's own figures for it.

    python -m benchmarks.tables.multiwoz FOLDER [--write docs/results/multiwoz.md]
                                                [--dialogues 20000]

FOLDER has ConvLab-2's database and goal model. Prints three tables, of drawn goals with seeds of
their own: the scores with ``fidelity="convlab2"``, those of ConvLab-2 and whether our means are
within its 95 % intervals, and the same with the faults mended; success with each fault alone and
with all others; and the users. Exits with 1 where a mean over all dialogues is not within.
"""

import argparse
import sys
from pathlib import Path

import numpy as np

from dialgym.experiments.statistics import Estimate
from dialgym.experiments.tables import markdown_table
from dialgym.io.files import write_text
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


def cell(values: list[float]) -> str:
    """A mean, and half of its 95 % interval."""
    half = 1.96 * float(np.std(values)) / len(values) ** 0.5
    return f"{np.mean(values):.3f} ± {half:.3f}"


def beside(world: World, dialogues: int) -> tuple[list[list[str]], bool]:
    """The scores beside those of ConvLab-2, and True where all are as they should be."""
    faulty = scores(world, Settings(fidelity="convlab2", reward="convlab2"), dialogues)
    mended = scores(world, Settings(reward="convlab2"), dialogues)
    table, right = [["", "`convlab2`", "ConvLab-2", "its interval", "within", "mended"]], True
    rows = ORIGINAL | {f"success, {number}": row for number, row in BY_DOMAINS.items()}
    for name, (mean, low, high) in rows.items():
        within = low <= float(np.mean(faulty[name])) <= high
        label = f"{name} domain{'s' * (name[-1] != '1')}" if "," in name else name
        theirs = [str(mean), f"{low:g} to {high:g}", "yes" if within else "no"]
        table.append([label, cell(faulty[name]), *theirs, cell(mended[name])])
        right &= within or "," in name
    return table, right


def by_fault(world: World, dialogues: int) -> list[list[str]]:
    """Cost of each fault, alone and among all others."""
    table = [["fault", "the original", "success with it alone", "with all but it"]]
    for name, fault in FAULTS.items():
        others = "+".join(other for other in FAULTS if other != name)
        found = (scores(world, Settings(fidelity=kept), dialogues) for kept in (name, others))
        means = (f"{np.mean(each['success']):.3f}" for each in found)
        table.append([f"`{name}`", fault.original, *means])
    return table


def by_user(world: World, dialogues: int) -> list[list[str]]:
    """Scores of the rule system with each user."""
    names = ("success", "strict success", "inform F1", "turns", "return")
    table = [["user", *names]]
    for user in BEHAVIOURS:
        found = scores(world, Settings(), dialogues, user)
        table.append([f"`{user}`", *(cell(found[name]) for name in names)])
    return table


def main() -> None:
    """Print the tables, and write them."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("folder", type=Path)
    parser.add_argument("--dialogues", type=int, default=20000)
    parser.add_argument("--write", type=Path, help="where to write the tables too")
    arguments = parser.parse_args()
    world, few = load_world(arguments.folder), arguments.dialogues // 10
    compared, right = beside(world, arguments.dialogues)
    tables = [compared, by_fault(world, few), by_user(world, few)]
    text = "\n".join(map(markdown_table, tables))
    print(text, end="")
    if arguments.write:
        write_text(arguments.write, text)
    sys.exit(not right)


if __name__ == "__main__":
    main()
