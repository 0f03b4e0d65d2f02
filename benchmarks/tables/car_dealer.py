"""Scripted car dealers, on LMRL-Gym's scale and on ours, beside exact values: a table.

    python -m benchmarks.tables.car_dealer [--episodes 3000]

LMRL-Gym's scale is that of the generator ``graded``: 0 for its least return, 50 for its mean, 100
for the exact expected return of the best dealer that knows what was said. Ours is 0 for a random
dealer, 100 for that best one.
"""

from typing import Any

import numpy as np

from benchmarks.tables.lmrl import anchors_of, lmrl_score, our_score
from benchmarks.tables.records import Figures, counted, from_counts, mean_and_half, run_measurement
from benchmarks.tables.worlds import DATA, played
from dialgym.experiments.tables import markdown_table
from dialgym.registry import entry_of, make_task

NAME, COMMAND = "car_dealer", "python -m benchmarks.tables.car_dealer"
ENV = "dialgym/CarDealer-v0"
POLICIES = ("random", "random-mixture", "dealer", "optimal", "best-response")
HEAD = ("dealer", "return", "LMRL-Gym's scale", "ours", "exact")


def measure(episodes: int) -> dict[str, Any]:
    """Returns of stored dialogues and of policies, counted, and exact means over all customers."""
    task: Any = make_task(entry_of(ENV), {})
    start = task.initial(np.random.default_rng(0))
    every = task.suppositions(start, "system")
    informed = task.speaker_named("system", "best-response").search
    exact = {
        "optimal": task.value(start),
        "best-response": float(np.mean([informed.best(task, [one])[0] for one in every])),
    }
    names = (DATA, *POLICIES)
    return {
        "returns": {name: counted(played(name, ENV, episodes)) for name in names},
        "exact": {name: round(value, 6) for name, value in exact.items()},
    }


def table(figures: Figures) -> str:
    """Mean returns with 95 % intervals, their places on both scales, and exact returns."""
    best, rows = figures["exact"]["optimal"], []
    anchors = anchors_of(figures["returns"][DATA], best)
    least = float(from_counts(figures["returns"]["random"]).mean())
    for name, counts in figures["returns"].items():
        returns, exact = from_counts(counts), figures["exact"].get(name)
        mean = float(returns.mean())
        ours = our_score(mean, least, best)
        known = "" if exact is None else f"{exact:.3f}"
        score = lmrl_score(mean, *anchors)
        rows.append((name, mean_and_half(returns), f"{score:.1f}", f"{ours:.1f}", known))
    return markdown_table([HEAD, *rows])


if __name__ == "__main__":
    run_measurement(__doc__, NAME, COMMAND, 3000, measure, table)
