"""Learners of LMRL-Gym's tasks, in small, on its scale and on ours: the table of the panel `lmrl`.

    python -m benchmarks.tables.lmrl_suite [--episodes 2000]

The command holds the dialogues that learners read, whose least and mean return are 0 and 50 of
LMRL-Gym's scale, and finds what the random and the optimal policy earn. The table has the committed
rows of the learners beside it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import Any

import numpy as np

import dialgym
from benchmarks.recipes.tables import with_interval
from benchmarks.tables.lmrl import (
    HEAD,
    anchors_of,
    learner_line,
    lmrl_score,
    mean_return,
    our_score,
    return_bounds,
)
from benchmarks.tables.records import RECORDS, Figures, counted, run_measurement
from dialgym.experiments.panel import PanelEnvironment, panel_named
from dialgym.experiments.row import ExperimentRow
from dialgym.experiments.row_files import read_rows
from dialgym.experiments.significance import welch_difference
from dialgym.experiments.statistics import format_estimate, mean_estimate
from dialgym.experiments.tables import markdown_table
from dialgym.registry import entry_of, make_task
from dialgym.rollouts.episodes import every_secret
from dialgym.tasks.endgames import Endgames
from dialgym.tasks.worlds import WorldTask

NAME, COMMAND = "leaderboard_lmrl", "python -m benchmarks.tables.lmrl_suite"
PANEL = "lmrl"
NOT_MADE = "not yet made"
RIVALS = ("bc-long", "monte-carlo")
"""Learners to whom the others are compared over all environments."""
SUITE: Mapping[str, tuple[float, ...]] = MappingProxyType(
    {
        "Wordle": (79.9, 79.1, 94.9, 97.7, 84.2),
        "TwentyQuestions": (57.1, 77.1, 87.1, 82.9, 72.9),
        "GuessMyCity": (30.0, 48.0, 88.0, 75.0, 49.9),
        "Maze": (58.2, 68.9, 75.0, 99.9, 79.7),
        "Maze-Partial": (53.1, 50.1, 52.4, 76.3, 42.4),
        "TextNav": (53.7, 65.1, 71.9, 91.8, 87.1),
        "TextNav-Partial": (49.7, 60.5, 71.6, 83.7, 85.5),
        "Endgames": (35.1, 17.7, 50.2, 45.8, 77.5),
        "CarDealer": (44.5, 54.8, 57.2, 46.3, 50.5),
    }
)
"""Their scores of BC, filtered BC, MC, ILQL and PPO by task (Abdulhai et al. 2023, table 2)."""


# The record


def measure(episodes: int) -> dict[str, Any]:
    """By environment: returns of the stored dialogues, counted, the random and the best return."""
    return {place.id: _measured(place, episodes) for place in panel_named(PANEL).environments}


def _measured(place: PanelEnvironment, episodes: int) -> dict[str, Any]:
    return {
        "returns": stored_returns(place),
        "random": round(random_return(place, episodes), 4),
        "optimal": round(optimum(place), 6),
    }


def stored_returns(place: PanelEnvironment) -> dict[str, int]:
    """Returns of the dialogues that learners read, counted."""
    data = place.data
    assert data is not None, f"{place.id} has no stored dialogues"
    dialogues = dialgym.collect(
        place.id,
        data.policy,
        data.episodes,
        data.seed,
        env_kwargs=dict(place.settings),
        policy_kwargs=dict(data.policy_kwargs),
    )
    return counted(dialogues.returns)


def optimum(place: PanelEnvironment) -> float:
    """The exact expected return of the best policy, before anything is known."""
    task: Any = make_task(entry_of(place.id), place.settings)
    if isinstance(task, WorldTask):
        return float(task.exact.best_return)
    begun = task.initial(np.random.default_rng(0))
    known = task.best_return if isinstance(task, Endgames) else task.value
    return float(known(begun))


def random_return(place: PanelEnvironment, episodes: int) -> float:
    """The random policy's mean over all that may be hidden, each so often that it is `episodes`."""
    secrets = make_task(entry_of(place.id), place.settings).secrets()
    options = every_secret(secrets, episodes) if secrets else [{}] * episodes
    settings, count = dict(place.settings), len(options)
    return dialgym.evaluate("random", place.id, count, (0,), settings, options=options).mean_return


# The table


def table(figures: Figures, rows_folder: Path = RECORDS.parent) -> str:
    """The learners on LMRL-Gym's scale, on ours, over all, and one by one with all returns."""
    rows = [r for r in read_rows([rows_folder], panel_named(PANEL)) if not r.is_scripted]
    makers = (on_their_scale, on_our_scale, over_all, each)
    return "\n".join(maker(figures, rows) for maker in makers)


