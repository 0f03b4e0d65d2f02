"""Sampling of tokens from logits: temperature, top-k, top-p, by a generator of the caller's."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import torch
from stable_baselines3.common.policies import BasePolicy
from torch import Tensor

from agents.decoding.distributions import nucleus
from agents.models.masking import FORBIDDEN
from agents.models.observations import Observed
from dialgym.errors import finite_number, settings_as, whole_number
from dialgym.language.tokenizers import END, FIRST_TEXT, PAD

Seed = int | torch.Generator | None
Masks = Callable[[Tensor], Any]
"""From observations (1, L) to what may be said (1, V) bool, or None for what the policy says."""


@dataclass(frozen=True)
class Sampling:
    """Settings by which a reply is drawn.

    Attributes:
        temperature: divides the logits; below 1 the likely becomes likelier.
        top_k: only so many of the likeliest tokens; equals of the last one stay too.
        top_p: of these only the likeliest that together have at least that probability.
        max_tokens: of a reply; None leaves it to who speaks.
        deterministic: the likeliest token, always.

    Raises:
        ValueError: a number that cannot be.
    """

    temperature: float = 1.0
    top_k: int | None = None
    top_p: float | None = None
    max_tokens: int | None = None
    deterministic: bool = False

    def __post_init__(self) -> None:
        check_drawing("sampling", self, "")
        if self.max_tokens is not None:
            whole_number("max_tokens", self.max_tokens, "sampling")

    def logits(self, logits: Tensor) -> Tensor:
        """Logits (B, V) to draw by; those of forbidden tokens stay at a large negative number."""
        if self.temperature != 1:
            forbidden = logits <= FORBIDDEN / 2
            logits = (logits / self.temperature).masked_fill(forbidden, FORBIDDEN)
        return cut_off(logits, self.top_k, self.top_p)

    def next_token(self, logits: Tensor, generator: torch.Generator) -> int:
        """A token by its logits (V,), those of forbidden tokens at `FORBIDDEN` or below.

        One number is drawn from `generator`, which is on the CPU.
        """
        forbidden = logits <= FORBIDDEN / 2
        logits = (logits.double() / self.temperature).masked_fill(forbidden, -torch.inf)
        if self.deterministic:
            return int(logits.argmax())
        kept = cut_off(logits[None], self.top_k, self.top_p)
        uniform = torch.rand(1, generator=generator, dtype=torch.float64)
        return int(draw(kept.log_softmax(-1), uniform.to(logits.device)))


class SampledPolicy(BasePolicy):
    """Part of a policy that `agents.with_decoding` tells how to draw; first among its bases.

    Args:
        sampling: settings of `Sampling` by which `predict` draws, and no update.
        args, kwargs: of the other base.
    """

    def __init__(
        self, *args: Any, sampling: Sampling | Mapping[str, Any] | None = None, **kwargs: Any
    ) -> None:
        self.sampling = settings_as(Sampling, "sampling", sampling)
        super().__init__(*args, **kwargs)

    def _get_constructor_parameters(self) -> dict[str, Any]:
        return {**super()._get_constructor_parameters(), "sampling": asdict(self.sampling)}


def check_drawing(where: str, settings: Any, *prefixes: str) -> None:
    """Raise a ValueError for a temperature, or a top_k or top_p of a prefix, that cannot be."""
    if not finite_number(f"temperature of {where}", settings.temperature) > 0:
        raise ValueError(
            f"{where}: temperature must be above 0, got {settings.temperature}; deterministic=True "
            "takes the likeliest"
        )
    for prefix in prefixes:
        k, p = getattr(settings, f"{prefix}top_k"), getattr(settings, f"{prefix}top_p")
        if k is not None:
            whole_number(f"{prefix}top_k", k, where)
        if p is not None and not 0 < finite_number(f"{prefix}top_p of {where}", p) <= 1:
            raise ValueError(f"{where}: {prefix}top_p must be above 0 and at most 1, got {p}")


def generator_of(seed: Seed) -> torch.Generator:
    """The generator itself, one with that seed, or for None one that begins anywhere."""
    if isinstance(seed, torch.Generator):
        return seed
    generator = torch.Generator()
    if seed is None:
        generator.seed()
    else:
        generator.manual_seed(seed)
    return generator


def cut_off(logits: Tensor, top_k: int | None, top_p: float | None) -> Tensor:
    """Logits (B, V) with all but the likeliest tokens at a large negative number.

    Args:
        logits: (B, V).
        top_k: so many stay, and equals of the last of them.
        top_p: of these, the fewest that together have at least that probability stay.
    """
    if top_k is not None:
        least = logits.topk(min(top_k, logits.shape[-1]), -1).values[:, -1:]
        logits = logits.masked_fill(logits < least, FORBIDDEN)
    if top_p is not None:
        logits = logits.masked_fill(~nucleus(logits, top_p), FORBIDDEN)
    return logits


def draw(log_probs: Tensor, uniform: Tensor) -> Tensor:
    """Tokens (b,) from log-probabilities (b, V) and numbers (b,) in [0, 1), by inversion."""
    cumulative = log_probs.double().exp().cumsum(-1)
    reached = (1 - uniform.double())[:, None] * cumulative[:, -1:]  # above 0
    return torch.searchsorted(cumulative, reached)[:, 0].clamp(max=log_probs.shape[1] - 1)


def say_tokens(
    policy: Any,
    prompt: Sequence[int],
    most: int,
    sampling: Sampling,
    generator: torch.Generator,
    masks: Masks,
) -> list[int]:
    """Token by token from a policy's distribution, up to ``<end>`` or `most` tokens."""
    tokens = torch.zeros(1, policy.backbone.window, dtype=torch.int64, device=policy.device)
    tokens[0, : len(prompt)] = torch.tensor(list(prompt))
    said: list[int] = []
    for place in range(len(prompt), min(len(prompt) + most, tokens.shape[1])):
        logits = policy.get_distribution(tokens, masks(tokens)).distribution.logits[0]
        logits = spoken(policy, logits)
        token = sampling.next_token(logits, generator)
        if sampling.deterministic:
            token = int(policy.likeliest(logits.softmax(-1)[None], Observed.of(tokens)))
        said.append(token)
        if token == END:
            break
        tokens[0, place] = token
    return said


def spoken(policy: Any, logits: Tensor) -> Tensor:
    """Logits (V,) without special tokens but ``<end>``, which no masks rule out where none are."""
    if policy.masker is not None:
        return logits
    specials = torch.arange(PAD, FIRST_TEXT, device=logits.device)
    return logits.index_fill(0, specials[specials != END], FORBIDDEN)
