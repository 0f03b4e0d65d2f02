"""A constraint on the order of words."""

from bisect import bisect_left
from collections.abc import Iterable, Iterator, Mapping
from typing import NamedTuple


class Spelled(NamedTuple):
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
        self.start = Spelled(start, 0, len(self._words[start]), 0)
        key = tuple((node, tuple(words.items())) for node, words in self._after.items())
        self._key = (key, start, self._ends)
        self._hash = hash(self._key)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Grammar) and self._key == other._key

    def __hash__(self) -> int:
        return self._hash

    def choices(self, state: Spelled) -> Iterator[str]:
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

    def advance(self, state: Spelled, char: str) -> Spelled | None:
        if char == " ":
            following = self._following(state)
            words = [] if following is None else self._words[following]
            return Spelled(str(following), 0, len(words), 0) if words else None
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
            return Spelled(self._after[node][words[first]])
        return Spelled(node, first, last, depth + 1)

    def accepts(self, state: Spelled) -> bool:
        return self._following(state) in self._ends

    def _following(self, state: Spelled) -> str | None:
        """The node after the word that is complete, if one is."""
        node, lo, _, depth = state
        if depth < 0:
            return node
        words = self._words[node]
        return self._after[node][words[lo]] if lo < len(words) and len(words[lo]) == depth else None
