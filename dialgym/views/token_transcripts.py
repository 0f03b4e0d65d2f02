"""Transcripts in tokens: of one dialogue, and of the rows of a batch."""

from collections.abc import Callable, Iterable
from operator import index
from typing import Any

import numpy as np

from dialgym.language import Constraint, TokenAutomaton, compile_constraint
from dialgym.language.text import Utterance
from dialgym.language.tokenizers import END, FIRST_TEXT, PAD, UNK
from dialgym.views.saved import SeenTokens
from dialgym.views.spaces import TokenLayout, clean, oldest_to_drop


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
        fitting = ids[: len(self.tokens) - self.length]
        self.tokens[self.length : self.length + len(fitting)] = fitting
        self.length += len(fitting)
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


class TokenRows:
    """N transcripts as token ids, left-aligned.

    The array has some columns to spare on the right, so that whole blocks can be written
    without looking; what lies beyond the window is never shown.
    """

    def __init__(self, layout: TokenLayout, size: int, slide: bool) -> None:
        voices = layout.task.voices
        self.layout, self.slide = layout, slide
        self.window = layout.window
        self.limits = np.array([layout.limit(voice) for voice in voices])
        self.tags = np.array([layout.tag_of(voice) for voice in voices])
        self.limit = layout.said_limit
        width = self.window + int(self.limits.max()) + 2
        self.tokens = np.full((size, width), PAD, np.int32)
        self.length = np.zeros(size, np.int64)
        self.start = np.zeros(size, np.int64)

    def clear(self, rows: np.ndarray) -> None:
        """Remove all tokens of the rows."""
        self.tokens[rows] = PAD
        self.length[rows] = 0

    def saved(self, row: int) -> SeenTokens:
        """All tokens of a row so far."""
        return SeenTokens(self.tokens[row, : self.length[row]].copy(), int(self.start[row]))

    def restore(self, row: int, saved: SeenTokens) -> None:
        """Go on from what was `saved`, here or of a `TokenTranscript`."""
        self.layout.check_seen(saved)
        self.tokens[row] = PAD
        self.tokens[row, : len(saved.tokens)] = saved.tokens
        self.length[row], self.start[row] = len(saved.tokens), saved.start

    def utterances(self, rows: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Ids (k, limit) and lengths (k,) of the utterances that have just ended."""
        start = self.start[rows]
        ids = self.tokens[rows[:, None], start[:, None] + np.arange(self.limit)]
        lengths = self.length[rows] - start
        closed = self.tokens[rows, self.length[rows] - 1] == END
        return ids, lengths - closed

    def open(self, rows: np.ndarray) -> np.ndarray:
        """Append the learner's tag; (k,) bool, if a whole utterance fits after it."""
        fits = self._make_room(rows, np.full(len(rows), 1 + self.limit))
        opened = rows if fits.all() else rows[fits]
        self.tokens[opened, self.length[opened]] = self.layout.tag
        self.length[opened] += 1
        self.start[opened] = self.length[opened]
        return fits

    def append(
        self, rows: np.ndarray, heard: np.ndarray, parties: np.ndarray, texts: np.ndarray
    ) -> np.ndarray:
        """Append texts, `texts[j]` by `parties[j]` to `rows[heard[j]]`; (k,) bool, if all fit."""
        fits = np.ones(len(rows), bool)
        if not len(texts):
            return fits
        blocks, sizes = self._blocks(parties, texts)
        for turn in _rounds(heard):
            now = heard[turn]
            fits[now] &= self._write(rows[now], blocks[turn], sizes[turn])
        return fits

    def _blocks(self, parties: np.ndarray, texts: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Each text as ``<tag> text... <end>``, (m, W) with PAD on the right, and sizes (m,)."""
        ids, lengths = self.layout.tokenizer.encode_many(texts)
        limits = self.limits[parties]
        widest = int(self.limits.max())
        block = np.full((len(texts), widest + 1), PAD, np.int32)
        block[:, 0] = self.tags[parties]
        width = min(ids.shape[1], widest)
        block[:, 1 : 1 + width] = ids[:, :width]
        whole = np.flatnonzero(lengths < limits)
        block[whole, 1 + lengths[whole]] = END
        sizes = 1 + np.minimum(lengths + 1, limits)
        cut = np.flatnonzero(lengths > limits)
        block[cut] = np.where(np.arange(widest + 1) < sizes[cut, None], block[cut], PAD)
        return block, sizes

    def _write(self, rows: np.ndarray, block: np.ndarray, sizes: np.ndarray) -> np.ndarray:
        fits = self._make_room(rows, sizes)
        columns = self.length[rows, None] + np.arange(block.shape[1])
        self.tokens[rows[:, None], columns] = block
        self.length[rows] = np.minimum(self.length[rows] + sizes, self.window)
        return fits

    def _make_room(self, rows: np.ndarray, needed: np.ndarray) -> np.ndarray:
        fits = self.length[rows] + needed <= self.window
        if self.slide and not fits.all():
            for i in np.flatnonzero(~fits):
                fits[i] = self._slide(int(rows[i]), int(needed[i]))
        return fits

    def _slide(self, row: int, needed: int) -> bool:
        tokens, length = self.tokens[row], int(self.length[row])
        cut = oldest_to_drop(tokens[:length], needed - (self.window - length))
        tokens[: length - cut] = tokens[cut:length].copy()
        tokens[length - cut :] = PAD
        self.length[row] -= cut
        return True


def _rounds(heard: np.ndarray) -> list[np.ndarray]:
    """The positions of `heard`, split so that no row comes twice in a round; order is kept."""
    if len(heard) < 2 or (np.diff(heard) > 0).all():
        return [np.arange(len(heard))]
    order = np.argsort(heard, kind="stable")
    ranked = np.empty(len(heard), np.int64)
    firsts = np.searchsorted(heard[order], heard[order])
    ranked[order] = np.arange(len(heard)) - firsts
    return [np.flatnonzero(ranked == r) for r in range(int(ranked.max()) + 1)]
