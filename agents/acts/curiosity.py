"""Curiosity (Pathak et al., 2017; in dialogue Wesselmann, 2018): surprise is rewarded."""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch.nn.functional import cross_entropy, one_hot


class Curiosity(nn.Module):
    """An intrinsic curiosity module: features, a forward and an inverse model of the env.

    The features phi(s) are those that tell which act was chosen between two states, so that what
    acts have no part in is not wondered at. The reward is scale / 2 |phi^(s') - phi(s')|^2, where
    phi^ is foreseen from phi(s) and the act.

    Args:
        inputs: length of a belief.
        acts: A.
        scale: eta, of the reward.
        features: length of phi.
        beta: weight of the forward model's loss, against 1 - beta of the inverse one's (eq. 7).
        hidden: width of the models.
    """

    def __init__(
        self,
        inputs: int,
        acts: int,
        scale: float = 0.1,
        features: int = 32,
        beta: float = 0.2,
        hidden: int = 64,
    ) -> None:
        super().__init__()
        self.acts, self.scale, self.beta = acts, scale, beta
        self.encoder = _two_layers(inputs, hidden, features)
        self.inverse = _two_layers(2 * features, hidden, acts)
        self.forward_model = _two_layers(features + acts, hidden, features)

    def forward(self, before: Tensor, actions: Tensor, after: Tensor) -> tuple[Tensor, Tensor]:
        """Rewards (n,), without gradient, and the loss () of the models.

        Args:
            before, after: beliefs (n, B).
            actions: (n,) int64.
        """
        here, there = self.encoder(before), self.encoder(after)
        chosen = self.inverse(torch.cat([here, there], -1))
        foreseen = self.forward_model(torch.cat([here, one_hot(actions, self.acts)], -1))
        surprise = 0.5 * (foreseen - there).square().sum(-1)
        inverse_loss = cross_entropy(chosen, actions)
        loss = self.beta * surprise.mean() + (1 - self.beta) * inverse_loss
        return self.scale * surprise.detach(), loss


def _two_layers(inputs: int, hidden: int, outputs: int) -> nn.Sequential:
    return nn.Sequential(nn.Linear(inputs, hidden), nn.ReLU(), nn.Linear(hidden, outputs))
