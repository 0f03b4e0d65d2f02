"""Recipe: what is credited with a return, and how soon twenty questions are learned by it.

Each option of `agents.GRPO` begins with the same clone of questioners of mixed skill, and differs
from the first row in what its name says alone. The model is kept on its way, and each kept one is
scored in fresh dialogues.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

import dialgym
from benchmarks.recipes.runs import EVALUATION_SEED, NETWORK, Run, imitate, train_by
from benchmarks.recipes.tables import Line, with_interval
from dialgym.experiments.plots import FAINT
from dialgym.experiments.statistics import t_interval
from dialgym.io.files import write_atomically, write_text
from dialgym.optional import require

ENV = "dialgym/TwentyQuestions-8-v0"
BEST = -2.5
"""Of the best questioner, by exact search (`optimal`)."""
IMITATED, GAMES, STEPS = "random-mixture", 1_000, 400
"""The policy that is imitated, the number of its dialogues, and gradient steps."""
TOKENS, EVERY = 120_000, 10_000
"""Tokens of learning, and from one kept model to the next."""
EPISODES = 500
GOAL = -3.5
CURVE = "curve.json"


@dataclass(frozen=True)
class Method:
    """A row of the table.

    Attributes:
        name: what the table calls it, and its folder.
        overrides: hyperparameters other than `GROUPS`.
        env_kwargs: of the env that it learns in.
    """

    name: str
    overrides: Mapping[str, Any] = field(default_factory=dict)
    env_kwargs: Mapping[str, Any] = field(default_factory=dict)


GROUPS = {
    "n_envs": 64,
    "n_steps": 100,
    "group_size": 16,
    "scale": True,
    "n_epochs": 2,
    "batch_size": 512,
    "learning_rate": 5e-4,
    "ent_coef": 0.0,
}
ALL = {"group_size": None}
TURNS = {"credit": "turn"}
SITUATIONS = Method("situations", {"credit": "situation"}, {"anchors": True})
METHODS = (
    Method("episodes"),
    Method("leave-one-out", {"baseline": "leave-one-out"}),
    Method("no deviation", {"scale": False}),
    Method("higher clip, resampled", {"clip_range_high": 0.28, "resample": 2}),
    Method("sequence ratios", {"surrogate": "sequence", "clip_range": 0.02}),
    Method("clipped weights", {"surrogate": "weight"}),
    Method("one group", ALL),
    SITUATIONS,
    Method("situations, one group", {**SITUATIONS.overrides, **ALL}, SITUATIONS.env_kwargs),
    Method("turns", TURNS),
    Method("turns, one group", {**TURNS, **ALL}),
    Method("turns, belief gain, one group", {**TURNS, **ALL, "gamma": 0.3}, {"belief_gain": 1.0}),
    Method("turns, own gain, one group", {**TURNS, **ALL, "truth_gain": 2.0}, {"truths": True}),
)


def runs(folder: Path, seeds: int) -> list[Run]:
    """Every training of the recipe, seed by seed."""
    return [
        Run(method.name, ENV, seed, folder / f"seed{seed}" / method.name, learn, method)
        for seed in range(seeds)
        for method in METHODS
    ]


def learn(run: Run) -> None:
    """Training from the seed's clone, and the scores on the way."""
    method: Method = run.settings
    train_by(
        "grpo",
        run,
        hyperparameters={**GROUPS, **method.overrides},
        env_kwargs=dict(method.env_kwargs),
        total_timesteps=TOKENS,
        save_freq=EVERY,
        init_from=clone(run),
    )
    write_text(run.folder / CURVE, json.dumps(curve(run)) + "\n")


def clone(run: Run) -> Path:
    """The model that every method begins with, made by the first that asks for it."""
    folder = run.folder.parent / "clone"
    file = folder / "model.zip"
    if not file.is_file():
        imitate(Run("clone", ENV, run.seed, folder, None), IMITATED, GAMES, STEPS, NETWORK)
    return file


