"""A rollout as whole sequences, and batches of it: each dialogue's tokens are read once.

An observation of the token view begins with the one before it. So the last observation of a
dialogue holds all the earlier ones, and one forward over it gives the hidden state before each
decision. Where an observation does not continue the one before (a reset, a sliding window), a new
sequence begins: right for any env, cheap for ours.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor

from agents.models.gpt import buckets
from agents.models.masking import TokenMasker
from agents.models.observations import token_space

PADDING_RATIO = 0.8
"""In one forward no sequence is shorter than this share of the longest, unless there are few."""


class SequenceBuffer:
    """Collects a rollout step by step; `sequences` then gives it as `Sequences`.

    Made by Stable-Baselines3 as any rollout buffer is; only the algorithms of this package fill
    it. All arrays by step have shape (n_steps, n_envs).
    """

    def __init__(self, buffer_size: int, observation_space: Any, *_: Any, **__: Any) -> None:
        self.buffer_size = buffer_size
        self.window: int = token_space(observation_space).shape[0]
        self.reset()

    def reset(self) -> None:
        """Forget everything."""
        self._steps: dict[str, list[np.ndarray]] = {}
        self._closed: list[np.ndarray] = []  # token rows of finished sequences
        self._open: np.ndarray | None = None  # (n_envs, L) tokens of the ones that go on
        self._features: list[np.ndarray] = []  # (F,) beside each sequence, where there are any
        self._open_features: np.ndarray | None = None  # (n_envs, F) of those that go on
        self._number = np.zeros(0, np.int64)  # (n_envs,) of the open sequences

    def __len__(self) -> int:
        return len(self._steps.get("lengths", ()))

    def add(
        self,
        tokens: np.ndarray,
        lengths: np.ndarray,
        starts: np.ndarray,
        playing: np.ndarray | None = None,
        features: np.ndarray | None = None,
        **step: Any,
    ) -> None:
        """One step of all dialogues.

        Args:
            tokens: (n_envs, L) int observations, left-aligned.
            lengths: (n_envs,) int, their tokens.
            starts: (n_envs,) bool, whether an episode begins with this observation.
            playing: (n_envs,) bool; what rows that rest observe is not looked at. None: all play.
            features: (n_envs, F) beside the tokens.
            step: further arrays or tensors (n_envs, ...) to keep, by name; tensors stay where they
                are until they are asked for.
        """
        if self._open is None:
            self._open = np.zeros(tokens.shape, np.int32)
            self._number = np.zeros(len(tokens), np.int64)
            fresh, slid = np.ones(len(tokens), bool), np.zeros(len(tokens), bool)
        else:
            before, slid = self._steps["lengths"][-1], self.slid(tokens)
            fresh = starts | slid
            if features is not None:
                fresh |= (features != self._open_features).any(1)
            if playing is not None:
                fresh, slid = fresh & playing, slid & playing
                tokens = np.where(playing[:, None], tokens, self._open)
                lengths = np.where(playing, lengths, before)
            self._close(fresh)
        self._number[fresh] = len(self._closed) + np.arange(fresh.sum())
        self._closed += [np.empty(0)] * int(fresh.sum())
        if features is not None:
            if self._open_features is None:
                self._open_features = np.zeros_like(features)
            self._features += list(features[fresh])
            self._open_features[fresh] = features[fresh]
        self._open[:] = tokens
        own = {"lengths": lengths, "sequence": self._number.copy(), "slid": slid}
        for name, value in {**own, **step}.items():
            self._steps.setdefault(name, []).append(value)

    def slid(self, tokens: np.ndarray) -> np.ndarray:
        """(n_envs,) bool: observations (n_envs, L) that do not begin with those added last."""
        known = np.arange(self.window) < self._steps["lengths"][-1][:, None]
        found: np.ndarray = ((tokens != self._open) & known).any(1)
        return found

    def _close(self, rows: np.ndarray) -> None:
        assert self._open is not None
        ends = self._steps["lengths"][-1]
        for row in np.flatnonzero(rows).tolist():
            self._closed[self._number[row]] = self._open[row, : ends[row]].copy()

    def steps(self, name: str) -> np.ndarray:
        """The values that were added under `name`, stacked: (n_steps, n_envs, ...)."""
        values = self._steps[name]
        if isinstance(values[0], Tensor):
            stacked: np.ndarray = torch.stack(values).cpu().numpy()
            return stacked
        return np.stack(values)

    def replace(self, name: str, values: np.ndarray) -> None:
        """Put others (n_steps, n_envs, ...) in the place of what was added under `name`."""
        self._steps[name] = list(values)

    def sequences(self, keep: np.ndarray, device: torch.device, **columns: np.ndarray) -> Sequences:
        """The rollout in order of its sequences.

        Args:
            keep: (n_steps, n_envs) bool, the decisions that count.
            device: where the tokens and the columns are to be.
            columns: arrays (n_steps, n_envs, ...) that belong to the decisions.
        """
        self._close(np.ones(len(self._number), bool))
        sequence, place = self.steps("sequence")[keep], self.steps("lengths")[keep] - 1
        order = np.lexsort((place, sequence))
        used, sequence = np.unique(sequence[order], return_inverse=True)
        first = np.searchsorted(sequence, np.arange(len(used) + 1))
        lengths = place[order][first[1:] - 1] + 1
        tokens = np.zeros((len(used), int(lengths.max(initial=1))), np.int64)
        for row, number, length in zip(tokens, used.tolist(), lengths.tolist(), strict=True):
            row[:length] = self._closed[number][:length]
        features = None
        if self._features:
            features = torch.from_numpy(np.stack(self._features)[used]).to(device)
        return Sequences(
            tokens=torch.from_numpy(tokens).to(device),
            features=features,
            lengths=lengths,
            first=first,
            places=place[order],
            steps=np.flatnonzero(keep)[order],
            columns={k: torch.from_numpy(v[keep][order]).to(device) for k, v in columns.items()},
        )


class Part(NamedTuple):
    """The tokens of one forward, and the decisions within them."""

    tokens: Tensor  # (s, t) int64
    at: Tensor  # (n,) flat places of the hidden states before the decisions
    rows: Tensor  # (n,) numbers of the decisions, into the columns
    features: Tensor | None = None  # (s, F) beside the tokens


@dataclass
class Sequences:
    """Sequences of tokens, and the decisions taken within them, sequence by sequence."""

    tokens: Tensor  # (S, T) int64, PAD at the right
    lengths: np.ndarray  # (S,) tokens up to the last decision
    first: np.ndarray  # (S + 1,) decisions of sequence i are first[i] ... first[i + 1] - 1
    places: np.ndarray  # (N,) of the token that stands before each decision
    steps: np.ndarray  # (N,) where in the flat (n_steps * n_envs) of the rollout each was taken
    columns: dict[str, Tensor]  # (N, ...) each
    features: Tensor | None = None  # (S, F) beside the tokens, where observations have them

    def __len__(self) -> int:
        return len(self.places)

    @property
    def sizes(self) -> np.ndarray:
        """Decisions in each sequence (S,)."""
        return np.diff(self.first)

    def column(self, grid: np.ndarray) -> Tensor:
        """Numbers (N,) at the decisions, from an array (n_steps, n_envs) of the rollout."""
        column = np.ascontiguousarray(grid).reshape(-1)[self.steps]
        return torch.from_numpy(column).to(self.tokens.device)

    def grid(self, column: Tensor, shape: tuple[int, ...]) -> np.ndarray:
        """Array (n_steps, n_envs) of numbers (N,) at the decisions, 0 elsewhere."""
        grid = np.zeros(shape, np.float32)
        grid.reshape(-1)[self.steps] = column.cpu().numpy()
        return grid

    def add_states(self, masker: TokenMasker) -> None:
        """The column `states`: of the masker's automaton, before each decision."""
        owner = np.repeat(np.arange(len(self.sizes)), self.sizes)
        at = torch.from_numpy(np.stack([owner, self.places])).to(self.tokens.device)
        self.columns["states"] = masker.states_along(self.tokens)[at[0], at[1]]

    def parts(self, chosen: np.ndarray, most_tokens: int) -> Iterator[Part]:
        """Forwards over the sequences `chosen`: of similar length, none larger than asked for.

        Args:
            chosen: (s,) numbers of sequences, or (s, k) of those that stay together.
            most_tokens: of one forward, padding included; a single row may be longer.
        """
        if not len(chosen):
            return
        rows = chosen.reshape(len(chosen), -1)
        most = most_tokens // rows.shape[1]
        lengths = self.lengths[rows].max(1)
        for bucket in buckets(lengths, PADDING_RATIO, smallest=most // 2):
            longest = int(lengths[bucket[0]])
            for piece in np.split(bucket, range(0, len(bucket), max(most // longest, 1))[1:]):
                yield self._part(rows[piece].reshape(-1), longest)

    def shortest(self) -> Part:
        """The forward over the sequence that costs least."""
        row = int(self.lengths.argmin())
        return self._part(np.array([row]), int(self.lengths[row]))

    def _part(self, rows: np.ndarray, longest: int) -> Part:
        sizes = self.sizes[rows]
        starts = np.repeat(self.first[rows] - (sizes.cumsum() - sizes), sizes)
        decisions = starts + np.arange(sizes.sum())
        at = np.repeat(longest * np.arange(len(rows)), sizes) + self.places[decisions]
        device = self.tokens.device
        index = torch.from_numpy(rows).to(device)
        return Part(
            self.tokens[index, :longest],
            torch.from_numpy(at).to(device),
            torch.from_numpy(decisions).to(device),
            None if self.features is None else self.features[index],
        )

    def decisions(self, chosen: np.ndarray) -> Tensor:
        """Numbers of all decisions in the sequences `chosen`."""
        ranges = [np.arange(self.first[i], self.first[i + 1]) for i in chosen.flat]
        flat = np.concatenate(ranges) if ranges else np.zeros(0, np.int64)
        return torch.from_numpy(flat).to(self.tokens.device)


def sums_by_pair(values: Tensor, rows: Tensor, count: int) -> Tensor:
    """(2, count / 2): sums of values (n,) over the sequences `rows` (n,), of which two are a pair.

    Args:
        values: (n,), of decisions.
        rows: (n,) int64, of which of `count` sequences; each two that follow are a pair.
        count: of sequences.
    """
    return values.new_zeros(count).index_add(0, rows, values).view(-1, 2).T


class SequenceBatch(NamedTuple):
    """The input of one forward of an update: n decisions within S sequences."""

    tokens: Tensor  # (S, T) int64, PAD at the right
    at: Tensor  # (n,) int64, flat places in (S * T): the token just before each decision
    actions: Tensor  # (n,) int64, what was said
    log_probs: Tensor  # (n,) of the actions when they were said
    advantages: Tensor  # (n,)
    values: Tensor | None  # (n,) as estimated then; None in algorithms without values
    targets: Tensor | None  # (n,) of the values
    reference_log_probs: Tensor | None  # (n,) of the actions under the reference
    allowed: Tensor | None  # (n, V) bool, or its bits (n, ceil(V / 8)) uint8; None: everything
    features: Tensor | None  # (S, F) beside the tokens
    weights: Tensor | None = None  # (n,) of the losses in the mean of a minibatch; None: 1 each


@dataclass(frozen=True)
class Rollout:
    """A played rollout: sequences, and columns (N,) over all N decisions taken within them."""

    sequences: Sequences
    actions: Tensor  # (N,) int64
    log_probs: Tensor  # (N,)
    advantages: Tensor  # (N,)
    values: Tensor | None = None  # (N,)
    targets: Tensor | None = None  # (N,)
    reference_log_probs: Tensor | None = None  # (N,)

    def batch(self, part: Part, advantages: Tensor, allowed: Tensor | None) -> SequenceBatch:
        """The decisions of a forward, with `advantages` (N,) in place of the rollout's own."""

        def rows(column: Tensor | None) -> Any:
            return None if column is None else column[part.rows]

        return SequenceBatch(
            part.tokens,
            part.at,
            rows(self.actions),
            rows(self.log_probs),
            rows(advantages),
            rows(self.values),
            rows(self.targets),
            rows(self.reference_log_probs),
            allowed,
            part.features,
        )


def minibatches(sizes: np.ndarray, count: int, rng: np.random.Generator) -> list[np.ndarray]:
    """Shuffle sequences and deal them into `count` minibatches of about as many decisions.

    Args:
        sizes: (S,) decisions in each sequence.
        count: minibatches; one may be empty where a sequence is larger than a minibatch.
        rng: shuffles.
    """
    order = rng.permutation(len(sizes))
    before = sizes[order].cumsum() - sizes[order]
    batch = before * count // max(int(sizes.sum()), 1)
    return np.split(order, np.searchsorted(batch, np.arange(1, count)))
