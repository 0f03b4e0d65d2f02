"""Replies of a model to the people of a data set, measured."""

from __future__ import annotations

import json
from collections.abc import Mapping
from functools import lru_cache
from typing import Any

import dialgym
from benchmarks.recipes.runs import Run
from dialgym.io.files import write_text
from dialgym.registry import entry_of, make_task
from dialgym.rewards import Reply
from dialgym.rewards.metrics import ReplyMetrics
from dialgym.tasks.daily_dialog.corpus import ActExamples

METRICS = "metrics.json"
SEED = 8_000
OF_VIEWS = ("tokenizer", "window")
"""Settings that belong to the token view, not to the task."""


def metrics_of_run(run: Run, episodes: int) -> dict[str, float]:
    """`dialgym.rewards.metrics` of a model's replies; kept beside it, and computed once.

    All models reply in the same dialogues.
    """
    kept = run.folder / METRICS
    found: dict[str, float] = json.loads(kept.read_text("utf-8")) if kept.is_file() else {}
    if found.get("episodes") != episodes:
        said = replies(str(run.model), run.env_id, run.env_kwargs, episodes, SEED)
        found = {"episodes": episodes, **_metrics(run.env_kwargs["data"]).values(said)}
        write_text(kept, json.dumps(found, indent=1) + "\n")
    return found


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
