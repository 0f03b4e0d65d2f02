"""Reference loops in plain PyTorch: the least code that samples from a GPT and that trains it.

No environment, no padding, no values or log-probabilities to keep, nothing ragged. The loops read
the weights of a `GPT`, so that they and a learner compute the same numbers.
"""

from __future__ import annotations

import math
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from agents.models.gpt import GPT
from dialgym.optional import require


class StaticCache:
    """Keys and values (n_layer, B, nh, T, hs) of B sequences that are all equally long."""

    def __init__(self, model: GPT, rows: int, length: int) -> None:
        c = model.config
        shape = (c.n_layer, rows, c.n_head, length, c.n_embd // c.n_head)
        self.keys, self.values = torch.empty(shape), torch.empty(shape)


@torch.inference_mode()
def bare_rollout(model: GPT, prompts: Tensor, n_new: int) -> Tensor:
    """Sampled continuations (B, n_new) of prompts (B, T): one prefill, n_new - 1 decode steps."""
    rows, length = prompts.shape
    cache = StaticCache(model, rows, length + n_new)
    return bare_decode(model, cache, bare_prefill(model, cache, prompts), length, n_new)


@torch.inference_mode()
def bare_prefill(model: GPT, cache: StaticCache, prompts: Tensor) -> Tensor:
    """Fill the cache with prompts (B, T); logits (B, V) of the next token."""
    length = prompts.shape[1]
    x = F.embedding(prompts, model.wte.weight) + model.wpe.weight[:length]
    for layer, block in enumerate(model.blocks):
        q, k, v = _heads(block, x)
        cache.keys[layer, :, :, :length] = k
        cache.values[layer, :, :, :length] = v
        x = _rest(block, x, F.scaled_dot_product_attention(q, k, v, is_causal=True))
    return _logits(model, x[:, -1])


@torch.inference_mode()
def bare_decode(model: GPT, cache: StaticCache, logits: Tensor, start: int, n_new: int) -> Tensor:
    """Tokens (B, n_new) sampled one by one, the first from `logits` (B, V)."""
    tokens = torch.empty(len(logits), n_new, dtype=torch.int64)
    for i in range(n_new):
        token = torch.multinomial(logits.softmax(-1), 1)
        tokens[:, i : i + 1] = token
        if i + 1 < n_new:
            logits = _step(model, cache, token, start + i)
    return tokens


def _step(model: GPT, cache: StaticCache, token: Tensor, at: int) -> Tensor:
    """Logits (B, V) after one more `token` (B, 1) at the place `at` of every sequence."""
    x = F.embedding(token, model.wte.weight) + model.wpe.weight[at]
    for layer, block in enumerate(model.blocks):
        q, k, v = _heads(block, x)
        keys, values = cache.keys[layer], cache.values[layer]
        keys[:, :, at : at + 1] = k
        values[:, :, at : at + 1] = v
        scores = q @ keys[:, :, : at + 1].transpose(2, 3) / math.sqrt(q.shape[-1])
        x = _rest(block, x, scores.softmax(-1) @ values[:, :, : at + 1])
    return _logits(model, x[:, 0])


def bare_update(model: GPT, value_head: nn.Linear, tokens: Tensor, n_actions: int) -> None:
    """Gradients of a policy and a value loss at the last `n_actions` of each row (B, T + 1).

    T tokens of each row are read; the last is only predicted.
    """
    x = F.embedding(tokens[:, :-1], model.wte.weight) + model.wpe.weight[: tokens.shape[1] - 1]
    for block in model.blocks:
        q, k, v = _heads(block, x)
        x = _rest(block, x, F.scaled_dot_product_attention(q, k, v, is_causal=True))
    hidden = _norm(model.ln_f, x[:, -n_actions:]).flatten(0, 1)
    logits = F.linear(hidden, model.wte.weight)
    loss = F.cross_entropy(logits, tokens[:, -n_actions:].flatten())
    (loss + value_head(hidden).square().mean()).backward()


def hugging_face(model: GPT) -> Any:
    """A random `GPT2LMHeadModel` of the shape of `model`."""
    transformers = require("transformers", "agents", "the speed of Hugging Face's generate")
    transformers.logging.set_verbosity_error()  # it takes PAD for padding, where there is none
    c = model.config
    config = transformers.GPT2Config(
        vocab_size=c.vocab_size,
        n_positions=c.window,
        n_embd=c.n_embd,
        n_layer=c.n_layer,
        n_head=c.n_head,
        bos_token_id=None,
        eos_token_id=None,
        pad_token_id=0,
    )
    return transformers.GPT2LMHeadModel(config).eval()


def hugging_face_rollout(model: Any, prompts: Tensor, n_new: int) -> Tensor:
    """Sampled continuations (B, n_new) of prompts (B, T) by `generate`."""
    sampled = model.generate(
        prompts,
        attention_mask=torch.ones_like(prompts),
        do_sample=True,
        top_k=0,
        max_new_tokens=n_new,
        min_new_tokens=n_new,
    )
    return sampled[:, -n_new:]


def _norm(layer: Any, x: Tensor) -> Tensor:
    return F.layer_norm(x, x.shape[-1:], layer.weight, layer.bias)


def _heads(block: Any, x: Tensor) -> tuple[Tensor, ...]:
    """Queries, keys and values, each (B, nh, T, hs)."""
    b, t, _ = x.shape
    attention = block.attn
    qkv = F.linear(_norm(block.ln_1, x), attention.qkv.weight, attention.qkv.bias)
    return qkv.view(b, t, 3, attention.n_head, -1).transpose(1, 3).unbind(2)


def _rest(block: Any, x: Tensor, y: Tensor) -> Tensor:
    """The block's output, given what its heads (B, nh, T, hs) have read."""
    x = x + F.linear(y.transpose(1, 2).flatten(2), block.attn.proj.weight, block.attn.proj.bias)
    up = F.linear(_norm(block.ln_2, x), block.mlp.up.weight, block.mlp.up.bias)
    return x + F.linear(F.gelu(up, approximate="tanh"), block.mlp.proj.weight, block.mlp.proj.bias)


def _logits(model: GPT, x: Tensor) -> Tensor:
    return F.linear(_norm(model.ln_f, x), model.wte.weight)
