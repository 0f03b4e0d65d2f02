"""Stored dialogues as minibatches: a sampler, the decisions in dialogues, and typed batches.

A dialogue is read once: one forward gives the hidden states before all of its decisions, which
`Sequences` keeps the places of. What a loss sees of them is a typed batch: `DecisionBatch`, or
`UtteranceBatch` where whole utterances are the actions. (`stored_acts` is the same for act views.)
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor

from agents.buffers.sequences import Part, Sequences
from dialgym.datasets import TokenBatch
from dialgym.language.tokenizers import PAD, TAGS


class Sampler:
    """Choose the dialogues of each gradient step: in each epoch none twice, in a new order.

    What is left over of whole batches is left out of that epoch. The order follows from seed and
    step alone, so that a resumed run goes on exactly.

    Args:
        dialogues: of an epoch.
        batch_size: dialogues of a gradient step; as many as an epoch has, where these are fewer.
        seed: of the orders.
        endless: the dialogues of each epoch are others, with numbers of their own.
    """

    def __init__(self, dialogues: int, batch_size: int, seed: int, endless: bool = False) -> None:
        self.dialogues, self.seed, self.endless = dialogues, seed, endless
        self.batch_size = min(batch_size, dialogues)
        self.steps = dialogues // self.batch_size  # of an epoch
        self._epoch, self._order = -1, np.zeros(0, np.int64)

    def rows(self, step: int) -> np.ndarray:
        """Dialogues (batch_size,) of a step, counted from 0."""
        epoch, batch = divmod(step, self.steps)
        if epoch != self._epoch:
            rng = np.random.default_rng([self.seed, epoch])
            self._epoch, self._order = epoch, rng.permutation(self.dialogues)
        chosen = self._order[batch * self.batch_size : (batch + 1) * self.batch_size]
        return chosen + epoch * self.dialogues if self.endless else chosen


# Batches: what a loss reads


class DecisionBatch(NamedTuple):
    """n decisions of stored dialogues; those of a dialogue stand together, in order.

    A dialogue that a limit cut off has one more state at its end, at which nothing was chosen: its
    value is what the last decision is bootstrapped with. A loss is 0 there.
    """

    observations: Tensor  # (s, t) int64 tokens of s dialogues, or (s, t, B) float32 beliefs
    at: Tensor  # (n,) int64, flat places in (s * t): what was seen last before each decision
    actions: Tensor  # (n,) int64, or (n, A) int8 where several acts are chosen at once
    rewards: Tensor  # (n,) float32
    returns: Tensor  # (n,) float32, from that decision on, discounted
    total_returns: Tensor  # (n,) float32, of the whole dialogue, undiscounted
    is_action: Tensor  # (n,) bool, whether something was chosen
    not_done: Tensor  # (n,) bool, whether another state follows in the dialogue
    allowed: Tensor | None  # (n, A) bool, what could be chosen, and what was; None for everything

    @classmethod
    def gather(cls, sequences: Sequences, part: Part, allowed: Tensor | None) -> DecisionBatch:
        """The decisions of a part of `sequences`, which `decisions_of` made."""
        names = ("actions", "rewards", "returns", "total_returns", "is_action", "not_done")
        columns = {name: sequences.columns[name][part.rows] for name in names}
        return cls(observations=part.tokens, at=part.at, allowed=allowed, **columns)


class UtteranceBatch(NamedTuple):
    """n places in stored dialogues where an utterance of the learner's begins, goes on or ends.

    A place stands before each of the learner's tokens, and one after each of its utterances. A
    dialogue that a limit cut off has one more at its end, where an utterance would begin.
    """

    observations: Tensor  # (s, t) int64 tokens of s dialogues, PAD at the right
    at: Tensor  # (n,) int64, flat places in (s * t): the last token that is seen
    actions: Tensor  # (n,) int64, the token that follows, where it is the learner's
    rewards: Tensor  # (n,) float32, at ends: the sum over the utterance's tokens
    is_action: Tensor  # (n,) bool, before a token
    begins: Tensor  # (n,) bool, before an utterance, or where none was said any more
    ends: Tensor  # (n,) bool, after an utterance
    not_done: Tensor  # (n,) bool, whether another place follows in the dialogue
    token_weights: Tensor  # (n,) float32, utterances per token in the batches of all processes
    states: Tensor | None  # (n,) int64, of the policy's token automaton; None without one
    allowed: Tensor | None  # (m, V) bool, before the m tokens, what could be said; None for all

    @classmethod
    def gather(cls, sequences: Sequences, part: Part, allowed: Tensor | None) -> UtteranceBatch:
        """The places of a part of `sequences`, which `utterances_of` made."""
        names = ("actions", "rewards", "is_action", "begins", "ends", "not_done", "token_weights")
        columns: dict[str, Any] = {name: sequences.columns[name][part.rows] for name in names}
        states = sequences.columns.get("states")
        columns["states"] = None if states is None else states[part.rows]
        return cls(observations=part.tokens, at=part.at, allowed=allowed, **columns)


# From dialogues to the decisions in them


def decisions_of(
    batch: TokenBatch, device: torch.device, tag: int | None = None, window: int = 0
) -> Sequences:
    """Dialogues and the decisions in them, a sequence for each dialogue with any.

    Columns are those of `DecisionBatch`. With the learner's `tag` and the length of the `window`
    the state at which a limit cut a dialogue off is one in which the learner would speak; see
    `with_next_tag`.
    """
    if tag is not None and batch.cut_off.any():
        batch = with_next_tag(batch, tag, window)
    spoke = batch.is_action.any(1)
    rows, at = np.nonzero(batch.is_action)
    cut = np.flatnonzero(batch.cut_off & spoke)
    rows, at = np.concatenate([rows, cut]), np.concatenate([at, batch.lengths[cut]])
    order = np.lexsort((at, rows))
    acted = (np.arange(len(rows)) < len(rows) - len(cut))[order]
    rows, at = rows[order], at[order]
    here = np.minimum(at, batch.tokens.shape[1] - 1)
    earned = np.where(batch.is_action, batch.reward, 0).sum(1, dtype=np.float32)
    columns = {
        "actions": np.where(acted, batch.tokens[rows, here], 0).astype(np.int64),
        "rewards": np.where(acted, batch.reward[rows, here], np.float32(0)),
        "returns": np.where(acted, batch.return_to_go[rows, here], np.float32(0)),
        "total_returns": earned[rows],
        "is_action": acted,
    }
    return sequences_of(batch.tokens, rows, at - 1, columns, device)


BEFORE_TOKEN, AFTER_UTTERANCE, CUT_OFF = 1, 0, 2
"""Kinds of places in `utterances_of`, in their order where they share one."""


def utterances_of(
    batch: TokenBatch, device: torch.device, tag: int | None = None, window: int = 0
) -> Sequences:
    """Dialogues and the places in them that count, a sequence for each dialogue with any.

    Columns are those of `UtteranceBatch`, but for `token_weights`, which other processes' dialogues
    decide. The learner's `tag` and the `window` are as of `decisions_of`.
    """
    if tag is not None and batch.cut_off.any():
        batch = with_next_tag(batch, tag, window)
    rows, places, kinds = _utterance_places(batch)
    order = np.lexsort((kinds, places, rows))
    rows, places, kinds = rows[order], places[order], kinds[order]
    is_action, ends = kinds == BEFORE_TOKEN, kinds == AFTER_UTTERANCE
    after = np.minimum(places + 1, batch.tokens.shape[1] - 1)
    begins = (kinds == CUT_OFF) | (is_action & ~batch.is_action[rows, places])
    rewards = np.zeros(len(rows), np.float32)
    rewards[ends] = _sums(batch.reward[rows, after][is_action], begins[is_action])
    columns = {
        "actions": np.where(is_action, batch.tokens[rows, after], 0).astype(np.int64),
        "rewards": rewards,
        "is_action": is_action,
        "begins": begins,
        "ends": ends,
    }
    return sequences_of(batch.tokens, rows, places, columns, device)


def _utterance_places(batch: TokenBatch) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Dialogue, place and kind (N,) of all places, in no particular order."""
    spoken = batch.is_action
    rows, at = np.nonzero(spoken)
    ends = np.nonzero(spoken & ~np.pad(spoken[:, 1:], ((0, 0), (0, 1))))
    cut = np.flatnonzero(batch.cut_off & spoken.any(1))
    sizes = [len(rows), len(ends[0]), len(cut)]
    return (
        np.concatenate([rows, ends[0], cut]),
        np.concatenate([at - 1, ends[1], batch.lengths[cut] - 1]),
        np.repeat([BEFORE_TOKEN, AFTER_UTTERANCE, CUT_OFF], sizes),
    )


