"""Recipe: ILQL against single-step RL and cloning on an adversarial Wordle.

The games begin well and come to nothing: the opening that tells the words apart has the least
return in the data and the greatest that can be reached (Snell et al. 2022, section 5.1;
`dialgym.tasks.wordle.generators.adversarial`).
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from pathlib import Path

import numpy as np

import agents
from agents.offline import rank_accuracy as metrics
from benchmarks.recipes.offline import Games, Method, plan
from benchmarks.recipes.runs import Run
from benchmarks.recipes.tables import Line

GAMES = Games("dialgym/Wordle-Alike-v0", "adversarial", 3_000, {"after": 1, "repeats": 2})
CLONE = {"n_timesteps": 1_200}
VALUES = {"n_timesteps": 3_500, "cql_weight": 0.2, "learning_rate": "lin_0.003"}
METHODS = (
    Method("BC", "bc", CLONE, greedy=False),
    Method("30 % BC", "bc", {**CLONE, "top": 0.3}, greedy=False),
    Method("Single-step RL", "single-step", VALUES),
    Method("CQL", "cql", VALUES),
    Method("ILQL", "ilql", {**VALUES, "expectile": 0.9}),
)
EPISODES = 1_024
PAIRS = Games(GAMES.env_id, GAMES.policy, 500, GAMES.policy_kwargs)
PAIRS_SEED = 9_000


@cache
def rank_accuracy(model: Path, kind: str) -> float:
    """Share of games of its own in which Q of the expert's words is above that of a branch.

    Args:
        model: the file of a learner with Q values.
        kind: of the branches: "repeat", or "suboptimal", which differ in the opening.
    """
    games = PAIRS.collect(PAIRS_SEED)
    return metrics.rank_accuracy(agents.load(model, device="cpu"), games, kind).accuracy


def ranks(kind: str) -> Callable[[Line], str]:
    """The column of `rank_accuracy`: the mean over seeds in percent; none without Q values."""

    def column(line: Line) -> str:
        if "BC" in line.method:
            return ""
        return f"{100 * np.mean([rank_accuracy(run.model, kind) for run in line.runs]):.1f} %"

    return column


COLUMNS = {"Q: repeats": ranks("repeat"), "Q: openings": ranks("suboptimal")}
NOTE = f"""\
About 23,000 games a seed: {GAMES.episodes:,} of an expert, and with the same secrets games that
repeat its opening (two for each) and games of `random-mixture` (five); 3,500 gradient steps,
cloning 1,200. Means over seeds (of games, training and evaluation) of {EPISODES:,} games each; in
brackets 95 % intervals (Student's t over the seeds' means). Cloned policies draw their tokens, the
others say the likeliest one with beta = 4. Score: 0 is the random policy, 100 the optimal one. Q:
how often Q is higher for what the expert said than for a branch of its game, on
{PAIRS.episodes} other games: branches that repeat the opening, and games with another opening.
"""


def runs(folder: Path, seeds: int) -> list[Run]:
    """Every training of the recipe, seed by seed."""
    return plan(GAMES, METHODS, folder, seeds)
