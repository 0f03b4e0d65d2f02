"""Parsing of what negotiators say, by rules."""

import re

from dialgym.language.text import plain
from dialgym.tasks.bargain.agreement import accepts, repeats
from dialgym.tasks.bargain.games import Game
from dialgym.tasks.bargain.types import (
    ACCEPT,
    ASK,
    INSIST,
    LEAVE,
    NO_OFFERS,
    NONE,
    REJECT,
    TELL,
    PriorOffers,
)

REMEMBERED = 50_000
_LEAVES = re.compile(
    r"\b(walk(?:ing)? away|i(?:'ll)? (?:leave|pass)|i(?:'m| am) (?:leaving|out)|im out"
    r"|goodbye|bye)\b|^(?:ok |then |so )*no deal[ .!]*$"
)
_INSISTS = re.compile(
    r"\b(insist|stand by|stick (?:to|with) (?:my|that)|my offer stands|take it or leave it"
    r"|(?:my|is|the|as) (?:final|last|best|lowest|highest) (?:offer|word|price|bid)|final offer"
    r"|last word|(?:best|lowest|highest|most|all|low|high) (?:that )?(?:as )?i can"
    r" (?:do|go|pay|offer)|(?:price|i'm|am) (?:is )?firm)\b"
)
_REFUSES = re.compile(
    r"^(no|nope|nah|sorry|never)\b|\bno[ .!]*$|\b(reject(?:ed)?|declined?|refused?|can't|cannot"
    r"|can not|cant|don't accept|won't|no deal|no way|too (?:low|high|much|expensive|pricey|steep)"
    r"|not (?:accept|agree|enough|fair|good|possible|work|going|happening|interested|a chance)"
    r"|rather not|forget it|disagree|(?:do not|don't|dont) want (?:that|it))\b"
)
_ASKS = re.compile(r"(?<!deal)(?<!deal )\?|^(what|which|how)\b")
_NEEDS = re.compile(
    r"\b(need|like|love|prefer|important|favou?rite|value|priority|want|extra|could use"
    r"|interested)\b"
)
_NEGATES = re.compile(
    r"(?:n't|\b(?:not|dont|never|no)) (?:really |that |much |as )*"
    r"(?:need|like|love|want|care|value|interested)"
)
_WORDS = re.compile(r"[a-z]+(?:['-][a-z]+)*")


class OfferReader:
    """Reads utterances as acts: proposals first, then `types.ACCEPT` and those that follow it.

    In order: the words of an act itself; a proposal (`games.Game.read`); an agreement;
    leaving; insisting; a question; a need; a refusal. What remains, and a proposal of more than
    there is, is not understood. Agreeing to the other's offer in its own words accepts it.

    Args:
        game: whose acts they are.
        texts: for each table, the text of each act, "" where it is impossible.
    """

    def __init__(self, game: Game, texts: list[list[str]]) -> None:
        self.game = game
        self._exact = [{text: code for code, text in enumerate(row) if text} for row in texts]
        self._known: dict[tuple[int, str, PriorOffers], int] = {}
        self._kinds = {word: at for at, kind in enumerate(game.kinds) for word in kind}
        self._kinds |= game.topics

    def read(self, table: int, text: str, heard: PriorOffers = NO_OFFERS) -> int:
        """The act of a text about a table, after what was heard; or NONE."""
        code = self._exact[table].get(text)
        if code is not None:
            return code
        key = table, text, heard
        if key not in self._known:
            if len(self._known) >= REMEMBERED:
                self._known.clear()
            self._known[key] = self._read(table, plain(text).lower(), heard)
        return self._known[key]

    def _read(self, table: int, text: str, heard: PriorOffers) -> int:
        size, found = self.game.size, self._exact[table].get(text.rstrip(".! "))
        if found is not None:
            return found
        proposed = self.game.read(table, text, heard)
        if proposed is not None:
            same = proposed == self._other(table, heard) and repeats(text)
            return size + ACCEPT if same else proposed
        if accepts(text, heard.asked):
            return size + ACCEPT
        if _LEAVES.search(text):
            return size + LEAVE
        if _INSISTS.search(text):
            return size + INSIST
        if _ASKS.search(text):
            return size + ASK
        kinds = [self._kinds[word] for word in _WORDS.findall(text) if word in self._kinds]
        needs = (self.game.topics or _NEEDS.search(text)) and not _NEGATES.search(text)
        if kinds and needs:
            return size + TELL + kinds[0]
        return size + REJECT if _REFUSES.search(text) else NONE

    def _other(self, table: int, heard: PriorOffers) -> int | None:
        """The proposal by which who speaks would make the other's offer that stands, or None."""
        if heard.other == NONE:
            return None
        return int(self.game.outcome[heard.party][table, heard.other])

    def __getstate__(self) -> dict[str, object]:
        """Without what was read before."""
        return {**self.__dict__, "_known": {}}
