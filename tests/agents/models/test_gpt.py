"""The GPT backbone: additions of any length, its window, how it begins, heads."""

import math

import numpy as np
import pytest
import torch

from agents.models.gpt import GPT
from agents.models.gpt_config import POSITIONS, GPTConfig, preset
from agents.models.heads import PolicyHead, ValueHead
from agents.models.rotary import Rotary, turned

CLOSE = {"atol": 1e-5, "rtol": 1e-4}


def tiny(window: int = 24, vocab_size: int = 11, **more) -> GPT:
    torch.manual_seed(0)
    return GPT(GPTConfig(vocab_size, window, n_layer=3, n_head=2, n_embd=16, **more))


def whole(*rows: torch.Tensor) -> dict:
    """Arguments of `extend` that add all of each row to cache rows 0, 1, ..."""
    counts = np.array([len(row) for row in rows])
    return {"tokens": torch.cat(rows), "counts": counts, "rows": np.arange(len(rows))}


@pytest.mark.parametrize("rows", [[0, 1, 2, 3], [3, 1], [2, 0, 3, 1], [1]])
@pytest.mark.parametrize("counts", [[1, 1, 1, 1], [4, 1, 3, 1], [5, 5, 5, 5]])
@pytest.mark.parametrize("positions", POSITIONS)
def test_long_and_short_additions_are_read_together(rows, counts, positions):
    model = tiny(positions=positions)
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


def test_rotary_turns_pairs_as_complex_numbers():
    """(a + i b) e^(i p r): Su et al. 2021, equations 13 and 34."""
    torch.manual_seed(0)
    heads = torch.randn(5, 3, 2, 8, dtype=torch.float64)
    places = torch.tensor([0, 3, 1, 9, 4])
    got = turned(heads, Rotary(10, 8).double()(places))
    rates = torch.tensor([10_000.0 ** (-2 * i / 8) for i in range(4)], dtype=torch.float64)
    turns = torch.polar(torch.ones(5, 4, dtype=torch.float64), places[:, None] * rates)
    for part in range(2):
        pairs = torch.complex(heads[:, part, :, :4], heads[:, part, :, 4:]) * turns[:, None]
        expected = torch.cat([pairs.real, pairs.imag], -1)
        torch.testing.assert_close(got[:, part], expected, atol=1e-6, rtol=1e-6)
    assert torch.equal(got[:, 2], heads[:, 2])


def test_with_rotary_positions_attention_depends_on_distances_alone():
    model = tiny(positions="rotary")
    x = torch.randn(6, 16)
    heads = [
        model.blocks[0].attn._heads(x, model.rotary(torch.arange(6) + shift)) for shift in (0, 7)
    ]
    scores = [torch.einsum("qhd,khd->hqk", each[:, 0], each[:, 1]) for each in heads]
    torch.testing.assert_close(*scores, **CLOSE)
    assert not torch.allclose(heads[0][:, 0], heads[1][:, 0])
    assert model.wpe is None


@pytest.mark.parametrize("positions", POSITIONS)
def test_packed_and_padded_readings_agree(positions):
    model = tiny(positions=positions)
    tokens, at = torch.randint(1, 11, (3, 20)), torch.tensor([3, 19, 27, 50])
    torch.testing.assert_close(model(tokens, at), model(tokens).flatten(0, 1)[at], **CLOSE)


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


def test_copies_of_a_cache_go_on_each_by_itself():
    model = tiny()
    cache, known = model.new_cache(2), [torch.randint(1, 11, (n,)) for n in (6, 3)]
    model.extend(cache=cache, **whole(*known))
    taken = [(0, 6), (1, 2), (0, 4)]
    copied = cache.copied(*(np.array(column) for column in zip(*taken)), 2)
    new = [torch.randint(1, 11, (n,)) for n in (2, 1, 2)]
    hidden = model.extend(cache=copied, **whole(*new))
    for i, (row, length) in enumerate(taken):
        plain = model(torch.cat([known[row][:length], new[i]])[None])[0, -1]
        torch.testing.assert_close(hidden[i], plain, **CLOSE)
    assert cache.lengths.tolist() == [6, 3]
    with pytest.raises(ValueError, match="the window is 8"):
        model.extend(cache=copied, **whole(*new))


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
    with pytest.raises(ValueError, match="positions of GPTConfig must be one of"):
        preset("nano", 32, 10, positions="sinusoidal")
    with pytest.raises(ValueError, match="heads of rotary positions have an even size"):
        preset("nano", 32, 10, positions="rotary", n_embd=6)


def test_heads():
    model = tiny()
    hidden = torch.randn(4, 16)
    tied = PolicyHead(16, 11, model.embedding)
    assert tied.weight is model.wte.weight
    assert tied(hidden).shape == (4, 11)
    assert not PolicyHead(16, 11)(hidden).any()
    assert not ValueHead(16)(hidden).any()
