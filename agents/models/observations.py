"""Observations of GPT policies: token windows, action masks and features."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np
import torch
from gymnasium import spaces
from torch import Tensor, nn

from agents.models.prefixes import left_aligned, lengths_of

TOKENS = ("tokens", "observation")
"""Keys of a `Dict` observation that may hold the token window."""
MASK, FEATURES = "action_mask", "features"


class Observed(NamedTuple):
    """Observations of a batch, on the host: only what is computed of them lies on the device."""

    tokens: Tensor  # (B, L) integer, PAD at the right
    lengths: np.ndarray  # (B,) int64, 1 or more
    allowed: Tensor | None = None  # (B, V) bool, what may be said
    features: Tensor | None = None  # (B, F) float32
    rows: np.ndarray | None = None  # (B,) int64, which rows of a larger batch; None is all of them
    total: int = 0  # rows of the larger batch

    @classmethod
    def of(cls, observations: Any) -> Observed:
        """Tokens (B, L), or a mapping with them, an action mask (B, V) and features (B, ...).

        Padding may be on either side.
        """
        if isinstance(observations, Observed):
            return observations
        mask = features = None
        if isinstance(observations, Mapping):
            mask, features = observations.get(MASK), observations.get(FEATURES)
            observations = next(observations[key] for key in TOKENS if key in observations)
        tokens = left_aligned(_on_host(observations))
        return cls(
            tokens,
            lengths_of(tokens).numpy(),
            None if mask is None else _on_host(mask).bool(),
            None if features is None else _on_host(features).float().flatten(1),
            None,
            len(tokens),
        )

    def select(self, rows: np.ndarray) -> Observed:
        """The observations of `rows` (b,), which caches know by their places in the batch."""
        index = torch.from_numpy(rows)
        return Observed(
            self.tokens[index],
            self.lengths[rows],
            None if self.allowed is None else self.allowed[index],
            None if self.features is None else self.features[index],
            rows,
            self.total,
        )


def _on_host(values: Any) -> Tensor:
    return torch.as_tensor(values).cpu()


def token_space(space: Any) -> Any:
    """The space of token windows in a policy's observation space."""
    if isinstance(space, spaces.Dict):
        return next((space[key] for key in TOKENS if key in space.spaces), space)
    return space


def has_masks(space: Any) -> bool:
    """Return True if observations have action masks."""
    return isinstance(space, spaces.Dict) and MASK in space.spaces


def feature_count(space: Any) -> int:
    """Numbers in the feature array beside the tokens; 0 where there is none."""
    if isinstance(space, spaces.Dict) and FEATURES in space.spaces:
        return int(np.prod(space[FEATURES].shape or ()))
    return 0


def check_spaces(observation_space: spaces.Space, action_space: spaces.Space) -> None:
    """Raises ValueError unless observations have token windows and actions are their tokens."""
    tokens = token_space(observation_space)
    is_tokens = (
        isinstance(tokens, spaces.Box)
        and len(tokens.shape) == 1
        and np.issubdtype(tokens.dtype, np.integer)
    )
    if not is_tokens:
        raise ValueError(
            "GPTPolicy: expected observations Box(0, V - 1, (L,), integer), token ids with 0 as "
            "padding, or a Dict with them under 'tokens' or 'observation', beside which "
            f"'action_mask' and 'features' are read; got {observation_space}. Use the token view "
            "of the task."
        )
    vocab_size = int(tokens.high.max()) + 1
    if not isinstance(action_space, spaces.Discrete) or int(action_space.n) != vocab_size:
        raise ValueError(
            f"GPTPolicy: expected actions Discrete({vocab_size}), one for each token of the "
            f"observations, got {action_space}"
        )
    if isinstance(observation_space, spaces.Dict):
        _check_beside(observation_space, vocab_size)


def _check_beside(space: spaces.Dict, vocab_size: int) -> None:
    for key, part in space.spaces.items():
        if key == MASK and part.shape != (vocab_size,):
            raise ValueError(
                f"GPTPolicy: expected 'action_mask' of shape ({vocab_size},), got {part.shape}"
            )
        if key not in (*TOKENS, MASK, FEATURES):
            raise ValueError(
                f"GPTPolicy: cannot read {key!r} of the observations; known are the tokens "
                "('tokens' or 'observation'), 'action_mask' and 'features'"
            )


class FeatureEmbedding(nn.Module):
    """A linear map of features (B, F) to what is added to each token's embedding, (B, d).

    A bias on every embedding rather than a token in front: no position is lost, and no layer has to
    look back for it. At first it is about as large as the embeddings themselves.
    """

    def __init__(self, features: int, embedding: Tensor) -> None:
        super().__init__()
        self.linear = nn.Linear(features, embedding.shape[1])
        nn.init.normal_(self.linear.weight, std=float(embedding.detach().std()) / features**0.5)
        nn.init.zeros_(self.linear.bias)

    def forward(self, features: Tensor) -> Tensor:
        embedded: Tensor = self.linear(features)
        return embedded
