"""Small GPTs and rows of tokens for the tests of policies."""

import numpy as np
import torch
from gymnasium import spaces

from agents import GPTPolicy
from agents.models.gpt import GPT
from agents.models.gpt_config import GPTConfig
from agents.models.prefixes import lengths_of
from tests.support.toy_tokens import V, box

CLOSE = {"atol": 1e-5, "rtol": 1e-4}
SMALL = {"n_layer": 2, "n_head": 2, "n_embd": 16}
WINDOW = 12


def tiny() -> GPT:
    torch.manual_seed(0)
    return GPT(GPTConfig(V, WINDOW, n_layer=2, n_head=2, n_embd=16))


def policy(space: spaces.Box | None = None, **kwargs) -> GPTPolicy:
    torch.manual_seed(0)
    space = space or box(WINDOW)
    return GPTPolicy(space, spaces.Discrete(V), lambda _: 1e-3, **SMALL, **kwargs)


def random_rows(rng: np.random.Generator, b: int, vocab: int = 3) -> np.ndarray:
    """Rows of few different tokens, so that many are beginnings of others."""
    rows = rng.integers(1, vocab, (b, WINDOW))
    rows[np.arange(WINDOW) >= rng.integers(0, WINDOW + 1, b)[:, None]] = 0
    return rows


def plain(model: GPT, rows: torch.Tensor) -> torch.Tensor:
    ends = lengths_of(rows).tolist()
    return torch.cat([model(row[None, :n])[:, -1] for row, n in zip(rows, ends, strict=True)])
