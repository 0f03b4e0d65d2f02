"""The transcript of a dialogue as one party sees it while it grows, in tokens or as text."""

from collections.abc import Callable, Iterable
from operator import index
from typing import Any

import numpy as np

from dialgym.language import Constraint, TokenAutomaton, compile_constraint
from dialgym.language.text import Utterance
from dialgym.language.tokenizers import END, FIRST_TEXT, PAD, UNK
from dialgym.tasks import Task
from dialgym.views.layout import TokenLayout, clean, oldest_to_drop
from dialgym.views.saved import SeenTokens


class TokenTranscript:
    """A party's transcript as token ids (L,) int32, with the utterance that it is saying.

    Args:
        layout: how the party's transcript is written.
        slide: whether whole oldest utterances leave when there is no more room.
    """

    def __init__(self, layout: TokenLayout, slide: bool) -> None:
        self.layout, self.slide = layout, slide
        self.tokens = np.full(layout.window, PAD, np.int32)
        self.length = self._start = 0
        self._vocab_size = layout.tokenizer.vocab_size
        self._limit = layout.said_limit
        self._automaton: TokenAutomaton | None = None
        self._node = self._walked = 0

    def observe(self) -> np.ndarray:
        """(L,) int32, a copy."""
        return self.tokens.copy()

    def saved(self) -> SeenTokens:
        """All tokens so far."""
        return SeenTokens(self.tokens[: self.length].copy(), self._start)

    def restore(self, saved: SeenTokens) -> None:
        """Go on from what was `saved`."""
        self.layout.check_seen(saved)
        self.length, self._start = len(saved.tokens), saved.start
        self.tokens[: self.length], self.tokens[self.length :] = saved.tokens, PAD
        self._automaton = None

    def append(self, utterances: Iterable[Utterance]) -> bool:
        """Append utterances; True if all of them fit."""
        fits = [self._write(self.layout.encode(utterance)) for utterance in utterances]
        return all(fits)

    def open(self) -> bool:
        """Begin the party's own utterance by its tag; True if a whole one fits."""
        if not self._make_room(1 + self._limit):
            return False
        self.tokens[self.length] = self.layout.tag
        self.length += 1
        self._start = self.length
        self._automaton = None
        return True

    def say(self, action: Any) -> str | None:
        """Append the token that the party says; the text of its utterance once that has ended.

        Raises:
            ValueError: the action is not a whole number from 0 to V-1.
        """
        try:
            token = index(action)
        except TypeError:
            token = -1
        if not 0 <= token < self._vocab_size:
            raise self._no_token(action)
        length = self.length
        self.tokens[length] = token if token >= FIRST_TEXT or token == END else UNK  # `recorded`
        self.length = length + 1
        if token != END and length + 1 - self._start < self._limit:
            return None
        ids = self.tokens[self._start : self.length - (token == END)].tolist()
        return clean(self.layout.tokenizer.decode(ids), self.layout.task.facts, self.layout.party)

    def masks(self, constraint: Callable[[], Constraint], int8: bool = False) -> np.ndarray:
        """(V,) bool or int8: what may be said next; `constraint` is asked for once an utterance."""
        automaton = self._automaton
        if automaton is None:
            automaton = compile_constraint(constraint(), self.layout.tokenizer)
            self._automaton, self._node, self._walked = automaton, 0, self._start
        if self._walked < self.length:
            fresh = self.tokens[self._walked : self.length].tolist()
            self._node, self._walked = automaton.walk(fresh, self._node), self.length
        allowed = automaton.allowed_int8 if int8 else automaton.allowed
        return allowed[self._node].copy()

    def no_masks(self) -> np.ndarray:
        """(V,) bool, all True: there is no utterance under way."""
        return np.ones(self._vocab_size, bool)

    def _no_token(self, action: Any) -> ValueError:
        return ValueError(
            f"action of {self.layout.task.name}: expected a token id, a whole number from 0 to "
            f"{self._vocab_size - 1}; got {action!r}. Choose from action_space."
        )

    def _write(self, ids: list[int]) -> bool:
        fits = self._make_room(len(ids))
        kept = ids[: len(self.tokens) - self.length]
        self.tokens[self.length : self.length + len(kept)] = kept
        self.length += len(kept)
        return fits

    def _make_room(self, needed: int) -> bool:
        excess = self.length + needed - len(self.tokens)
        if excess <= 0 or not self.slide:
            return excess <= 0
        cut = oldest_to_drop(self.tokens[: self.length], excess)
        self.tokens[: self.length - cut] = self.tokens[cut : self.length].copy()
        self.tokens[self.length - cut : self.length] = PAD
        self.length -= cut
        return True


class TextTranscript:
    """A party's transcript as text, a line an utterance."""

    def __init__(self, task: Task, party: str) -> None:
        self.task, self.party = task, party
        self.text = ""

    def observe(self) -> str:
        """All lines so far."""
        return self.text

    def saved(self) -> str:
        """All lines so far."""
        return self.text

    def restore(self, saved: str) -> None:
        """Go on from what was `saved`."""
        self.text = saved

    def append(self, utterances: Iterable[Utterance]) -> bool:
        """Append utterances; all of them fit."""
        for speaker, text, _ in utterances:
            self.text += f"{speaker}: {text}\n"
        return True

    def open(self) -> bool:
        """There is always room for one more utterance."""
        return True

    def say(self, action: Any) -> str:
        """Append what the party says, as the rules get it.

        Raises:
            ValueError: the action is not a string.
        """
        if not isinstance(action, str):
            raise ValueError(
                f"action of {self.task.name}: expected a string; got {action!r}. "
                "For token ids use the token env."
            )
        text = clean(action, self.task.facts, self.party)
        self.text += f"{self.party}: {text}\n"
        return text
