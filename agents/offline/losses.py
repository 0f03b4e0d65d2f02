"""Losses of values of single decisions, and the settings of those that are off by default."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields

import torch
import torch.nn.functional as F
from torch import Tensor

from agents.argument_checks import FINITE, FRACTION, FROM_0, Bounds, require
from agents.policies.value import WEIGHTINGS
from dialgym.errors import one_of

HEADS = ("policy", "q", "v")


@dataclass(frozen=True)
class ValueLosses:
    """Further settings of the losses of `ILQL` and its kin; see Snell et al. (2022) and their code.

    The defaults leave all of them out.

    Attributes:
        dm_weight: of the margin loss, sum_b max(0, Q_i(s, b) - Q_i(s, a) + dm_margin)^2 over what
            could be said, i = 1, 2: no token is to be worth more than the one that was said.
        dm_margin: by how much it is to be worth less.
        mc_weight: of the return that was seen in the target of Q, beside 1 - `mc_weight` of the
            bootstrapped one (mixed Monte Carlo; Bellemare et al. 2016, arXiv 1606.01868): what a
            dialogue earned at its end reaches its first token in one step. Returns of dialogues
            that a limit cut off end there.
        detach: heads among "policy", "q" and "v" that teach the trunk nothing.
        transition_weight: of cloning a token of the other party's, where one of the learner's has
            weight 1. Constraints of the task are left out there. For words alone.
        awac_weights: "exp" weighs the cloning loss by exp(awac_beta A); "sign" by `awac_beta` where
            A > 0 and by 1 - awac_beta elsewhere, for an `awac_beta` up to 1.

    Raises:
        ValueError: a number or name that cannot be.
    """

    dm_weight: float = 0.0
    dm_margin: float = 0.0
    mc_weight: float = 0.0
    detach: Sequence[str] = ()
    transition_weight: float = 0.0
    awac_weights: str = "exp"

    def __post_init__(self) -> None:
        weights = {"dm_weight": self.dm_weight, "transition_weight": self.transition_weight}
        require("losses", FROM_0, **weights)
        require("losses", FINITE, dm_margin=self.dm_margin)
        require("losses", FRACTION, mc_weight=self.mc_weight)
        one_of("awac_weights", self.awac_weights, WEIGHTINGS, "losses")
        heads = (self.detach,) if isinstance(self.detach, str) else tuple(self.detach)
        for head in heads:
            one_of("detach", head, HEADS, "losses")
        object.__setattr__(self, "detach", heads)

    def for_head(self, head: str, hidden: Tensor) -> Tensor:
        """Hidden states as the head reads them."""
        return hidden.detach() if head in self.detach else hidden

    def policy_weights(self, advantages: Tensor, beta: float, most: float) -> Tensor:
        """Weights (n,) of the cloning loss, at most `most`, from advantages (n,)."""
        advantages = advantages.detach()
        if self.awac_weights == "exp":
            return (beta * advantages).exp().clamp(max=most)
        return torch.where(advantages > 0, beta, 1 - beta).clamp(max=most)

    def check_read(self, learner: str, read: Sequence[str]) -> None:
        """Raise a ValueError for settings of other values than the defaults that it never reads.

        Args:
            learner: its name.
            read: the settings that it reads.
        """
        unread = [
            field.name
            for field in fields(self)
            if field.name not in read and getattr(self, field.name) != field.default
        ]
        if unread:
            known = f"of losses it reads {', '.join(read)} alone" if read else "it reads no losses"
            raise ValueError(f"{learner}: unknown setting {unread[0]!r}; {known}. Leave it out.")

    def check_taught(self, learner: str, heads: Sequence[str], apart: bool) -> None:
        """Raise a ValueError where values would be read off a trunk that stays as it was drawn.

        Args:
            learner: its name.
            heads: those that have a loss.
            apart: values have a trunk of their own.
        """
        if apart and {*heads} <= {"policy", *self.detach}:
            raise ValueError(
                f"{learner}: losses with detach={list(self.detach)} leave a trunk of the values' "
                "own as it was drawn; leave detach out, or of a GPT give policy_kwargs with "
                "share_features_extractor=True"
            )

    def check(self, learner: str, awac_beta: float, words: bool) -> None:
        """Raise a ValueError for settings that do not fit those of the learner.

        Args:
            learner: its name.
            awac_beta: of the cloning loss.
            words: it learns from words, and not from acts.
        """
        if self.awac_weights == "sign":
            most_one = Bounds(most=1.0, above=True)
            require(f"{learner} with awac_weights 'sign'", most_one, awac_beta=awac_beta)
        if self.transition_weight and not words:
            raise ValueError(
                f"{learner}: transition_weight is for words; on act views leave it out of losses"
            )


def expectile_loss(difference: Tensor, expectile: float) -> Tensor:
    """|tau - 1(u < 0)| u^2 of u = target - prediction (Kostrikov et al. 2021, equation 5)."""
    weight = torch.where(difference < 0, 1 - expectile, expectile)
    return weight * difference.square()


def bellman_target(rewards: Tensor, values: Tensor, not_done: Tensor, gamma: float) -> Tensor:
    """r + gamma V(s'), and r alone where the dialogue ended by its rules; `values` are V(s')."""
    return rewards + gamma * torch.where(not_done, values, 0.0)


def next_values(values: Tensor) -> Tensor:
    """Value (n,) of the next state, from values (n,) of states in order; 0 after the last."""
    return F.pad(values[1:], (0, 1))


def conservative_loss(said: Tensor, total: Tensor, temperature: float = 1.0) -> Tensor:
    """Cross-entropies of what was said under softmax(Q / temperature), of any shape.

    Up to that factor CQL's regulariser, logsumexp Q - Q(a) (Kumar et al. 2020, equation 4). Where
    what was said is not allowed (a state that a limit cut off), the result means nothing. With a
    floor, the value of a policy to be calibrated by, nothing is pressed below it (Nakamoto et al.
    2023, arXiv 2303.05479, section 5).

    Args:
        said, total: Q of what was said, and the log of the sum over what is allowed; see
            `agents.models.action_outputs.gather_and_logsumexp`.
        temperature: that of the sum.
    """
    return total - said / temperature


def margin_loss(
    q: Tensor, actions: Tensor, allowed: Tensor | None = None, margin: float = 0.0
) -> Tensor:
    """sum_b max(0, Q(b) - Q(a) + margin)^2 (k, n) of what was said, a; Q being (k, n, A).

    The sum is over actions that are `allowed` (n, A), a among them.
    """
    of_said = q.gather(-1, actions.expand(len(q), -1)[..., None])
    excess = (q - of_said + margin).clamp(min=0).square()
    if allowed is not None:
        excess = excess.masked_fill(~allowed, 0.0)
    return excess.sum(-1)
