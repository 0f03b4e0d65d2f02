"""Cost of rollout and update by the length of dialogues, with padding and memory, of a tiny GPT.

Dialogues of `Reply` whose longest have so many tokens and whose shortest about a third, 32 at once,
20 decisions in each; 2 layers of 64, 4 heads. The reference of an update reads padded rows, as a
GPU does. `python -m benchmarks.training.length FILE` draws the figures.
"""

from __future__ import annotations

import math
import multiprocessing
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any
from unittest import mock

import numpy as np
import torch

from agents.models import gpt
from agents.models.gpt import Packing
from benchmarks.environments.timing import Figure, alternate
from benchmarks.training.learner import Learner
from benchmarks.training.memory import peak
from benchmarks.training.workload import REPLY, reply_env
from dialgym.experiments.plots import new_figure
from dialgym.io.files import save_figure

LENGTHS = (64, 128, 256, 512, 754)
ENVS, LINES = 32, 5
POLICY: dict[str, Any] = {"preset": "nano", "n_head": 4}


@dataclass(frozen=True)
class Costs:
    """Costs of dialogues of up to `length` tokens.

    Attributes:
        rollout, update, padded: CPU-milliseconds of a decision: in the rollout, in one epoch of
            the update, and in one that reads padded rows.
        tokens: that a decision of the update reads, padding left out.
        in_rows, in_attention: share of padding in what padded rows read, and in what attends here.
        memory: bytes by which an update makes a fresh process grow.
    """

    length: int
    rollout: float
    update: float
    padded: float
    tokens: float
    in_rows: float
    in_attention: float
    memory: int


def figures(repeats: int) -> Iterator[Figure]:
    """Decisions a second, shares of padding and memory, by length."""
    for costs in measured(repeats):
        what = f"dialogues of up to {costs.length} tokens"
        yield Figure(f"{what}: rollout, decisions", 1e3 / costs.rollout, "/s")
        padded = Figure("  update of padded rows, decisions", 1e3 / costs.padded, "/s")
        yield padded
        yield Figure("  update, decisions", 1e3 / costs.update, "/s", None, padded, "padded")
        yield Figure("  tokens read for a decision", costs.tokens, "")
        yield Figure("  padding in padded rows", 100 * costs.in_rows, " %")
        yield Figure("  padding in attention", 100 * costs.in_attention, " %")
        yield Figure("  memory of an update", costs.memory / 1e6, " MB")


@cache
def measured(repeats: int) -> list[Costs]:
    """The costs of each length."""
    with multiprocessing.get_context("spawn").Pool(1, maxtasksperchild=1) as pool:
        memory = [pool.apply(memory_growth, (length,)) for length in LENGTHS]
    return [costs(length, repeats, grown) for length, grown in zip(LENGTHS, memory, strict=True)]


def costs(length: int, repeats: int, memory: int) -> Costs:
    """Costs of dialogues of up to `length` tokens, whose update takes `memory` bytes."""
    learner = make_learner(length)
    rollout = alternate({"rollout": learner.rollout}, repeats)["rollout"]

    def padded() -> None:
        with mock.patch.object(gpt, "is_compiling", return_value=True):  # keeps rows as they are
            learner.update()

    spent = alternate({"packed": learner.update, "padded": padded}, repeats)
    each = 1e3 / learner.steps
    tokens, in_rows, in_attention = padding(learner.ppo)
    return Costs(
        length,
        each * rollout,
        each * spent["packed"],
        each * spent["padded"],
        tokens / learner.steps,
        1 - tokens / in_rows,
        1 - tokens / in_attention,
        memory,
    )


def make_learner(length: int) -> Learner:
    """A learner of dialogues whose longest have `length` tokens."""
    longest = (length - REPLY - 1) // LINES - 2
    env = reply_env(ENVS, shortest=max(longest // 3, 1), longest=longest)
    return Learner(env, REPLY, ENVS * REPLY, 1, POLICY)


def padding(ppo: Any) -> tuple[int, int, int]:
    """Tokens of an epoch: all that there are, places of padded rows, and places that attend."""
    sequences = ppo.rollout.sequences
    tokens = rows = attention = 0
    for part in sequences.parts(np.arange(len(sequences.sizes)), ppo.updater.most_tokens):
        packing = Packing.of(part.at.numpy(), part.tokens.shape[1])
        tokens += len(packing.tokens)
        rows += part.tokens.numel()
        attention += sum(math.prod(group.tokens.shape) for group in packing.groups)
    return tokens, rows, attention


def memory_growth(length: int) -> int:
    """Bytes by which this process's greatest memory grows in an update."""
    torch.set_num_threads(1)
    learner = make_learner(length)
    learner.rollout()
    before = peak()
    learner.update()
    return peak() - before


def draw(results: list[Costs], path: Path) -> None:
    """Costs over length, and padding beside them, as an image."""
    figure = new_figure(9, 3.4)
    left, right = figure.subplots(1, 2)
    lengths = [each.length for each in results]
    curves = {
        "padded": (left, 1, "update, padded rows"),
        "update": (left, 1, "update"),
        "rollout": (left, 1, "rollout"),
        "in_rows": (right, 100, "of padded rows"),
        "in_attention": (right, 100, "of what attends"),
    }
    for name, (axes, scale, what) in curves.items():
        values = [scale * getattr(each, name) for each in results]
        axes.plot(lengths, values, marker="o", label=what)
    left.set(ylabel="CPU-milliseconds of a decision", ylim=(0, None))
    right.set(ylabel="padding, %", ylim=(0, None))
    for axes in (left, right):
        axes.set(xlabel="tokens of the longest dialogue", xticks=lengths)
        axes.tick_params(axis="x", labelsize=8)
        axes.legend(frameon=False)
        axes.spines[["top", "right"]].set_visible(False)
    save_figure(figure, path)


if __name__ == "__main__":
    from benchmarks.environments.__main__ import show

    torch.set_num_threads(1)
    torch.manual_seed(0)
    show(list(figures(5)))
    draw(measured(5), Path(sys.argv[1]))
