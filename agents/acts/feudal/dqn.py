"""Feudal DQN: the master and its sub-policies learn Q values of the same rewards."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

import numpy as np
import torch
from gymnasium import spaces
from stable_baselines3.common.policies import BasePolicy
from stable_baselines3.common.torch_layers import FlattenExtractor
from stable_baselines3.common.type_aliases import Schedule
from stable_baselines3.dqn.policies import QNetwork
from torch import Tensor, nn

from agents.acts.dqn import DQN
from agents.acts.feudal.hierarchy import FeudalNetwork, Parts
from agents.acts.feudal.transfer import Structured, StructuredPolicy
from agents.acts.q_network import BeliefQNetwork, QPolicy, in_mode
from agents.buffers.masked_replay import Transitions
from agents.models.act_masks import random_acts, uniform
from agents.models.heads import chosen
from dialgym.tasks import BeliefStructure


class FeudalQNetwork(QNetwork):
    """Q values of master and acts, from DIP features; each network is a `BeliefQNetwork`.

    Args:
        args, kwargs: as of `QNetwork`.
        structure: of the domain.
        settings: of each network, see `BeliefQNetwork`.
    """

    n_heads = 1
    q_net: FeudalNetwork  # type: ignore[assignment]

    def __init__(
        self,
        *args: Any,
        structure: BeliefStructure,
        settings: Mapping[str, Any],
        **kwargs: Any,
    ) -> None:
        super().__init__(*args, **kwargs)
        self.uncertainty, self.settings = settings["uncertainty"], dict(settings)
        if self.uncertainty == "bootstrap":
            raise ValueError("feudal policies: they have no bootstrapped heads; give another kind")
        self.q_net = FeudalNetwork(structure, self._network)

    def _network(self, inputs: int, outputs: int) -> nn.Module:
        features = spaces.Box(0.0, 1.0, (inputs,), np.float32)
        return BeliefQNetwork(
            features,
            spaces.Discrete(outputs),
            FlattenExtractor(features),
            inputs,
            self.net_arch,
            self.activation_fn,
            **self.settings,
        )

    def parts(self, obs: Tensor) -> Parts:
        """Q of master and acts, of observations (n, B); in training mode of drawn weights."""
        found: Parts = self.q_net(obs)
        return found

    def forward(self, obs: Any) -> Tensor:
        """(n, A): Q of the acts, each by its own sub-policy."""
        return self.parts(obs).acts

    def q_values(self, obs: Any, copies: int = 1) -> Tensor:
        """(copies, n, A): the same, in training mode each by other weights."""
        return self(obs.repeat(copies, 1)).unflatten(0, (copies, -1))

    def draws(self, obs: Any, count: int = 1) -> Tensor:
        """(count, n, A): see `BeliefQNetwork`."""
        with torch.no_grad(), in_mode(self, training=True):
            return self.q_values(obs, count)

    def divergence(self) -> Tensor | float:
        """(): see `BeliefQNetwork`."""
        parts = (self.q_net.master, self.q_net.general, self.q_net.slot)
        return sum((part.divergence() for part in parts), start=0.0)  # type: ignore[operator]

    def choose(self, obs: Tensor, masks: np.ndarray) -> np.ndarray:
        """(n,): the acts that the master's best sub-policy thinks best, within masks (n, A)."""
        within = torch.as_tensor(masks, device=obs.device)
        acts: np.ndarray = self.q_net.choose(self.parts(obs), within)[1].cpu().numpy()
        return acts


