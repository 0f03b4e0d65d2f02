"""Constraints compiled to tokens: automata, whose rows are the action masks of the token views."""

from collections import OrderedDict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from functools import cached_property, lru_cache
from threading import Lock
from typing import Any

import numpy as np

from dialgym.language.constraints import Constraint, WordTrie
from dialgym.language.tokenizers import END, FIRST_TEXT, Tokenizer, WordTokenizer


@dataclass(frozen=True, eq=False)
class TokenAutomaton:
    """A constraint over the tokens of one utterance; it starts in state 0, after the speaker's tag.

    Attributes:
        transitions: (S, V) int32, the next state for each token. A forbidden token leads to the
            dead state, the last one, in which only ``<end>`` is allowed.
        allowed: (S, V) bool, what may be said in each state. No row is empty.
    """

    transitions: np.ndarray
    allowed: np.ndarray

    @cached_property
    def allowed_int8(self) -> np.ndarray:
        """(S, V) int8 of 0 and 1, the same memory as `allowed`: the type of masks in infos."""
        return self.allowed.view(np.int8)

    @property
    def nbytes(self) -> int:
        """Bytes that it takes."""
        return self.transitions.nbytes + self.allowed.nbytes

    def walk(self, tokens: Iterable[int], state: int = 0) -> int:
        """The state after `tokens`, beginning in `state`."""
        step = self.transitions.item  # quicker than an index: a mask at every token waits for it
        for token in tokens:
            state = step(state, token)
        return state


def compile_constraint(constraint: Constraint, tokenizer: Tokenizer) -> TokenAutomaton:
    """The automaton of `constraint` over the tokens of `tokenizer`.

    Tokens are spelled out and walked through the constraint from each reachable state, so
    multi-character tokens are allowed exactly where all of their characters are. Automata are
    remembered and shared; nobody may write into them.

    Raises:
        ValueError: no utterance that the tokenizer can write meets the constraint.
    """
    return _REMEMBERED.automaton(constraint, tokenizer)


class AutomatonCache:
    """The automata used last, as many as fit in `most` bytes; the latest is kept at any size.

    What may be said often depends on the state of the dialogue: a rollout of slot filling meets
    hundreds of constraints, each of them again and again.
    """

    def __init__(self, most: int) -> None:
        self.most, self.held = most, 0
        self._automata: OrderedDict[tuple[Any, Any], TokenAutomaton] = OrderedDict()
        self._lock = Lock()

    def __len__(self) -> int:
        return len(self._automata)

    def automaton(self, constraint: Any, tokenizer: Any) -> TokenAutomaton:
        """See `compile_constraint`."""
        key = constraint, tokenizer
        with self._lock:
            if key in self._automata:
                self._automata.move_to_end(key)
                return self._automata[key]
        made = _compiled(constraint, tokenizer)
        with self._lock:
            if key not in self._automata:  # another thread may have been quicker
                self._automata[key] = made
                self.held += made.nbytes
            while self.held > self.most and len(self) > 1:
                self.held -= self._automata.popitem(last=False)[1].nbytes
        return made


_REMEMBERED = AutomatonCache(2**27)


def _compiled(constraint: Any, tokenizer: Any) -> TokenAutomaton:
    in_words = isinstance(constraint, WordTrie) and isinstance(tokenizer, WordTokenizer)
    rows = _rows_of_words(constraint.words, tokenizer) if in_words else _rows(constraint, tokenizer)
    return _tables(_without_dead_ends(rows), tokenizer.vocab_size)


Row = dict[int, int]
"""The tokens allowed in a state, and the state that each leads to."""


def _rows_of_words(texts: Iterable[str], tokenizer: WordTokenizer) -> list[Row]:
    """Rows for a list of texts, each of which can be written in one way: a word a token."""
    rows: list[Row] = [{}]
    for text in texts:
        tokens = tokenizer.encode(text)
        if tokenizer.decode(tokens) != text:  # a word that it does not have, or other spaces
            continue
        state = 0
        for token in tokens:
            after = rows[state].setdefault(token, len(rows))
            if after == len(rows):
                rows.append({})
            state = after
        rows[state][END] = 0
    return rows


