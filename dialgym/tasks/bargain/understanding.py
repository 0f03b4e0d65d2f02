"""Parsing of what negotiators say, by rules."""

import re

from dialgym.language.text import plain
from dialgym.tasks.bargain.games import CHEAPEST, DEAREST, STEPS, Game, Numbers
from dialgym.tasks.bargain.types import ACCEPT, ASK, INSIST, LEAVE, NONE, REJECT, TELL

REMEMBERED = 50_000
NUMBERS = dict.fromkeys(("a", "an", "one", "the"), 1) | {"no": 0, "zero": 0, "two": 2, "three": 3}
_WORDS = re.compile(r"[a-z']+|\d+(?:\.\d+)?")
_LEAVES = re.compile(r"\b(walk away|no deal|i leave|i(?:'m| am) (?:leaving|out)|goodbye|bye)\b")
_INSISTS = re.compile(r"\b(insist|stand by|final offer|my offer stands)\b")
_REFUSES = re.compile(
    r"^(no|nope|sorry)\b|\b(reject|decline|refuse|can't|cannot|don't accept|won't|not (?:accept"
    r"|agree|enough|fair|good))\b"
)
_ACCEPTS = re.compile(
    r"^(ok|okay|yes|sure|agreed|deal|fine)\b|\b(accept|i agree|it's a deal|it is a deal|sounds good"
    r"|works for me)\b"
)
_ASKS = re.compile(r"\?|^(what|which|how)\b")
_NEEDS = re.compile(r"\b(need|like|love|prefer|important|favou?rite|value)\b")
_OWN, _OTHER = frozenset(("i", "i'd", "i'll", "me")), frozenset(("you", "you'd", "you'll"))


class OfferReader:
    """Reads utterances as acts: proposals first, then `types.ACCEPT` and those that follow it.

    In order: the words of an act itself; leaving; insisting; a proposal (how many of each kind are
    for ``i`` or ``you``, what is not named going to the other one, or a price, which is taken for
    the nearest that can be proposed); a question; a need; a refusal; an agreement. What remains,
    and a proposal of more than there is, is not understood.

    Args:
        game: whose acts they are.
        texts: for each table, the text of each act, "" where it is impossible.
    """

    def __init__(self, game: Game, texts: list[list[str]]) -> None:
        self.game = game
        self._base = round(game.size ** (1 / len(game.kinds)))  # of the numbers of shares
        self._exact = [{text: code for code, text in enumerate(row) if text} for row in texts]
        self._known: dict[tuple[int, str], int] = {}
        self._kinds = {word: at for at, kind in enumerate(game.kinds) for word in kind}

    def read(self, table: int, text: str) -> int:
        """The act of a text about a table, or NONE."""
        code = self._exact[table].get(text)
        if code is not None:
            return code
        key = table, text
        if key not in self._known:
            if len(self._known) >= REMEMBERED:
                self._known.clear()
            self._known[key] = self._read(table, plain(text).lower())
        return self._known[key]

    def _read(self, table: int, text: str) -> int:
        size, found = self.game.size, self._exact[table].get(text.rstrip(".! "))
        if found is not None:
            return found
        if _LEAVES.search(text):
            return size + LEAVE
        if _INSISTS.search(text):
            return size + INSIST
        words = _WORDS.findall(text)
        proposed = self._proposal(self.game.tables[table], words)
        if proposed is not None:
            return proposed
        if _ASKS.search(text):
            return size + ASK
        kinds = [self._kinds[word] for word in words if word in self._kinds]
        if kinds and _NEEDS.search(text):
            return size + TELL + kinds[0]
        if _REFUSES.search(text):
            return size + REJECT
        return size + ACCEPT if _ACCEPTS.search(text) else NONE

    def _proposal(self, table: Numbers, words: list[str]) -> int | None:
        """A proposal, NONE for an impossible one; None where nothing is proposed."""
        if len(table) == 1:
            return self._price(table[0], words)
        share: list[int | None] = [None] * len(table)
        own, amount = True, None
        last_own = True  # whose was named last
        for word in words:
            if word in _OWN or word in _OTHER:
                own, amount = word in _OWN, None
            elif word in self._kinds:
                kind = self._kinds[word]
                if amount is not None:
                    count = table[kind] if amount < 0 else amount
                    share[kind] = count if own else table[kind] - count
                    last_own = own
                amount = None
            else:
                amount = _number(word, amount)
        if all(part is None for part in share):
            return None
        rest = [0 if last_own else n for n in table]
        full = [rest[k] if part is None else part for k, part in enumerate(share)]
        if any(not 0 <= part <= n for part, n in zip(full, table)):
            return NONE
        code = 0
        for part in full:
            code = code * self._base + part
        return code

    def _price(self, list_price: int, words: list[str]) -> int | None:
        numbers = [float(word) for word in words if word[0].isdigit()]
        if not numbers:
            return None
        step = round(numbers[-1] * STEPS / list_price)
        return step - CHEAPEST if CHEAPEST <= step <= DEAREST else NONE

    def __getstate__(self) -> dict[str, object]:
        """Without what was read before."""
        return {**self.__dict__, "_known": {}}


def _number(word: str, before: int | None) -> int | None:
    """The amount that a word says, -1 for all; else that of the words before."""
    if word.isdecimal():
        return int(word)
    if word in ("all", "both", "every"):
        return -1
    if word == "the" and before is not None:  # all the books
        return before
    return NUMBERS.get(word, before if word in ("of", "other", "packages", "package") else None)
