"""Small talk of fixed questions and answers, as stored dialogues to be cloned in seconds."""

from __future__ import annotations

from types import SimpleNamespace

import gymnasium
import numpy as np
from gymnasium import spaces

from agents import BC
from dialgym.datasets import TokenData
from dialgym.language import AnyText, CharTokenizer
from dialgym.language.tokenizers import END, TAGS
from dialgym.views.spaces import TokenBox

TOKENIZER = CharTokenizer("abcdefghijklmnopqrstuvwxyz ?.,!")
ANSWERS = {"who are you?": "a bot.", "how are you?": "fine!", "bye": "see you."}
LIMITS = {"system": 12, "user": 16}
WINDOW = 96


class SmallTalk(gymnasium.Env):
    """Only says what is seen and said."""

    def __init__(self) -> None:
        self.observation_space = TokenBox(TOKENIZER, WINDOW, TAGS["system"], AnyText(), LIMITS)
        self.action_space = spaces.Discrete(TOKENIZER.vocab_size)

    def reset(self, *, seed=None, options=None):
        return np.zeros(WINDOW, np.int32), {}


def small_talk(count: int = 64, seed: int = 0) -> TokenData:
    """Dialogues of two questions, each with its answer."""
    rng = np.random.default_rng(seed)
    rows: list[list[int]] = []
    own: list[bool] = []
    for _ in range(count):
        row: list[int] = []
        for question in rng.choice(list(ANSWERS), 2).tolist():
            asked = [TAGS["user"], *TOKENIZER.encode(question), END, TAGS["system"]]
            said = [*TOKENIZER.encode(ANSWERS[question]), END]
            row += asked + said
            own += [False] * len(asked) + [True] * len(said)
        rows.append(row)
    layout = SimpleNamespace(window=WINDOW, tokenizer=TOKENIZER, party="system", tag=TAGS["system"])
    tokens = np.concatenate(rows).astype(np.int32)
    return TokenData(
        layout,  # type: ignore[arg-type]
        tokens,
        np.array(own),
        np.zeros(len(tokens), np.float32),
        np.cumsum([0, *map(len, rows)]),
        np.ones(count, bool),
        np.zeros(count, bool),
    )


def taught(steps: int = 200) -> BC:
    """A clone that knows the answers; seconds of training."""
    sizes = {"n_layer": 2, "n_head": 2, "n_embd": 32}
    common = {"learning_rate": 1e-2, "batch_size": 16, "policy_kwargs": sizes, "seed": 0}
    return BC("GPTPolicy", SmallTalk(), small_talk(), **common).learn(steps)
