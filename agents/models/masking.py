"""Action masks: those that are given, and those that the task's automaton reads off tokens."""

from __future__ import annotations

from functools import cached_property
from typing import Any

import numpy as np
import torch
from gymnasium import spaces
from torch import Tensor, nn

from agents.models.cache import to_device

FORBIDDEN = -1e8  # finite, so that entropies and their gradients stay finite too


def count_acts(space: spaces.Space) -> int:
    """A, of a `Discrete` space.

    Raises:
        ValueError: it is another one.
    """
    if isinstance(space, spaces.Discrete):
        return int(space.n)
    raise ValueError(f"expected Discrete actions, one act at a time, got {space}")


def everything(rows: int, space: spaces.Space) -> np.ndarray:
    """(rows, A) bool of a `Discrete` space, all True."""
    return np.ones((rows, count_acts(space)), bool)


def fitting(masks: Any, rows: int, space: spaces.Space) -> np.ndarray:
    """Action masks as they were given, or none, in the form that policies read.

    One rule holds for all learners, in training and in `predict`: a row that allows nothing is
    refused. Of several acts at once none has to be chosen, unless masks say that some must.

    Args:
        masks: (rows, A), or (A,) for one row; of `MultiBinary` actions (rows, 2 A) too, whether
            each entry can be 0 and whether it can be 1. None allows everything.
        rows: of the observations.
        space: of the actions.

    Returns:
        (rows, A) bool, or (rows, 2 A) where they were given so.

    Raises:
        ValueError: they have another shape, or a row without anything that could be chosen.
    """
    if masks is None:
        return everything(rows, space)
    found = np.asarray(masks.cpu() if isinstance(masks, Tensor) else masks, bool)
    several = isinstance(space, spaces.MultiBinary)
    count = int(space.n) if several else count_acts(space)  # type: ignore[attr-defined]
    in_pairs = several and found.size == 2 * rows * count
    wanted = rows, 2 * count if in_pairs else count
    if found.size != rows * wanted[1]:
        raise ValueError(f"action_masks: expected {wanted}, got {found.shape}")
    found = found.reshape(wanted)
    if in_pairs:
        _check_open(found.reshape(rows, count, 2).any(-1).all(-1))
    elif not several:
        _check_open(found.any(-1))
    return found


def _check_open(rows: Any) -> None:
    """Raises ValueError unless all `rows` (n,) bool allow something."""
    if not rows.all():
        raise ValueError(
            "action_masks: expected at least one act in each row, got none in row "
            f"{int(np.flatnonzero(~rows)[0])}; an episode in which nothing can be done has to end"
        )


def packed_bits(masks: Tensor) -> Tensor:
    """Masks (..., V) bool, eight to a byte: (..., ceil(V / 8)) uint8, as `np.packbits` does."""
    short = -masks.shape[-1] % 8
    bits = nn.functional.pad(masks.to(torch.uint8), (0, short)).unflatten(-1, (-1, 8))
    return (bits << _bits(masks.device)).sum(-1, dtype=torch.uint8)


