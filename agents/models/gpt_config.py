"""Shape of a GPT, by its sizes or by a named preset."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Any

from dialgym.errors import one_of, whole_number

POSITIONS = ("learned", "rotary")


@dataclass(frozen=True)
class GPTConfig:
    """Shape of a GPT.

    Raises:
        ValueError: a size below 1, an `n_embd` that is no multiple of `n_head`, other `positions`.
    """

    vocab_size: int
    window: int  # longest sequence, in tokens
    n_layer: int = 2
    n_head: int = 2
    n_embd: int = 64
    positions: str = "learned"  # or "rotary": see `agents.models.rotary.Rotary`
    init_std: float | None = None  # None: GPT-2's 0.02 at its width, more in narrower models

    def __post_init__(self) -> None:
        for size in ("vocab_size", "window", "n_layer", "n_head", "n_embd"):
            whole_number(size, getattr(self, size), "GPTConfig")
        if self.n_embd % self.n_head:
            raise ValueError(
                f"GPTConfig: n_embd must be a multiple of n_head, got n_embd={self.n_embd}, "
                f"n_head={self.n_head}"
            )
        one_of("positions", self.positions, POSITIONS, "GPTConfig")
        if self.positions == "rotary" and self.n_embd // self.n_head % 2:
            raise ValueError(
                f"GPTConfig: heads of rotary positions have an even size, got n_embd={self.n_embd} "
                f"over n_head={self.n_head}"
            )

    @property
    def std(self) -> float:
        """Standard deviation of initial weights, 0.02 sqrt(768 / n_embd) unless given.

        A sum over n_embd inputs then has the same size at any width. With 0.02 itself a model
        of width 64 starts with attention so flat that RL does not find its use.
        """
        return self.init_std or 0.02 * math.sqrt(768 / self.n_embd)


PRESETS: dict[str, dict[str, Any]] = {
    "nano": {"n_layer": 2, "n_head": 2, "n_embd": 64},
    "mini": {"n_layer": 4, "n_head": 4, "n_embd": 256},
    "small": {"n_layer": 12, "n_head": 12, "n_embd": 768},  # GPT-2's shape
}


def preset(name: str, vocab_size: int, window: int, **overrides: Any) -> GPTConfig:
    """A named shape, with any other field of `GPTConfig` replaced where not None."""
    if name not in PRESETS:
        raise ValueError(f"GPT preset: expected one of {list(PRESETS)}, got {name!r}")
    changes = {key: value for key, value in overrides.items() if value is not None}
    return replace(GPTConfig(vocab_size, window, **PRESETS[name]), **changes)
