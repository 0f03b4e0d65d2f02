"""Tokenizer of the people's replies, and metrics of a model's."""

from __future__ import annotations

import json
from collections.abc import Mapping
from functools import lru_cache
from pathlib import Path
from typing import Any

import dialgym
from benchmarks.recipes.job import RecipeJob
from dialgym.io.files import write_atomically
from dialgym.language.tokenizers import train_bpe
from dialgym.registry import entry_of, make_task
from dialgym.rewards import Reply
from dialgym.rewards.metrics import ReplyMetrics
from dialgym.tasks.daily_dialog.corpus import ActExamples, load_corpus

VOCABULARY = 2_048
SEED = 8_000
OF_VIEWS = ("tokenizer", "window")
"""Settings that belong to the token view, not to the task."""


def prepare(folder: Path, data: str | None) -> dict[str, Any]:
    """The data, and a byte-pair encoding of its training split, made where it is not there yet."""
    path = folder / "bpe.json"
    if not path.is_file():
        bpe = train_bpe(load_corpus(data, "train").texts, VOCABULARY)
        write_atomically(path, lambda temporary: bpe.save(str(temporary)))
    return {"data": data, "tokenizer": f"bpe:{path}"}


def reply_metrics(job: RecipeJob, _: Any) -> dict[str, float]:
    """`dialgym.rewards.metrics` of a model's replies; all models reply in the same dialogues."""
    settings = {**job.method.settings, **job.method.scored}
    count = job.recipe.options["replies"]
    said = replies(str(job.model), job.method.environment, settings, count, SEED)
    return _metrics(settings["data"]).values(said)


@lru_cache(maxsize=1)
def _metrics(data: Any) -> ReplyMetrics:
    return ReplyMetrics(examples=ActExamples(data, 1))


def replies(
    policy: Any, env_id: str, env_kwargs: Mapping[str, Any], episodes: int, seed: int
) -> list[Reply]:
    """The first reply of `policy` in each of `episodes` dialogues, tokens drawn.

    Args:
        policy: whatever `dialgym.collect` takes.
        env_id: of a `ReplyTask`.
        env_kwargs: settings of the env.
        episodes, seed: as of `dialgym.collect`.
    """
    held = dialgym.collect(env_id, policy, episodes, seed, env_kwargs=env_kwargs, num_envs=256)
    task = make_task(entry_of(env_id), {k: v for k, v in env_kwargs.items() if k not in OF_VIEWS})
    return [_reply(task, dialogue) for dialogue in held]


def _reply(task: Any, dialogue: Mapping[str, Any]) -> Reply:
    """The stored first utterance of the learner, as the rewards of the task would see it."""
    text = next(turn["text"] for turn in dialogue["turns"] if turn["said"])
    options = json.loads(dialogue["options"])
    reply: Reply = task.first_reply(dialogue["seed"], text, options)
    return reply
