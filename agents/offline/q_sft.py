"""Q-SFT (Hong et al. 2024): Q-learning by a weighted cross-entropy, as in fine-tuning."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any, ClassVar, Unpack

import numpy as np
import torch
import torch.nn.functional as F
from stable_baselines3.common.policies import BasePolicy
from torch import Tensor

from agents.argument_checks import FRACTION, require
from agents.buffers.stored import DecisionBatch
from agents.buffers.stream import known_dialogues
from agents.models.heads import chosen
from agents.offline.algorithm import Losses
from agents.offline.ilql import TokenValueOptions, ValueAlgorithm
from agents.offline.losses import next_values
from agents.policies.value import Decoding
from dialgym.datasets import ActData
from dialgym.errors import finite_number, one_of


@dataclass
class CorrectionDecoding(Decoding):
    """Settings by which tokens are chosen where h, a correction of the logits, stands for Q - V."""

    of_advantages: ClassVar[bool] = False

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.advantage_clip is not None or self.weights != "exp":
            raise ValueError(
                "QSFT: advantage_clip and weights='sign' of decoding ask for advantages, and there "
                "are none: speech adds beta times a correction of the logits; leave them out"
            )


class QSFT(ValueAlgorithm):
    """Q values as probabilities: p(a | s) = pi(a | s) Q(s, a), learned as a language model is.

    After Hong et al. (2024, arXiv 2411.05193): with pi the clone, w = r + gamma max_a' p'(a' | s')
    / pi(a' | s') of slow copies p', and returns scaled to lie from 0 to 1, the loss of what was
    said, a, is -w log p(a | s) - (1 - w) log p(rest | s). Its minimum is p = pi w, so that p / pi
    estimates Q. There the rest is spread over all other tokens, which among many is nearly nothing
    for each; here it goes to one outcome that is never said, so that p / pi is Q among few as well.
    There p begins with the weights of the clone; here its logits are the clone's and a correction h
    that begins at 0, so that Q(s, a) = exp(h(s, a)) / (1 + sum_b pi(b | s) exp(h(s, b))). The two
    Q heads give h twice, of which the lesser is believed.

    The clone is learned beside. A trunk that the correction shares with it learns from both, but
    for `losses={"detach": ["q"]}`; with `policy_weight=0` the clone then stays as it was. Speech
    follows log pi + beta h, which is log pi + beta log Q but for a constant.

    Args:
        policy: `agents.ValueGPTPolicy`, or "GPTPolicy", which names it here; on act views
            `agents.ValueBeliefPolicy`, or "MlpPolicy".
        env, dataset: as of `OfflineAlgorithm`.
        q_weight, policy_weight: of the loss of p and of that of the clone.
        support: max_a' is over what has at least this share of the likeliest one's probability
            (as in Fujimoto et al. 2019, arXiv 1910.01708); 0 leaves nothing out.
        value_range: returns that are 0 and 1, with `normalize_rewards` in its unit; None takes the
            least and the greatest return that the dialogues have from any decision on.
        losses: `detach` alone.
        kwargs: further arguments of `ValueAlgorithm`.

    Raises:
        ValueError: a number that cannot be, bounds of Q (`value_min`, `value_max`), returns that
            are all alike, speech that asks for advantages (`advantage_clip`, `weights="sign"`), or
            as of `ValueAlgorithm`.
    """

    decoding_defaults: ClassVar[dict[str, float]] = {"beta": 4.0}
    loss_settings = ("detach",)
    heads = ("policy", "q")

    def __init__(
        self,
        policy: str | type[BasePolicy],
        env: Any,
        dataset: Any = None,
        q_weight: float = 1.0,
        policy_weight: float = 1.0,
        support: float = 0.1,
        value_range: tuple[float, float] | None = None,
        **kwargs: Unpack[TokenValueOptions],
    ) -> None:
        require("QSFT", FRACTION, support=support)
        self.q_weight, self.policy_weight, self.support = q_weight, policy_weight, support
        self.value_range = None if value_range is None else _range(value_range)
        super().__init__(policy, env, dataset, **kwargs)

    def _setup_model(self) -> None:
        super()._setup_model()
        if any(bound is not None for bound in vars(self.policy.value_bounds).values()):
            raise ValueError(
                "QSFT: value_min and value_max bound Q, of which the heads have the logarithm "
                "here; leave them out, and give value_range for returns other than those seen"
            )
        for head in self.losses.detach:
            one_of("detach", head, self.heads, "losses of QSFT")
        self.policy.decoding = CorrectionDecoding(**asdict(self.policy.decoding))
        if self.value_range is None and self.data is not None:
            self.value_range = self._seen_range()
        low, high = self.value_range or (0.0, 1.0)
        if not low < high:
            raise ValueError(
                "QSFT: expected returns that differ, as nothing is to be learned from equal ones, "
                f"got from {low:g} to {high:g}; give value_range=(LEAST, GREATEST), or other data"
            )

    def _seen_range(self) -> tuple[float, float]:
        """The least and the greatest return from any decision on."""
        data = known_dialogues(self.data)
        everything = data.batch(np.arange(len(data)), self.gamma, trim=True)
        if isinstance(everything, ActData):
            returns = everything.decisions.returns_to_go
        else:
            returns = everything.return_to_go[everything.is_action]
        return float(returns.min()), float(returns.max())

    def loss(self, batch: DecisionBatch) -> Losses:
        hidden, value_hidden, target_hidden = self.trunk_states(batch, batch.at, self.policy_weight)
        log_pi = self.policy.log_probs(hidden, batch.allowed)
        h = self.policy.q_values(self.losses.for_head("q", value_hidden))
        return self.loss_of_estimates(batch, log_pi, h, self.policy.target_q(target_hidden))

    def loss_of_estimates(
        self, batch: DecisionBatch, log_pi: Tensor, h: Tensor, target_h: Tensor
    ) -> Losses:
        """The loss, from what the networks say of n decisions among A actions.

        Args:
            batch: the decisions.
            log_pi: (n, A), of the clone.
            h: (2, n, A), the corrections of its logits.
            target_h: (n, A), the slow copies' lesser one.
        """
        log_said, fixed = chosen(log_pi, batch.actions), log_pi.detach()
        h_said = h[:, torch.arange(len(log_said), device=h.device), batch.actions]
        weights = self.weights(batch, fixed, target_h)
        log_p = log_said.detach() + h_said - log_total(fixed, h)  # (2, n)
        log_rest = -log_total(fixed, h)
        q_loss = -(weights * log_p + (1 - weights) * log_rest).sum(0)
        losses = {
            "q_loss": q_loss * batch.is_action,
            "policy_loss": -log_said * batch.is_action,
        }
        loss = self.q_weight * losses["q_loss"] + self.policy_weight * losses["policy_loss"]
        q = (log_p - log_said.detach()).exp().mean(0)
        metrics = {"q": q * batch.is_action, "weight": weights * batch.is_action}
        return loss, {**losses, **metrics}

    @torch.no_grad()
    def weights(self, batch: DecisionBatch, log_pi: Tensor, target_h: Tensor) -> Tensor:
        """w (n,), from 0 to 1: what was earned and may follow, as a share of the range."""
        low, high = self.value_range or (0.0, 1.0)
        log_q = target_h - log_total(log_pi, target_h)[:, None]
        likely = log_pi >= log_pi.amax(1, keepdim=True) + (
            np.log(self.support) if self.support else -torch.inf
        )
        if batch.allowed is not None:
            likely = likely & batch.allowed
        best = log_q.masked_fill(~likely, -torch.inf).amax(1).exp()
        following = torch.where(batch.not_done, low + (high - low) * next_values(best), 0.0)
        worth = batch.rewards + self.gamma * following
        return ((worth - low) / (high - low)).clamp(0, 1)


def _range(given: Sequence[float]) -> tuple[float, float]:
    """Two finite numbers; raises ValueError for anything else."""
    if isinstance(given, str) or not isinstance(given, Sequence) or len(given) != 2:
        raise ValueError(f"QSFT: expected value_range=(LEAST, GREATEST), got {given!r}")
    low, high = (finite_number("value_range of QSFT", bound) for bound in given)
    return low, high


def log_total(log_pi: Tensor, h: Tensor) -> Tensor:
    """log (1 + sum_b pi(b) exp(h(b))) (..., n), of log pi (n, A) and h (..., n, A)."""
    return F.softplus((log_pi + h).logsumexp(-1), threshold=50)
