"""Constraints on what may be said next, over text and compiled to tokens.

A task states a constraint on the text of an utterance; a tokenizer turns it into a
`TokenAutomaton`, whose rows are the action masks of the token views.
"""

from bisect import bisect_left
from collections.abc import Hashable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property, lru_cache
from typing import Any, NamedTuple, Protocol, cast

import numpy as np

from dialgym.language.tokenizers import END, FIRST_TEXT, Tokenizer


class Constraint(Protocol):
    """A deterministic automaton over characters: what an utterance may be.

    States are any hashable values. Constraints themselves are hashable and compared by value, so
    that their token forms can be cached.
    """

    @property
    def start(self) -> Any:
        """The state before the first character."""
        ...

    def choices(self, state: Any) -> Iterable[str] | None:
        """The characters that may be allowed next, or None for any."""
        ...

    def advance(self, state: Any, char: str) -> Any | None:
        """The state after `char`, or None where the character is not allowed."""
        ...

    def accepts(self, state: Any) -> bool:
        """Whether the utterance may end here."""
        ...


@dataclass(frozen=True)
class AnyText:
    """Any text at all: only special tokens are ruled out."""

    start: int = 0

    def choices(self, state: int) -> None:
        return None

    def advance(self, state: int, char: str) -> int | None:
        return state

    def accepts(self, state: int) -> bool:
        return True


@dataclass(frozen=True)
class Letters:
    """Exactly `length` characters of `alphabet`."""

    alphabet: str
    length: int
    start: int = 0

    def choices(self, state: int) -> str:
        return self.alphabet

    def advance(self, state: int, char: str) -> int | None:
        return state + 1 if state < self.length and char in self.alphabet else None

    def accepts(self, state: int) -> bool:
        return state == self.length


class Lexicon:
    """One of the given words or phrases, letter by letter (a trie over the sorted list).

    A state is `(lo, hi, depth)`: the words `lo..hi` share the `depth` letters said so far.
    """

    def __init__(self, words: Iterable[str]) -> None:
        self.words = tuple(sorted(set(words)))
        if not self.words:
            raise ValueError("Lexicon: the list of words is empty; give at least one.")
        self.start = (0, len(self.words), 0)
        self._hash = hash(self.words)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Lexicon) and self.words == other.words

    def __hash__(self) -> int:
        return self._hash

    def choices(self, state: tuple[int, int, int]) -> Iterator[str]:
        lo, hi, depth = state
        lo += len(self.words[lo]) == depth
        while lo < hi:
            char = self.words[lo][depth]
            yield char
            lo = bisect_left(self.words, self.words[lo][:depth] + chr(ord(char) + 1), lo, hi)

    def advance(self, state: tuple[int, int, int], char: str) -> tuple[int, int, int] | None:
        lo, hi, depth = state
        prefix = self.words[lo][:depth] + char
        first = bisect_left(self.words, prefix, lo, hi)
        last = bisect_left(self.words, prefix[:-1] + chr(ord(char) + 1), first, hi)
        return (first, last, depth + 1) if first < last else None

    def accepts(self, state: tuple[int, int, int]) -> bool:
        lo, _, depth = state
        return len(self.words[lo]) == depth


class GrammarState(NamedTuple):
    """Where an utterance stands: words `lo..hi` of a node share the `depth` letters said so far.

    After a word that cannot go on `depth` is -1, and the node is the one that follows.
    """

    node: str
    lo: int = 0
    hi: int = 0
    depth: int = -1