def _sums(rewards: np.ndarray, first: np.ndarray) -> np.ndarray:
    """Sum rewards (n,) of tokens by utterance; each begins where `first` (n,) is set."""
    if not len(rewards):
        return rewards
    return np.add.reduceat(rewards, np.flatnonzero(first))


def with_next_tag(batch: TokenBatch, tag: int, window: int) -> TokenBatch:
    """The batch, with the learner's `tag` at the end of dialogues that a limit cut off.

    Values are learned of states in which the learner speaks and of no others, so the value of what
    was cut off is read after its tag. Nothing is added where the learner itself spoke last, or
    where the `window` is full.
    """
    last = batch.tokens[np.arange(len(batch.tokens)), batch.lengths - 1]
    heard = ~batch.is_action[np.arange(len(batch.tokens)), batch.lengths - 1]
    rows = np.flatnonzero(batch.cut_off & heard & (last != tag) & (batch.lengths < window))
    if not len(rows):
        return batch
    names = ("tokens", "is_action", "reward", "return_to_go")
    wider = {name: np.pad(getattr(batch, name), ((0, 0), (0, 1))) for name in names}
    lengths = batch.lengths.copy()
    wider["tokens"][rows, lengths[rows]] = tag
    lengths[rows] += 1
    return batch._replace(**wider, lengths=lengths)


