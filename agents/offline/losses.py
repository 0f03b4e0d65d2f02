"""Losses of single decisions, (n,) each: the algorithms take their means."""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor

from agents.models.masking import FORBIDDEN


def expectile(difference: Tensor, tau: float) -> Tensor:
    """|tau - 1(u < 0)| u^2 of u = target - prediction (Kostrikov et al. 2021, equation 5)."""
    weight = torch.where(difference < 0, 1 - tau, tau)
    return weight * difference.square()


def bellman_target(rewards: Tensor, next_values: Tensor, goes_on: Tensor, gamma: float) -> Tensor:
    """r + gamma V(s'), and r alone where the dialogue ended by its rules."""
    return rewards + gamma * torch.where(goes_on, next_values, 0.0)


def following(values: Tensor) -> Tensor:
    """Of values (n,) at states in order, that of the next state; the last has none and gets 0."""
    return F.pad(values[1:], (0, 1))


def conservative(
    q: Tensor, actions: Tensor, allowed: Tensor | None = None, temperature: float = 1.0
) -> Tensor:
    """Cross-entropies (k, n) of what was said under softmax(Q / temperature), Q being (k, n, V).

    Up to that factor CQL's regulariser, logsumexp Q - Q(a) (Kumar et al. 2020, equation 4). The sum
    is over tokens that are `allowed` (n, V): the others are no actions. Where what was said is
    none either (a state that a limit cut off), the result means nothing.
    """
    if allowed is not None:
        q = q.masked_fill(~allowed, FORBIDDEN)
    log_probs = (q / temperature).log_softmax(-1)
    return -log_probs.gather(-1, actions.expand(len(q), -1)[..., None])[..., 0]
