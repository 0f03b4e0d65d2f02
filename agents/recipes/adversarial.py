"""ILQL's own question: what do several steps of improvement add to one, and one to cloning?

The games begin well and come to nothing: the opening that tells the words apart has the least
return in the data and the greatest that can be reached (Snell et al. 2022, section 5.1;
`dialgym.tasks.wordle.generators.adversarial`).
"""

from __future__ import annotations

from pathlib import Path

from agents.recipes.offline import Games, Method, plan
from agents.recipes.runs import Run

GAMES = Games("dialgym/Wordle-Alike-v0", "adversarial", 3_000, {"after": 1})
CLONE = {"n_timesteps": 1_500}
VALUES = {"n_timesteps": 2_500, "cql_weight": 0.2, "learning_rate": "lin_0.004"}
METHODS = (
    Method("BC", "bc", CLONE, greedy=False),
    Method("30 % BC", "bc", {**CLONE, "top": 0.3}, greedy=False),
    Method("Single-step RL", "single-step", VALUES),
    Method("CQL", "cql", VALUES),
    Method("ILQL", "ilql", {**VALUES, "expectile": 0.95}),
)
EPISODES = 1_024
NOTE = f"""\
About 30,000 games a seed: {GAMES.episodes:,} of an expert, and with the same secrets games that
repeat its opening (five for each) and games of `random-mixture` (five); 2,500 gradient steps,
cloning 1,500. Means over seeds (of games, training and evaluation) of {EPISODES:,} games each; in
brackets 95 % intervals (Student's t over the seeds' means). Cloned policies draw their tokens, the
others say the likeliest one with beta = 4. Score: 0 is the random policy, 100 the optimal one.
"""


def runs(folder: Path, seeds: int) -> list[Run]:
    """Every training of the recipe, seed by seed."""
    return plan(GAMES, METHODS, folder, seeds)
