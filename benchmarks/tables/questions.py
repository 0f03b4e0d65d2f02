"""Scripted questioners of twenty questions beside the best that can be done: a table.

    python -m benchmarks.tables.questions [--episodes 2000]

The last column is the exact expected return of the best questioner; where the search for it is too
long, a bound in its place: questions that split any set as one likes. Answers with noise have none.
"""

from typing import Any

import dialgym
from benchmarks.tables.records import Figures, counted, from_counts, mean_and_half, run_measurement
from dialgym.experiments.tables import markdown_table
from dialgym.registry import RegistryEntry, entries
from dialgym.tasks.twenty_questions import TwentyQuestions
from dialgym.tasks.twenty_questions.policies import OptimalQuestioner
from dialgym.tasks.twenty_questions.search import perfect

NAME, COMMAND = "questions", "python -m benchmarks.tables.questions"
POLICIES = ("random", "guesser", "random-mixture", "human-like", "greedy")
HEAD = ("environment", *POLICIES, "optimum")


def measure(episodes: int) -> dict[str, Any]:
    """Returns by environment and policy, counted, and the optimum."""
    return {entry.id: _measured(entry, episodes) for entry in environments()}


def environments() -> list[RegistryEntry]:
    """The token views of twenty questions."""
    tagged = (entry for entry in entries().values() if "exact-posterior" in entry.row.tags)
    return [entry for entry in tagged if entry.view == "token"]


def _measured(entry: RegistryEntry, episodes: int) -> dict[str, Any]:
    returns = {name: counted(played(name, entry.id, episodes)) for name in POLICIES}
    return {"returns": returns, "optimum": optimum(TwentyQuestions(**entry.row.settings))}


def played(policy: str, env_id: str, episodes: int) -> Any:
    """(1, E) returns of a scripted questioner, seed 0."""
    return dialgym.evaluate(policy, env_id, episodes, (0,)).by_id[env_id].returns


def optimum(task: TwentyQuestions) -> str:
    """The value of the best questioner, or a bound of it."""
    if task.noise or task.vague:
        return "-"
    try:
        return f"{OptimalQuestioner().search(task).value(range(task.things), task.turns):.3f}"
    except ValueError:
        return f"at most {perfect(task.things, task.turns):.3f}"


def table(figures: Figures) -> str:
    """Mean returns with 95 % intervals."""
    rows = [
        (f"`{env_id}`",
         *(mean_and_half(from_counts(found["returns"][name])) for name in POLICIES),
         found["optimum"])
        for env_id, found in figures.items()
    ]  # fmt: skip
    return markdown_table([HEAD, *rows])


if __name__ == "__main__":
    run_measurement(__doc__, NAME, COMMAND, 2000, measure, table)
