"""Our own GPT and backbones of `transformers`: cached reading equals plain reading."""

import copy

import numpy as np
import pytest
import torch
import transformers

from agents.models.cache import KVCache
from agents.models.gpt import GPT
from agents.models.gpt_config import GPTConfig
from agents.models.hugging_face import HuggingFaceBackbone
from tests.support.by_day import by_day

CLOSE = {"atol": 1e-5, "rtol": 1e-4}
V, WINDOW = 17, 24
SHAPE = {
    "vocab_size": V,
    "hidden_size": 16,
    "intermediate_size": 32,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "max_position_embeddings": 32,
    "pad_token_id": 0,
    "bos_token_id": 1,
    "eos_token_id": 1,
}
GROUPED = {**SHAPE, "num_key_value_heads": 2}
CONFIGS = {
    "gpt2": {"vocab_size": V, "n_embd": 16, "n_layer": 2, "n_head": 2, "n_positions": 32},
    "llama": GROUPED,
    "qwen2": GROUPED,
    "qwen3": {**GROUPED, "head_dim": 8},
    "mistral": {**GROUPED, "sliding_window": 24},
    "gemma2": {**GROUPED, "head_dim": 8, "sliding_window": 24},
    "gpt_neox": SHAPE,
    "opt": {**SHAPE, "ffn_dim": 32, "word_embed_proj_dim": 16},
    "phi": SHAPE,
}


def config_of(model_type: str, **changes):
    return transformers.AutoConfig.for_model(model_type, **{**CONFIGS[model_type], **changes})


MODELS = ("gpt", *CONFIGS)
"""Ours first."""


def tiny(model_type: str, window: int = WINDOW, **changes) -> GPT | HuggingFaceBackbone:
    torch.manual_seed(0)
    if model_type == "gpt":
        return GPT(GPTConfig(V, window, n_layer=3, n_head=2, n_embd=16))
    model = transformers.AutoModel.from_config(config_of(model_type, **changes))
    for weight in model.parameters():
        torch.nn.init.normal_(weight, std=0.3)  # attention that is not flat
    return HuggingFaceBackbone(model, window)


def read(model, tokens: torch.Tensor, cache: KVCache) -> torch.Tensor:
    """Extends each row of the cache by all of (B, T)."""
    rows = np.arange(len(tokens))
    return model.extend(tokens.flatten(), np.full(len(tokens), tokens.shape[1]), cache, rows)


RAGGED = [("gpt", seed, most, 30) for seed in range(8) for most in (1, 7)]
RAGGED = by_day(RAGGED, *RAGGED[:2])
OTHERS = [(model_type, 0, 4, 14) for model_type in CONFIGS]
RAGGED += by_day(OTHERS, *(one for one in OTHERS if one[0] not in ("qwen2", "qwen3", "mistral")))


@pytest.mark.parametrize(("model_type", "seed", "most", "steps"), RAGGED)
def test_cached_equals_uncached_over_ragged_steps_resets_and_subsets(model_type, seed, most, steps):
    model, rng, b = tiny(model_type), np.random.default_rng(seed), 6
    cache = model.new_cache(b)
    sequences: list[list[int]] = [[] for _ in range(b)]
    for step in range(steps):
        for row in np.flatnonzero(rng.random(b) < 0.2):
            keep = int(rng.integers(0, len(sequences[row]) + 1)) * int(rng.integers(0, 2))
            cache.lengths[row] = keep  # a shortened row, or none
            del sequences[row][keep:]
        rows = rng.permutation(b)[: rng.integers(1, b + 1)] if step % 2 else np.arange(b)
        rows = rows[[len(sequences[r]) < WINDOW for r in rows]]
        if len(rows) == 0:
            continue
        counts = np.array(
            [min(rng.integers(1, most + 1), WINDOW - len(sequences[r])) for r in rows]
        )
        new = [rng.integers(1, V, count).tolist() for count in counts]
        for row, tokens in zip(rows, new, strict=True):
            sequences[row] += tokens
        hidden = model.extend(torch.tensor(np.concatenate(new)), counts, cache, rows)
        assert cache.lengths.tolist() == [len(s) for s in sequences]
        for i, row in enumerate(rows):
            plain = model(torch.tensor([sequences[row]]))[0, -1]
            torch.testing.assert_close(hidden[i], plain, **CLOSE)


