"""The token view: one token an action, the transcript as token ids the observation."""

from operator import index
from typing import Any

import gymnasium as gym
import numpy as np

from dialgym.errors import one_of
from dialgym.language import compile_constraint, make_tokenizer
from dialgym.language.tokenizers import END, PAD, UNK
from dialgym.simulators import Speaker
from dialgym.tasks import Task
from dialgym.views.dialogue import Exchange
from dialgym.views.layout import TokenLayout, clean, oldest_to_drop
from dialgym.views.single import DialogueEnv

OVERFLOWS = ("truncate", "slide")


class TokenEnv(DialogueEnv):
    """A dialogue in which the learner says one token a step.

    Action: `Discrete(V)`. ``<end>`` ends the utterance, and so does the longest length. Any token
    is legal; PAD, which would not be seen, is recorded as ``<unk>``.
    Observation: `TokenBox`, (L,) int32, what the learner has seen, append-only; at its turn it
    ends with the learner's tag and the tokens of the utterance so far.
    Reward: 0 within an utterance, the task's at its end.
    Info, at the end of an utterance: ``utterance``, ``reply``, ``turn``, ``reward_components``;
    at the end of an episode also ``is_success`` and ``transcript``.

    Args:
        task: the rules.
        tokenizer: ``"char"``, ``"word"``, ``"hf:NAME_OR_PATH"`` or a `Tokenizer`.
        learner: the party that the actions are those of.
        simulator: who plays the other party: a name or a `Speaker`; None for the task's default.
        window: L; None for the length that every dialogue of the task fits into.
        overflow: when the next utterance might not fit: ``"truncate"`` the episode, or ``"slide"``:
            whole oldest utterances leave (the observation is then not append-only).
        action_masks: put ``action_mask``, (V,) bool, into each info.
        render_mode: ``ansi``, ``human`` or ``rgb_array``.
    """

    def __init__(
        self,
        task: Task,
        tokenizer: Any = "char",
        learner: str = "system",
        simulator: str | Speaker | None = None,
        window: int | None = None,
        overflow: str = "truncate",
        action_masks: bool = False,
        render_mode: str | None = None,
    ) -> None:
        super().__init__(task, learner, simulator, render_mode)
        one_of("overflow", overflow, OVERFLOWS, task.name)
        self.tokenizer = make_tokenizer(tokenizer, task.facts.charset, task.words())
        self.layout = TokenLayout.of(task, self.tokenizer, learner, window)
        self.observation_space = self.layout.space()
        self.action_space = gym.spaces.Discrete(self.tokenizer.vocab_size)
        self._vocab_size = self.tokenizer.vocab_size
        self._limit = self.layout.limit(learner)
        self._slide = overflow == "slide"
        self._mask_in_info = action_masks
        self._tokens = np.zeros(self.layout.window, np.int32)
        self._length = self._start_of_utterance = 0

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[np.ndarray, dict[str, Any]]:
        """Begin a dialogue; `options` fixes hidden parts of it (see the task)."""
        exchange = self._start(seed, options)
        self._tokens[:] = PAD
        self._length = 0
        self._hear(exchange)
        if not exchange.over:
            self._open_utterance()
        return self._tokens.copy(), self._with_mask({})

    def step(self, action: Any) -> tuple[np.ndarray, float, bool, bool, dict[str, Any]]:
        """Say one token.

        Raises:
            ResetNeeded: there is no dialogue under way.
            ValueError: the action is not a whole number from 0 to V-1.
        """
        if self._closed_because:
            raise self._refuse()
        token = self._checked(action)
        length = self._length
        self._tokens[length] = token or UNK
        self._length = length = length + 1
        if token == END or length - self._start_of_utterance == self._limit:
            return self._end_utterance(length - (token == END))
        info = self._with_mask({}) if self._mask_in_info else {}
        return self._tokens.copy(), 0.0, False, False, info

    def _checked(self, action: Any) -> int:
        try:
            token = index(action)
        except TypeError:
            token = -1
        if 0 <= token < self._vocab_size:
            return token
        raise ValueError(
            f"action of {self.task.name}: expected a token id, a whole number from 0 to "
            f"{self._vocab_size - 1}; got {action!r}. Choose from action_space."
        )

    def _end_utterance(self, stop: int) -> tuple[np.ndarray, float, bool, bool, dict[str, Any]]:
        ids = self._tokens[self._start_of_utterance : stop].tolist()
        text = clean(self.tokenizer.decode(ids), self.task.facts, self.learner)
        exchange, info = self._say(text)
        terminated, truncated = exchange.terminated, exchange.truncated
        fits = self._hear(exchange) and (exchange.over or self._open_utterance())
        if not fits and not exchange.over:
            truncated = True
            self._finish(info, exchange.success)
        return self._tokens.copy(), exchange.reward, terminated, truncated, self._with_mask(info)

    def _hear(self, exchange: Exchange) -> bool:
        """Append what was heard; whether all of it fits."""
        return all([self._append(self.layout.encode(utterance)) for utterance in exchange.heard])

    def _open_utterance(self) -> bool:
        """Append the learner's tag; whether a whole utterance fits after it."""
        self._make_room(1 + self._limit)
        if self._length + 1 + self._limit > len(self._tokens):
            return False
        self._append([self.layout.tag])
        self._start_of_utterance = self._length
        self._automaton: Any = None
        return True

    def _append(self, ids: list[int]) -> bool:
        self._make_room(len(ids))
        kept = ids[: len(self._tokens) - self._length]
        end = self._length + len(kept)
        self._tokens[self._length : end] = kept
        self._length = end
        return len(kept) == len(ids)

    def _make_room(self, needed: int) -> None:
        """Where sliding is allowed, let oldest utterances leave until `needed` tokens fit."""
        excess = self._length + needed - len(self._tokens)
        if excess <= 0 or not self._slide:
            return
        cut = oldest_to_drop(self._tokens[: self._length], excess)
        self._tokens[: self._length - cut] = self._tokens[cut : self._length].copy()
        self._tokens[self._length - cut : self._length] = PAD
        self._length -= cut

    def action_masks(self) -> np.ndarray:
        """(V,) bool: the tokens that the task's constraint allows next."""
        if self._closed_because:
            return np.ones(self._vocab_size, bool)
        if self._automaton is None:
            constraint = self.task.constraint(self.dialogue.state, self.learner)
            self._automaton = compile_constraint(constraint, self.tokenizer)
            self._node, self._walked = 0, self._start_of_utterance
        fresh = self._tokens[self._walked : self._length].tolist()
        self._node, self._walked = self._automaton.walk(fresh, self._node), self._length
        return self._automaton.allowed[self._node].copy()

    def _with_mask(self, info: dict[str, Any]) -> dict[str, Any]:
        if self._mask_in_info:
            info["action_mask"] = self.action_masks()
        return info
