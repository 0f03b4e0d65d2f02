"""Scripted questioners of twenty questions beside the best that can be done: a table.

    python -m benchmarks.tables.questions [--out docs/results/questions.md] [--episodes 2000]

The last column is the exact expected return of the best questioner; where the search for it is too
long, a bound in its place: questions that split any set as one likes. Answers with noise have none.
"""

import argparse
from collections.abc import Iterator
from pathlib import Path

import dialgym
from dialgym.experiments.tables import markdown_table
from dialgym.io.files import write_text
from dialgym.registry import entries
from dialgym.tasks.twenty_questions import TwentyQuestions
from dialgym.tasks.twenty_questions.policies import OptimalQuestioner
from dialgym.tasks.twenty_questions.search import perfect

POLICIES = ("random", "guesser", "random-mixture", "human-like", "greedy")
HEAD = ("environment", *POLICIES, "optimum")


def rows(episodes: int) -> Iterator[tuple[str, ...]]:
    """The cells of each environment: mean returns with 95 % intervals."""
    for entry in entries().values():
        if "exact-posterior" in entry.row.tags and entry.view == "token":
            task = TwentyQuestions(**entry.row.settings)
            results = [dialgym.evaluate(name, entry.id, episodes, (0,)) for name in POLICIES]
            cells = [f"{r.mean_return:.2f} ± {half(r.interval):.2f}" for r in results]
            yield (f"`{entry.id}`", *cells, optimum(task))


def half(interval: tuple[float, float]) -> float:
    """Half the width of an interval."""
    low, high = interval
    return (high - low) / 2


def optimum(task: TwentyQuestions) -> str:
    """The value of the best questioner, or a bound of it."""
    if task.noise or task.vague:
        return "-"
    try:
        return f"{OptimalQuestioner().search(task).value(range(task.things), task.turns):.3f}"
    except ValueError:
        return f"at most {perfect(task.things, task.turns):.3f}"


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--out", type=Path, default=Path("docs/results/questions.md"))
    parser.add_argument("--episodes", type=int, default=2000)
    options = parser.parse_args()
    table = markdown_table([HEAD, *rows(options.episodes)])
    write_text(options.out, table)
    print(table)


if __name__ == "__main__":
    main()
