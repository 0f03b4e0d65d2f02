"""The GPT backbone: cached reading equals plain reading, whatever the batch looks like."""

import math
import subprocess
import sys

import numpy as np
import pytest
import torch

from agents.models.gpt import GPT, GPTConfig, preset
from agents.models.heads import PolicyHead, ValueHead

CLOSE = {"atol": 1e-5, "rtol": 1e-4}


def tiny(window: int = 24, vocab_size: int = 11) -> GPT:
    torch.manual_seed(0)
    return GPT(GPTConfig(vocab_size, window, n_layer=3, n_head=2, n_embd=16))


def test_padding_on_the_right_changes_nothing():
    model = tiny()
    tokens = torch.randint(1, 11, (3, 20))
    padded = tokens.clone()
    padded[:, 13:] = 0
    torch.testing.assert_close(model(tokens)[:, :13], model(padded)[:, :13], **CLOSE)


@pytest.mark.parametrize("seed", range(5))
def test_cached_equals_uncached_over_ragged_steps_and_resets(seed):
    model, rng, b = tiny(), np.random.default_rng(seed), 5
    cache = model.new_cache(b)
    sequences: list[list[int]] = [[] for _ in range(b)]
    for _ in range(25):
        for row in np.flatnonzero(rng.random(b) < 0.15):
            cache.reset(torch.tensor([row]))
            sequences[row] = []
        counts = np.array([min(rng.integers(0, 5), 24 - len(s)) for s in sequences])
        tokens = rng.integers(1, 11, (b, max(counts.max(), 1)))
        for row in range(b):
            sequences[row] += tokens[row, : counts[row]].tolist()
        hidden = model.extend(torch.tensor(tokens), torch.tensor(counts), cache)
        assert cache.lengths.tolist() == [len(s) for s in sequences]
        for row in np.flatnonzero(counts):
            plain = model(torch.tensor([sequences[row]]))[0, -counts[row] :]
            torch.testing.assert_close(hidden[row, : counts[row]], plain, **CLOSE)


def test_some_rows_of_a_cache_can_grow_alone():
    model = tiny()
    cache = model.new_cache(4)
    tokens = torch.randint(1, 11, (4, 6))
    model.extend(tokens, torch.full((4,), 6), cache)
    rows, new = torch.tensor([3, 1]), torch.randint(1, 11, (2, 2))
    hidden = model.extend(new, torch.tensor([2, 1]), cache, rows)
    assert cache.lengths.tolist() == [6, 7, 6, 8]
    plain = model(torch.cat([tokens[3], new[0]])[None])[0, -2:]
    torch.testing.assert_close(hidden[0], plain, **CLOSE)
    plain = model(torch.cat([tokens[1], new[1, :1]])[None])[0, -1]
    torch.testing.assert_close(hidden[1, 0], plain, **CLOSE)


def test_a_shortened_row_is_a_valid_cache():
    model = tiny()
    cache = model.new_cache(1)
    tokens = torch.randint(1, 11, (1, 9))
    model.extend(tokens, torch.tensor([9]), cache)
    cache.lengths[0] = 4
    hidden = model.extend(tokens[:, 4:6], torch.tensor([2]), cache)
    torch.testing.assert_close(hidden, model(tokens[:, :6])[:, 4:], **CLOSE)


def test_gradient_checkpointing_gives_the_same_gradients():
    model, tokens, grads = tiny(), torch.randint(1, 11, (3, 9)), []
    at = torch.tensor([0, 5, 26])
    passes = []
    model.blocks[0].register_forward_pre_hook(lambda *_: passes.append(1))
    for on in (False, True):
        model.gradient_checkpointing = on
        model.zero_grad()
        model(tokens, at).square().sum().backward()
        grads.append([p.grad.clone() for p in model.parameters()])
    assert len(passes) == 3  # once, then once and again
    for plain, recomputed in zip(*grads, strict=True):
        torch.testing.assert_close(plain, recomputed, **CLOSE)
    with torch.no_grad():
        model(tokens)
    assert len(passes) == 4