class Grammar:
    """Words with single spaces between, in an order that nodes give.

    Args:
        nodes: for each node the words that may come next, and the node after each.
        start: the first node; at least one word is said.
        ends: the nodes at which the utterance may end.

    Raises:
        ValueError: a node is missing, or a word is empty or has a space in it.
    """

    def __init__(
        self, nodes: Mapping[str, Mapping[str, str]], start: str, ends: Iterable[str]
    ) -> None:
        self._words = {node: sorted(words) for node, words in nodes.items()}
        self._after = {node: dict(words) for node, words in nodes.items()}
        self._ends = frozenset(ends)
        named = {start, *self._ends, *(n for words in nodes.values() for n in words.values())}
        bad = [w for words in nodes.values() for w in words if not w or " " in w]
        if bad or not named <= nodes.keys():
            missing = sorted(named - nodes.keys())
            raise ValueError(
                "Grammar: expected words that are not empty and have no space, and a node for "
                f"each name; got the words {bad[:3]} and no nodes {missing[:3]}."
            )
        self.start = GrammarState(start, 0, len(self._words[start]), 0)
        key = tuple((node, tuple(words.items())) for node, words in self._after.items())
        self._key = (key, start, self._ends)
        self._hash = hash(self._key)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Grammar) and self._key == other._key

    def __hash__(self) -> int:
        return self._hash

    def choices(self, state: GrammarState) -> Iterator[str]:
        node, lo, hi, depth = state
        following = self._following(state)
        if following is not None and self._words[following]:
            yield " "
        words = self._words[node]
        lo += depth >= 0 and following is not None
        while lo < hi:
            char = words[lo][depth]
            yield char
            lo = bisect_left(words, words[lo][:depth] + chr(ord(char) + 1), lo, hi)

    def advance(self, state: GrammarState, char: str) -> GrammarState | None:
        if char == " ":
            following = self._following(state)
            words = [] if following is None else self._words[following]
            return GrammarState(str(following), 0, len(words), 0) if words else None
        node, lo, hi, depth = state
        if depth < 0 or lo == hi:
            return None
        words = self._words[node]
        prefix = words[lo][:depth]
        first = bisect_left(words, prefix + char, lo, hi)
        last = bisect_left(words, prefix + chr(ord(char) + 1), first, hi)
        if first == last:
            return None
        if last == first + 1 and len(words[first]) == depth + 1:
            return GrammarState(self._after[node][words[first]])
        return GrammarState(node, first, last, depth + 1)

    def accepts(self, state: GrammarState) -> bool:
        return self._following(state) in self._ends

    def _following(self, state: GrammarState) -> str | None:
        """The node after the word that is complete, if one is."""
        node, lo, _, depth = state
        if depth < 0:
            return node
        words = self._words[node]
        return self._after[node][words[lo]] if lo < len(words) and len(words[lo]) == depth else None


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
    return _compiled(cast(Hashable, constraint), cast(Hashable, tokenizer))


@lru_cache(maxsize=64)
def _compiled(constraint: Any, tokenizer: Any) -> TokenAutomaton:
    spellings = {first: _spellings(tokenizer, first) for first in (True, False)}
    number: dict[tuple[Any, bool], int] = {(constraint.start, True): 0}
    rows: list[Row] = []
    for state, first in _discovered(number):
        row: Row = {}
        for token, after in _allowed(constraint, state, spellings[first]):
            row[token] = number.setdefault((after, False), len(number))
        if constraint.accepts(state):
            row[END] = 0
        rows.append(row)
    return _tables(_without_dead_ends(rows), tokenizer.vocab_size)


Row = dict[int, int]
"""The tokens allowed in a state, and the state that each leads to."""


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
    """What tokens may add after some characters: a node of a trie."""

    tokens: list[int] = field(default_factory=list)  # those that end here
    longer: dict[str, "Spelling"] = field(default_factory=dict)


@lru_cache(maxsize=4)
def _spellings(tokenizer: Any, first: bool) -> Spelling:
    """All text tokens, letter by letter, as the first of an utterance or a later one."""
    root = Spelling()
    for token in range(FIRST_TEXT, tokenizer.vocab_size):
        text = tokenizer.piece(token, first)
        node = root
        for char in text:
            node = node.longer.setdefault(char, Spelling())
        if text:
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