def unpacked_bits(packed: Tensor, count: int, chosen: Tensor | None = None) -> Tensor:
    """The masks (..., count) bool that were packed, or (..., K) of the tokens `chosen` (K,)."""
    if chosen is not None:
        return (packed[..., chosen // 8] >> (7 - chosen % 8).to(torch.uint8) & 1).bool()
    return (packed[..., None] >> _bits(packed.device) & 1).flatten(-2)[..., :count].bool()


def _bits(device: torch.device) -> Tensor:
    return torch.arange(7, -1, -1, device=device, dtype=torch.uint8)


class TokenMasker(nn.Module):
    """Walks a token automaton over what the learner has said in its current utterance.

    The state is a function of the tokens after the last learner tag, so masks need neither an
    env nor a side channel, and stored observations can be masked again in the update. The walk
    itself, of many small steps, is on the host.
    """

    allowed: Tensor  # (S, V) bool

    def __init__(self, automaton: Any, learner_tag: int) -> None:
        super().__init__()
        self.learner_tag = learner_tag
        self.moves, self.stride = _moves(automaton)
        allowed = torch.from_numpy(np.array(automaton.allowed, dtype=bool))
        self.register_buffer("allowed", allowed, persistent=False)

    def forward(self, tokens: Tensor, lengths: Tensor | np.ndarray) -> Tensor:
        """Allowed tokens (B, V) bool after `tokens` (B, T), whose rows are `lengths` (B,) long.

        A row without the learner's tag is taken as the start of an utterance.
        """
        states = self._walk(tokens.cpu().numpy(), np.asarray(lengths))
        return self.allowed[to_device(states, self.allowed.device)]

    def states(self, tokens: Tensor, lengths: Tensor) -> Tensor:
        """Automaton states (B,); see `forward`."""
        states = self._walk(tokens.cpu().numpy(), lengths.cpu().numpy())
        return torch.from_numpy(states).to(tokens.device)

    def _walk(self, rows: np.ndarray, ends: np.ndarray) -> np.ndarray:
        """States (B,) at the `ends` (B,) of rows (B, T)."""
        places = np.arange(1, rows.shape[1] + 1)
        starts = ((rows == self.learner_tag) * places).max(1)  # just after the last tag
        said = np.where(starts > 0, ends - starts, 0)[:, None]
        steps = np.arange(said.max())
        at = np.minimum(starts[:, None] + steps, rows.shape[1] - 1)
        stay = self.stride - 1
        spoken = np.where(steps < said, np.take_along_axis(rows, at, 1), stay)  # (B, n)
        state = np.zeros_like(ends)
        for token in spoken.T:
            state = self.moves[state + token]
        return state // self.stride

    def states_along(self, tokens: Tensor) -> Tensor:
        """Automaton states (S, T) after each token of whole sequences (S, T); see `forward`."""
        rows = tokens.cpu().numpy()
        is_tag = rows == self.learner_tag
        going_on = np.logical_or.accumulate(is_tag, 1) & ~is_tag
        states = np.zeros((rows.shape[1] + 1, len(rows)), np.int64)
        for place, (token, on) in enumerate(zip(rows.T, going_on.T, strict=True)):
            states[place + 1] = np.where(on, self.moves[states[place] + token], 0)
        return torch.from_numpy(states[1:].T // self.stride).to(tokens.device)


def masker_of(space: Any, name: str) -> TokenMasker | None:
    """The masker of a space's automaton of that name; None where it has none."""
    automaton = getattr(space, name, None)
    return None if automaton is None else TokenMasker(automaton, getattr(space, "learner_tag", -1))


class PlannedMasks:
    """Masks of tokens to come in an utterance.

    Those of an env that depend on more than the utterance are not known ahead. What may be said in
    any state is taken in their place: the logits of other tokens were never learned.

    Args:
        space: has an automaton of that, `union_automaton`, or not; it is asked when first needed.
        masker: of all masks, where they depend on the utterance alone.
    """

    def __init__(self, space: Any, masker: TokenMasker | None) -> None:
        self.space, self.static = space, masker

    @cached_property
    def masker(self) -> TokenMasker | None:
        """The masker of tokens to come; None where nothing is known of them."""
        return self.static or masker_of(self.space, "union_automaton")

    def __call__(self, seen: Any) -> np.ndarray | None:
        """Allowed tokens (b, V) bool after each observation; None where nothing is known."""
        masker = self.masker
        return None if masker is None else masker(seen.tokens, seen.lengths).numpy()


def _moves(automaton: Any) -> tuple[np.ndarray, int]:
    """Flat transitions of the automaton: a step of a walk is one addition and one look-up.

    A state is the place where its row begins, S rows of V + 1; the token V stays in the state.
    Returns the places (S * (V + 1),) and the length of a row.
    """
    transitions = np.asarray(automaton.transitions, np.int64)
    stay, stride = np.arange(len(transitions))[:, None], transitions.shape[1] + 1
    return np.hstack([transitions, stay]).ravel() * stride, stride
