"""MLP policies over beliefs, for act views: actor and critic, and one with Q values.

They offer what the losses of offline algorithms ask of any policy: hidden states of the decisions
in stored dialogues, log-probabilities, Q, V and target networks.
"""

from __future__ import annotations

from copy import deepcopy
from typing import Any

import numpy as np
import torch
from gymnasium import spaces
from sb3_contrib.common.maskable.distributions import MaskableDistribution
from sb3_contrib.common.maskable.policies import MaskableActorCriticPolicy
from stable_baselines3.common.type_aliases import PyTorchObs, Schedule
from torch import Tensor, nn

from agents.decoding.sampling import SampledPolicy, Sampling
from agents.models.bernoulli import MaskedBernoulli, logit
from agents.models.build import make_optimizer
from agents.models.heads import chosen
from agents.models.masking import FORBIDDEN, fitting
from agents.policies.gpt import MASK_TYPES
from agents.policies.value import ValueHeads, follow


class BeliefPolicy(SampledPolicy, MaskableActorCriticPolicy):  # type: ignore[misc]
    """`MaskableActorCriticPolicy` of sb3-contrib over beliefs of stored dialogues.

    The stock MaskablePPO takes it too: a clone is a beginning for online learning. Where several
    acts are chosen at once, the distribution is `MaskedBernoulli`.

    Args:
        observation_space, action_space, lr_schedule: as of that class.
        greedy_rollouts: the likeliest action is taken in rollouts too, as in ConvLab's PPO; its
            log-probability is that of the distribution that it was not drawn from.
        initial_rate: of `MultiBinary` actions, the probability with which an untrained policy
            chooses each act.
        kwargs: the other arguments of that class, such as `net_arch`, and of `Discrete` actions
            `sampling`, as of `GPTActorCritic`.

    Raises:
        ValueError: observations are no float vectors, actions neither `Discrete` nor
            `MultiBinary`, or the rate is not between 0 and 1.
    """

    def __init__(
        self,
        observation_space: spaces.Space,
        action_space: spaces.Space,
        lr_schedule: Schedule,
        greedy_rollouts: bool = False,
        initial_rate: float = 0.5,
        **kwargs: Any,
    ) -> None:
        if not 0 < initial_rate < 1:
            raise ValueError(f"initial_rate: expected a number from 0 to 1, got {initial_rate!r}")
        self.greedy_rollouts, self.initial_rate = greedy_rollouts, initial_rate
        if not _is_belief(observation_space):
            raise ValueError(
                f"{type(self).__name__}: expected observations Box(B,) of floats, as act views "
                f"have, got {observation_space}; token views take a GPT policy"
            )
        self._check_actions(action_space)
        super().__init__(observation_space, action_space, lr_schedule, **kwargs)
        if self.sampling != Sampling() and not isinstance(action_space, spaces.Discrete):
            raise ValueError(
                f"{type(self).__name__}: sampling is for Discrete actions, one of which is drawn; "
                f"got {action_space}; leave sampling out"
            )

    def _build(self, lr_schedule: Schedule) -> None:
        if isinstance(self.action_space, spaces.MultiBinary):
            self.action_dist = MaskedBernoulli(int(self.action_space.n))  # type: ignore[arg-type]
        super()._build(lr_schedule)
        if isinstance(self.action_space, spaces.MultiBinary):
            nn.init.constant_(self.action_net.bias, logit(self.initial_rate))  # type: ignore[arg-type]

    def _check_actions(self, space: spaces.Space) -> None:
        if not isinstance(space, spaces.Discrete | spaces.MultiBinary):
            raise ValueError(
                f"{type(self).__name__}: expected Discrete or MultiBinary actions, got {space}"
            )

    def forward(
        self, obs: Tensor, deterministic: bool = False, action_masks: MASK_TYPES | None = None
    ) -> tuple[Tensor, Tensor, Tensor]:
        """Actions (n, ...) of a rollout, values (n, 1) and log-probabilities (n,).

        Raises ValueError for masks as `fitting` does.
        """
        greedy, masks = deterministic or self.greedy_rollouts, self._fitting(obs, action_masks)
        found: tuple[Tensor, Tensor, Tensor] = super().forward(obs, greedy, masks)  # type: ignore[arg-type]
        return found

    def _predict(  # type: ignore[override]
        self,
        observation: Tensor,
        deterministic: bool = False,
        action_masks: MASK_TYPES | None = None,
    ) -> Tensor:
        masks = self._fitting(observation, action_masks)
        return super()._predict(observation, deterministic, masks)  # type: ignore[arg-type]

    def get_distribution(
        self, obs: PyTorchObs, action_masks: MASK_TYPES | None = None
    ) -> MaskableDistribution:
        """The distribution that acts are drawn from: (B,) observations."""
        if self.sampling == Sampling():
            return super().get_distribution(obs, action_masks)  # type: ignore[arg-type]
        assert isinstance(obs, Tensor)
        logits = self._logits(self._latent(obs)[0], _as_allowed(action_masks, obs))
        return self.action_dist.proba_distribution(action_logits=self.sampling.logits(logits))

    def _fitting(self, obs: Tensor, masks: MASK_TYPES | None) -> np.ndarray | None:
        return None if masks is None else fitting(masks, len(obs), self.action_space)

    def evaluate_sequences(
        self, beliefs: Tensor, at: Tensor, actions: Tensor, allowed: Tensor | None = None
    ) -> tuple[Tensor, Tensor, Tensor]:
        """Values, log-probabilities and entropies (n,) of actions within whole dialogues.

        Args:
            beliefs: (s, t, B) float32, padded at the right.
            at: (n,) int64 places in the flattened (s * t) of the decisions.
            actions: (n,) int64, or (n, A) of 0 and 1.
            allowed: (n, A) bool, of `MultiBinary` actions (n, 2 A) as sb3-contrib has them.
        """
        values, log_prob, entropy = self.evaluate_actions(
            beliefs.flatten(0, 1)[at], actions, allowed
        )
        assert entropy is not None
        return values[:, 0], log_prob, entropy

    def logits_and_values(self, beliefs: Tensor, allowed: Tensor | None) -> tuple[Tensor, Tensor]:
        """Logits (n, A), within masks (n, A) of `Discrete` acts, and values (n, 1)."""
        hidden, value_hidden = self._latent(beliefs)
        return self._logits(hidden, allowed), self.value_net(value_hidden)

    def _logits(self, hidden: Tensor, allowed: Tensor | None) -> Tensor:
        """Logits (n, A), a large negative number for forbidden acts."""
        logits: Tensor = self.action_net(hidden)
        if allowed is None:
            return logits
        return logits.masked_fill(~allowed.view_as(logits), FORBIDDEN)

    def _features(self, beliefs: Tensor) -> tuple[Tensor, Tensor]:
        features = self.extract_features(beliefs)
        return features if isinstance(features, tuple) else (features, features)

    def _latent(self, beliefs: Tensor) -> tuple[Tensor, Tensor]:
        """Hidden states (n, d) of actor and critic."""
        actor, critic = self._features(beliefs)
        return self.mlp_extractor.forward_actor(actor), self.mlp_extractor.forward_critic(critic)

    def _get_constructor_parameters(self) -> dict[str, Any]:
        own = {"greedy_rollouts": self.greedy_rollouts, "initial_rate": self.initial_rate}
        return {**super()._get_constructor_parameters(), **own}


