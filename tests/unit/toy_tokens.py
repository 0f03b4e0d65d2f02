"""A toy token task for tests of the agents: echo the letter that the user says.

Vocabulary: PAD 0, <end> 1, UNK 2, system 3 (the learner), user 4, letters from 5 on.
"""

from __future__ import annotations

from dataclasses import dataclass

import gymnasium
import numpy as np
from gymnasium import spaces

END, SYSTEM, USER, FIRST = 1, 3, 4, 5
LETTERS = 4
V = FIRST + LETTERS


@dataclass(frozen=True)
class Automaton:
    """`said` letters, then <end>: states 0..said-1 want a letter, state `said` wants <end>."""

    transitions: np.ndarray  # (S, V)
    allowed: np.ndarray  # (S, V)


def letters_then_end(said: int) -> Automaton:
    dead = said + 1
    transitions = np.full((said + 2, V), dead, dtype=np.int32)
    allowed = np.zeros((said + 2, V), dtype=bool)
    transitions[np.arange(said), FIRST:] = 0
    for state in range(said):
        transitions[state, FIRST:] = state + 1
        allowed[state, FIRST:] = True
    allowed[said:, END] = True
    return Automaton(transitions, allowed)


class ToyBox(spaces.Box):
    """Box of token ids with the attributes of a token view's observation space."""

    def __init__(self, window: int, automaton: Automaton | None) -> None:
        super().__init__(0, V - 1, (window,), np.int32)
        self.vocab_size, self.window, self.learner_tag = V, window, SYSTEM
        self.automaton = automaton


class Echo(gymnasium.Env):
    """Each turn the user says a letter; the learner says `said` letters, +1 for a right one.

    One observation holds the whole dialogue so far. `turns` turns, then the episode ends.
    """

    def __init__(self, turns: int = 2, said: int = 1, masked: bool = True) -> None:
        self.turns, self.said = turns, said
        self.automaton = letters_then_end(said)
        window = turns * (said + 5)
        self.observation_space = ToyBox(window, self.automaton if masked else None)
        self.action_space = spaces.Discrete(V)

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.tokens: list[int] = []
        self.turn = 0
        self._ask()
        return self._observation(), {}

    def _ask(self) -> None:
        self.letter = FIRST + int(self.np_random.integers(LETTERS))
        self.tokens += [USER, self.letter, END, SYSTEM]
        self.utterance: list[int] = []

    def _observation(self) -> np.ndarray:
        row = np.zeros(self.observation_space.shape, dtype=np.int32)
        row[: len(self.tokens)] = self.tokens
        return row

    def action_masks(self) -> np.ndarray:
        return self.automaton.allowed[min(len(self.utterance), self.said)]

    def step(self, action):
        self.tokens.append(int(action))
        self.utterance.append(int(action))
        if action != END and len(self.utterance) <= self.said:
            return self._observation(), 0.0, False, False, {}
        reward = float(np.mean([token == self.letter for token in self.utterance[: self.said]]))
        self.turn += 1
        done = self.turn == self.turns
        if not done:
            self._ask()
        return self._observation(), reward, done, False, {"is_success": reward == 1.0}
