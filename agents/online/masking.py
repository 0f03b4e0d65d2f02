"""Which tokens may be said next, read off the observation itself."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

FORBIDDEN = -1e8  # finite, so that entropies and their gradients stay finite too


class TokenMasker(nn.Module):
    """Walks a token automaton over what the learner has said in its current utterance.

    The state is a function of the tokens after the last learner tag, so masks need neither an
    env nor a side channel, and stored observations can be masked again in the update.
    """

    transitions: Tensor  # (S, V) int64
    allowed: Tensor  # (S, V) bool

    def __init__(self, automaton: Any, learner_tag: int) -> None:
        super().__init__()
        self.learner_tag = learner_tag
        transitions = torch.from_numpy(np.asarray(automaton.transitions, dtype=np.int64))
        allowed = torch.from_numpy(np.array(automaton.allowed, dtype=bool))
        self.register_buffer("transitions", transitions, persistent=False)
        self.register_buffer("allowed", allowed, persistent=False)

    def forward(self, tokens: Tensor, lengths: Tensor) -> Tensor:
        """Allowed tokens (B, V) bool after `tokens` (B, T), whose rows are `lengths` (B,) long.

        A row without the learner's tag is taken as the start of an utterance.
        """
        return self.allowed[self.states(tokens, lengths)]

    def states(self, tokens: Tensor, lengths: Tensor) -> Tensor:
        """Automaton states (B,); see `forward`."""
        places = torch.arange(1, tokens.shape[1] + 1, device=tokens.device)
        starts = ((tokens == self.learner_tag) * places).amax(1)  # just after the last tag
        said = torch.where(starts > 0, lengths - starts, 0)
        state = torch.zeros_like(lengths)
        for i in range(int(said.max())):
            at = (starts + i).clamp(max=tokens.shape[1] - 1)
            token = tokens.gather(1, at[:, None])[:, 0]
            state = torch.where(i < said, self.transitions[state, token], state)
        return state

    def states_along(self, tokens: Tensor) -> Tensor:
        """Automaton states (S, T) after each token of whole sequences (S, T); see `forward`."""
        state = torch.zeros_like(tokens[:, 0])
        spoken = torch.zeros_like(state, dtype=torch.bool)
        after = torch.empty_like(tokens)
        for place in range(tokens.shape[1]):
            token = tokens[:, place]
            is_tag = token == self.learner_tag
            spoken |= is_tag
            going_on = spoken & ~is_tag
            state = torch.where(going_on, self.transitions[state, token], 0)
            after[:, place] = state
        return after
