"""Figures of PyDial's own policies, by what its tables call them (`pydial.yaml`)."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from importlib.resources import files
from types import MappingProxyType
from typing import Any, NamedTuple

import yaml

DOMAINS: Mapping[str, str] = MappingProxyType(
    {"CR": "CamRestaurants", "SFR": "SFRestaurants", "LAP": "Laptops11"}
)
"""Domains of PyDial's benchmark, by their names in its tables."""
HANDCRAFTED_NOTE = (
    "The original's handcrafted policy was run with its own code (Python 2.7, "
    "`config/pydial_benchmarks`): 300 dialogues, seed 1 (200 in CR-Env3 and CR-Env5)."
)
"""Origin of the figures of `handcrafted`."""


class Score(NamedTuple):
    """Score of a policy: success in per cent, mean reward."""

    success: float
    reward: float


class HandcraftedScore(NamedTuple):
    """Score of the original's handcrafted policy, and halves of its 95 % intervals."""

    mean: Score
    half: Score


class LogCurve(NamedTuple):
    """A policy's learning curve by published logs, a mean over `seeds` trainings.

    Attributes:
        task, policy: of which.
        seeds: trainings.
        repository: on GitHub, with the logs.
        files: pattern of their paths in it.
        scores: by dialogues of training.
    """

    task: str
    policy: str
    seeds: int
    repository: str
    files: str
    scores: Mapping[int, Score]


@cache
def _file() -> dict[str, Any]:
    text = (files("agents.experiments") / "pydial.yaml").read_text("utf-8")
    found: dict[str, Any] = yaml.safe_load(text)
    return found


def handcrafted(task: str) -> HandcraftedScore:
    """The original's handcrafted policy in a task; see `HANDCRAFTED_NOTE`."""
    row = _file()["handcrafted"][task]
    return HandcraftedScore(Score(row["success"], row["reward"]), Score(*row["halves"]))


def covers(task: str) -> bool:
    """Return True if the task belongs to the benchmark itself, which has figures."""
    return task in _file()["handcrafted"]


def log_curves() -> list[LogCurve]:
    """The learning curves of published logs."""
    after = _file()["logged_after"]
    return [
        LogCurve(
            row["task"], row["policy"], row["seeds"], row["repository"], row["files"],
            {number: Score(*score) for number, score in zip(after, row["after"], strict=True)},
        )
        for row in _file()["logged"]
    ]  # fmt: skip


def log_commits() -> Mapping[str, str]:
    """The commits of the repositories with logs, by name."""
    found: dict[str, str] = _file()["repositories"]
    return found


def published_name(method: str) -> str | None:
    """Name of one of our methods in PyDial; None for what it has not, or a variant of ours."""
    found: str | None = _file()["namesakes"].get(method)
    return found
