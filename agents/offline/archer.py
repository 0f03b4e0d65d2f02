"""ArCHer from stored dialogues (Zhou et al. 2024): a critic of utterances, an actor of tokens."""

from __future__ import annotations

from typing import Any, ClassVar, Unpack

import torch
from stable_baselines3.common.policies import BasePolicy
from torch import Tensor

from agents.buffers.stored import UtteranceBatch, scattered
from agents.offline.algorithm import Losses
from agents.offline.ilql import ValueOptions
from agents.offline.losses import expectile_loss
from agents.offline.utterance_ilql import UtteranceAlgorithm
from agents.policies.utterance_critic import ArCHerPolicy, CriticValues, critic_values, of_tokens


class OfflineArCHer(UtteranceAlgorithm):
    """IQL of whole utterances, and an actor that clones those by their advantages (AWR).

    For i = 1, 2, Q_i(s, u) regresses to r(u) + gamma target V_i(s') and V_i(s) to the upper
    expectile of target Q_i(s, u) over what was said (Kostrikov et al. 2021, equations 5 and 6). The
    loss of the actor is -exp(beta (min Q - min V)) log pi(token) of each token of u, the weight at
    most `awr_clip` (Peng et al. 2019; Zhou et al. 2024, arXiv 2402.19446, appendix on offline
    learning). It speaks as the actor alone: what is worth more has become likelier.

    Args:
        policy: `ArCHerPolicy`, or "GPTPolicy", which names it here.
        env, dataset: as of `OfflineAlgorithm`.
        expectile: of the value loss; 0.5 is the mean, near 1 the best of what was said.
        awr_beta: beta; 0 clones all alike.
        awr_clip: greatest weight of an utterance.
        policy_weight: of the actor's loss, beside 1 of each of the critic's.
        kwargs: further arguments of `UtteranceAlgorithm`; `gamma` is 0.95 and `tau` 0.1 unless
            given, as there.

    Raises:
        ValueError: a number that cannot be, or as of `OfflineAlgorithm`.
    """

    policy_aliases: ClassVar[dict[str, type[BasePolicy]]] = {"GPTPolicy": ArCHerPolicy}
    policy: ArCHerPolicy

    def __init__(
        self,
        policy: str | type[BasePolicy],
        env: Any,
        dataset: Any = None,
        expectile: float = 0.9,
        awr_beta: float = 1.0,
        awr_clip: float = 20.0,
        policy_weight: float = 1.0,
        **kwargs: Unpack[ValueOptions],
    ) -> None:
        self.expectile = self._share("expectile", expectile)
        self.awr_beta, self.awr_clip = awr_beta, awr_clip
        self.policy_weight = policy_weight
        kwargs.setdefault("gamma", 0.95)
        kwargs.setdefault("tau", 0.1)
        super().__init__(policy, env, dataset, **kwargs)

    def loss(self, batch: UtteranceBatch) -> Losses:
        hidden, value_hidden, target_hidden = self.policy.hidden_states(
            batch.observations, batch.at
        )
        values = critic_values(self.policy, batch, value_hidden, target_hidden, self.gamma)
        with torch.no_grad():
            slow = self.policy.target_q_heads(target_hidden[batch.ends])[..., 0]
            target_q = self.policy.value_bounds.clip(slow)
        losses = {name: scattered(x, batch.ends) for name, x in self.of_critic(values, target_q)}
        weights = (self.awr_beta * values.advantages).exp().clamp(max=self.awr_clip)
        losses["policy_loss"] = of_tokens(weights, batch) * self.clone_loss(batch, hidden)
        loss = losses["q_loss"] + losses["v_loss"] + self.policy_weight * losses["policy_loss"]
        means = {"q": values.q.mean(0).detach(), "v": values.v.mean(0).detach(), "weight": weights}
        return loss, {**losses, **{k: scattered(x, batch.ends) for k, x in means.items()}}

    def of_critic(self, values: CriticValues, target_q: Tensor) -> list[tuple[str, Tensor]]:
        """The losses (m,) of Q and V of what was said, of which `target_q` (2, m) are the copies.

        Each is the sum over both heads.
        """
        v_loss = expectile_loss(target_q - values.v, self.expectile)
        return [
            ("q_loss", (values.q_targets - values.q).square().sum(0)),
            ("v_loss", v_loss.sum(0)),
        ]
