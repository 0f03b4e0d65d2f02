"""Plans of the measurements: shapes of models and sizes of batches, with a GPU and without."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any
from unittest import mock

import torch

from agents.models.hugging_face import HuggingFaceBackbone

PEAKS = {"H100": 989e12, "H200": 989e12, "A100": 312e12, "L40S": 362e12, "RTX 4090": 165e12}
"""Dense bfloat16 operations a second, from the makers' data sheets (SXM versions)."""
QWEN: Mapping[str, Any] = {
    "hidden_size": 896,
    "intermediate_size": 4864,
    "num_hidden_layers": 24,
    "num_attention_heads": 14,
    "num_key_value_heads": 2,
    "max_position_embeddings": 32_768,
    "rope_theta": 1_000_000.0,
}
"""The shape of Qwen2.5-0.5B; see its card (Qwen Team, 2024)."""
TINY_QWEN: Mapping[str, Any] = {
    **QWEN,
    "hidden_size": 64,
    "intermediate_size": 128,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
}


@dataclass(frozen=True)
class Shape:
    """A model with random weights.

    Attributes:
        name: in tables.
        words: of the vocabulary that it is measured with.
        policy: arguments of the policy.
        qwen: the shape of a `Qwen2Model`, which goes through `HuggingFaceBackbone`; None for our
            own GPT.
    """

    name: str
    words: int
    policy: Mapping[str, Any] = field(default_factory=dict)
    qwen: Mapping[str, Any] | None = None

    @contextmanager
    def policy_kwargs(self) -> Iterator[dict[str, Any]]:
        """The arguments of the policy, where policies made meanwhile have this shape."""
        if self.qwen is None:
            yield dict(self.policy)
            return
        with mock.patch("agents.models.pretrained.load_backbone", self._random):
            yield {**self.policy, "pretrained": "random"}

    def _random(self, source: str, tokenizer: Any, window: int) -> tuple[Any, None]:
        """In place of reading a folder: a backbone whose embeddings are tied to the head."""
        from transformers import Qwen2Config, Qwen2Model

        torch.manual_seed(0)
        config = Qwen2Config(vocab_size=tokenizer.vocab_size, **(self.qwen or {}))
        return HuggingFaceBackbone(Qwen2Model(config), window), None


@dataclass(frozen=True)
class Plan:
    """Shapes and sizes of what is run: more where there is a GPU.

    Attributes:
        device: as of PyTorch.
        gpt: GPT-2 small's shape.
        qwen: that of a model of half a billion weights.
        n_envs: dialogues at once.
        n_epochs: of PPO.
        repeats: iterations that are timed, after one that is not; the median counts.
    """

    device: str
    gpt: Shape
    qwen: Shape
    n_envs: int
    n_epochs: int
    repeats: int

    @classmethod
    def of_this_machine(cls) -> Plan:
        """Real shapes and 256 dialogues on a GPU; small models and 8 without."""
        if torch.cuda.is_available():
            gpt = Shape("GPT-2 small", 50_257 - 5, {"preset": "small"})
            qwen = Shape("Qwen2.5-0.5B", 151_936 - 5, qwen=QWEN)
            return cls("cuda", gpt, qwen, 256, 4, 3)
        gpt = Shape("GPT, 2 layers of 64", 507, {"preset": "nano"})
        qwen = Shape("Qwen2, 2 layers of 64", 507, qwen=TINY_QWEN)
        return cls("cpu", gpt, qwen, 8, 1, 1)

    @property
    def name(self) -> str:
        """Name of the device."""
        return torch.cuda.get_device_name() if self.device == "cuda" else "CPU"

    @property
    def peak(self) -> float | None:
        """Operations a second in bfloat16; None where the device is not in the list."""
        return next((peak for key, peak in PEAKS.items() if key in self.name), None)