def curve(run: Run) -> list[tuple[int, float]]:
    """Multiples of `EVERY` tokens, and the mean return of what was kept then; at 0 the clone's."""
    kept = {int(re.findall(r"\d+", f.name)[0]): f for f in run.folder.glob("checkpoints/*.zip")}
    found = {n // EVERY * EVERY: file for n, file in {0: clone(run), **kept}.items()}
    return [(n, earned(run, found[n])) for n in range(0, TOKENS, EVERY)]


def earned(run: Run, file: Path) -> float:
    """The mean return of a kept model, tokens drawn."""
    seeds = [EVALUATION_SEED + run.seed]
    played = dialgym.evaluate(
        str(file), ENV, EPISODES // 2, seeds, num_envs=EPISODES // 2, deterministic=False
    )
    return played.mean_return


# The table


def returns(line: Line) -> tuple[np.ndarray, np.ndarray]:
    """(k,) tokens and (S, k) mean returns of each seed, the finished models last."""
    texts = [(run.folder / CURVE).read_text("utf-8") for run in line.runs]
    curves = np.array([json.loads(text) for text in texts])  # (S, k, 2)
    ends = np.column_stack([curves[:, :, 1], line.means])
    return np.append(curves[0, :, 0], TOKENS), ends


def after(tokens: int) -> Callable[[Line], str]:
    """A column: the mean return after so many tokens."""

    def column(line: Line) -> str:
        steps, values = returns(line)
        return with_interval(values[:, int(np.flatnonzero(steps == tokens)[0])], 2)

    return column


def until_goal(line: Line) -> str:
    """Thousands of tokens until the mean over seeds has crossed the goal for good."""
    steps, values = returns(line)
    below = np.flatnonzero(values.mean(0) < GOAL)
    last = int(below[-1]) if len(below) else -1
    return f"{steps[last + 1] // 1000:.0f}" if last + 1 < len(steps) else "-"


BASE = ("method", "seeds")
COLUMNS = {
    **{f"after {k},000": after(1000 * k) for k in (20, 40, 60, 120)},
    f"thousands until {GOAL}": until_goal,
}
NOTE = f"""\
Mean returns in fresh dialogues, tokens drawn, after so many tokens of learning; all begin with a
clone of {GAMES:,} dialogues of `{IMITATED}`. The last column is when the mean over the seeds is
above {GOAL} for good; the best questioner earns {BEST}. In brackets 95 % intervals (Student's t
over the seeds).
"""


# The picture

SHOWN = ("episodes", "one group", "situations, one group", "turns", "turns, one group",
         "turns, belief gain, one group")  # fmt: skip
COLOURS = ("#333333", "#9a9a9a", "#cc79a7", "#56b4e9", "#0072b2", "#d55e00")


def PLOT(table: Sequence[Line], path: Path) -> None:
    """Learning curves: means over seeds, with their 95 % intervals.

    Raises:
        ImportError: matplotlib is not installed.
    """
    module = require("matplotlib.figure", "ui", "drawing a picture")
    figure = module.Figure((6.8, 4.2), layout="constrained")
    axes = figure.subplots()
    for line in table:
        if line.method in SHOWN:
            steps, values = returns(line)
            colour = COLOURS[SHOWN.index(line.method)]
            low, high = np.array([t_interval(column) for column in values.T]).T
            axes.fill_between(steps / 1000, low, high, color=colour, alpha=0.15, linewidth=0)
            axes.plot(steps / 1000, values.mean(0), color=colour, linewidth=2, label=line.method)
    axes.axhline(
        BEST, color="#009e73", linewidth=1.2, linestyle=(0, (4, 3)), label="best questioner"
    )
    axes.set_xlabel("thousands of tokens")
    axes.set_ylabel("mean return")
    axes.set_ylim(top=-2)
    axes.grid(axis="y", color=FAINT)
    axes.set_axisbelow(True)
    axes.spines[["top", "right"]].set_visible(False)
    figure.legend(loc="outside upper left", ncols=3, frameon=False, fontsize=9)
    write_atomically(path, lambda temporary: figure.savefig(temporary, dpi=160))
