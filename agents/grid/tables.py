"""Results as Markdown tables, beside published figures."""

from __future__ import annotations

from collections.abc import Sequence

from agents.grid.results import Results


def markdown(results: Results) -> str:
    """All tables."""
    return by_task(results)


def by_task(results: Results) -> str:
    """Success of each method in each task after each number of dialogues."""
    rows = [["task", "method", "seeds", *map(str, results.tests), "reward"]]
    for task in results.tasks:
        for name in results.names():
            cells = [results.success(name, task, test) for test in results.tests]
            if len(cells[-1]):
                reward = results.of_cell(name, task, results.tests[-1])[:, 1].mean()
                means = [f"{cell.mean():.1f}" for cell in cells]
                rows.append([str(task), name, str(len(cells[-1])), *means, f"{reward:.2f}"])
    return table(rows)


def table(rows: Sequence[Sequence[str]]) -> str:
    """A Markdown table; the first row is its head."""
    lines = [rows[0], ["---"] * len(rows[0]), *rows[1:]]
    return "".join("| " + " | ".join(line) + " |\n" for line in lines)