def on_their_scale(figures: Figures, rows: Sequence[ExperimentRow]) -> str:
    """LMRL-Gym's scores of each learner, played as it was trained; last the best of their own."""
    lines = []
    for place in panel_named(PANEL).environments:
        anchors = anchors_of(figures[place.id]["returns"], figures[place.id]["optimal"])
        cells = _cells(place, rows, lmrl_score, anchors)
        lines.append([*cells, f"{max(SUITE[task_of(place)]):.1f}"])
    return markdown_table([["LMRL-Gym's scale", *_learners(), "LMRL-Gym's best"], *lines])


def on_our_scale(figures: Figures, rows: Sequence[ExperimentRow]) -> str:
    """Scores of each learner, played as it was trained: 0 is the random policy, 100 the optimal."""
    lines = []
    for place in panel_named(PANEL).environments:
        random, best = figures[place.id]["random"], figures[place.id]["optimal"]
        cells = _cells(place, rows, our_score, (random, best))
        lines.append([*cells, f"{random:.2f}, {best:.2f}"])
    return markdown_table([["our scale", *_learners(), "random, optimal"], *lines])


def over_all(figures: Figures, rows: Sequence[ExperimentRow]) -> str:
    """Our scores over all environments, which weigh the same, and differences to `RIVALS`.

    From the random to the best policy mazes have 13 and 20 points and houses one, so that the
    panel's means of returns tell of mazes above all.
    """
    lines: list[Sequence[str]] = [["our scale, over all", *_learners()]]
    for actions in ("greedy", "drawn"):
        scores = {name: _scores(figures, rows, name, actions) for name in _learners()}
        means = [format_estimate(mean_estimate(s), 1) if s else NOT_MADE for s in scores.values()]
        lines.append([actions, *means])
        for rival in RIVALS:
            less = ("" if n == rival else _less(s, scores[rival]) for n, s in scores.items())
            lines.append([f"{actions}, less {rival}", *less])
    return markdown_table(lines)


def _scores(
    figures: Figures, rows: Sequence[ExperimentRow], name: str, actions: str
) -> list[np.ndarray]:
    """Of each environment (K, 1) scores of the learner's trainings; none where it lacks one."""
    scores = []
    for place in panel_named(PANEL).environments:
        ends = figures[place.id]["random"], figures[place.id]["optimal"]
        own = sorted(_by_learner(place, rows)[name], key=lambda row: row.seed)
        scores.append(np.array([[our_score(mean_return(row, actions), *ends)] for row in own]))
    return scores if all(map(len, scores)) else []


def _less(first: Sequence[np.ndarray], second: Sequence[np.ndarray]) -> str:
    """By how much the first is higher, seed by seed where both have as many."""
    if not first or not second:
        return NOT_MADE
    pairs = ((x, y, x.shape == y.shape) for x, y in zip(first, second))
    return format_estimate(welch_difference(pairs).estimate, 1, signed=True)


def each(figures: Figures, rows: Sequence[ExperimentRow]) -> str:
    """Every learner with its returns, drawn and greedy, and LMRL-Gym's scores of both."""
    lines: list[Sequence[str]] = [HEAD]
    for place in panel_named(PANEL).environments:
        anchors = anchors_of(figures[place.id]["returns"], figures[place.id]["optimal"])
        for name, own in _by_learner(place, rows).items():
            if own:
                lines.append(learner_line(place, name, own, anchors))
    return markdown_table(lines)


def task_of(place: PanelEnvironment) -> str:
    """The name of the task in the suite of which an environment is a small one."""
    return max((name for name in SUITE if place.short.startswith(name)), key=len)


def _learners() -> list[str]:
    return [*panel_named(PANEL).algorithms]


def _by_learner(
    place: PanelEnvironment, rows: Sequence[ExperimentRow]
) -> dict[str, list[ExperimentRow]]:
    own = [row for row in rows if row.id == place.id]
    return {name: [row for row in own if row.name == name] for name in _learners()}


def _returns(place: PanelEnvironment, rows: Sequence[ExperimentRow]) -> dict[str, list[float]]:
    """Mean returns of the trainings of each learner, played as they were trained."""
    return {
        name: [mean_return(row, row.actions) for row in own]
        for name, own in _by_learner(place, rows).items()
    }


def _cells(
    place: PanelEnvironment,
    rows: Sequence[ExperimentRow],
    scale: Callable[..., float],
    anchors: Sequence[float],
) -> list[str]:
    """The mean score of each learner, with an interval within what the returns can be.

    Args:
        place: the environment.
        rows: of all environments.
        scale: makes a score of a return and the anchors.
        anchors: returns that the scale goes by.
    """
    low, high = (scale(bound, *anchors) for bound in return_bounds(place))
    means = (np.array([scale(x, *anchors) for x in own]) for own in _returns(place, rows).values())
    return [place.short, *(with_interval(m, 1, (low, high)) if len(m) else NOT_MADE for m in means)]


if __name__ == "__main__":
    run_measurement(__doc__, NAME, COMMAND, 2000, measure, table)
