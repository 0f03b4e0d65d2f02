"""How one token is chosen from logits, with randomness that the caller owns."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from agents.common.distributions import nucleus
from agents.common.masking import FORBIDDEN

Seed = int | torch.Generator | None


@dataclass(frozen=True)
class Sampling:
    """How a reply is drawn.

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
        if not self.temperature > 0:
            raise ValueError(
                f"sampling: temperature must be above 0, got {self.temperature}; "
                "deterministic=True says the likeliest"
            )
        for name in ("top_k", "max_tokens"):
            count = getattr(self, name)
            if count is not None and count < 1:
                raise ValueError(f"sampling: {name} must be at least 1 or None, got {count}")
        if self.top_p is not None and not 0 < self.top_p <= 1:
            raise ValueError(f"sampling: top_p must be above 0 and at most 1, got {self.top_p}")

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
    """Logits (B, V), those of all but the likeliest tokens at a large negative number.

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