def test_bfloat16_reads_and_writes_a_float32_cache():
    model, tokens = tiny(), torch.randint(1, 11, (3, 9))
    cache = model.new_cache(3)
    with torch.autocast("cpu", torch.bfloat16):
        cached = model.extend(tokens, torch.full((3,), 9), cache)
        plain = model(tokens)
    assert cache.keys.dtype == torch.float32
    torch.testing.assert_close(cached.float(), plain.float(), atol=0.05, rtol=0.05)
    torch.testing.assert_close(plain.float(), model(tokens), atol=0.05, rtol=0.05)
    assert not torch.equal(plain.float(), model(tokens))


def test_heads_give_float32_under_autocast():
    hidden = torch.randn(4, 16)
    policy, value = PolicyHead(16, 11, initial=torch.randn(11, 16)), ValueHead(16)
    torch.nn.init.normal_(value.linear.weight)
    for head in (policy, value):
        with torch.autocast("cpu", torch.bfloat16):
            assert torch.equal(head(hidden), head(hidden.float()))
            out = head(hidden)
        assert out.dtype == torch.float32
        assert torch.equal(out, head(hidden))


def test_the_window_can_be_filled_and_not_overfilled():
    model = tiny(window=8)
    cache = model.new_cache(2)
    tokens = torch.randint(1, 11, (2, 8))
    hidden = model.extend(tokens, torch.tensor([8, 3]), cache)
    torch.testing.assert_close(hidden[0], model(tokens)[0], **CLOSE)
    with pytest.raises(ValueError, match="would grow to 9 tokens, the window is 8"):
        model.extend(tokens[:, :1], torch.tensor([1, 1]), cache)
    with pytest.raises(ValueError, match="sequences of 9 tokens, the window is 8"):
        model(torch.ones(1, 9, dtype=torch.long))


@pytest.mark.parametrize(("width", "std"), [(192, 0.04), (768, 0.02)])
def test_initialisation_is_gpt2s_scaled_with_the_width(width, std):
    torch.manual_seed(0)
    model = GPT(GPTConfig(vocab_size=500, window=100, n_layer=2, n_head=2, n_embd=width))
    assert model.wte.weight.std().item() == pytest.approx(std, rel=0.05)
    assert model.wpe.weight.std().item() == pytest.approx(std, rel=0.05)
    residual = std / math.sqrt(4)
    for name, weight in model.named_parameters():
        if name.endswith("proj.weight"):
            assert weight.std().item() == pytest.approx(residual, rel=0.1)
        elif name.endswith(("qkv.weight", "up.weight")):
            assert weight.std().item() == pytest.approx(std, rel=0.1)
        elif name.endswith("bias"):
            assert not weight.any()


def test_presets_and_bad_shapes():
    shapes = [preset(name, 32, 10) for name in ("nano", "mini", "small")]
    assert [(c.n_layer, c.n_head, c.n_embd) for c in shapes] == [
        (2, 2, 64),
        (4, 4, 256),
        (12, 12, 768),
    ]
    assert preset("nano", 32, 10, n_embd=128, n_head=None).n_embd == 128
    with pytest.raises(ValueError, match="expected one of \\['nano', 'mini', 'small'\\]"):
        preset("huge", 32, 10)
    with pytest.raises(ValueError, match="n_embd must be a multiple of n_head"):
        preset("nano", 32, 10, n_head=3)


def test_heads():
    model = tiny()
    hidden = torch.randn(4, 16)
    tied = PolicyHead(16, 11, model.embedding)
    assert tied.weight is model.wte.weight
    assert tied(hidden).shape == (4, 11)
    assert not PolicyHead(16, 11)(hidden).any()
    assert not ValueHead(16)(hidden).any()


def test_importing_agents_is_light():
    code = "import sys, agents; assert agents.__dialgym_agents__; print('torch' in sys.modules)"
    out = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert out.stdout.strip() == "False"


def test_an_unknown_public_name_is_explained():
    import agents

    with pytest.raises(AttributeError, match="no attribute 'GPTPolcy'; it has"):
        _ = agents.GPTPolcy
    assert set(agents.__all__) <= set(dir(agents))
