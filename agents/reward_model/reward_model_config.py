"""The hyperparameters of a reward model."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields
from typing import Any

from dialgym.errors import finite_number, unknown

NEW_RATE, PRETRAINED_RATE = 1e-3, 2e-5
COUNTS = {"epochs", "patience", "batch_size", "max_length", "width", "layers", "heads"}


@dataclass(frozen=True)
class RewardModelConfig:
    """Training of a reward model, and the size of one from scratch.

    Attributes:
        epochs: passes over the data, at most.
        patience: epochs without a lower held-out loss after which training stops; 0 never stops.
        batch_size: examples of a gradient step.
        learning_rate: its peak, after a linear rise and before a linear fall to 0; None is 1e-3
            from scratch and 2e-5 from a checkpoint.
        warmup: share of all steps in which it rises.
        weight_decay: of AdamW.
        max_grad_norm: largest norm of a gradient.
        held_out: share of the contexts that are held out.
        threshold: learn if a score is above it, by binary cross-entropy, in place of the score; the
            output is the logit of that. None learns the scores.
        max_length: tokens of context and reply together; older ones are cut off. None is 256, or
            the checkpoint's window where that is shorter.
        width, layers, heads, dropout: of a model from scratch.

    Raises:
        ValueError: a number that cannot be.
    """

    epochs: int = 10
    patience: int = 3
    batch_size: int = 32
    learning_rate: float | None = None
    warmup: float = 0.1
    weight_decay: float = 0.01
    max_grad_norm: float = 1.0
    held_out: float = 0.1
    threshold: float | None = None
    max_length: int | None = None
    width: int = 128
    layers: int = 2
    heads: int = 4
    dropout: float = 0.1

    def __post_init__(self) -> None:
        for name in ("epochs", "batch_size", "width", "layers", "heads"):
            self._check(name, getattr(self, name) >= 1, "1 or more")
        self._check("patience", self.patience >= 0, "0 (never stops) or more")
        self._check(
            "learning_rate", self.learning_rate is None or self.learning_rate > 0, "above 0"
        )
        self._check("max_length", self.max_length is None or self.max_length >= 4, "4 or more")
        self._check("max_grad_norm", self.max_grad_norm > 0, "above 0")
        self._check("weight_decay", self.weight_decay >= 0, "0 or more")
        self._check("held_out", 0 < self.held_out < 1, "between 0 and 1")
        for name in ("warmup", "dropout"):
            self._check(name, 0 <= getattr(self, name) < 1, "from 0 to below 1")
        self._check("width", self.width % self.heads == 0, f"a multiple of heads={self.heads}")

    def _check(self, name: str, good: bool, expected: str) -> None:
        if not good:
            raise ValueError(f"reward model: {name} must be {expected}, got {getattr(self, name)}")

    @classmethod
    def of(cls, given: Mapping[str, Any]) -> RewardModelConfig:
        """The settings that are given, the others as they are by default.

        Raises:
            ValueError: an unknown name, or a number that cannot be.
        """
        known = [field.name for field in fields(cls)]
        for name in given:
            if name not in known:
                raise unknown("hyperparameter", name, known, "the reward model")
            if given[name] is not None or getattr(cls, name) is not None:
                finite_number(f"reward model: {name}", given[name])
        for name in COUNTS & given.keys():
            if given[name] is not None and given[name] % 1:
                raise ValueError(f"reward model: {name} must be a whole number, got {given[name]}")
        return cls(**given)

    def rate(self, pretrained: bool) -> float:
        """The peak of the learning rate."""
        return self.learning_rate or (PRETRAINED_RATE if pretrained else NEW_RATE)

    def as_dict(self) -> dict[str, Any]:
        """All of them by name."""
        return asdict(self)