@pytest.mark.parametrize("model_type", MODELS)
def test_reading_in_any_mode(model_type):
    model, tokens = tiny(model_type), torch.randint(1, V, (3, 9))
    hidden = model(tokens)
    assert hidden.shape == (3, 9, model.width)
    padded = tokens.clone()
    padded[:, 5:] = 0
    torch.testing.assert_close(model(padded)[:, :5], hidden[:, :5], **CLOSE)
    at = torch.tensor([0, 11, 26])
    torch.testing.assert_close(model(tokens, at), hidden.flatten(0, 1)[at], **CLOSE)
    grads = []
    for on in (False, True):
        model.train()
        model.gradient_checkpointing = on
        model.zero_grad()
        out = model(tokens, at)
        torch.testing.assert_close(out, hidden.flatten(0, 1)[at], **CLOSE)  # no dropout
        out.square().sum().backward()
        grads.append([p.grad.clone() for p in model.parameters() if p.grad is not None])
        cached = read(model, tokens, model.new_cache(3))
        torch.testing.assert_close(cached, hidden[:, -1], **CLOSE)
    assert len(grads[0]) == len(grads[1]) > 10
    for plain, recomputed in zip(*grads, strict=True):
        torch.testing.assert_close(plain, recomputed, **CLOSE)


@pytest.mark.parametrize("model_type", ["gpt", "llama", "gpt2"])
def test_layers_are_read_again_under_gradient_checkpointing(model_type):
    model, passes = tiny(model_type), []
    inner = {"gpt": "blocks", "gpt2": "model.h", "llama": "model.layers"}[model_type]
    model.get_submodule(f"{inner}.0.mlp").register_forward_pre_hook(lambda *_: passes.append(1))
    model.gradient_checkpointing = True
    model(torch.ones(1, 3, dtype=torch.int64)).sum().backward()
    assert len(passes) == 2
    with torch.no_grad():
        model(torch.ones(1, 3, dtype=torch.int64))
    assert len(passes) == 3


@pytest.mark.parametrize("model_type", MODELS)
@pytest.mark.parametrize("cached_in", by_day([torch.float32, torch.bfloat16], torch.float32))
def test_bfloat16_reads_and_writes_a_cache_of_any_precision(model_type, cached_in):
    model, tokens = tiny(model_type), torch.randint(1, V, (3, 9))
    with torch.autocast("cpu", torch.bfloat16, enabled=cached_in == torch.bfloat16):
        cache = model.new_cache(3)
    assert cache.keys.dtype == cached_in
    with torch.autocast("cpu", torch.bfloat16):
        read(model, tokens[:, :6], cache)
        hidden = read(model, tokens[:, 6:], cache)
        plain = model(tokens)[:, -1]
    exact = model(tokens)[:, -1]
    assert model_type != "gpt" or hidden.dtype == torch.float32
    assert not torch.equal(plain.float(), exact)
    for one, other in ((hidden, plain), (plain, exact)):
        assert (one - other).float().abs().mean() < 0.05 * other.float().abs().mean()


def test_a_copy_reads_on_its_own():
    model, tokens = tiny("llama"), torch.randint(1, V, (1, 5))
    twin = copy.deepcopy(model)
    torch.testing.assert_close(twin(tokens), model(tokens))
    twin.embedding.data.zero_()
    assert not torch.allclose(twin(tokens), model(tokens))


def test_windows_beyond_the_model_are_refused():
    with pytest.raises(ValueError, match=r"positions \(max_position_embeddings\) ends at 32"):
        tiny("llama", window=33)
    with pytest.raises(ValueError, match=r"local attention \(sliding_window\) ends at 8"):
        tiny("mistral", sliding_window=8)
    with pytest.raises(ValueError, match="sequences of 25 tokens, the window is 24"):
        tiny("opt")(torch.ones(1, 25, dtype=torch.int64))


@pytest.mark.parametrize(
    ("model_type", "settings"),
    [
        ("mamba", {"vocab_size": V, "hidden_size": 16, "num_hidden_layers": 2, "state_size": 4}),
        ("bloom", {"vocab_size": V, "hidden_size": 16, "n_layer": 2, "n_head": 2}),
        ("bert", SHAPE),
    ],
)
def test_models_without_such_a_cache_are_refused(model_type, settings):
    model = transformers.AutoModel.from_config(
        transformers.AutoConfig.for_model(model_type, **settings)
    )
    with pytest.raises(ValueError, match=r"Model cannot be a backbone: expected a causal"):
        HuggingFaceBackbone(model, WINDOW)
