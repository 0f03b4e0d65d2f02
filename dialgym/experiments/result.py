"""Results of an evaluation: its episodes, the statistics made of them, and their tables."""

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import groupby
from math import isfinite, nan
from operator import itemgetter
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

import numpy as np

from dialgym.errors import unknown
from dialgym.experiments.bootstrap import Resampled, bootstrap, interval, measured_mean
from dialgym.experiments.metric_tables import metrics_as_markdown
from dialgym.experiments.statistics import (
    Estimate,
    Interval,
    format_estimate,
    iqm,
)
from dialgym.experiments.tables import markdown_table, rich_table
from dialgym.io.checksums import read_json_checked, write_json_checked
from dialgym.io.html_tables import html_table
from dialgym.io.model_settings import usage_text
from dialgym.registry import NAMESPACE
from dialgym.rollouts import EpisodeBatch

if TYPE_CHECKING:
    from rich.table import Table

DRAWN, GREEDY = "drawn", "greedy"
PREFIX = f"{NAMESPACE}/"
ENTRIES = ("policy", "seeds", "env_kwargs", "stand_ins", "oracle", "actions", "environments")
"""Of a result as JSON; `policy_kwargs` and `SERVED` too, which older files do not have."""
SERVED = ("usage", "models")
"""Of a result with language models behind a service."""


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
        dialogues: what was said, or the dialogues as they ended, where that was asked for; they
            are in no file.
        measures: (K, E) float64 each, by name: measures of replies that were asked for.
        figures: those of them that are of all replies at once, such as corpus BLEU.
    """

    returns: np.ndarray
    solved: np.ndarray
    lengths: np.ndarray
    scores: np.ndarray | None = None
    metrics: Mapping[str, np.ndarray] = field(default_factory=dict)
    dialogues: tuple[EpisodeBatch, ...] = ()
    measures: Mapping[str, np.ndarray] = field(default_factory=dict)
    figures: Mapping[str, float] = field(default_factory=dict)

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
    def measured(self) -> dict[str, Estimate | None]:
        """Means of metrics and measures with 95 % intervals; None where nothing was measured."""
        figures = {name: Estimate(value, nan, nan) for name, value in self.figures.items()}
        measures = {n: Estimate(float(v.mean()), *interval(bootstrap(v).mean))
                    for n, v in self.measures.items()}  # fmt: skip
        return {n: measured_mean(v) for n, v in self.metrics.items()} | measures | figures

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
        policy_kwargs: the policy's settings, such as ``{"beta": 4.0}``; tables say so. Of a
            language model behind a service its host, and a hash of its sampling.
        usage: counts of what such models were asked, of the policy and of simulators: requests,
            retries, replayed, empty, cut, prompt_tokens, answer_tokens; and not_understood, texts
            of theirs that the task makes nothing of, see `understood_lines`; what is 0 is left out.
        models: such models that took part, by role, ``policy`` or ``simulator``: name, host, a hash
            of the sampling and of the prompt's form, and that of the tape where there is one.
    """

    policy: str
    seeds: tuple[int, ...]
    by_id: Mapping[str, Episodes]
    env_kwargs: Mapping[str, Any] = field(default_factory=dict)
    stand_ins: Mapping[str, str] = field(default_factory=dict)
    oracle: bool = False
    actions: str = ""
    policy_kwargs: Mapping[str, Any] = field(default_factory=dict)
    usage: Mapping[str, int] = field(default_factory=dict)
    models: Mapping[str, Mapping[str, str]] = field(default_factory=dict)

    def __repr__(self) -> str:
        parts = "; ".join(f"{self.label(env_id)}: {part!r}" for env_id, part in self.by_id.items())
        return f"Result({self.name} in {parts})"

    def _repr_html_(self) -> str:
        """A table for notebooks."""
        return html_table([HEAD, *result_rows([self])])

    @property
    def name(self) -> str:
        """Name in tables: with what the policy knows, how its actions were chosen, its settings."""
        settings = [f"{name}={value}" for name, value in self.policy_kwargs.items()]
        marks = [*filter(None, ["oracle" if self.oracle else self.actions]), *settings]
        return f"{self.policy} ({', '.join(marks)})" if marks else self.policy

    def label(self, env_id: str) -> str:
        """Name of an environment in tables: its id, and in brackets what stood in for it."""
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
        """A table with a row for each environment and, if there are several, one for all.

        After it, by environment, what the task measures.
        """
        return results_as_markdown([self])

    def as_dict(self) -> dict[str, Any]:
        """Everything as plain lists and numbers; what is no such thing in `env_kwargs` as text."""
        return {
            "policy": self.policy,
            "seeds": list(self.seeds),
            "env_kwargs": json.loads(json.dumps(dict(self.env_kwargs), default=repr)),
            "policy_kwargs": json.loads(json.dumps(dict(self.policy_kwargs), default=repr)),
            "stand_ins": dict(self.stand_ins),
            "oracle": self.oracle,
            "actions": self.actions,
            **{name: value for name in SERVED if (value := getattr(self, name))},
            "environments": {env_id: _as_dict(part) for env_id, part in self.by_id.items()},
        }

    @classmethod
    def from_dict(cls, values: Mapping[str, Any], where: str = "a result") -> Self:
        """The inverse of `as_dict`.

        Raises:
            ValueError: the values are of another form; the message begins with `where`.
        """
        try:
            return cls(
                policy=values["policy"],
                seeds=tuple(values["seeds"]),
                by_id={key: _from_dict(part) for key, part in values["environments"].items()},
                **{name: values[name] for name in ENTRIES[2:-1]},
                **{name: values.get(name, {}) for name in ("policy_kwargs", *SERVED)},
            )
        except (KeyError, TypeError, AttributeError) as error:
            raise ValueError(f"{where}: expected what Result.as_dict gives ({error!r}).") from error

    def to_json(self, path: str | PathLike[str]) -> None:
        """Write `as_dict`, atomically and with a checksum."""
        write_json_checked(Path(path), self.as_dict())

    @classmethod
    def from_json(cls, path: str | PathLike[str]) -> Self:
        """Read what `to_json` wrote.

        Raises:
            ValueError: the file holds something else, or is damaged.
        """
        return cls.from_dict(read_json(path, *ENTRIES), repr(str(path)))


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
    measured = part.measured.items()
    figures = ("mean_return", "interval", "iqm", "iqm_interval", "success", "mean_length")
    return {
        **{name: getattr(part, name) for name in (*figures, "score", "score_interval")},
        **{name: None if array is None else array.tolist() for name, array in arrays.items()},
        "metrics": {name: array.tolist() for name, array in part.metrics.items()},
        "measures": {name: array.tolist() for name, array in part.measures.items()},
        "figures": dict(part.figures),
        "measured": {n: e and [v if isfinite(v) else None for v in e] for n, e in measured},
    }


