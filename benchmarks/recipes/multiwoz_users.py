"""System policies of multi-domain dialogue by users that they were not trained with.

Every policy of the recipe `multiwoz`, and the rule system that they all began from, in dialogues
with each user: a table, and the same as a picture.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import torch

import dialgym
from benchmarks.recipes.runs import Run
from benchmarks.recipes.tables import Line, with_interval
from dialgym.experiments.statistics import t_interval
from dialgym.experiments.tables import markdown_table
from dialgym.io.files import write_atomically, write_text
from dialgym.optional import require

AGENDAS = ("agenda", "agenda-unfriendly", "agenda-terse", "agenda-verbose")
LEARNED = {"learned": "user", "madpl": "madpl"}
"""Users that are models, and the folders of theirs within a seed's."""
USERS = (*AGENDAS, *LEARNED)
EPISODES, SEED = 500, 9_000
KEPT = "transfer.json"
DARK = 0.5
"""Success from which figures are black on bright cells."""


def successes(table: Sequence[Line]) -> dict[str, np.ndarray]:
    """Of each system policy, success (S, users) of its seeds; the rule system stands first."""
    rule = [replace(run, method="rule system") for run in table[0].runs]
    played = [(rule, "rule"), *((line.runs, None) for line in table)]
    return {
        runs[0].method: np.array([[_played(run, policy)[user] for user in USERS] for run in runs])
        for runs, policy in played
    }


def _played(run: Run, policy: str | None) -> dict[str, float]:
    """Success of a run's model, or of a policy by name, with each user."""
    place = run.folder.parent
    kept = place / f"{policy}-{KEPT}" if policy else run.folder / KEPT
    changes = {user: {"simulator": _simulator(user, place)} for user in USERS}
    return successes_with(run, changes, kept, EPISODES, policy)


def successes_with(
    run: Run,
    changes: Mapping[str, Mapping[str, Any]],
    kept: Path,
    episodes: int,
    policy: str | None = None,
) -> dict[str, float]:
    """Success of a run's model, or of a policy by name, under changed settings; kept in a file.

    Args:
        run: a training.
        changes: settings of the env by the names that the successes get.
        kept: the file, which is not computed again.
        episodes: dialogues under each.
        policy: in place of the run's model.
    """
    found: dict[str, float] = json.loads(kept.read_text("utf-8")) if kept.is_file() else {}
    for name, settings in changes.items():
        if name not in found:
            torch.manual_seed(run.seed)
            played = dialgym.evaluate(
                policy or str(run.model),
                run.env_id,
                episodes,
                [SEED + run.seed],
                {**run.env_kwargs, **settings},
                deterministic=run.deterministic,
            )
            found[name] = float(played[run.env_id].solved.mean())
            write_text(kept, json.dumps(found) + "\n")
    return found


def _simulator(user: str, folder: Path) -> Any:
    """Value of `simulator=`; a learned user is that of the seed."""
    if user in AGENDAS:
        return user
    return {"name": "agents:ActAgent", "model": str(folder / LEARNED[user] / "model.zip")}


def table(lines: Sequence[Line]) -> str:
    """The successes with 95 % intervals over the seeds, as Markdown."""
    rows = [
        [method, *(with_interval(column) for column in found.T)]
        for method, found in successes(lines).items()
    ]
    return markdown_table([["system", *USERS], *rows])


def plot(lines: Sequence[Line], path: Path) -> None:
    """The table as a picture: a cell for each pair, brighter where more dialogues succeed.

    Raises:
        ImportError: matplotlib is not installed.
    """
    module = require("matplotlib.figure", "ui", "drawing a picture")
    found = successes(lines)
    figure = module.Figure((1.6 + 1.15 * len(USERS), 1.0 + 0.5 * len(found)), layout="constrained")
    axes = figure.subplots()
    means = np.array([each.mean(0) for each in found.values()])
    shades = axes.imshow(means, cmap="cividis", vmin=0, vmax=1, aspect="auto")
    for row, each in enumerate(found.values()):
        for column, scores in enumerate(each.T):
            ink = "black" if scores.mean() > DARK else "white"
            axes.text(column, row, _cell(scores), ha="center", va="center", color=ink, size=7)
    axes.set_xticks(range(len(USERS)), [user.replace("agenda-", "") for user in USERS])
    axes.set_yticks(range(len(found)), list(found))
    axes.xaxis.tick_top()
    axes.tick_params(length=0)
    axes.spines[:].set_visible(False)
    figure.colorbar(shades, ax=axes, label="success; below it the 95 % interval over seeds")
    write_atomically(path, lambda temporary: figure.savefig(temporary, dpi=160))


def _cell(scores: np.ndarray) -> str:
    """The mean, and below it the interval of several seeds."""
    low, high = t_interval(scores)
    interval = f"\n{max(low, 0):.2f} to {min(high, 1):.2f}" if len(scores) > 1 else ""
    return f"{scores.mean():.3f}{interval}"
