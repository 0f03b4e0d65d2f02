"""Recipe: offline learners that are told what a yes or no costs (Snell et al. 2022, section 5.2).

The stored dialogues are mostly those of a questioner that asks as people do, and often hears just
yes or no; a few are of better and of worse ones. Three settings of the reward say which answers are
punished, beside the price of a question; the dialogues are about the same scenes in each.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.recipes.offline import WORDS, Games, Method, Variant, plan
from benchmarks.recipes.runs import Run
from benchmarks.recipes.tables import Line, with_interval

ENV = "dialgym/VisualDialogue-100-v0"
PENALTIES = ("hard", "none", "conservative")
SCENES = 1_500
SKILLS = {"human_like": 7, "mixed": 1, "random": 1, "smart": 0.5}
"""Dialogues about each scene, beside one of the greedy questioner."""
CLONE: dict[str, Any] = {"n_timesteps": 600}
VALUES: dict[str, Any] = {"n_timesteps": 1_200, "gamma": 1.0}
TAU, BETA = 0.8, 8.0
"""The expectile of ILQL's values, and how much advantages count in speech."""


def speaking(**settings: Any) -> dict[str, Any]:
    """Hyperparameters of a learner of values that speaks by these settings of `decoding`."""
    return {**VALUES, "policy_kwargs": {"decoding": settings}}


BY_VALUES = {**speaking(beta=BETA), "cql_weight": 0.2}
METHODS: Sequence[Method | Variant] = (
    Method("BC", "bc", CLONE, greedy=False),
    Method("10 % BC", "bc", {**CLONE, "top": 0.1}, greedy=False),
    Variant("10 % BC, likeliest", "10 % BC"),
    Method("ILQL", "ilql", {**BY_VALUES, "expectile": TAU}),
    Variant("ILQL, drawn", "ILQL", greedy=False),
    Variant("ILQL, beta 4", "ILQL", {"beta": 4.0}),
    Variant("ILQL, beta 16", "ILQL", {"beta": 16.0}),
    Method("ILQL, tau 0.7", "ilql", {**BY_VALUES, "expectile": 0.7}),
    Method("ILQL, tau 0.9", "ilql", {**BY_VALUES, "expectile": 0.9}),
    Method("CQL", "cql", BY_VALUES),
    Method("psi", "psi", VALUES),
    Method("utterance ILQL", "utterance-ilql", {**VALUES, "expectile": TAU}),
    Method("decision transformer", "decision-transformer", CLONE, greedy=False),
    Method("CHAI", "chai", {**VALUES, "n_timesteps": 1_800, "clone_steps": 600}),
)
NO_EXPERT: Sequence[Method | Variant] = (
    Method("BC", "bc", CLONE, greedy=False),
    Method("10 % BC", "bc", {**CLONE, "top": 0.1}, greedy=False),
    Variant("10 % BC, likeliest", "10 % BC"),
    Method("ILQL", "ilql", {**speaking(beta=64.0), "cql_weight": 0.2, "expectile": TAU}, False),
    Variant("ILQL, likeliest", "ILQL"),
)
"""Learners from dialogues in which nobody asks well: people's, and turns at random from each of
their states. Values are far apart there, and a share of `BETA` says too much of what is bad."""
PEOPLE = 4_000
"""Dialogues of `human-like` in that data."""
SCRIPTED = ("random", "human-like", "greedy")
EPISODES = 1_000


def runs(folder: Path, seeds: int) -> list[Run]:
    """Every training of the recipe, penalty by penalty; of each the scripted questioners first.

    A method is called ``hard: ILQL``, and ``hard, no expert: ILQL`` where it learns from data
    without a good questioner.
    """
    found = []
    for penalty in PENALTIES:
        env_kwargs = {**WORDS, "penalty": penalty}
        games = Games(ENV, "graded", SCENES, SKILLS, env_kwargs)
        of = [*_bounds(folder / penalty, env_kwargs, seeds)]
        of += plan(games, METHODS, folder / penalty, seeds)
        found += [replace(run, method=f"{penalty}: {run.method}") for run in of]
    games = Games(ENV, "branching", PEOPLE, {}, {**WORDS, "penalty": "hard"})
    unled = plan(games, NO_EXPERT, folder / "no-expert", seeds)
    return [*found, *(replace(run, method=f"hard, no expert: {run.method}") for run in unled)]


def _bounds(folder: Path, env_kwargs: dict[str, Any], seeds: int) -> Iterator[Run]:
    """The scripted questioners."""
    for seed in range(seeds):
        for name in SCRIPTED:
            place = folder / f"{name}-seed{seed}"
            yield Run(name, ENV, seed, place, None, None, env_kwargs, scripted=name)


def over_seeds(of: Callable[[Line], np.ndarray], digits: int) -> Callable[[Line], str]:
    """A column: the mean over seeds of a figure (S, E) of every dialogue, and its interval."""
    return lambda line: with_interval(of(line).mean(1), digits)


def yes_no(line: Line) -> np.ndarray:
    """(S, E): how many answers of each dialogue were just yes or no."""
    return line.metrics["yes/no answers"] * line.metrics["turns"]


BASE = ("method", "seeds")
COLUMNS = {
    "return": over_seeds(lambda line: line.returns, 2),
    "found": over_seeds(lambda line: line.solved, 3),
    "percentile rank": over_seeds(lambda line: line.metrics["percentile"], 4),
    "questions": over_seeds(lambda line: line.metrics["turns"], 2),
    "just yes or no": over_seeds(yes_no, 2),
}
NOTE = f"""\
About each of {SCENES:,} scenes that were drawn, {SKILLS["human_like"]} stored dialogues of
`human-like` and one each of `greedy`, `random` and `random-mixture`; gradient steps:
{CLONE["n_timesteps"]:,} of cloning, {VALUES["n_timesteps"]:,} of values (tau = {TAU}, beta =
{BETA:g}, conservative weight {BY_VALUES["cql_weight"]} where nothing else is said). Before the
colon stands which answers cost 2 beside the 1 of a question. Scored in {EPISODES:,} dialogues a
seed. Cloned policies draw their tokens, the others say the likeliest. Found: the scene ranked
first. Percentile rank: of the scene, at the end. Just yes or no: such answers in a dialogue. In
brackets 95 % intervals (Student's t over the seeds' means). No expert: {PEOPLE:,} dialogues of
`human-like`, and from each of their states one that goes on at random; beta = 64 there, drawn
unless it says otherwise.
"""