def _from_dict(values: Mapping[str, Any]) -> Episodes:
    scores = values["scores"]
    return Episodes(
        np.array(values["returns"], np.float64),
        np.array(values["solved"], bool),
        np.array(values["lengths"], np.int64),
        None if scores is None else np.array(scores, np.float64),
        {name: np.array(rows, np.float64) for name, rows in values["metrics"].items()},
        measures={n: np.array(v, np.float64) for n, v in values.get("measures", {}).items()},
        figures=values.get("figures", {}),
    )


# Tables

HEAD = ("environment", "policy", "mean return", "IQM", "success", "score", "turns")
ALL = "all"


def result_rows(results: Sequence[Result]) -> Iterator[tuple[str, ...]]:
    """The cells, environment by environment; last those over all, where there are several."""
    environments = labels(results)
    for env_id, label in environments:
        for result in results:
            if env_id in result.by_id and result.label(env_id) == label:
                yield (label, result.name, *_cells(result.by_id[env_id]))
    if len(environments) > 1:
        for result in results:
            if {(env_id, result.label(env_id)) for env_id in result.by_id} == set(environments):
                yield (ALL, result.name, *_cells(result.overall))


def labels(results: Sequence[Result]) -> list[tuple[str, str]]:
    """The ids and what tables call them; an id that was played in two ways has two."""
    pairs = ((env_id, r.label(env_id)) for r in results for env_id in r.by_id)
    return list(dict.fromkeys(pairs))


def _cells(part: Episodes) -> tuple[str, ...]:
    bounds = part.score_interval
    score = None if part.score is None or bounds is None else Estimate(part.score, *bounds)
    return (
        format_estimate(Estimate(part.mean_return, *part.interval), 2),
        format_estimate(Estimate(part.iqm, *part.iqm_interval), 2),
        f"{100 * part.success:.1f} %",
        format_estimate(score, 1),
        f"{part.mean_length:.2f}",
    )


def results_as_markdown(results: Sequence[Result]) -> str:
    """A Markdown table with a row for each environment and policy, and what its figures mean.

    After it tables of what the tasks measure.
    """
    table = f"{markdown_table([HEAD, *result_rows(results)])}\n{caption(*results)}\n"
    return table + metrics_as_markdown(measured_in(results))


def measured_in(results: Sequence[Result]) -> dict[str, dict[str, dict[str, Estimate | None]]]:
    """Estimates of what the tasks measure, by environment and policy."""
    return {
        label.removeprefix(PREFIX): {
            result.name: result.by_id[env_id].measured
            for result in results
            if env_id in result.by_id and result.label(env_id) == label
        }
        for env_id, label in labels(results)
    }


def results_as_table(results: Sequence[Result], width: int | None = None) -> "Table":
    """The same for the terminal, a section for each environment; without the turns."""
    sections = {
        env_id.removeprefix(PREFIX): [cells[1:-1] for cells in part]
        for env_id, part in groupby(result_rows(results), key=itemgetter(0))
    }
    return rich_table(HEAD[1:-1], sections, caption(*results), width)


BUILT_IN = (
    " Built-in: the original is not here, and what takes its place has references of its own; "
    "figures on the one do not compare with figures on the other."
)
DRAWS = (
    " Drawn, greedy: a policy that learned by drawing its actions, played so, and taking the "
    "likeliest."
)
ORACLE = " Oracle: a policy that knows what is hidden from its party, which no learner does."


def caption(*results: Result) -> str:
    """Caption of a table of results."""
    result = results[0]
    episodes = next(iter(result.by_id.values())).returns.shape[1]
    more = BUILT_IN if any(r.stand_ins for r in results) else ""
    more += DRAWS if any(r.actions for r in results) else ""
    more += ORACLE if any(r.oracle for r in results) else ""
    more += "".join(f" {r.policy}: {usage_text(r.usage)}." for r in results if r.usage)
    return (
        f"{episodes} episodes for each of {len(result.seeds)} seeds. In brackets: 95 % stratified "
        "bootstrap interval. IQM: interquartile mean of the returns. Score: 100 (return - random) "
        f"/ (expert - random), on the mean return.{more}"
    )
