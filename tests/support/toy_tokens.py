"""A toy token task for tests of the agents: echo the letter that the user says."""

from __future__ import annotations

import gymnasium
import numpy as np
from gymnasium import spaces

from dialgym.language import CharTokenizer, Letters
from dialgym.language.tokenizers import END, FIRST_TEXT, TAGS
from dialgym.views.spaces import TokenBox

SYSTEM, USER = TAGS["system"], TAGS["user"]
TOKENIZER = CharTokenizer("abcd")
V = TOKENIZER.vocab_size


def box(window: int, said: int = 2, masked: bool = True) -> TokenBox:
    """Token windows of a learner that says `said` letters."""
    constraint = Letters("abcd", said) if masked else None
    return TokenBox(TOKENIZER, window, SYSTEM, constraint)


class Echo(gymnasium.Env):
    """Each turn the user says a letter; the learner repeats it `said` times, and is paid for that.

    One observation holds the whole dialogue so far. `turns` turns, then the episode ends.
    """

    def __init__(self, turns: int = 2, said: int = 1) -> None:
        self.turns, self.said = turns, said
        self.observation_space = box(turns * (said + 5), said)
        self.action_space = spaces.Discrete(V)

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.tokens: list[int] = []
        self.turn = 0
        self._ask()
        return self._observation(), {}

    def _ask(self) -> None:
        self.letter = FIRST_TEXT + int(self.np_random.integers(V - FIRST_TEXT))
        self.tokens += [USER, self.letter, END, SYSTEM]
        self.utterance: list[int] = []

    def _observation(self) -> np.ndarray:
        row = np.zeros(self.observation_space.shape, dtype=np.int32)
        row[: len(self.tokens)] = self.tokens
        return row

    def action_masks(self) -> np.ndarray:
        automaton = self.observation_space.automaton
        return automaton.allowed[automaton.walk(self.utterance)]

    def step(self, action):
        self.tokens.append(int(action))
        self.utterance.append(int(action))
        if action != END and len(self.utterance) <= self.said:
            return self._observation(), 0.0, False, False, {}
        right = [token == self.letter for token in self.utterance[: self.said]]
        self.turn += 1
        done = self.turn == self.turns
        if not done:
            self._ask()
        return self._observation(), float(np.mean(right)), done, False, {"is_success": all(right)}
