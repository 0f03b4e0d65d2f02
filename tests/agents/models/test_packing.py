"""Packed sequences give the states and gradients that padded ones give."""

import numpy as np
import pytest
import torch
import torch.nn.functional as F

from agents.models.gpt import GELU, GPT, Packing, Rows
from agents.models.gpt_config import GPTConfig
from tests.support.close import assert_close

V, WINDOW, D = 30, 96, 16


def gpt() -> GPT:
    torch.manual_seed(0)
    return GPT(GPTConfig(V, WINDOW, n_layer=3, n_head=2, n_embd=D)).double()


def ragged(lengths, rng):
    """Tokens (B, T), and for each row some of its places, flat, its last among them."""
    width = max(lengths)
    tokens = torch.zeros(len(lengths), width, dtype=torch.int64)
    at = []
    for row, length in enumerate(lengths):
        tokens[row, :length] = torch.from_numpy(rng.integers(5, V, length))
        some = rng.choice(length, min(length, 5), replace=False)
        at += [row * width + place for place in {*some.tolist(), length - 1}]
    return tokens, torch.tensor(at)


@pytest.mark.parametrize("checkpointing", [False, True])
@pytest.mark.parametrize("biased", [False, True])
def test_states_and_gradients_are_those_of_padded_rows(biased, checkpointing):
    rng = np.random.default_rng(0)
    lengths = [*rng.integers(1, WINDOW + 1, 30).tolist(), WINDOW, WINDOW, 1]
    model, (tokens, at) = gpt(), ragged(lengths, rng)
    at = at[torch.randperm(len(at))]
    at = torch.cat([at, at[:7]])  # some are asked for twice
    model.gradient_checkpointing = checkpointing
    bias = torch.randn(len(tokens), D, dtype=torch.float64) if biased else None
    weight = torch.randn(len(at), D, dtype=torch.float64)
    results = []
    for states in (
        lambda: model(tokens, None, bias).flatten(0, 1)[at],
        lambda: model(tokens, at, bias),
    ):
        model.zero_grad()
        read = states()
        (read * weight).sum().backward()
        results.append((read, *(p.grad for p in model.parameters())))
    for expected, ours in zip(*results, strict=True):
        assert_close(ours, expected, rtol=1e-10)


def test_tokens_after_the_last_place_asked_for_are_not_read():
    packing = Packing.of(np.array([2, 0, 21]), 10)
    assert packing.tokens.tolist() == [0, 1, 2, 20, 21]
    assert packing.rows.tolist() == [0, 0, 0, 2, 2]
    assert packing.positions.tolist() == [0, 1, 2, 0, 1]
    assert packing.asked[packing.back].tolist() == [2, 0, 4]


def test_rows_are_padded_and_packed_again():
    rows, packed = Rows.of(np.array([3, 1, 2])), torch.arange(6)
    padded = rows.pad(packed)
    assert padded.tolist() == [[0, 1, 2], [3, 3, 3], [4, 5, 5]]
    assert rows.unpad(padded).tolist() == packed.tolist()


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_gelu_and_its_gradient_are_pytorchs(dtype):
    values = torch.linspace(-30, 30, 5001, dtype=dtype)
    results = []
    for gelu in (lambda x: F.gelu(x, approximate="tanh"), GELU()):
        x = values.clone().requires_grad_()
        y = gelu(x)
        y.sum().backward()
        results.append((y, x.grad))
    for expected, ours in zip(*results, strict=True):
        assert_close(ours, expected)
