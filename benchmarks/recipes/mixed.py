"""Recipe: offline learners on LMRL-Gym's mixture of Wordle games.

Mostly guessed at random, the games hold much of what may be said and little that is good (Abdulhai
et al. 2023, appendix: 66 % uniform, 34 % consistent words).
"""

from __future__ import annotations

from functools import cache
from pathlib import Path

from benchmarks.recipes.offline import Games, Method, plan
from benchmarks.recipes.runs import Run
from benchmarks.recipes.tables import Line, lmrl_score
from dialgym.registry import entry_of

GAMES = Games("dialgym/Wordle-20-v0", "random-mixture", 100_000, {"smart": 0.34})
CLONE = {"n_timesteps": 2_500}
MONTE_CARLO = {"returns": "monte-carlo", "n_timesteps": 6_000, "cql_weight": 0.02}
METHODS = (
    Method("BC", "bc", CLONE, greedy=False),
    Method("30 % BC", "bc", {**CLONE, "top": 0.3}, greedy=False),
    Method("Monte-Carlo", "single-step", MONTE_CARLO),
    Method("ILQL", "ilql", {"n_timesteps": 5_000, "cql_weight": 0.05, "expectile": 0.9}),
)
LEAST = -6.0


def runs(folder: Path, seeds: int) -> list[Run]:
    """Every training of the recipe, seed by seed."""
    return plan(GAMES, METHODS, folder, seeds)


@cache
def mean_of_the_games() -> float:
    """Mean return of the stored games."""
    return float(GAMES.collect(0).returns.mean())


def own_lmrl_score(line: Line) -> str:
    """LMRL-Gym's normalisation with this list's anchors."""
    best = entry_of(line.env_id).row.scores["expert"]
    return f"{lmrl_score(line.means.mean(), LEAST, mean_of_the_games(), best):.1f}"


COLUMNS = {"LMRL": own_lmrl_score}
EPISODES = 1_024
NOTE = f"""\
{GAMES.episodes:,} games a seed; gradient steps: 2,500 of cloning, 6,000 of Monte-Carlo, 5,000 of
ILQL. Means over seeds (of games, training and evaluation) of {EPISODES:,} games each; in brackets
95 % intervals (Student's t over the seeds' means). Cloned policies draw their tokens, the others
say the likeliest one with beta = 4. Score: 0 is the random policy, 100 the optimal one. LMRL: the
formula of LMRL-Gym with this list's own anchors: -6, the mean of the games and the optimal policy.
Its own table, of 431 words, a million games and GPT-2 small, has BC 79.9, %BC 79.1, Monte-Carlo
94.9, ILQL 97.7 and PPO 84.2, without intervals.
"""
