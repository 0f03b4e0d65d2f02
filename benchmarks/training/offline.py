"""Figures of offline learning: gradient steps beside cloning, and what an utterance costs.

Games of Wordle by `random-mixture`, batches of 64, 2 layers of 128, two Q heads. Tokens are those
of the games that a step reads, padding left out. Then long dialogues of a large vocabulary.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any
from unittest.mock import patch

import numpy as np

import dialgym
from agents.models import action_outputs
from agents.offline.algorithm import OfflineAlgorithm
from agents.offline.bc import BC
from agents.offline.ilql import ILQL
from benchmarks.environments.timing import Figure, alternate

ENV, GAMES, BATCH = "dialgym/Wordle-v0", 2048, 64
SIZES: dict[str, Any] = {"n_layer": 2, "n_head": 2, "n_embd": 128}
DIALOGUES, TURNS = 64, 6
STEP_SHARE, STEP_TIMES, ACTION_TIMES = 0.70, 4.0, 20.0
"""Bars: a step's speed as a share of cloning's, and in multiples of the
reference's; how many times cheaper an action."""
REFERENCE_STEP, REFERENCE_ACTION = 2745.0, 0.1
"""Of the published ILQL at that size, on one thread: tokens per CPU-second of a gradient step, and
CPU-seconds of an action of 6 tokens."""


class Steps:
    """Gradient steps of one algorithm, one after another.

    Args:
        algorithm: whose steps.
        games: a dataset.
        policy_kwargs: those of the policy.
        more: further arguments of the algorithm.

    Attributes:
        tokens: read so far, padding left out.
    """

    def __init__(
        self,
        algorithm: type[OfflineAlgorithm],
        games: Any,
        policy_kwargs: dict[str, Any],
        **more: Any,
    ) -> None:
        env_id, settings = games.environment()
        env = dialgym.sb3_vec_env(env_id, 1, **settings)
        arguments = {"batch_size": BATCH, "device": "cpu", "seed": 0, **more}
        self.model: Any = algorithm(
            "GPTPolicy", env, games, policy_kwargs=policy_kwargs, **arguments
        )
        self.model._setup_learn(1)
        self.count = self.tokens = 0

    def __call__(self) -> None:
        """A step, logging included."""
        rows = self.model.sampler.rows(self.count)
        self.model.gradient_step(rows)
        self.count += 1
        self.tokens += int(self.model.data.lengths[rows].sum())


def play(model: Any, dialogues: int) -> Callable[[], None]:
    """A work: all utterances of the `dialogues` longest games, token by token in all at once.

    Each token is drawn from what the game was up to there, as in play; what the user says in
    between is read when it comes. The games are all of one layout, that of games of Wordle.
    """
    batch = model.data.batch(np.argsort(-model.data.lengths, kind="stable")[:dialogues])
    assert (batch.is_action == batch.is_action[0]).all()
    columns = np.arange(batch.tokens.shape[1])
    seen = [
        np.where(columns < place, batch.tokens, 0) for place in np.flatnonzero(batch.is_action[0])
    ]

    def work() -> None:
        for observations in seen:
            model.predict(observations)

    return work


def long_dialogues() -> Any:
    """A dataset of 64 dialogues of some 220 tokens, of a vocabulary of some 2,000, from a seed."""
    rng = np.random.default_rng(0)
    words = ["".join(rng.choice([*"aeiourstlnmpk"], 6)) for _ in range(3000)]
    rows = [
        {"turns": [" ".join(rng.choice(words, 6)) for _ in range(12)], "rating": float(n % 2)}
        for n in range(BATCH)
    ]
    return dialgym.Dataset.from_dialogues(rows)


def long_figures(repeats: int) -> Iterator[Figure]:
    """A step of ILQL on long dialogues, all at once and in pieces, and a fourth of them."""
    dialogues, sizes = long_dialogues(), {"preset": "nano", "n_head": 4}
    whole, pieces, few = (
        Steps(ILQL, dialogues, sizes, batch_size=n) for n in (BATCH, BATCH, BATCH // 4)
    )

    def at_once() -> None:
        with patch.object(action_outputs, "_in_pieces", lambda *_: False):
            whole()

    spent = alternate({"at once": at_once, "in pieces": pieces, "a fourth": few}, repeats)
    slow = Figure(f"ILQL step, {BATCH} long dialogues, all at once", spent["at once"], "s")
    yield slow
    for name, count in [("in pieces", BATCH), ("a fourth", BATCH // 4)]:
        what = f"ILQL step, {count} long dialogues, in pieces"
        yield Figure(what, spent[name], "s", None, slow, "at once")


def figures(repeats: int) -> Iterator[Figure]:
    """Each algorithm's steps beside cloning in the same run, then utterances."""
    games = dialgym.collect(ENV, "random-mixture", GAMES, seed=0)
    works = {
        "BC": Steps(BC, games, SIZES),
        "ILQL": Steps(ILQL, games, SIZES),
        "ILQL, values' own trunk": Steps(ILQL, games, {**SIZES, "share_features_extractor": False}),
        "ILQL, a clone that stays": Steps(
            ILQL, games, SIZES, policy_weight=0.0, losses={"detach": ["q", "v"]}
        ),
    }
    spent = alternate(works, repeats)
    rates = {name: work.tokens / work.count / spent[name] for name, work in works.items()}
    clone = Figure("BC step, tokens", rates.pop("BC"), "/s")
    yield clone
    for name, rate in rates.items():
        bar = round(max(STEP_SHARE * clone.value, STEP_TIMES * REFERENCE_STEP))
        yield Figure(
            f"{name} step, tokens", rate, "/s", bar if name == "ILQL" else None, clone, "BC"
        )
    model = works["ILQL"].model
    games_at_once = alternate({"play": play(model, DIALOGUES)}, repeats)["play"]
    what = f"ILQL utterance of 6 tokens, {DIALOGUES} at once, each"
    cost = games_at_once / (DIALOGUES * TURNS)
    yield Figure(what, cost, "s", REFERENCE_ACTION / ACTION_TIMES)
    yield from long_figures(min(repeats, 3))
