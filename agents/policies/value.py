"""A GPT with Q values of tokens and V(s), which decodes by advantages over the cloned policy."""

from __future__ import annotations

from collections.abc import Mapping
from copy import deepcopy
from dataclasses import asdict, dataclass
from typing import Any, ClassVar

import torch
from stable_baselines3.common.distributions import Distribution
from stable_baselines3.common.type_aliases import Schedule
from torch import Tensor, nn

from agents.decoding.sampling import Sampling, check_drawing, cut_off
from agents.models.action_outputs import action_and_logsumexp, action_outputs
from agents.models.build import made_head, make_optimizer
from agents.models.heads import MLPHead, token_log_probs
from agents.models.masking import FORBIDDEN
from agents.policies.gpt import MASK_TYPES, GPTPolicy
from dialgym.errors import finite_number, one_of, with_settings

WEIGHTINGS = ("exp", "sign")
"""Weights of advantages: exp(beta A), or by the sign of A alone."""


@dataclass
class Decoding:
    """Settings by which tokens are chosen: softmax(log pi / temperature + beta A), perhaps cut off.

    A = min target Q - V (Snell et al. 2022, section 4.3). Set `model.policy.decoding` to change it.

    Attributes:
        of_advantages: whether Q - V is an advantage, by which utterances can be ranked.
        beta: weight of the advantage; 0 speaks as the cloned policy.
        temperature: of the cloned policy.
        advantage_clip: advantages are cut off above it; None leaves them.
        policy_weight: of the cloned policy; 0 speaks by advantages alone.
        top_k: only so many of the likeliest tokens; equals of the last one stay too.
        top_p: only the likeliest tokens that together have at least that probability.
        policy_top_k, policy_top_p: the same of the cloned policy alone, before advantages count:
            what it would hardly say is not said, whatever Q thinks of it.
        weights: "exp" adds beta A; "sign" adds log beta where A > 0 and log(1 - beta) elsewhere,
            for a beta below 1.

    Raises:
        ValueError: a number that cannot be.
    """

    of_advantages: ClassVar[bool] = True
    beta: float = 0.0
    temperature: float = 1.0
    advantage_clip: float | None = None
    policy_weight: float = 1.0
    top_k: int | None = None
    top_p: float | None = None
    policy_top_k: int | None = None
    policy_top_p: float | None = None
    weights: str = "exp"

    def __post_init__(self) -> None:
        check_drawing("decoding", self, "", "policy_")
        for name in ("beta", "policy_weight"):
            finite_number(f"{name} of decoding", getattr(self, name))
        if self.advantage_clip is not None:
            finite_number("advantage_clip of decoding", self.advantage_clip)
        one_of("weights", self.weights, WEIGHTINGS, "decoding")
        if self.weights == "sign" and not 0 <= self.beta < 1:
            raise ValueError(
                "decoding: beta must be from 0 to 1, 1 left out, with weights 'sign', got "
                f"{self.beta}"
            )

    def clip(self, advantages: Tensor) -> Tensor:
        """Advantages of any shape, cut off above `advantage_clip`."""
        if self.advantage_clip is None:
            return advantages
        return advantages.clamp(max=self.advantage_clip)

    def logits(self, policy: Tensor, advantages: Tensor | None) -> Tensor:
        """Logits (B, V) to speak by; forbidden tokens stay at a large negative number.

        Args:
            policy: (B, V) logits of the cloned policy, those of forbidden tokens at `FORBIDDEN`.
            advantages: (B, V), clipped already; None where beta is 0.
        """
        forbidden = policy <= FORBIDDEN / 2
        warm = (policy / self.temperature).masked_fill(forbidden, FORBIDDEN)
        cut = cut_off(warm, self.policy_top_k, self.policy_top_p)
        logits = self.policy_weight * policy.log_softmax(-1) / self.temperature
        if advantages is not None:
            logits = logits + self._preferences(advantages)
        logits = logits.masked_fill(cut <= FORBIDDEN / 2, FORBIDDEN)
        return cut_off(logits, self.top_k, self.top_p)

    def _preferences(self, advantages: Tensor) -> Tensor:
        """Additions to the logits for advantages of any shape."""
        if self.weights == "exp":
            return self.beta * advantages
        return torch.where(advantages > 0, self.beta, 1 - self.beta).log()


