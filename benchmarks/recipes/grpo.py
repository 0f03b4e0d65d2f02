"""Learning curves of GRPO's options: mean returns of the models that are kept on the way."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

import dialgym
from benchmarks.recipes.job import EVALUATION_SEED, RecipeJob
from benchmarks.recipes.tables import Line
from dialgym.experiments.plots import DASHED, add_legend, draw_band, new_figure, save_figure, tidy
from dialgym.experiments.statistics import seed_estimate

BEST = -2.5
"""Of the best questioner, by exact search (`optimal`)."""
GOAL = -3.5
AFTER = "after "
COLOURS = {
    "episodes": "#333333",
    "one group": "#9a9a9a",
    "situations, one group": "#cc79a7",
    "turns": "#56b4e9",
    "turns, one group": "#0072b2",
    "turns, belief gain, one group": "#d55e00",
}
"""Of the methods that are drawn."""


def curve(job: RecipeJob, _: Any) -> dict[str, float]:
    """Mean returns after multiples of `save_freq` tokens; after 0 that of the clone."""
    every, tokens = job.method.fields["save_freq"], job.method.hyperparameters["n_timesteps"]
    kept = {int(re.findall(r"\d+", f.name)[0]): f for f in job.folder.glob("checkpoints/*.zip")}
    clone = job.of(job.method.start or "").model
    found = {n // every * every: file for n, file in {0: clone, **kept}.items()}
    return {f"{AFTER}{n}": mean_return(job, found[n]) for n in range(0, tokens, every)}


def mean_return(job: RecipeJob, model: Path) -> float:
    """The mean return of a kept model, tokens drawn."""
    episodes, seeds = job.recipe.episodes // 2, [EVALUATION_SEED + job.seed]
    env_id = job.method.environment
    played = dialgym.evaluate(
        str(model), env_id, episodes, seeds, num_envs=episodes, deterministic=False
    )
    return played.mean_return


def returns(line: Line) -> tuple[np.ndarray, np.ndarray]:
    """(k,) tokens and (S, k) mean returns of each seed, the finished models last."""
    steps = [int(name.removeprefix(AFTER)) for name in line.measured if name.startswith(AFTER)]
    ends = [*(line.measured[f"{AFTER}{step}"] for step in steps), line.means]
    return np.array([*steps, line.jobs[0].method.hyperparameters["n_timesteps"]]), np.stack(ends, 1)


def until_goal(line: Line) -> str:
    """Thousands of tokens until the mean over seeds has crossed the goal for good."""
    steps, values = returns(line)
    below = np.flatnonzero(values.mean(0) < GOAL)
    last = int(below[-1]) if len(below) else -1
    return f"{steps[last + 1] // 1000:.0f}" if last + 1 < len(steps) else "-"


def plot_curves(table: Sequence[Line], path: Path) -> None:
    """Learning curves: means over seeds, with their 95 % intervals.

    Raises:
        ImportError: matplotlib is not installed.
    """
    figure = new_figure(6.8, 4.2)
    axes = figure.subplots()
    tidy(axes)
    for line in table:
        if line.method in COLOURS:
            steps, values = returns(line)
            found = [seed_estimate(column) for column in values.T]
            colour = COLOURS[line.method]
            draw_band(axes, (steps / 1000).tolist(), found, colour, linewidth=2, label=line.method)
    axes.axhline(BEST, color="#009e73", linewidth=1.2, linestyle=DASHED, label="best questioner")
    axes.set_xlabel("thousands of tokens")
    axes.set_ylabel("mean return")
    axes.set_ylim(top=-2)
    add_legend(figure, 3)
    save_figure(figure, path)
