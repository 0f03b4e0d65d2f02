"""Metrics of the utterances in a rollout: parts of the reward, lengths, and your own."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, ClassVar

import numpy as np
from stable_baselines3.common.callbacks import BaseCallback

from agents.registry import load_name
from dialgym.views.info import group_of

Infos = Sequence[Mapping[str, Any]]
Metric = Callable[[Infos], Mapping[str, float]]
"""From the infos of the utterances that ended in a rollout to figures for the log, by name.

An info has what the env says at the end of an utterance (`utterance`, `reply`, `turn`,
`reward_components`, and at the end of a dialogue `is_success`, `transcript` and `metrics`), and
`utterance_tokens`.
"""
MetricSelection = Sequence[str | Metric] | Mapping[str, Mapping[str, Any] | None]


def parts_of_the_reward(infos: Infos) -> dict[str, float]:
    """`reward/<name>`: the mean of each component over the utterances, 0 where one had none."""
    found = defaultdict(list)
    for info in infos:
        for name, value in group_of(info, "reward_components").items():
            found[f"reward/{name}"].append(value)
    return {name: float(np.mean(values)) for name, values in found.items()}


def lengths(infos: Infos) -> dict[str, float]:
    """`rollout/utterance_tokens`: tokens that the learner said in an utterance, <end> included."""
    return {"rollout/utterance_tokens": float(np.mean([i["utterance_tokens"] for i in infos]))}


def measures(infos: Infos) -> dict[str, float]:
    """`dialogue/<name>`: the mean of each of `Facts.metrics` over the dialogues that ended.

    Those in which there was nothing to measure (-1) are left out, and so are envs without texts,
    whose infos do not tell the end.
    """
    found = defaultdict(list)
    for info in infos:
        for name, value in info.get("metrics", {}).items() if info.get("transcript") else ():
            if value >= 0:
                found[f"dialogue/{name}"].append(value)
    return {name: float(np.mean(values)) for name, values in found.items()}


EXAMPLE = "my_package.metrics:Politeness"
BUILT_IN: tuple[Metric, ...] = (parts_of_the_reward, lengths, measures)


class Metrics(BaseCallback):
    """Logs figures of the utterances that ended in each rollout.

    Of several processes the first logs its own. A rollout in which no utterance ended logs nothing.

    Args:
        metrics: as of `make_metrics`.
    """

    state_names: ClassVar[list[str]] = ["said"]
    """Attributes that a run goes on with."""

    def __init__(self, metrics: Sequence[Metric]) -> None:
        super().__init__()
        self.metrics = metrics
        self.said: np.ndarray | None = None  # (n_envs,) tokens of the utterances that go on
        self.ended: list[dict[str, Any]] = []

    def _on_step(self) -> bool:
        infos = self.locals["infos"]
        said = np.zeros(len(infos), np.int64) if self.said is None else self.said.copy()
        playing = self.locals.get("playing")  # of algorithms whose finished dialogues rest
        if playing is not None:
            said[np.asarray(self.model._last_episode_starts, bool)] = 0
        self.said = said + (1 if playing is None else playing)
        for row, info in enumerate(infos):
            if info.get("turn"):
                self.ended.append({**info, "utterance_tokens": int(self.said[row])})
                self.said[row] = 0
        self.said[np.asarray(self.locals["dones"], bool)] = 0
        return True

    def _on_rollout_end(self) -> None:
        ended, self.ended = self.ended, []
        if not ended:
            return
        for metric in self.metrics:
            for name, value in _checked(metric, metric(ended)).items():
                self.logger.record(name, value)


def make_metrics(chosen: MetricSelection | None) -> list[Metric]:
    """The built-in metrics, and those that were chosen.

    Args:
        chosen: names of classes (`module:Class`), which are made without arguments, or objects;
            or a mapping from names to the arguments of their constructors.

    Raises:
        ValueError: there is no such class, it cannot be made so, or what it makes cannot be called.
    """
    if isinstance(chosen, str) or not isinstance(chosen, Iterable | None):
        one = chosen if isinstance(chosen, str) else EXAMPLE
        raise ValueError(
            f"metrics: expected a list such as [{one!r}], or a mapping, got {chosen!r}"
        )
    pairs = chosen.items() if isinstance(chosen, Mapping) else [(one, None) for one in chosen or ()]
    return [*BUILT_IN, *(_made(one, arguments or {}) for one, arguments in pairs)]


def _made(chosen: str | Metric, arguments: Mapping[str, Any]) -> Metric:
    metric: Any = chosen
    if isinstance(chosen, str):
        metric = load_name("metrics", chosen, EXAMPLE)
    if isinstance(metric, type):
        try:
            metric = metric(**arguments)
        except TypeError as error:
            raise ValueError(f"metrics: {chosen!r} cannot be made: {error}") from error
    if not callable(metric):
        raise ValueError(
            f"metrics: expected {chosen!r} to be callable with the infos of a rollout, got "
            f"{type(metric).__name__}"
        )
    return metric


def _checked(metric: Metric, figures: Any) -> dict[str, float]:
    name = getattr(metric, "__name__", type(metric).__name__)
    try:
        return {str(key): float(value) for key, value in figures.items()}
    except (AttributeError, TypeError, ValueError) as error:
        raise ValueError(
            f"metrics: expected {name} to give a dict of numbers by name, got {figures!r}"
        ) from error