class QHeads(nn.ModuleList):
    """Two Q heads over hidden states, of which the lesser is believed (Fujimoto et al. 2018).

    Args:
        width: d of the hidden states.
        outputs: A, Q values of one hidden state.
        kind: class of each, or its name, or a mapping, as of `made_head`; None for `MLPHead`.
    """

    def __init__(self, width: int, outputs: int, kind: Any = None) -> None:
        super().__init__(made_head("q_head", kind, MLPHead, width, outputs) for _ in range(2))

    def forward(self, hidden: Tensor) -> Tensor:
        """(2, ..., A) float32: Q from both heads, of hidden states (..., d)."""
        return torch.stack([head(hidden) for head in self])


@dataclass(frozen=True)
class ValueBounds:
    """Bounds of the target Q, by which values are learned and spoken; None for none.

    Raises:
        ValueError: a bound that is no finite number, or a lower one that is not below the upper.
    """

    value_min: float | None = None
    value_max: float | None = None

    def __post_init__(self) -> None:
        given = {name: value for name, value in vars(self).items() if value is not None}
        for name, value in given.items():
            finite_number(name, value)
        if len(given) == 2 and given["value_min"] >= given["value_max"]:
            raise ValueError(
                f"value_min: expected a number below value_max, {self.value_max:g}, got "
                f"{self.value_min:g}"
            )

    def clip(self, q: Tensor) -> Tensor:
        """Q of any shape, within the bounds."""
        if self.value_min is None and self.value_max is None:
            return q
        return q.clamp(self.value_min, self.value_max)


def made_decoding(kind: type[Decoding], settings: dict[str, Any] | None) -> Decoding:
    """Make the decoding of a policy from its `decoding` argument.

    Raises:
        ValueError: unknown settings, with the nearest one, or numbers that cannot be.
    """
    made: Decoding = with_settings(kind, "decoding", settings or {})
    return made


def follow(target: nn.Module, source: nn.Module, tau: float) -> None:
    """Polyak averaging: target <- (1 - tau) target + tau source, weight by weight."""
    for slow, fast in zip(target.parameters(), source.parameters(), strict=True):
        slow.lerp_(fast, tau)


class ValueHeads:
    """Part of a policy with Q heads and their slow copies, by which it decodes; see its users.

    Joined with a class of policies, on its left.
    """

    decoding_class: ClassVar[type[Decoding]] = Decoding
    q_heads: nn.Module
    target_q_heads: nn.Module
    sampling: Sampling

    def __init__(
        self,
        *args: Any,
        decoding: dict[str, Any] | None = None,
        q_head: str | type[nn.Module] | Mapping[str, Any] | None = None,
        value_min: float | None = None,
        value_max: float | None = None,
        **kwargs: Any,
    ) -> None:
        self.decoding = made_decoding(self.decoding_class, decoding)
        self.q_head, self.value_bounds = q_head, ValueBounds(value_min, value_max)
        super().__init__(*args, **kwargs)
        if self.sampling != Sampling():
            raise ValueError(
                f"{type(self).__name__}: expected decoding={{...}}, by which a policy with values "
                f"draws, got sampling={self.sampling}; leave sampling out"
            )

    def _build_q_heads(self, width: int, outputs: int) -> None:
        self.q_heads = QHeads(width, outputs, self.q_head)
        self.target_q_heads = deepcopy(self.q_heads).requires_grad_(False)

    def q_values(self, hidden: Tensor) -> Tensor:
        """(2, n, A): Q of every token or act, from both heads, of hidden states (n, d)."""
        q: Tensor = self.q_heads(hidden)
        return q

    def q_of_said(
        self,
        hidden: Tensor,
        actions: Tensor,
        allowed: Tensor | None,
        temperature: float,
        floor: Any,
    ) -> tuple[Tensor, Tensor]:
        """Both Q (2, n) of what was said, and both sums over all; see `action_and_logsumexp`."""
        found = [
            action_and_logsumexp(head, hidden, actions, allowed, temperature, floor)
            for head in self.q_heads  # type: ignore[attr-defined]
        ]
        said, total = zip(*found)
        return torch.stack(said), torch.stack(total)

    @torch.no_grad()
    def target_q_of_said(self, hidden: Tensor, actions: Tensor) -> Tensor:
        """The lesser of both target Qs of what was said (n,), within the bounds."""
        heads: Any = self.target_q_heads
        said = torch.stack([action_outputs(head, hidden, actions) for head in heads])
        return self.value_bounds.clip(said.amin(0))

    @torch.no_grad()
    def target_q(self, hidden: Tensor) -> Tensor:
        """(n, A): the lesser of both target Qs of every token or act, within the bounds."""
        return self.value_bounds.clip(self.target_q_heads(hidden).amin(0))

    def _get_constructor_parameters(self) -> dict[str, Any]:
        own = {"decoding": asdict(self.decoding), "q_head": self.q_head}
        before = super()._get_constructor_parameters()  # type: ignore[misc]
        return {**before, **own, **asdict(self.value_bounds)}


