"""Scripted policies of mazes and houses, on LMRL-Gym's scale and beside exact values: a table.

    python -m benchmarks.tables.worlds [--episodes 1000]

The scale is that of the generator ``graded``: 0 for its least return, 50 for its mean, 100 for the
exact expected return of the best policy that knows what was told.
"""

from typing import Any

import dialgym
from benchmarks.tables.lmrl import Anchors, anchors_of, lmrl_score
from benchmarks.tables.records import Figures, counted, from_counts, mean_and_half, run_measurement
from dialgym.experiments.tables import markdown_table
from dialgym.registry import RegistryEntry, entries, make_task

NAME, COMMAND = "worlds", "python -m benchmarks.tables.worlds"
DATA = "graded"
POLICIES = ("random", "random-mixture", "optimal", "informed")
OWN = {"Maze": "wall-follower", "TextNav": "wanderer"}
"""A policy of its own, by task."""
TAG = "navigation"
HEAD = ("environment", "policy", "return", "LMRL-Gym's scale", "exact")


def environments() -> list[RegistryEntry]:
    """The token views of mazes and houses."""
    return [e for e in entries().values() if TAG in e.row.tags and e.view == "token"]


def measure(episodes: int) -> dict[str, Any]:
    """By environment: returns of stored dialogues and of policies, counted, and exact values."""
    return {entry.id: _measured(entry, episodes) for entry in environments()}


def _measured(entry: RegistryEntry, episodes: int) -> dict[str, Any]:
    task: Any = make_task(entry, {})
    names = (DATA, POLICIES[0], OWN[task.name], *POLICIES[1:])
    exact = {
        "random": task.exact.random_return,
        "optimal": task.exact.best_return,
        "informed": task.informed.best_return,
    }
    return {
        "returns": {name: counted(played(name, entry.id, episodes)) for name in names},
        "exact": {name: round(value, 6) for name, value in exact.items()},
    }


def played(policy: str, env_id: str, episodes: int) -> Any:
    """(E,) returns of episodes of a scripted policy, or of dialogues of the generator, seed 0."""
    if policy == DATA:
        return dialgym.collect(env_id, policy, episodes).returns
    return dialgym.evaluate(policy, env_id, episodes, (0,)).by_id[env_id].returns.ravel()


def scale(figures: Figures, env_id: str) -> Anchors:
    """LMRL-Gym's scale of an environment."""
    found = figures[env_id]
    return anchors_of(found["returns"][DATA], found["exact"]["optimal"])


def table(figures: Figures) -> str:
    """Mean returns with 95 % intervals, their places on the scale, and exact returns."""
    rows = []
    for env_id, found in figures.items():
        anchors = scale(figures, env_id)
        for name, counts in found["returns"].items():
            returns, exact = from_counts(counts), found["exact"].get(name)
            score = lmrl_score(float(returns.mean()), *anchors)
            known = "" if exact is None else f"{exact:.3f}"
            rows.append((f"`{env_id}`", name, mean_and_half(returns), f"{score:.1f}", known))
    return markdown_table([HEAD, *rows])


if __name__ == "__main__":
    run_measurement(__doc__, NAME, COMMAND, 1000, measure, table)
