"""Constraints on what may be said next, over text.

A task states a constraint on the text of an utterance; `automata.py` compiles it to the tokens of a
tokenizer.
"""

from bisect import bisect_left
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple, Protocol


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
        """Return True if the utterance may end here."""
        ...


def allows(constraint: Constraint, text: str) -> bool:
    """Return True if a constraint admits the whole text."""
    state = constraint.start
    for char in text:
        state = constraint.advance(state, char)
        if state is None:
            return False
    return constraint.accepts(state)


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


class WordTrie:
    """One of the given words or phrases, letter by letter (a trie over the sorted list).

    A state is `(lo, hi, depth)`: the words `lo..hi` share the `depth` letters said so far.
    """

    def __init__(self, words: Iterable[str]) -> None:
        self.words = tuple(sorted(set(words)))
        if not self.words:
            raise ValueError("WordTrie: the list of words is empty; give at least one.")
        self.start = (0, len(self.words), 0)
        self._hash = hash(self.words)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, WordTrie) and self.words == other.words

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
    """Position of an utterance: words `lo..hi` of a node share the `depth` letters said so far.

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

    def words(self) -> Iterator[str]:
        """The words of all nodes, some of them several times."""
        for words in self._words.values():
            yield from words

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