class ValueGPTPolicy(ValueHeads, GPTPolicy):  # type: ignore[misc]
    """`GPTPolicy` with two Q heads (V values each), their slow copies, and a head for V(s).

    By default they read one trunk with the policy head, so that a gradient step costs little more
    than cloning; with `share_features_extractor=False` they have a trunk of their own, and the
    targets a slow copy of it.

    Args:
        decoding: arguments of `Decoding`.
        q_head: class of the Q heads, or its name, in place of `MLPHead`: made with the width d of
            hidden states and the number of Q values, it takes states (..., d) to these. A mapping
            names it as `class` and gives it further arguments: `{"class":
            "agents.models.heads.ResidualHead", "hidden": 256}`.
        value_min, value_max: bounds of the target Q, wherever it is read; None for none.
        args, kwargs: as of `GPTPolicy`.
    """

    def _build(self, lr_schedule: Schedule) -> None:
        super()._build(lr_schedule)
        width = (self.value_backbone or self.backbone).width
        if self.config["value_head"] is None:
            self.value_head = MLPHead(width, 1)
        self._build_q_heads(width, self.q_outputs)
        self.target_backbone = None
        if self.value_backbone is not None:
            self.target_backbone = deepcopy(self.value_backbone).requires_grad_(False)
        self.optimizer = make_optimizer(self, lr_schedule)

    @property
    def q_outputs(self) -> int:
        """Q values of one hidden state: one for each token that may follow."""
        return int(self.action_space.n)  # type: ignore[attr-defined]

    # What losses ask for

    @property
    def values_apart(self) -> bool:
        """Return True if values have a trunk of their own."""
        return self.value_backbone is not None

    def hidden_states(self, tokens: Tensor, at: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """Hidden states (n, d) at the flat places `at` (n,), for policy, values and targets."""
        hidden = self.backbone(tokens, at)
        if self.value_backbone is None:
            return hidden, hidden, hidden.detach()
        assert self.target_backbone is not None
        with torch.no_grad():
            target_hidden = self.target_backbone(tokens, at)
        return hidden, self.value_backbone(tokens, at), target_hidden

    def log_probs(self, hidden: Tensor, allowed: Tensor | None) -> Tensor:
        """(n, V): of the cloned policy, of every token, from hidden states (n, d)."""
        return token_log_probs(self.policy_head, hidden, allowed)

    def log_prob_of_said(self, hidden: Tensor, actions: Tensor, allowed: Tensor | None) -> Tensor:
        """(n,): of the cloned policy, of what was said, from hidden states (n, d)."""
        said, total = action_and_logsumexp(self.policy_head, hidden, actions, allowed)
        return said - total

    def state_values(self, hidden: Tensor) -> Tensor:
        """(n,): V, of hidden states (n, d)."""
        return self.value_head(hidden)[:, 0]

    @torch.no_grad()
    def update_targets(self, tau: float) -> None:
        """Polyak averaging: move the target networks towards the networks by `tau`."""
        follow(self.target_q_heads, self.q_heads, tau)
        if self.target_backbone is not None:
            assert self.value_backbone is not None
            follow(self.target_backbone, self.value_backbone, tau)

    # Decoding

    def _distribution(
        self, tokens: Tensor, hidden: Tensor, masks: MASK_TYPES | None
    ) -> Distribution:
        logits, advantages = self._logits(tokens, hidden, masks), None
        if self.decoding.beta:
            advantages = self._advantages(self._value_hidden(tokens, hidden))
        spoken = self.decoding.logits(logits, advantages)
        return self.action_dist.proba_distribution(action_logits=spoken)

    def _advantages(self, hidden: Tensor) -> Tensor:
        """(B, V): min Q - V, of hidden states (B, d) that values are read off."""
        return self.decoding.clip(self.least_q(hidden) - self.value_head(hidden))

    def least_q(self, hidden: Tensor) -> Tensor:
        """(B, V): the lesser Q of each token, as speech reads it off `hidden` (B, d).

        It is that of the targets. Where values have a trunk of their own, the targets' would need
        one more pass for nearly the same numbers, and Q itself is read.
        """
        if self.target_backbone is None:
            return self.target_q(hidden)
        return self.value_bounds.clip(self.q_values(hidden).amin(0))
