"""The KL divergence from a reference policy: its coefficient, and the frozen policy itself."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from copy import deepcopy
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from agents.distributed.sharding import weights_of
from agents.models.heads import PolicyHead, log_probs_of
from dialgym.errors import finite_number, one_of, settings_as

DTYPES = {"float32": torch.float32, "bfloat16": torch.bfloat16, "float16": torch.float16}
RATE = 0.1
"""Speed of a coefficient without a horizon, by rollouts."""


@dataclass(frozen=True)
class KLControl:
    """The cost of a nat of divergence from a reference policy, fixed or steered towards a target.

    After each rollout the coefficient is multiplied by 1 + speed * clip(kl / target - 1, +-clip),
    where speed is 0.1, or with a horizon the rollout's tokens / horizon (Ziegler et al. 2019,
    section 2.2, whose clip is 0.2). The coefficient of the moment is the learner's `kl_coef`.

    Attributes:
        coef: the coefficient at first; 0 keeps no reference.
        target: nats a token that a rollout should keep; None leaves the coefficient alone.
        horizon: tokens in which an error moves the coefficient by as much again; None goes by
            rollouts, whatever their size.
        clip: the largest relative error that counts.
        reference: a saved agent to stay near, such as a cloned one; its network may be another, its
            tokens may not. None is the policy that learning first begins with.
        dtype: in what the reference keeps its weights and computes: "float32", "bfloat16" or
            "float16". One that shares the policy's weights, beneath low-rank adapters, takes no
            memory and has float32 alone.
        offload: its weights rest on the CPU, and come to the learner's device while a rollout is
            compared; of weights of its own alone, too.

    Raises:
        ValueError: a number or name that cannot be.
    """

    coef: float = 0.0
    target: float | None = None
    horizon: int | None = None
    clip: float = 0.2
    reference: str | Path | None = None
    dtype: str = "float32"
    offload: bool = False

    def __post_init__(self) -> None:
        one_of("dtype", self.dtype, DTYPES, "kl")
        for name in ("coef", "target", "horizon", "clip"):
            if getattr(self, name) is not None:
                finite_number(f"KL to the reference: {name}", getattr(self, name))
        if self.coef < 0 or (self.target is not None and self.target <= 0):
            raise ValueError(
                "KL to the reference: expected a coef of at least 0 and a target above 0 (or None),"
                f" got {self.coef} and {self.target}"
            )
        if self.clip <= 0 or (self.horizon is not None and self.horizon < 1):
            raise ValueError(
                "KL to the reference: expected a clip above 0 and a horizon of at least 1 token "
                f"(or None), got {self.clip} and {self.horizon}"
            )

    @classmethod
    def of(cls, value: KLControl | Mapping[str, Any] | None) -> KLControl:
        """The value itself, or what YAML spells as a mapping; None is all defaults.

        Raises:
            ValueError: an unknown setting, or as of the class.
        """
        if isinstance(value, Mapping) and value.get("reference") is not None:
            value = {**value, "reference": str(value["reference"])}
        return settings_as(cls, "kl", value)

    def steered(self, coef: float, kl: float, tokens: int) -> float:
        """The next coefficient after `coef`, from a rollout's mean divergence and its tokens.

        One rollout at most halves it: beyond horizon / clip tokens it would turn negative.
        """
        if self.target is None:
            return coef
        error = min(max(kl / self.target - 1, -self.clip), self.clip)
        speed = RATE if self.horizon is None else tokens / self.horizon
        return coef * max(1 + speed * error, 0.5)


def k3(log_ratio: Tensor) -> Tensor:
    """KL divergence from samples x of p, never negative: exp(r) - 1 - r of r = log q(x) / p(x).

    It is unbiased (Schulman 2020, "Approximating KL divergence").
    """
    return log_ratio.exp() - 1 - log_ratio


class FrozenPolicy(nn.Module):
    """The language model of a GPT policy as it is now, which stays as the policy learns.

    Weights that the policy does not train, such as those beneath low-rank adapters, are the
    policy's own: they take no memory here, and are not saved twice.

    Args:
        policy: a `GPTActorCritic`.
        share: False copies all weights, of a policy that is not kept.
        dtype, offload: as of `KLControl`.

    Raises:
        ValueError: a dtype or offload of weights that are the policy's own.
    """

    def __init__(
        self, policy: Any, share: bool = True, dtype: str = "float32", offload: bool = False
    ) -> None:
        super().__init__()
        self.dtype, self.offload = DTYPES[dtype], offload
        networks = policy.backbone, policy.policy_head, policy.features
        weights = [p for part in networks if part is not None for p in part.parameters()]
        fixed = {id(p): p for p in weights if share and not p.requires_grad}
        kept = set(fixed)
        # Together, so that a head tied to the embeddings stays tied to their copy; in a tuple, so
        # that they are no parts of this module: only weights of its own are.
        self._networks = deepcopy(networks, fixed)  # type: ignore[arg-type]
        own = {
            id(p): p
            for part in self._networks
            if part is not None
            for p in part.parameters()
            if id(p) not in kept
        }
        self.own = nn.ParameterList(p.requires_grad_(False) for p in own.values())
        if kept and (offload or self.dtype != torch.float32):
            raise ValueError(
                "kl: dtype and offload are for a reference with weights of its own; beneath "
                f"adapters it shares the policy's, got dtype={dtype!r}, offload={offload}. Leave "
                "them out: such a reference takes no memory"
            )
        self._put("cpu" if offload else policy.device)

    def _put(self, device: torch.device | str) -> None:
        """Move the weights, all of which are its own, and their dtype, to a device."""
        if self.offload or self.dtype != torch.float32:
            for part in self._networks:
                if part is not None:
                    part.to(device, self.dtype)

    @contextmanager
    def on(self, device: torch.device) -> Iterator[None]:
        """Keep the weights on a device within the block; else offloaded ones are on the CPU."""
        if self.offload:
            self._put(device)
        yield
        if self.offload:
            self._put("cpu")

    @property
    def backbone(self) -> Any:
        """Meets `agents.models.backbone.Backbone`."""
        return self._networks[0]

    @property
    def head(self) -> PolicyHead:
        """The policy head."""
        return self._networks[1]  # type: ignore[return-value]

    @property
    def features(self) -> Any:
        """The map of features beside the tokens, or None."""
        return self._networks[2]

    def follow(self, policy: Any) -> None:
        """Copy the current weights of the policy, gathering sharded ones."""
        theirs = policy.backbone, policy.policy_head, policy.features
        for part, other in zip(self._networks, theirs, strict=True):
            if part is not None:
                part.load_state_dict(weights_of(other))

    @torch.no_grad()
    def log_prob(
        self,
        tokens: Tensor,
        at: Tensor,
        actions: Tensor,
        allowed: Tensor | None = None,
        features: Tensor | None = None,
    ) -> Tensor:
        """Log-probabilities (N,); arguments as of `GPTActorCritic.evaluate_sequences`."""
        more: tuple[Tensor, ...] = ()
        if features is not None and self.features is not None:
            more = (self.features(features.to(self.dtype)),)
        hidden = self.backbone(tokens, at, *more)
        return log_probs_of(self.head, hidden, actions, allowed)[0]
