"""Figures of a GPT of 4 layers of 256 that learns to reply, beside bare loops of the same GPT."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

import torch
from torch import nn

from benchmarks.environments.timing import Figure, Works, alternate
from benchmarks.training.bare import (
    StaticCache,
    bare_decode,
    bare_prefill,
    bare_rollout,
    bare_update,
    hugging_face,
    hugging_face_rollout,
)
from benchmarks.training.learner import Learner
from benchmarks.training.workload import REPLY, reply_env

PROMPT, VOCABULARY = 68, 512
ENVS = (8, 32, 128)
EPOCHS = 5
LONG = {"shortest": 7, "longest": 19}
"""Sizes of `Reply` for an update of ragged sequences, of about 64 to 125 tokens."""
FASTEST, ROLLOUT, UPDATE = 70.0, 0.70, 0.85
"""Bars: steps per CPU-second; shares of the bare loops' speeds."""


def iteration_figures(repeats: int) -> Iterator[Figure]:
    """Steps of whole iterations, the environment and its reward included."""
    learner = Learner(reply_env(32), n_steps=REPLY, batch_size=8 * REPLY, n_epochs=EPOCHS)
    spent = alternate({"iteration": learner.iterate}, repeats)
    what = f"PPO end to end, 32 dialogues, {EPOCHS} epochs, steps"
    yield Figure(what, learner.steps / spent["iteration"], "/s", FASTEST)


def all_rollout_figures(repeats: int) -> Iterator[Figure]:
    """Those of each number of dialogues at once."""
    for n_envs in ENVS:
        yield from rollout_figures(n_envs, repeats)


def rollout_figures(n_envs: int, repeats: int) -> Iterator[Figure]:
    """Steps of a rollout, and tokens of bare sampling from the same weights."""
    learner = Learner(reply_env(n_envs), REPLY * max(64 // n_envs, 1), n_envs * REPLY, 1)
    model = learner.model
    prompts = torch.randint(5, VOCABULARY, (n_envs, PROMPT))
    cache, other = StaticCache(model, n_envs, PROMPT + REPLY), hugging_face(model)
    logits = bare_prefill(model, cache, prompts)
    works: Works = {
        "ours": learner.rollout,
        "bare": partial(bare_rollout, model, prompts, REPLY),
        "decode": partial(bare_decode, model, cache, logits, PROMPT, REPLY),
        "usual": partial(hugging_face_rollout, other, prompts, REPLY),
    }
    spent = alternate(works, repeats)
    new = n_envs * REPLY
    bare = Figure(f"bare sampling, {n_envs} rows, new tokens", new / spent["bare"], "/s")
    yield bare
    decoding = (new - n_envs) / spent["decode"]
    alone = Figure("  decoding alone, prompts read before", decoding, "/s", None, bare, "bare")
    yield alone
    yield Figure("  Hugging Face generate", new / spent["usual"], "/s", None, bare, "bare")
    steps = learner.steps / spent["ours"]
    bar = round(ROLLOUT * bare.value)
    yield Figure(f"rollout, {n_envs} dialogues, steps", steps, "/s", bar, bare, "bare")
    yield Figure("  the same", steps, "/s", None, alone, "decoding")


def update_figures(repeats: int) -> Iterator[Figure]:
    """Tokens of an update on 32 ragged sequences, and of bare gradients on full rows."""
    learner = Learner(reply_env(32, **LONG), REPLY, 32 * REPLY, 1)
    learner.rollout()
    value_head = nn.Linear(learner.model.width, 1)
    rows = torch.randint(5, VOCABULARY, (32, min(128, learner.model.window) + 1))
    works: Works = {
        "ours": learner.update,
        "bare": partial(bare_update, learner.model, value_head, rows, REPLY),
    }
    spent = alternate(works, repeats)
    read = rows.shape[1] - 1
    bare = Figure(f"bare gradients, 32 rows of {read}, tokens", 32 * read / spent["bare"], "/s")
    yield bare
    tokens, bar = learner.tokens / spent["ours"], round(UPDATE * bare.value)
    what = f"update, 32 dialogues of {learner.tokens / 32:.0f} on average, tokens"
    yield Figure(what, tokens, "/s", bar, bare, "bare")
