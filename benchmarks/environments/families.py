"""Token steps of every family of tasks, by one procedure, so that they can be compared.

A token is drawn from those that the mask allows, at each step, which is a part of the time. Where
replies are free text, and masks allow nearly everything, the tokens are those of replies of the
data.
"""

from collections.abc import Iterator, Mapping
from itertools import chain, cycle
from types import MappingProxyType
from typing import Any

import gymnasium as gym
import numpy as np

from benchmarks.environments.timing import Figure
from benchmarks.environments.workloads import Rate, Work
from dialgym.language.tokenizers import END
from dialgym.tasks.replies import ReplyTask

ROWS = 256
STEPS, BATCHED_STEPS = 2_048, 64
REPLIES = 64
FAMILIES: Mapping[str, str] = MappingProxyType(
    {
        "bargain": "Bargain-v0",
        "comments": "Comments-v0",
        "daily_dialog": "DailyDialog-v0",
        "endgames": "Endgames-v0",
        "logged": "Logged-v0",
        "maze": "Maze-v0",
        "multiwoz": "MultiWOZ-v0",
        "service_desk": "ServiceDesk-v0",
        "slot_filling": "SlotFilling-v0",
        "text_nav": "TextNav-v0",
        "twenty_questions": "TwentyQuestions-v0",
        "visual_dialogue": "VisualDialogue-v0",
        "wordle": "Wordle-v0",
    }
)
"""The environment that is measured, by the folder of its task."""


def family_figures(measure: Rate) -> Iterator[Figure]:
    """Token steps of one dialogue, and of a batch, by family."""
    for family, name in FAMILIES.items():
        single = Figure(f"{family}: one dialogue", measure(single_steps(name)), "/s")
        yield single
        together = measure(batched_steps(name))
        yield Figure(f"{family}: batch of {ROWS}", together, "/s", None, single, "single")


def single_steps(name: str) -> Work:
    """Tokens of one dialogue after the other, with masks."""
    env: Any = gym.make(f"dialgym/{name}", action_masks=True)
    rng = np.random.default_rng(0)
    written = _replies(env.unwrapped, rng)
    _, info = env.reset(seed=0)

    def play() -> int:
        nonlocal info
        for _ in range(STEPS):
            token = next(written) if written else rng.choice(np.flatnonzero(info["action_mask"]))
            _, _, terminated, truncated, info = env.step(int(token))
            if terminated or truncated:
                _, info = env.reset()
        return STEPS

    return play


def batched_steps(name: str) -> Work:
    """`single_steps` in a batch of `ROWS` dialogues, with masks at each step."""
    env: Any = gym.make_vec(f"dialgym/{name}", ROWS, autoreset_mode="SameStep")
    rng = np.random.default_rng(0)
    written = [row for _ in range(ROWS) if (row := _replies(env, rng))]
    env.reset(seed=0)

    def play() -> int:
        for _ in range(BATCHED_STEPS):
            masks = np.asarray(env.action_masks())
            drawn = (rng.random(masks.shape, np.float32) * masks).argmax(1)
            env.step(np.array([next(row) for row in written]) if written else drawn)
        return BATCHED_STEPS * ROWS

    return play


def _replies(env: Any, rng: np.random.Generator) -> Iterator[int] | None:
    """Tokens of replies of the data without end, each with its <end>; None of other tasks."""
    if not isinstance(env.task, ReplyTask):
        return None
    limit = env.steps_per_utterance
    texts = [env.task.random_reply(rng) for _ in range(REPLIES)]
    spelled = [[*env.tokenizer.encode(text), END][:limit] for text in texts]
    return cycle(chain.from_iterable(spelled))
