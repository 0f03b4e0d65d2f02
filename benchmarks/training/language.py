"""Figures of a GPT of 4 layers of 256 that learns to reply in everyday dialogue, rewards included.

The shape is that in which OpenRL and RL4LMs were timed: replies of at most 20 tokens, prompts of
about 68, 5 epochs, one thread. Text, tokenizer and dialogue-act classifier are the built-in ones.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import dialgym
from benchmarks.environments.timing import Figure, alternate
from benchmarks.training.learner import Learner
from benchmarks.training.workload import REPLY, reply_env

ID = "dialgym/DailyDialog-v0"
ENVS, EPOCHS = 32, 5
FASTEST = 50.0
"""Bar: steps per CPU-second."""


def figures(repeats: int) -> Iterator[Figure]:
    """Steps of whole iterations on real replies, beside those with random text and a bare F1."""
    shape: dict[str, Any] = {"n_steps": REPLY, "batch_size": 8 * REPLY, "n_epochs": EPOCHS}
    learners = {
        "random": Learner(reply_env(ENVS), **shape),
        "everyday": Learner(dialgym.sb3_vec_env(ID, ENVS, seed=0), **shape),
    }
    spent = alternate({name: learner.iterate for name, learner in learners.items()}, repeats)
    speeds = {name: learner.steps / spent[name] for name, learner in learners.items()}
    bare = Figure(f"PPO on random text, {ENVS} dialogues, {EPOCHS} epochs", speeds["random"], "/s")
    yield bare
    what = f"PPO on {ID}, its own rewards, steps"
    yield Figure(what, speeds["everyday"], "/s", FASTEST, bare, "random text")
