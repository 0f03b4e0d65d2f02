"""The GPT backbone: additions of any length, its window, how it begins, heads."""

import math

import numpy as np
import pytest
import torch

from agents.models.gpt import GPT
from agents.models.gpt_config import GPTConfig, preset
from agents.models.heads import PolicyHead, ValueHead

CLOSE = {"atol": 1e-5, "rtol": 1e-4}


def tiny(window: int = 24, vocab_size: int = 11) -> GPT:
    torch.manual_seed(0)
    return GPT(GPTConfig(vocab_size, window, n_layer=3, n_head=2, n_embd=16))


def whole(*rows: torch.Tensor) -> dict:
    """Arguments of `extend` that add all of each row to cache rows 0, 1, ..."""
    counts = np.array([len(row) for row in rows])
    return {"tokens": torch.cat(rows), "counts": counts, "rows": np.arange(len(rows))}


@pytest.mark.parametrize("rows", [[0, 1, 2, 3], [3, 1], [2, 0, 3, 1], [1]])
@pytest.mark.parametrize("counts", [[1, 1, 1, 1], [4, 1, 3, 1], [5, 5, 5, 5]])
def test_long_and_short_additions_are_read_together(rows, counts):
    model = tiny()
    cache, known = model.new_cache(4), [torch.randint(1, 11, (n,)) for n in (6, 2, 1, 9)]
    model.extend(cache=cache, **whole(*known))
    cache.lengths[rows[-1]] = 0
    known[rows[-1]] = known[0][:0]
    new = [torch.randint(1, 11, (n,)) for n in counts[: len(rows)]]
    arguments = {**whole(*new), "rows": np.array(rows)}
    hidden = model.extend(cache=cache, **arguments)
    for i, row in enumerate(rows):
        plain = model(torch.cat([known[row], new[i]])[None])[0, -1]
        torch.testing.assert_close(hidden[i], plain, **CLOSE)


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
    hidden = model.extend(cache=cache, **whole(tokens[0], tokens[1, :3]))
    torch.testing.assert_close(hidden[0], model(tokens)[0, -1], **CLOSE)
    with pytest.raises(ValueError, match="would grow to 9 tokens, the window is 8"):
        model.extend(cache=cache, **whole(tokens[0, :1], tokens[1, :1]))
    with pytest.raises(ValueError, match=r"at least 1 token, got counts \[0, 2\]"):
        model.extend(cache=cache, **whole(tokens[0, :0], tokens[1, :2]))
    assert cache.lengths.tolist() == [8, 3]
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
