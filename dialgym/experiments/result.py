"""Results of an evaluation: its episodes, and the statistics made of them."""

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

import numpy as np

from dialgym.errors import unknown
from dialgym.experiments.statistics import Interval, Resampled, bootstrap, interval, iqm
from dialgym.experiments.tables import markdown, rich_table
from dialgym.io.checksums import read_json_checked, write_json_checked
from dialgym.io.html_tables import plain_table
from dialgym.registry import NAMESPACE

if TYPE_CHECKING:
    from rich.table import Table

DRAWN, GREEDY = "drawn", "greedy"


@dataclass(frozen=True, eq=False, repr=False)
class Episodes:
    """Episodes of one environment, or of several; row k is one seed of one environment.

    Attributes:
        returns: (K, E) float64, undiscounted.
        solved: (K, E) bool.
        lengths: (K, E) int64, utterances of the learner.
        scores: (K, E) float64, 100 (r - random) / (expert - random); None without references.
        metrics: (K, E) float64 each, by name: what the task measures of a dialogue that is over
            (`Task.metrics`; -1 where there was nothing to measure). Empty for several environments.
    """

    returns: np.ndarray
    solved: np.ndarray
    lengths: np.ndarray
    scores: np.ndarray | None = None
    metrics: Mapping[str, np.ndarray] = field(default_factory=dict)

    def __repr__(self) -> str:
        low, high = self.interval
        return (
            f"Episodes(mean return {self.mean_return:.2f} [{low:.2f}, {high:.2f}], "
            f"success {self.success:.2f}, {self.returns.size} episodes)"
        )

    @property
    def mean_return(self) -> float:
        return float(self.returns.mean())

    @cached_property
    def iqm(self) -> float:
        """Interquartile mean of the returns."""
        return iqm(self.returns)

    @property
    def interval(self) -> Interval:
        """95 % stratified bootstrap interval of the mean return."""
        return interval(self._resampled.mean)

    @property
    def iqm_interval(self) -> Interval:
        """95 % stratified bootstrap interval of the interquartile mean."""
        return interval(self._resampled.iqm)

    @property
    def success(self) -> float:
        """Share of episodes in which the task was solved."""
        return float(self.solved.mean())

    @property
    def mean_length(self) -> float:
        """Utterances of the learner in an episode."""
        return float(self.lengths.mean())

    @property
    def score(self) -> float | None:
        """Mean normalised score: 0 is the random policy, 100 the expert."""
        return None if self.scores is None else float(self.scores.mean())

    @cached_property
    def score_interval(self) -> Interval | None:
        """95 % stratified bootstrap interval of the score."""
        return None if self.scores is None else interval(bootstrap(self.scores).mean)

    @cached_property
    def _resampled(self) -> Resampled:
        return bootstrap(self.returns)