def sequences_of(
    observations: np.ndarray,
    rows: np.ndarray,
    places: np.ndarray,
    columns: dict[str, np.ndarray],
    device: torch.device,
) -> Sequences:
    """Places (N,) in the dialogues `rows` (N,), in order, as sequences; none for other dialogues.

    To the `columns` (N, ...) comes `not_done` bool, whether another place follows in the dialogue.
    """
    used, sequence = np.unique(rows, return_inverse=True)
    first = np.searchsorted(sequence, np.arange(len(used) + 1))
    lengths = places[first[1:] - 1] + 1
    not_done = np.ones(len(rows), bool)
    not_done[first[1:] - 1] = False
    seen = observations[used, : int(lengths.max(initial=1))]
    if seen.dtype.kind == "i":
        seen = seen.astype(np.int64)
    everything = {**columns, "not_done": not_done}
    return Sequences(
        tokens=torch.from_numpy(seen).to(device),
        lengths=lengths,
        first=first,
        places=places,
        steps=np.arange(len(rows)),
        columns={name: torch.from_numpy(column).to(device) for name, column in everything.items()},
    )


def to_the_ends(sequences: Sequences, batch: TokenBatch) -> Sequences:
    """The sequences of `decisions_of`, with what was said after the last decisions."""
    spoke = batch.is_action.any(1)
    lengths = np.maximum(sequences.lengths, batch.lengths[spoke])
    known = sequences.tokens.cpu().numpy()
    tokens = np.zeros((len(lengths), int(lengths.max(initial=1))), np.int64)
    width = min(tokens.shape[1], batch.tokens.shape[1])
    tokens[:, :width] = batch.tokens[spoke, :width]
    inside = np.arange(known.shape[1]) < sequences.lengths[:, None]
    tokens[:, : known.shape[1]][inside] = known[inside]  # perhaps with a tag at the end
    found = torch.from_numpy(tokens).to(sequences.tokens.device)
    return replace(sequences, tokens=found, lengths=lengths)


def heard_places(batch: DecisionBatch) -> Tensor:
    """Flat places (m,) before the tokens that the other party said, in whole dialogues."""
    tokens = batch.observations
    silent = torch.tensor([PAD, *TAGS.values()], device=tokens.device)
    heard = ~torch.isin(tokens, silent)
    heard[:, 0] = False  # nothing is seen before it
    heard = heard.flatten()
    heard[batch.at[batch.is_action] + 1] = False
    return heard.nonzero()[:, 0] - 1


def scattered(values: Tensor, where: Tensor) -> Tensor:
    """Values (m,) at the m set places of `where` (n,), and 0 elsewhere: (n,)."""
    return torch.zeros(len(where), dtype=values.dtype, device=values.device).masked_scatter(
        where, values
    )
