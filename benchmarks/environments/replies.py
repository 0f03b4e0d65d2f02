"""Replies in everyday dialogues with their rewards, to measure their speed."""

from typing import Any

import gymnasium as gym
import numpy as np

from benchmarks.environments.workloads import Settings, Work, run_batched
from dialgym.language.tokenizers import END
from dialgym.tasks.replies import LoggedReply
from dialgym.views.dialogue import LoopedBatch

ROWS = 64
SCRIPT = 128  # steps prepared beforehand
UNSCORED = {"rewards": {"length": 1.0}}
"""Settings with a reward that costs next to nothing."""


def batched_replies(settings: Settings, loop: bool = False) -> Work:
    """Token steps of a batch that says what people said elsewhere; with `loop`, row by row."""
    env: Any = gym.make_vec("dialgym/DailyDialog-v0", ROWS, autoreset_mode="SameStep", **settings)
    if loop:
        env.dialogues = LoopedBatch(env.task, ROWS, env.learner, LoggedReply())
    actions = np.stack([_stream(env, np.random.default_rng(row)) for row in range(ROWS)], 1)
    other = ROWS * loop  # dialogues, as what was scored before is remembered
    return run_batched(env, list(actions), seed=other)


def _stream(env: Any, rng: np.random.Generator) -> np.ndarray:
    """(SCRIPT,) tokens of utterances from the training split, each with its end."""
    texts, limit = env.task.training.texts, env.layout.limit("system")
    tokens: list[int] = []
    while len(tokens) < SCRIPT:
        tokens += [*env.tokenizer.encode(texts[rng.integers(len(texts))]), END][:limit]
    return np.array(tokens[:SCRIPT])
