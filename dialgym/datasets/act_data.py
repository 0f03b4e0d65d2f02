"""Act arrays of a dataset, to learn from: observations, actions, masks, rewards."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from dialgym.datasets.tokens import flat_returns_to_go, shuffled_rows


class ActTransitions(NamedTuple):
    """M decisions, each with what it led to."""

    observations: np.ndarray  # (M, B) float32
    actions: np.ndarray  # (M,) int64, or (M, A) int8 where several acts are chosen at once
    rewards: np.ndarray  # (M,) float32
    next_observations: np.ndarray  # (M, B) float32, at the end of a dialogue its last
    terminated: np.ndarray  # (M,) bool, the dialogue ended with it: nothing is to be bootstrapped
    truncated: np.ndarray  # (M,) bool, it was cut short after it: bootstrap
    action_masks: np.ndarray  # (M, A) bool, what could be chosen
    next_action_masks: np.ndarray  # (M, A) bool, what could be chosen then
    returns_to_go: np.ndarray  # (M,) float32, G = r + gamma G', within the dialogue

    @property
    def dones(self) -> np.ndarray:
        """(M,) bool: the dialogue was over after it, for whichever reason."""
        return self.terminated | self.truncated


@dataclass(frozen=True, eq=False)
class ActData:
    """All decisions of a dataset, dialogue by dialogue.

    Attributes:
        decisions: the M of all dialogues.
        offsets: (N+1,) int64; those of dialogue i are from ``offsets[i]`` to ``offsets[i+1]``.
        kind: which acts they are, as the column ``acts`` of the dataset says.
    """

    decisions: ActTransitions
    offsets: np.ndarray
    kind: str

    def __len__(self) -> int:
        return len(self.decisions.rewards)

    def batch(self, rows: Sequence[int] | np.ndarray) -> ActTransitions:
        """The decisions at `rows`."""
        return ActTransitions(*(column[np.asarray(rows, np.int64)] for column in self.decisions))

    def dialogue(self, i: int) -> ActTransitions:
        """The decisions of dialogue i, in order."""
        return self.batch(np.arange(self.offsets[i], self.offsets[i + 1]))

    def batches(self, size: int, rng: np.random.Generator) -> Iterator[ActTransitions]:
        """Batches of `size` decisions without end, each epoch in a new order.

        The last decisions of an epoch, too few for a batch, are left out of it.

        Raises:
            ValueError: there are fewer decisions than a batch holds.
        """
        for rows in shuffled_rows(len(self), size, rng, "decisions"):
            yield self.batch(rows)


def act_data(dataset: Any, gamma: float = 1.0) -> ActData:
    """The decisions of a `Dataset`; `gamma` discounts the returns.

    Raises:
        ValueError: the learner chose no acts, or those of several kinds.
    """
    kinds = sorted({*dataset["acts"].tolist()})
    if len(kinds) != 1 or kinds == [""]:
        got = f"acts of {len(kinds)} kinds" if len(kinds) > 1 else "dialogues without acts"
        raise ValueError(
            f"act data: expected dialogues in which the learner chose acts, the same in all; got "
            f"{got}. Collect them in an act view, or filter them."
        )
    table = dataset.table
    sizes, turns = dataset.turns()
    owners = np.repeat(np.arange(len(dataset)), sizes)
    said = turns.field("said").to_numpy(zero_copy_only=False).astype(bool)
    rewards = turns.field("reward").to_numpy(zero_copy_only=False)[said]
    offsets = np.concatenate([[0], np.cumsum(np.bincount(owners[said], minlength=len(dataset)))])
    before = np.arange(offsets[-1]) + np.repeat(np.arange(len(dataset)), np.diff(offsets))
    observations = _rows(table["observations"], np.float32)  # one more in each dialogue
    masks = _rows(table["action_masks"], bool)
    last = np.zeros(len(rewards), bool)
    last[offsets[1:] - 1] = True
    dialogue = np.repeat(np.arange(len(dataset)), np.diff(offsets))
    decisions = ActTransitions(
        observations[before],
        _actions(table["actions"]),
        rewards.astype(np.float32),
        observations[before + 1],
        last & dataset["terminated"][dialogue],
        last & dataset["truncated"][dialogue],
        masks[before],
        masks[before + 1],
        flat_returns_to_go(rewards, last, gamma).astype(np.float32),
    )
    return ActData(decisions, offsets, kinds[0])


def _rows(column: Any, dtype: Any) -> np.ndarray:
    """A column of lists of lists of one length as an array (M, length)."""
    inner = column.combine_chunks().flatten()
    values = inner.flatten().to_numpy(zero_copy_only=False)
    return np.asarray(values, dtype).reshape(len(inner), -1)


def _actions(column: Any) -> np.ndarray:
    rows = _rows(column, np.int64)
    return rows[:, 0] if rows.shape[1] == 1 else rows.astype(np.int8)
