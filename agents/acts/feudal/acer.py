"""Feudal ACER: the master and its sub-policies are one policy, each factor of which is learned."""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np
import torch
from sb3_contrib.common.maskable.distributions import MaskableDistribution
from stable_baselines3.common.policies import BasePolicy
from stable_baselines3.common.torch_layers import create_mlp
from stable_baselines3.common.type_aliases import PyTorchObs, Schedule
from torch import Tensor, nn

from agents.acts.acer import ACER, ActorQPolicy
from agents.acts.feudal.hierarchy import FeudalNetwork, SubPolicies
from agents.acts.feudal.transfer import Structured, StructuredPolicy
from agents.models.build import make_optimizer
from agents.policies.gpt import MASK_TYPES


class FeudalActorPolicy(StructuredPolicy, ActorQPolicy):
    """`ActorQPolicy` of a master and its sub-policies: pi(a) = pi(c) pi(a | c), c the choice of a.

    The critic has a network for the general acts and one for those of any slot.

    Args:
        args: as of that class.
        structure: of the domain's beliefs and acts; the algorithm gives it.
        kwargs: as of that class; `net_arch` are the widths of each network, or `pi` and `vf` with
            those of actor and critic.
    """

    def _build(self, lr_schedule: Schedule) -> None:
        widths = self.net_arch
        actor, critic = (
            (widths.get("pi", []), widths.get("vf", []))
            if isinstance(widths, dict)
            else (widths, widths)
        )
        self.actor = FeudalNetwork(self.structure, self._maker(actor))
        self.critic = SubPolicies(self.structure, self._maker(critic))
        self.optimizer = make_optimizer(self, lr_schedule)

    def _maker(self, widths: list[int]) -> Any:
        def network(inputs: int, outputs: int) -> nn.Module:
            layers = create_mlp(inputs, outputs, widths, self.activation_fn)
            nn.init.orthogonal_(layers[-1].weight, 0.01)  # type: ignore[arg-type]
            nn.init.zeros_(layers[-1].bias)  # type: ignore[arg-type]
            return nn.Sequential(*layers)

        return network

    def logits_and_values(self, beliefs: Tensor, allowed: Tensor | None) -> tuple[Tensor, Tensor]:
        """Log-probabilities (n, A), within masks (n, A), and Q (n, A), of beliefs (n, B)."""
        q_values: Tensor = self.critic(beliefs)
        if allowed is None:
            allowed = torch.ones_like(q_values, dtype=torch.bool)
        return self.actor.log_probs(self.actor(beliefs), allowed.view_as(q_values)), q_values

    def get_distribution(
        self, obs: PyTorchObs, action_masks: MASK_TYPES | None = None
    ) -> MaskableDistribution:
        """The distribution that acts are drawn from."""
        assert isinstance(obs, Tensor)
        allowed = None
        if action_masks is not None:
            allowed = torch.as_tensor(np.asarray(action_masks), device=obs.device).bool()
        log_probs, _ = self.logits_and_values(obs, allowed)
        return self.action_dist.proba_distribution(action_logits=self.sampling.logits(log_probs))


class FeudalACER(Structured, ACER):  # type: ignore[misc]
    """`ACER` whose policy is a hierarchy: the master's choice, and an act that is under it.

    The gradient of log pi(a) is that of the master's choice and of its sub-policy's act, so that
    each learns from the same advantages, and sub-policies that are not chosen do not move; in
    PyDial they are three learners with a critic each, which record that they have passed. Features
    do not depend on the domain (`agents.acts.dip`): see `transferred`.

    Sources: Casanueva et al. (2018), arXiv 1803.03232; Weisz et al. (2018), arXiv 1802.03753.

    Args:
        policy: "MlpPolicy", or `FeudalActorPolicy`.
        env: of the system of a slot-filling task, or any that has `acts.structure`.
        args, kwargs: as of `agents.ACER`.

    Raises:
        ValueError: the env does not say what its beliefs and acts are about; or as of
            `agents.ACER`.
    """

    policy_aliases: ClassVar[dict[str, type[BasePolicy]]] = {"MlpPolicy": FeudalActorPolicy}
    policy: FeudalActorPolicy  # type: ignore[assignment]
