"""Natural language policy optimisation: PPO that speaks within a mask policy's nucleus."""

from __future__ import annotations

from typing import Any, Unpack

import numpy as np
import torch
from stable_baselines3.common.callbacks import BaseCallback
from stable_baselines3.common.policies import ActorCriticPolicy
from stable_baselines3.common.type_aliases import GymEnv
from stable_baselines3.common.vec_env import VecEnv
from torch import Tensor

from agents.buffers.sequences import SequenceBuffer
from agents.decoding.distributions import nucleus
from agents.models.masking import FORBIDDEN
from agents.models.observations import Observed
from agents.models.prefixes import last_hidden
from agents.models.rollout_cache import RolloutCaches
from agents.online.ppo import PPOOptions, SequencePPO
from agents.online.reference import FrozenPolicy
from dialgym.language.tokenizers import END


class NLPO(SequencePPO):
    """PPO over the likeliest tokens of a slower copy of the policy (Ramamurthy et al. 2023).

    The mask policy is the policy as it was some rollouts ago. What may be said is its nucleus
    (section 4 there), the fewest likeliest tokens that together have probability `top_p`;
    `min_tokens` of the likeliest and <end> are always in it, and what the task forbids never is.
    Samples, ratios, entropies and divergences are those of the policy over these tokens, and
    `predict` speaks within them too. The masks of a rollout are kept, a bit for each token.

    Of a policy with low-rank adapters the mask policy has its own adapters over the same weights.

    Args:
        policy, env: as of `OnlineAlgorithm`.
        top_p: probability of the nucleus; with 1 this is `SequencePPO`.
        min_tokens: the likeliest tokens that are kept in any case.
        mask_every: rollouts after which the mask policy becomes what the policy is then.
        kwargs: further arguments of `SequencePPO`.

    Raises:
        ValueError: a number that cannot be, or as of `SequencePPO`.
    """

    def __init__(
        self,
        policy: str | type[ActorCriticPolicy],
        env: GymEnv | str,
        top_p: float = 0.9,
        min_tokens: int = 10,
        mask_every: int = 20,
        **kwargs: Unpack[PPOOptions],
    ) -> None:
        self.top_p = top_p
        self.min_tokens = min_tokens
        self.mask_every = mask_every
        self.rollouts = 0
        super().__init__(policy, env, **kwargs)

    def _setup_model(self) -> None:
        super()._setup_model()
        self.mask_policy = MaskPolicy(self.policy)

    def _excluded_save_params(self) -> list[str]:
        return [*super()._excluded_save_params(), "said_within"]

    def _get_torch_save_params(self) -> tuple[list[str], list[str]]:
        modules, tensors = super()._get_torch_save_params()
        return [*modules, "mask_policy"], tensors

    def collect_rollouts(  # type: ignore[override]
        self,
        env: VecEnv,
        callback: BaseCallback,
        rollout_buffer: SequenceBuffer,
        n_rollout_steps: int,
    ) -> bool:
        """As PPO does, within the masks; renews the mask policy when it is due."""
        if self.rollouts % self.mask_every == 0:
            self.mask_policy.follow(self.policy)
        self.mask_policy.caches.forget()  # as a run does that goes on from a file
        self.said_within: list[Tensor] = []  # of each step, the part of the tokens that is allowed
        going_on = super().collect_rollouts(env, callback, rollout_buffer, n_rollout_steps)
        within = torch.stack(self.said_within).mean()
        self.logger.record("rollout/masked", 1 - float(within))
        self.rollouts += 1
        return going_on

    @property
    def _keeps_masks(self) -> bool:
        return True

    def _masks(self, env: VecEnv, seen: Observed) -> Tensor:
        given = super()._masks(env, seen) if self.env_masks else None
        masks = self._nucleus(seen, self.policy.allowed(seen, given))
        self.said_within.append(masks.float().mean())
        return masks

    def _masks_to_predict(self, observation: Any, given: np.ndarray | None) -> Tensor:
        given = super()._masks_to_predict(observation, given)  # type: ignore[assignment]
        observation, _ = self.policy.obs_to_tensor(observation)
        seen = Observed.of(observation)
        return self._nucleus(seen, self.policy.allowed(seen, given))

    @torch.no_grad()
    def _nucleus(self, seen: Observed, allowed: Tensor | None) -> Tensor:
        """The tokens (b, V) bool that may be said, among `allowed` (b, V)."""
        run = self.policy.execution
        logits = self.mask_policy(seen, run.cache and seen.total <= run.cache_rows)
        if allowed is not None:
            logits = logits.masked_fill(~allowed, FORBIDDEN)
        kept = nucleus(logits, self.top_p, self.min_tokens)
        kept[:, END] = True
        return kept if allowed is None else kept & allowed


class MaskPolicy(FrozenPolicy):
    """The language model whose nucleus may be said. It keeps a cache of its own."""

    def __init__(self, policy: Any) -> None:
        super().__init__(policy)
        self.caches = RolloutCaches(self.backbone, self.features)

    def forward(self, seen: Observed, cached: bool) -> Tensor:
        """Logits (b, V) after observations."""
        if cached:
            return self.head(self.caches.read(seen))
        bias = None
        if seen.features is not None and self.features is not None:
            bias = self.features(seen.features.to(self.backbone.embedding.device))
        return self.head(last_hidden(self.backbone, seen.tokens, group=False, bias=bias))