def _rows(constraint: Any, tokenizer: Any) -> list[Row]:
    """Rows for any constraint, which is walked by the letters of each token."""
    spellings = {first: _spellings(tokenizer, first) for first in (True, False)}
    number: dict[tuple[Any, bool], int] = {(constraint.start, True): 0}
    rows: list[Row] = []
    for state, first in _discovered(number):
        row: Row = {}
        for token in spellings[first].tokens:
            row[token] = number.setdefault((state, False), len(number))
        for token, after in _allowed(constraint, state, spellings[first]):
            row[token] = number.setdefault((after, False), len(number))
        if constraint.accepts(state):
            row[END] = 0
        rows.append(row)
    return rows


def _without_dead_ends(rows: list[Row]) -> list[Row]:
    """The rows without tokens after which the utterance could never rightly end.

    A tokenizer may have a token for the beginning of a word and none for its rest.
    """
    before: list[list[int]] = [[] for _ in rows]
    for state, row in enumerate(rows):
        for token, after in row.items():
            if token != END:
                before[after].append(state)
    frontier = [state for state, row in enumerate(rows) if END in row]
    alive = set(frontier)
    while frontier:
        fresh = [state for state in before[frontier.pop()] if state not in alive]
        alive.update(fresh)
        frontier += fresh
    if 0 not in alive:
        raise ValueError(
            "no utterance that the tokenizer can write meets the constraint. "
            "Use another tokenizer, or one whose vocabulary has the task's words."
        )
    return [{t: s for t, s in row.items() if t == END or s in alive} for row in rows]


@dataclass(slots=True)
class Spelling:
    """A node of a trie: the characters that tokens may add after some others."""

    tokens: list[int] = field(default_factory=list)  # those that end here
    longer: dict[str, "Spelling"] = field(default_factory=dict)


@lru_cache(maxsize=4)
def _spellings(tokenizer: Any, first: bool) -> Spelling:
    """All text tokens, letter by letter, as the first of an utterance or a later one.

    At the root are those that add text later, but none as the first: a space that the tokenizer
    writes before each text.
    """
    root = Spelling()
    for token in range(FIRST_TEXT, tokenizer.vocab_size):
        text = tokenizer.piece(token, first)
        node = root
        for char in text:
            node = node.longer.setdefault(char, Spelling())
        if text or (first and tokenizer.piece(token, False)):
            node.tokens.append(token)
    return root


def _allowed(constraint: Any, state: Any, spelling: Spelling) -> Iterator[tuple[int, Any]]:
    """The tokens that the constraint allows in a state, and the state after each."""
    choices = constraint.choices(state)
    for char in spelling.longer if choices is None else choices:
        longer = spelling.longer.get(char)
        after = None if longer is None else constraint.advance(state, char)
        if longer is not None and after is not None:
            for token in longer.tokens:
                yield token, after
            yield from _allowed(constraint, after, longer)


def _discovered(number: dict[tuple[Any, bool], int]) -> Iterator[tuple[Any, bool]]:
    """The states in the order of their numbers, those found on the way included."""
    seen = 0
    while seen < len(number):
        fresh = list(number)[seen:]
        seen += len(fresh)
        yield from fresh


def _tables(rows: list[Row], vocab_size: int) -> TokenAutomaton:
    dead = len(rows)
    transitions = np.full((dead + 1, vocab_size), dead, np.int32)
    allowed = np.zeros((dead + 1, vocab_size), bool)
    for state, row in enumerate(rows):
        tokens = list(row)
        transitions[state, tokens] = list(row.values())
        allowed[state, tokens] = True
    allowed[~allowed.any(1), END] = True
    transitions[:, END] = 0
    return TokenAutomaton(transitions, allowed)