@dataclass(frozen=True, eq=False, repr=False)
class Result:
    """A policy's episodes on each environment, and over all of them.

    ``result["Wordle-v0"]`` are the `Episodes` of one environment; the properties are those of
    `overall`, in which every environment weighs the same.

    Attributes:
        policy: its name.
        seeds: of the rows of each environment's arrays.
        by_id: `Episodes` by id.
        env_kwargs: what the environments were made with, beside the registry's settings.
        stand_ins: by id, what was played in place of what the settings name: ``built-in``.
        oracle: whether the policy knows what its party is not told; tables say so.
        actions: of a policy that draws its actions while it learns: whether they were ``"drawn"``
            here, too, or the likeliest taken, ``"greedy"``; tables say so. Else empty.
    """

    policy: str
    seeds: tuple[int, ...]
    by_id: Mapping[str, Episodes]
    env_kwargs: Mapping[str, Any] = field(default_factory=dict)
    stand_ins: Mapping[str, str] = field(default_factory=dict)
    oracle: bool = False
    actions: str = ""

    def __repr__(self) -> str:
        parts = "; ".join(f"{self.label(env_id)}: {part!r}" for env_id, part in self.by_id.items())
        return f"Result({self.name} in {parts})"

    def _repr_html_(self) -> str:
        """A table for notebooks."""
        from dialgym.experiments.tables import HEAD, rows

        return plain_table([HEAD, *rows([self])])

    @property
    def name(self) -> str:
        """What tables call the policy: with what it knows, or how its actions were chosen."""
        mark = "oracle" if self.oracle else self.actions
        return f"{self.policy} ({mark})" if mark else self.policy

    def label(self, env_id: str) -> str:
        """What tables call an environment: its id, and in brackets what stood in for it."""
        return f"{env_id} ({self.stand_ins[env_id]})" if env_id in self.stand_ins else env_id

    def __getitem__(self, env_id: str) -> Episodes:
        for full in (env_id, f"{NAMESPACE}/{env_id}"):
            if full in self.by_id:
                return self.by_id[full]
        raise unknown("id", env_id, self.by_id, f"the result of {self.policy}")

    @cached_property
    def overall(self) -> Episodes:
        """All environments together; no scores where one of them has no references."""
        parts = list(self.by_id.values())

        def rows(take: Callable[[Episodes], Any]) -> np.ndarray:
            return np.concatenate([take(part) for part in parts])

        scored = all(part.scores is not None for part in parts)
        scores = rows(lambda p: p.scores) if scored else None
        return Episodes(
            rows(lambda p: p.returns), rows(lambda p: p.solved), rows(lambda p: p.lengths), scores
        )

    @property
    def mean_return(self) -> float:
        return self.overall.mean_return

    @property
    def iqm(self) -> float:
        """Interquartile mean of the returns."""
        return self.overall.iqm

    @property
    def interval(self) -> Interval:
        """95 % stratified bootstrap interval of the mean return."""
        return self.overall.interval

    @property
    def success(self) -> float:
        """Share of episodes in which the task was solved."""
        return self.overall.success

    @property
    def score(self) -> float | None:
        """Mean normalised score; None where an environment has no references."""
        return self.overall.score

    def to_markdown(self) -> str:
        """A table with a row for each environment and, if there are several, one for all."""
        return markdown([self])

    def to_table(self) -> "Table":
        """The same for `rich.print`."""
        return rich_table([self])

    def as_dict(self) -> dict[str, Any]:
        """Everything as plain lists and numbers; what is no such thing in `env_kwargs` as text."""
        return {
            "policy": self.policy,
            "seeds": list(self.seeds),
            "env_kwargs": json.loads(json.dumps(dict(self.env_kwargs), default=repr)),
            "stand_ins": dict(self.stand_ins),
            "oracle": self.oracle,
            "actions": self.actions,
            "environments": {env_id: _as_dict(part) for env_id, part in self.by_id.items()},
        }

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> Self:
        """The inverse of `as_dict`."""
        by_id = {env_id: _from_dict(part) for env_id, part in values["environments"].items()}
        seeds, stand_ins = tuple(values["seeds"]), values.get("stand_ins", {})
        marks = bool(values.get("oracle", False)), str(values.get("actions", ""))
        return cls(values["policy"], seeds, by_id, values["env_kwargs"], stand_ins, *marks)

    def to_json(self, path: str | PathLike[str]) -> None:
        """Write `as_dict`, atomically and with a checksum."""
        write_json_checked(Path(path), self.as_dict())

    @classmethod
    def from_json(cls, path: str | PathLike[str]) -> Self:
        """Read what `to_json` wrote.

        Raises:
            ValueError: the file holds something else, or is damaged.
        """
        return cls.from_dict(read_json(path, "policy", "seeds", "env_kwargs", "environments"))


def read_json(path: str | PathLike[str], *names: str) -> dict[str, Any]:
    """The object in a file, which must have the `names`."""
    values: Any = read_json_checked(Path(path), "a result as JSON")
    missing = [name for name in names if not isinstance(values, dict) or name not in values]
    if missing:
        raise ValueError(
            f"{str(path)!r}: expected a result with {', '.join(names)}; "
            f"it lacks {', '.join(missing)}. Write it with Result.to_json."
        )
    return values


def _as_dict(part: Episodes) -> dict[str, Any]:
    """The arrays, and for the reader the figures made of them."""
    arrays = {name: getattr(part, name) for name in ("returns", "solved", "lengths", "scores")}
    figures = ("mean_return", "interval", "iqm", "iqm_interval", "success", "mean_length")
    return {
        **{name: getattr(part, name) for name in (*figures, "score", "score_interval")},
        **{name: None if array is None else array.tolist() for name, array in arrays.items()},
        "metrics": {name: array.tolist() for name, array in part.metrics.items()},
    }


def _from_dict(values: Mapping[str, Any]) -> Episodes:
    scores = values["scores"]
    return Episodes(
        np.array(values["returns"], np.float64),
        np.array(values["solved"], bool),
        np.array(values["lengths"], np.int64),
        None if scores is None else np.array(scores, np.float64),
        {name: np.array(rows, np.float64) for name, rows in values.get("metrics", {}).items()},
    )
