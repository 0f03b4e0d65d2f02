"""Action masks of tokens, read off the observation by the task's automaton."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from agents.models.cache import to_device

FORBIDDEN = -1e8  # finite, so that entropies and their gradients stay finite too


def packed_bits(masks: Tensor) -> Tensor:
    """Masks (..., V) bool, eight to a byte: (..., ceil(V / 8)) uint8, as `np.packbits` does."""
    short = -masks.shape[-1] % 8
    bits = nn.functional.pad(masks.to(torch.uint8), (0, short)).unflatten(-1, (-1, 8))
    return (bits << _bits(masks.device)).sum(-1, dtype=torch.uint8)


def unpacked_bits(packed: Tensor, count: int) -> Tensor:
    """The masks (..., count) bool that were packed."""
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


def _moves(automaton: Any) -> tuple[np.ndarray, int]:
    """Where tokens lead, flat: a step of a walk is then one addition and one look-up.

    A state is the place where its row begins, S rows of V + 1; the token V stays in the state.
    Returns the places (S * (V + 1),) and the length of a row.
    """
    transitions = np.asarray(automaton.transitions, np.int64)
    stay, stride = np.arange(len(transitions))[:, None], transitions.shape[1] + 1
    return np.hstack([transitions, stay]).ravel() * stride, stride