class FeudalQPolicy(StructuredPolicy, QPolicy):
    """`QPolicy` of a master and its sub-policies.

    Args:
        args: as of that class.
        structure: of the domain's beliefs and acts; the algorithm gives it.
        kwargs: as of that class; there are no bootstrapped heads and no curiosity.
    """

    q_net: FeudalQNetwork  # type: ignore[assignment]
    q_net_target: FeudalQNetwork  # type: ignore[assignment]

    def _build(self, lr_schedule: Schedule) -> None:
        if self.curiosity_settings is not None:
            raise ValueError(
                "feudal policies: expected no curiosity, whose models are of the beliefs of one "
                f"domain, while a feudal policy acts in others too; got {self.curiosity_settings}"
            )
        super()._build(lr_schedule)

    def make_q_net(self) -> FeudalQNetwork:  # type: ignore[override]
        """A network of its own."""
        arguments = self._update_features_extractor(self.net_args, features_extractor=None)
        made = FeudalQNetwork(**arguments, structure=self.structure, settings=self.own)
        return made.to(self.device)

    @torch.no_grad()
    def greedy(self, obs: Any, masks: np.ndarray) -> np.ndarray:
        """(n,): the best acts by the mean weights, within masks (n, A)."""
        return self.q_net.choose(obs, masks)

    @torch.no_grad()
    def explore(
        self, obs: Any, masks: np.ndarray, rate: float, heads: np.ndarray | None = None
    ) -> np.ndarray:
        """(n,): the best acts by drawn weights; with probability `rate` acts at random.

        A random act is one of a random choice of the master, so that it tells as often as it asks.
        """
        with in_mode(self.q_net, training=True):
            acts = self.q_net.choose(obs, masks)
        if not rate:
            return acts
        at_random = random_acts(self._narrowed_at_random(masks))
        return np.where(uniform(len(masks)) < rate, at_random, acts)

    def _narrowed_at_random(self, masks: np.ndarray) -> np.ndarray:
        """Masks (n, A) of one of the choices that they allow, both equally likely."""
        tree = self.q_net.q_net.hierarchy
        within = torch.from_numpy(masks).to(self.device)
        allowed = tree.branches_allowed(within).cpu().numpy()
        branches = torch.from_numpy(random_acts(allowed)).to(self.device)
        narrowed: np.ndarray = tree.narrowed(within, branches).cpu().numpy()
        return narrowed


class FeudalDQN(Structured, DQN):  # type: ignore[misc]
    """Deep Q-learning of a master and its sub-policies: Casanueva et al. (2018), arXiv 1803.03232.

    The master chooses to give information or to request it; then the general sub-policy chooses
    among the acts that are about no slot, or that of slots, one network evaluated for each slot
    with the slot's features, the best of all slots and acts. All three learn from the same rewards.

    Where a sub-policy is not chosen it passes, in the paper by an act of its own. The value of
    passing is what the master thinks of the other choice, so that all bootstrap alike, on the value
    of the act that the hierarchy would take next: y = r + gamma^n Q'(s', a'), for the master by its
    own network, for sub-policies by that of a'. (PyDial's sub-policies bootstrap on their own acts
    alone, as if the same one was chosen again and again.)

    Features do not depend on the domain (`agents.acts.dip`), and a policy that was trained in one
    acts in another: see `transferred`.

    Args:
        policy: "MlpPolicy", or `FeudalQPolicy`.
        env: of the system of a slot-filling task, or any that has `acts.structure`.
        args, kwargs: as of `agents.DQN`.

    Raises:
        ValueError: the env does not say what its beliefs and acts are about; or as of `agents.DQN`.
    """

    policy_aliases: ClassVar[dict[str, type[BasePolicy]]] = {"MlpPolicy": FeudalQPolicy}
    policy: FeudalQPolicy  # type: ignore[assignment]
    q_net: FeudalQNetwork  # type: ignore[assignment]
    q_net_target: FeudalQNetwork  # type: ignore[assignment]

    def estimates(self, observations: Tensor) -> Tensor:
        """(2, n, A): Q of each act by the master, who judges its kind, and by its sub-policy."""
        parts = self.q_net.parts(observations)
        return torch.stack((parts.master[:, self.q_net.q_net.hierarchy.branches], parts.acts))

    @torch.no_grad()
    def targets(self, batch: Transitions) -> Tensor:
        """Q targets (2, n) of the chosen acts: of the master, and of sub-policies."""
        following, judge = self._following(batch)
        branches, acts = self.q_net.q_net.choose(judge, batch.next_masks)
        values = torch.stack((chosen(following.master, branches), chosen(following.acts, acts)))
        return batch.rewards + batch.discounts * values

    def _following(self, batch: Transitions) -> tuple[Parts, Parts]:
        """Q of the next states by the target network, and by that which chooses among them."""
        following = self.q_net_target.parts(batch.next_observations)
        if not self.double:
            return following, following
        with in_mode(self.q_net, training=False):
            return following, self.q_net.parts(batch.next_observations)
