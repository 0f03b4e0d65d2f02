"""Ended dialogues as columns: outcomes, utterances, choices."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np


class Role(NamedTuple):
    """Role of a dialogue among those of its episode.

    Attributes:
        kind: what a generator calls it.
        source: the place among the episode's dialogues of the one that it leaves; else -1.
        branch: how many of the learner's utterances it shares with that one.
    """

    kind: str = ""
    source: int = -1
    branch: int = 0


@dataclass
class RecordedTurns:
    """Transcripts of the learners of k dialogues, one dialogue after the other, T turns in all.

    Attributes:
        sizes: (k,) turns of each dialogue.
        party: (T,) who spoke.
        text: (T,) what was said.
        said: (T,) whether it is an utterance of the learner, not one that it heard or was told.
        reward: (T,) what such an utterance earned until the learner's next turn; else 0.
        tokens: (T,) the ids that the learner emitted; None where it spoke in text.
    """

    sizes: list[int] = field(default_factory=list)
    party: list[str] = field(default_factory=list)
    text: list[str] = field(default_factory=list)
    said: list[bool] = field(default_factory=list)
    reward: list[float] = field(default_factory=list)
    tokens: list[list[int] | None] = field(default_factory=list)

    def add(
        self,
        lines: Sequence[tuple[str, str, bool]],
        positions: Sequence[int],
        rewards: Sequence[float],
        tokens: Sequence[list[int]] | None = None,
    ) -> None:
        """Add a dialogue.

        Args:
            lines: the learner's transcript.
            positions: where in it its own utterances stand.
            rewards: of each of those.
            tokens: the ids of each of those, where they are known.
        """
        count = len(lines)
        said, reward, ids = [False] * count, [0.0] * count, [None] * count
        for k, position in enumerate(positions):
            said[position], reward[position] = True, rewards[k]
            if tokens is not None:
                ids[position] = tokens[k]  # type: ignore[call-overload]
        self.sizes.append(count)
        self.party += [line[0] for line in lines]
        self.text += [line[1] for line in lines]
        self.said += said
        self.reward += reward
        self.tokens += ids


class Decisions(NamedTuple):
    """The acts that were chosen in one dialogue, T of them, and what they were chosen by.

    Attributes:
        observations: (T+1, B) float32; the last one is that at the end of the dialogue.
        actions: (T,) int64, or (T, A) int8 where several acts are chosen at once.
        masks: (T+1, A) bool.
    """

    observations: np.ndarray
    actions: np.ndarray
    masks: np.ndarray


def metric_columns(rows: Sequence[Mapping[str, float]]) -> dict[str, np.ndarray]:
    """Metrics of k dialogues that are over, as (k,) float64 by name."""
    names = rows[0] if rows else ()
    return {name: np.array([each[name] for each in rows], np.float64) for name in names}


@dataclass
class EpisodeBatch:
    """k dialogues, in the order of their episodes.

    Attributes:
        seeds: (k,) of the environment, `episode_seed`.
        episodes: (k,) their numbers.
        returns: (k,) float64, undiscounted.
        lengths: (k,) int64, utterances of the learner.
        success, terminated, truncated: (k,) bool.
        roles: (k,), where a generator made the dialogues.
        turns: what was said, if that was asked for.
        decisions: (k,) what was chosen, if that was asked for and the learner chose acts.
        options: (k,) of reset, where they may differ.
        metrics: (k,) float64 each, by name: see `Task.metrics`.
        states: (k,) the dialogues as they ended, if that was asked for.
    """

    seeds: list[int]
    episodes: list[int]
    returns: np.ndarray
    lengths: np.ndarray
    success: np.ndarray
    terminated: np.ndarray
    truncated: np.ndarray
    roles: Sequence[Role] | None = None
    turns: RecordedTurns | None = None
    decisions: Sequence[Decisions] | None = None
    options: Sequence[Mapping[str, Any]] | None = None
    metrics: Mapping[str, np.ndarray] = field(default_factory=dict)
    states: Sequence[Any] | None = None

    def __len__(self) -> int:
        return len(self.seeds)