class ValueBeliefPolicy(ValueHeads, BeliefPolicy):  # type: ignore[misc]
    """`BeliefPolicy` with two Q heads, their slow copies, and V(s), which decodes by advantages.

    Q and V read the critic's trunk, of which the targets have a slow copy.

    Args:
        decoding: arguments of `Decoding`.
        q_head, value_min, value_max: as of `ValueGPTPolicy`.
        args, kwargs: as of `BeliefPolicy`.

    Raises:
        ValueError: as of `BeliefPolicy`; or actions are not `Discrete`.
    """

    def _check_actions(self, space: spaces.Space) -> None:
        if not isinstance(space, spaces.Discrete):
            raise ValueError(
                f"{type(self).__name__}: expected Discrete actions, of which each has a Q value, "
                f"got {space}; cloning (BC) takes others"
            )

    def _build(self, lr_schedule: Schedule) -> None:
        super()._build(lr_schedule)
        extractor = self.mlp_extractor
        self._build_q_heads(extractor.latent_dim_vf, int(self.action_space.n))  # type: ignore[attr-defined]
        self.target_trunk = deepcopy(extractor.value_net).requires_grad_(False)
        nn.init.zeros_(self.value_net.weight)
        self.optimizer = make_optimizer(self, lr_schedule)

    # What losses ask for

    @property
    def values_apart(self) -> bool:
        """Return True if values have a trunk of their own, be it of one layer."""
        return len(self.mlp_extractor.value_net) > 0

    def hidden_states(self, beliefs: Tensor, at: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """Hidden states (n, d) of the decisions `at` (n,), for policy, values and targets."""
        seen = beliefs.flatten(0, 1)[at]
        with torch.no_grad():
            target_hidden = self.target_trunk(self._features(seen)[1])
        return *self._latent(seen), target_hidden

    def log_probs(self, hidden: Tensor, allowed: Tensor | None) -> Tensor:
        """(n, A): of the cloned policy, of every act, from hidden states (n, d)."""
        return self._logits(hidden, allowed).log_softmax(-1)

    def log_prob_of_said(self, hidden: Tensor, actions: Tensor, allowed: Tensor | None) -> Tensor:
        """(n,): of the cloned policy, of the acts chosen, from hidden states (n, d)."""
        return chosen(self.log_probs(hidden, allowed), actions)

    def state_values(self, hidden: Tensor) -> Tensor:
        """(n,): V, of hidden states (n, d)."""
        values: Tensor = self.value_net(hidden)
        return values[:, 0]

    @torch.no_grad()
    def update_targets(self, tau: float) -> None:
        """Polyak averaging: move the target networks towards the networks by `tau`."""
        follow(self.target_q_heads, self.q_heads, tau)
        follow(self.target_trunk, self.mlp_extractor.value_net, tau)

    # Decoding

    def get_distribution(
        self, obs: PyTorchObs, action_masks: MASK_TYPES | None = None
    ) -> MaskableDistribution:
        """The distribution that acts are drawn from, as `decoding` says: (B,) observations."""
        assert isinstance(obs, Tensor)
        hidden, value_hidden = self._latent(obs)
        logits, advantages = self._logits(hidden, _as_allowed(action_masks, obs)), None
        if self.decoding.beta:
            q = self.value_bounds.clip(self.q_values(value_hidden).amin(0))
            advantages = self.decoding.clip(q - self.state_values(value_hidden)[:, None])
        spoken = self.decoding.logits(logits, advantages)
        return self.action_dist.proba_distribution(action_logits=spoken)


def _as_allowed(masks: MASK_TYPES | None, obs: Tensor) -> Tensor | None:
    """Masks as a tensor of bool where the observations are."""
    return None if masks is None else torch.as_tensor(masks, device=obs.device).bool()


def _is_belief(space: spaces.Space) -> bool:
    """Return True for a space of vectors of floats."""
    if not isinstance(space, spaces.Box):
        return False
    return len(space.shape) == 1 and np.issubdtype(space.dtype, np.floating)
