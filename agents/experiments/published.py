"""Figures of PyDial's own policies, by what its tables call them (`pydial.yaml`)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cache
from importlib.resources import files
from typing import Any, NamedTuple

import yaml

HANDCRAFTED = "HDC"
RECALLED_NOTE = (
    "The columns of the paper (Casanueva et al. 2017, arXiv 1711.11023, after 4,000 dialogues) are "
    "written down from memory and have not been compared with it: targets, not citations."
)


class Score(NamedTuple):
    """Score of a policy: success in per cent, mean reward."""

    success: float
    reward: float


class LogCurve(NamedTuple):
    """A policy's learning curve by published logs, a mean over `seeds` trainings."""

    task: str
    policy: str
    seeds: int
    scores: Mapping[int, Score]


@cache
def _file() -> dict[str, Any]:
    text = (files("agents.experiments") / "pydial.yaml").read_text("utf-8")
    found: dict[str, Any] = yaml.safe_load(text)
    return found


def handcrafted(task: str) -> Score:
    """The original's handcrafted policy in a task, measured with its own code."""
    return Score(*_file()["handcrafted"][task])


def covers(task: str) -> bool:
    """Return True if the task belongs to the benchmark itself, which has figures."""
    return task in _file()["handcrafted"]


def policies() -> Sequence[str]:
    """The paper's learned policies, in the order of its columns."""
    found: list[str] = _file()["recalled"]["policies"]
    return found


def paper_scores(task: str) -> dict[str, Score]:
    """The paper's learned policies in a task; see `RECALLED_NOTE`."""
    return {name: Score(*score) for name, score in zip(policies(), _file()["recalled"][task])}


def log_curves() -> list[LogCurve]:
    """The learning curves of published logs."""
    after = _file()["logged_after"]
    return [
        LogCurve(
            row["task"], row["policy"], row["seeds"],
            {number: Score(*score) for number, score in zip(after, row["after"])},
        )
        for row in _file()["logged"]
    ]  # fmt: skip


def speed() -> Mapping[str, float]:
    """Dialogues of training in a CPU second, by the original's logs."""
    found: dict[str, float] = _file()["speed"]
    return found


def published_name(method: str) -> str | None:
    """Name of one of our methods in PyDial; None for what it has not, or a variant of ours."""
    found: str | None = _file()["namesakes"].get(method)
    return found
