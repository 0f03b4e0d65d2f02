"""Any causal language model of `transformers` as a backbone, on our ragged KV cache."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from agents.models.cache import CacheGroup, KVCache, Slots, computing_dtype, packed

PROBE = 48  # tokens that a model reads once, to see that its cached and plain reading agree


class HuggingFaceBackbone(nn.Module):
    """A base model of `transformers` (`AutoModel`); implements the `Backbone` protocol.

    Its dropout is set to zero: under PPO it would make the new policy differ from the old one
    before any update. Hidden states are float32 in any precision, as those of our `GPT` are.

    Args:
        model: a causal language model without its head.
        window: longest sequence, in tokens.

    Attributes:
        gradient_checkpointing: as in `agents.models.gpt.GPT`.

    Raises:
        ValueError: the window is longer than the model's positions or its sliding attention, or
            the model does not read with a key-value cache of one shape as it reads without.
    """

    def __init__(self, model: nn.Module, window: int) -> None:
        super().__init__()
        self.model = without_dropout(model).eval()
        self.window = window
        self._checkpoints = False
        check_window(model.config, window)
        self.cache_shape, self.width = self._probe()

    @property
    def embedding(self) -> Tensor:
        return self.model.get_input_embeddings().weight  # type: ignore[operator]

    @property
    def gradient_checkpointing(self) -> bool:
        return self._checkpoints

    @gradient_checkpointing.setter
    def gradient_checkpointing(self, on: bool) -> None:
        self._checkpoints = on
        new, old = "activation_checkpointing", "gradient_checkpointing"  # its names over time
        name = new if hasattr(self.model, f"{new}_enable") else old
        if on:
            getattr(self.model, f"{name}_enable")({"use_reentrant": False})
        else:
            getattr(self.model, f"{name}_disable")()

    def train(self, mode: bool = True) -> HuggingFaceBackbone:
        """Sets the mode, but not the model's own: it would drop the cache while it trains."""
        super().train(mode)
        self.model.eval()
        return self

    def forward(
        self, tokens: Tensor, at: Tensor | None = None, bias: Tensor | None = None
    ) -> Tensor:
        """Hidden states (B, T, d) of token ids (B, T), or (N, d) of the flat places `at` (N,).

        A `bias` (B, d) is added to the embeddings of each row.

        Raises ValueError when T > window.
        """
        if tokens.shape[1] > self.window:
            raise ValueError(
                f"{self._name}: sequences of {tokens.shape[1]} tokens, the window is {self.window}"
            )
        recompute = self._checkpoints and torch.is_grad_enabled()
        if recompute:
            self.model.train()  # the layers are checkpointed in this mode alone
        read = self._embedded(tokens, None if bias is None else bias[:, None])
        hidden = self.model(**read, use_cache=False).last_hidden_state.float()
        if recompute:
            self.model.eval()
        return hidden if at is None else hidden.flatten(0, 1)[at]

    def new_cache(self, rows: int) -> KVCache:
        n_layer, n_head, head_size = self.cache_shape
        weight = self.embedding
        dtype = computing_dtype(weight)
        return KVCache(n_layer, rows, n_head, self.window, head_size, weight.device, dtype)

    @torch.no_grad()
    def extend(
        self,
        tokens: Tensor,
        counts: np.ndarray,
        cache: KVCache,
        rows: np.ndarray,
        bias: Tensor | None = None,
    ) -> Tensor:
        """Hidden states (b, d) at the ends of rows that grow by the packed `tokens` (n,).

        See `Backbone.extend`. Gradients never flow through a cache. One forward for each group of
        rows that add about as many tokens.
        """
        slots = cache.plan(counts, rows)
        hidden = torch.cat(
            [self._extend(tokens, cache, slots, group, bias) for group in slots.groups]
        )
        cache.commit(counts, rows)
        return (hidden if slots.last is None else hidden[slots.last]).float()

    def _extend(
        self,
        tokens: Tensor,
        cache: KVCache,
        slots: Slots,
        group: CacheGroup,
        bias: Tensor | None,
    ) -> Tensor:
        """Hidden states (n, d) of a group's new tokens."""
        more = None if bias is None else group.pad(bias[group.tokens])
        hidden: Tensor = self.model(
            **self._embedded(group.pad(tokens[group.tokens]), more),
            attention_mask=group.bias,
            position_ids=group.positions,
            past_key_values=Layers(cache, slots, group),
            use_cache=True,
        ).last_hidden_state
        return group.unpad(hidden)

    def _embedded(self, tokens: Tensor, bias: Tensor | None) -> dict[str, Tensor]:
        """The model's input for tokens (B, T), with a bias (B, T, d) or (B, 1, d)."""
        if bias is None:
            return {"input_ids": tokens.long()}
        embedded = self.model.get_input_embeddings()(tokens.long())  # type: ignore[operator]
        return {"inputs_embeds": embedded + bias}

    @property
    def _name(self) -> str:
        return type(self.model).__name__

    @torch.no_grad()
    def _probe(self) -> tuple[tuple[int, int, int], int]:
        """Shape (layers, heads, head size) of the cache, and the width of hidden states.

        Reads a few tokens both ways, in two pieces with the cache; they must agree.
        """
        n = min(PROBE, self.window)
        rows = self.embedding.shape[0]
        tokens = torch.arange(n, device=self.embedding.device)[None] * 7 % rows
        shapes = Shapes()
        try:
            plain = self.model(input_ids=tokens, use_cache=False).last_hidden_state
            self.model(input_ids=tokens, past_key_values=shapes, use_cache=True)
            self.cache_shape = shapes.common()
            cached, places = self._pieces(tokens[0])
            plain = plain[0, places]
        except (AttributeError, TypeError, RuntimeError, ValueError, IndexError) as error:
            raise self._refusal(f"it failed with {type(error).__name__}: {error}") from error
        worst = float((cached - plain).abs().max() / plain.abs().max().clamp(min=1e-6))
        if not worst < (1e-3 if plain.dtype == torch.float32 else 0.1):
            raise self._refusal(f"hidden states differ by {worst:.2g} of their size")
        return self.cache_shape, plain.shape[-1]

    def _pieces(self, tokens: Tensor) -> tuple[Tensor, np.ndarray]:
        """Hidden states (m, d) of tokens (n,) read with a cache, and their places (m,).

        Each row begins with a piece of another length, and then goes on to the end.
        """
        n = len(tokens)
        first = np.arange(1, n + 1, -(-n // 8))
        cache, hidden, places = self.new_cache(len(first)), [], []
        for counts in (first, n - first):
            rows = np.flatnonzero(counts)
            if not len(rows):
                continue  # a window of one token
            _, place = packed(cache.lengths[rows], counts[rows])
            hidden.append(self.extend(tokens[place], counts[rows], cache, rows))
            places.append(cache.lengths[rows] - 1)
        return torch.cat(hidden), np.concatenate(places)

    def _refusal(self, reason: str) -> ValueError:
        return ValueError(
            f"{self._name} cannot be a backbone: expected a causal transformer that reads the same "
            f"with and without a cache of keys and values, but {reason}. Choose a model such as "
            "GPT-2, Llama, Qwen or GPT-NeoX."
        )


class Layers:
    """The interface of a cache of `transformers`, for the new tokens of a group.

    Stores nothing: keys and values go to their slots in a `KVCache`.
    """

    is_compileable = False

    def __init__(self, cache: KVCache, slots: Slots, group: CacheGroup) -> None:
        self.cache = cache
        self.group = group
        self.rows, self.positions = slots.rows[group.tokens], slots.positions[group.tokens]

    def update(self, k: Tensor, v: Tensor, layer_idx: int, *_: Any, **__: Any) -> Any:
        """New keys and values (b, nh, k, hs) to all visible ones (b, nh, span, hs)."""
        new_k, new_v = (self.group.unpad(part.transpose(1, 2)) for part in (k, v))
        self.cache.append(layer_idx, new_k, new_v, self.rows, self.positions)
        keys, values = self.cache.read(layer_idx, self.group)
        return keys.to(k.dtype), values.to(v.dtype)

    def __len__(self) -> int:
        return len(self.cache.keys)

    def get_seq_length(self, layer_idx: int = 0) -> int:
        """A number for code that wants one; places are given by `position_ids`."""
        return self.group.span - self.group.positions.shape[1]

    def get_query_offset(self, layer_idx: int = 0) -> int:
        return self.get_seq_length()

    def get_mask_sizes(self, query_length: int, layer_idx: int) -> tuple[int, int]:
        return self.group.span, 0


class Shapes:
    """A cache that keeps nothing but the shape of each layer's keys and values."""

    is_compileable = False

    def __init__(self) -> None:
        self.seen: dict[int, tuple[int, ...]] = {}

    def update(self, k: Tensor, v: Tensor, layer_idx: int, *_: Any, **__: Any) -> Any:
        self.seen[layer_idx] = (k.shape[1], k.shape[3], v.shape[1], v.shape[3])
        return k, v

    def get_seq_length(self, layer_idx: int = 0) -> int:
        return 0

    def get_query_offset(self, layer_idx: int = 0) -> int:
        return 0

    def get_mask_sizes(self, query_length: int, layer_idx: int) -> tuple[int, int]:
        return query_length, 0

    def common(self) -> tuple[int, int, int]:
        """(layers, heads, head size). Raises ValueError where layers or keys and values differ."""
        kinds = set(self.seen.values())
        if sorted(self.seen) != list(range(len(self.seen))) or len(kinds) != 1:
            raise ValueError(f"keys and values of several shapes, {self.seen or 'none at all'}")
        heads, size, *of_values = kinds.pop()
        if [heads, size] != of_values:
            raise ValueError(f"keys of shape {[heads, size]} and values of shape {of_values}")
        return len(self.seen), heads, size


def without_dropout(model: nn.Module) -> nn.Module:
    """The model itself, with every rate of dropout in it set to zero."""
    for module in model.modules():
        if isinstance(module, nn.Dropout):
            module.p = 0.0
        for name, value in vars(module).items():
            if "drop" in name and isinstance(value, float):
                setattr(module, name, 0.0)
    return model


def check_window(config: Any, window: int) -> None:
    """Raises ValueError where a model's positions or its local attention end before `window`."""
    limits = {
        "positions": ("max_position_embeddings", "n_positions", "max_sequence_length"),
        "local attention": ("sliding_window", "attention_chunk_size", "window_size"),
    }
    for what, names in limits.items():
        for name in names:
            limit = getattr(config, name, None)
            if isinstance(limit, int) and 0 < limit < window:
                raise ValueError(
                    f"{config.model_type}: the window is {window} tokens, but the model's {what} "
                    f"({name}) ends at {limit}. Shorten the window or choose another model."
                )
