"""Comparisons in PyDial's benchmark: learners with the handcrafted policy, and with the original's.

Each learner is compared by itself, in every task that it has played; none is chosen by its figures.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from agents.experiments import published
from agents.experiments.pydial_panel import SCRIPTED, Task
from agents.experiments.pydial_results import Results
from dialgym.experiments.significance import ALPHA, holm, welch_difference, welch_p_value
from dialgym.experiments.statistics import format_estimate
from dialgym.experiments.tables import markdown_table

HANDCRAFTED = "handcrafted"
COMPARED_NOTE = (
    "Success after the last stage, each learner in all tasks that it has played. In a task it is "
    "above or below where Welch's t test over trainings says so at 5 %, corrected by Holm over the "
    "learner's tasks; else tied. In brackets, corrected over all tests of the table at once. The "
    "difference is the mean over the tasks, with the 95 % interval of Student's t (Welch and "
    "Satterthwaite)."
)


class Comparison(NamedTuple):
    """A learner's difference from the handcrafted policy in a task.

    Attributes:
        task: in which.
        learned, handcrafted: (S,) success in per cent of each seed.
    """

    task: Task
    learned: np.ndarray
    handcrafted: np.ndarray

    @property
    def p_value(self) -> float:
        """P-value of Welch's t test over seeds."""
        return welch_p_value(self.learned, self.handcrafted)

    @property
    def sign(self) -> int:
        """1 where the learner's mean is higher, -1 where it is lower."""
        return int(np.sign(self.learned.mean() - self.handcrafted.mean()))


def comparisons(results: Results, name: str) -> list[Comparison]:
    """Compare a learner with the handcrafted policy in every task that both have played."""
    last = results.tests[-1]
    pairs = [
        (task, results.success(name, task, last), results.success(HANDCRAFTED, task, last))
        for task in results.tasks
    ]
    return [Comparison(*pair) for pair in pairs if len(pair[1]) and len(pair[2])]


def verdicts(family: Sequence[Comparison]) -> list[int]:
    """Verdict of each comparison, 1 (above), 0 (tied) or -1 (below), corrected over the family."""
    adjusted = holm([one.p_value for one in family])
    return [one.sign if p <= ALPHA else 0 for one, p in zip(family, adjusted, strict=True)]


def beside_handcrafted(results: Results) -> str:
    """Tasks in which each learner is above, tied with and below the handcrafted policy."""
    learned = [name for name in results.names() if name not in SCRIPTED]
    families = {name: found for name in learned if (found := comparisons(results, name))}
    if not families:
        return ""
    every = iter(verdicts([one for family in families.values() for one in family]))
    head = ["learner", "tasks", "seeds", "above", "tied", "below", "difference", "above in",
            "below in"]  # fmt: skip
    rows = [
        _compared(name, family, [next(every) for _ in family]) for name, family in families.items()
    ]
    return markdown_table([head, *rows])


def _compared(name: str, family: Sequence[Comparison], at_once: Sequence[int]) -> list[str]:
    """A row of `beside_handcrafted`; `at_once` are verdicts corrected over all learners."""
    own = verdicts(family)
    seeds = sorted({len(one.learned) for one in family})
    pairs = [(one.learned[:, None], one.handcrafted[:, None], False) for one in family]
    gap = welch_difference(pairs)
    return [
        name,
        str(len(family)),
        str(seeds[0]) if len(seeds) == 1 else f"{seeds[0]} to {seeds[-1]}",
        *(f"{own.count(sign)} ({at_once.count(sign)})" for sign in (1, 0, -1)),
        format_estimate(gap.estimate, 1, signed=True),
        *(_tasks(family, own, sign) for sign in (1, -1)),
    ]


def _tasks(family: Sequence[Comparison], found: Sequence[int], sign: int) -> str:
    return ", ".join(str(one.task) for one, each in zip(family, found) if each == sign)


# Beside the original


def beside_original(results: Results) -> str:
    """The handcrafted policy here and by the original's code: success / reward."""
    rows = [["task", "handcrafted", "original"]]
    for task in filter(published.covers, map(str, results.tasks)):
        theirs = published.handcrafted(task).mean
        ours = _scores(results, HANDCRAFTED, task, results.tests[-1])
        rows.append([task, ours, f"{theirs.success:.1f} / {theirs.reward:.2f}"])
    return markdown_table(rows)


def beside_logs(results: Results) -> str:
    """Learning curves of published logs, and of their namesakes here: success / reward."""
    after = [*published.log_curves()[0].scores]
    rows = [["task", "policy", "seeds", *[f"{number:,}" for number in after]]]
    for log in published.log_curves():
        scores = [f"{s.success:.1f} / {s.reward:.1f}" for s in log.scores.values()]
        rows.append([log.task, f"{log.policy} (log)", str(log.seeds), *scores])
        for name in results.names():
            if published.published_name(name) == log.policy:
                rows += _own_curve(results, name, log.task, after)
    return markdown_table(rows)


def logs_note() -> str:
    """The origin of the logs: repositories with commits, and the files of each curve."""
    names = ", ".join(f"`{name}` ({sha[:12]})" for name, sha in published.log_commits().items())
    files = "\n".join(
        f"- {log.task}, {log.policy}: `{log.repository}`, `{log.files}`"
        for log in published.log_curves()
    )
    return f"Success / reward. The logs are those of GitHub's {names}:\n\n{files}\n"


def _own_curve(results: Results, name: str, task: str, after: Sequence[int]) -> list[list[str]]:
    cells = [_scores(results, name, task, number) for number in after]
    counts = [len(results.of_task(name, t, n)) for t in results.tasks if str(t) == task
              for n in after]  # fmt: skip
    return [[task, name, str(max(counts)), *cells]] if any(cells) else []


def _scores(results: Results, name: str, task: str, dialogues: int) -> str:
    """Mean success / reward of a method; empty where there is none."""
    found = [results.of_task(name, each, dialogues) for each in results.tasks if str(each) == task]
    values = next((part for part in found if len(part)), None)
    return "" if values is None else f"{100 * values[:, 0].mean():.1f} / {values[:, 1].mean():.1f}"
