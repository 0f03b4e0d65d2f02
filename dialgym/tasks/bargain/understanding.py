"""Parsing of what negotiators say, by rules."""

import re
from collections.abc import Mapping, Sequence, Set

from dialgym.language.text import plain
from dialgym.tasks.bargain.cars import Cars
from dialgym.tasks.bargain.games import CHEAPEST, DEAREST, STEPS, Game, Numbers
from dialgym.tasks.bargain.types import ACCEPT, ASK, INSIST, LEAVE, NONE, REJECT, TELL

REMEMBERED = 50_000
NUMBERS = dict.fromkeys(("a", "an", "one", "1st"), 1) | {"no": 0, "zero": 0, "two": 2, "three": 3}
NUMBERS |= {"four": 4, "five": 5}
HALF = -2
NUMBERS |= dict.fromkeys(("all", "both", "every"), -1) | dict.fromkeys(("split", "half"), HALF)
PASSED = frozenset(("of", "other", "packages", "package", "packs", "pack", "the", "your", "my"))
"""Words between an amount and a kind."""
OWN = ("i", "i'd", "i'll", "i'm", "id", "ill", "im", "me", "gimme", "we", "we'd", "we'll", "us")
OTHER = ("you", "you'd", "you'll", "u", "youd", "youll")
PERSONS = dict.fromkeys(OWN, True) | dict.fromkeys(OTHER, False)
"""Persons, and whether it is who speaks."""
REST = frozenset(("rest", "else", "others", "remainder", "remaining"))
SYNONYMS = {"basketball": "ball", "basketballs": "balls", "fire-wood": "firewood"}
SYNONYMS |= {"wood": "firewood", "firewoods": "firewood", "foods": "food", "waters": "water"}
UNITS = frozenset(("square", "sq", "sqft", "miles", "mile", "years", "year", "months", "bedroom"))
"""Words after a number that is no price."""
_WORDS = re.compile(r"[a-z]+(?:['-][a-z]+)*|\d+(?:\.\d+)?(?:st)?")
_LEAVES = re.compile(
    r"\b(walk away|i leave|i(?:'m| am) (?:leaving|out)|goodbye|bye)\b|^no deal[ .!]*$"
)
_INSISTS = re.compile(r"\b(insist|stand by|final offer|my offer stands)\b")
_REFUSES = re.compile(
    r"^(no|nope|nah|sorry)\b|\b(reject|decline|refuse|can't|cannot|can not|cant|don't accept|won't"
    r"|no deal|no way|too (?:low|high|much)|not (?:accept|agree|enough|fair|good|possible|work"
    r"|going))\b"
)
_ACCEPTS = re.compile(
    r"^(ok|okay|yes|yeah|yep|yup|sure|agreed|deal|fine|great|perfect|alright|cool)\b|\b(accept"
    r"|i agree|a deal|sounds (?:good|great|fair|perfect)|works? for me|that works|can do that"
    r"|deal)\b"
)
_ASKS = re.compile(r"(?<!deal)(?<!deal )\?|^(what|which|how)\b")
_NEEDS = re.compile(r"\b(need|like|love|prefer|important|favou?rite|value)\b")
_WISHES = re.compile(r"\b(would|i'd|id) (?:really )?(?:like|love|prefer)\b")


class OfferReader:
    """Reads utterances as acts: proposals first, then `types.ACCEPT` and those that follow it.

    In order: the words of an act itself; a proposal; leaving; insisting; a question; a need; a
    refusal; an agreement. What remains, and a proposal of more than there is, is not understood.

    A proposal is a price, taken for the nearest that can be proposed, or how many of each kind are
    for whom: ``i`` or ``you`` before them, or ``for me`` behind. ``the hats`` are all of them.
    What is not named goes to who has ``the rest``, else to the other one of those named last.

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
        self._kinds |= game.topics
        self._single = {one for one, many in game.kinds if one != many}

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
        words = [SYNONYMS.get(word, word) for word in _WORDS.findall(text)]
        proposed = self._proposal(self.game.tables[table], text, words)
        if proposed is not None:
            return proposed
        if _LEAVES.search(text):
            return size + LEAVE
        if _INSISTS.search(text):
            return size + INSIST
        if _ASKS.search(text):
            return size + ASK
        kinds = [self._kinds[word] for word in words if word in self._kinds]
        if kinds and (self.game.topics or _NEEDS.search(text)):
            return size + TELL + kinds[0]
        if _REFUSES.search(text):
            return size + REJECT
        return size + ACCEPT if _ACCEPTS.search(text) else NONE

    def _proposal(self, table: Numbers, text: str, words: list[str]) -> int | None:
        """A proposal, NONE for an impossible one; None where nothing is proposed."""
        if len(table) == 1:
            return _price(table[0], words)
        if isinstance(self.game, Cars):
            return self.game.read(table, text)
        bare = bool(_WISHES.search(text)) or not _NEEDS.search(text)
        full = Division(table, self._kinds, self._single, bare).read(words)
        if full is None:
            return None
        if any(not 0 <= part <= n for part, n in zip(full, table)):
            return NONE
        code = 0
        for part in full:
            code = code * self._base + part
        return code

    def __getstate__(self) -> dict[str, object]:
        """Without what was read before."""
        return {**self.__dict__, "_known": {}}


class Division:
    """Amounts of each kind that are for who speaks, as an utterance says it word by word.

    Args:
        table: what there is.
        kinds: the place of each word for a kind.
        single: those of these that mean one.
        bare: whether a kind alone, without a number or an article, is all of it.
    """

    def __init__(
        self, table: Numbers, kinds: Mapping[str, int], single: Set[str], bare: bool
    ) -> None:
        self.table, self.kinds, self.single, self.bare = table, kinds, single, bare
        self.share: list[int | None] = [None] * len(table)
        self.clause: list[tuple[int, int]] = []  # kinds and amounts since a person was named
        self.nobody: list[int] = []  # kinds named before anybody was
        self.own, self.named = True, False  # of the person named last
        self.amount: int | None = None
        self.rest: bool | None = None  # whether it is for who speaks
        self.rest_here = False  # named since the person

    def read(self, words: Sequence[str]) -> list[int] | None:
        """The share of who speaks; None where nothing is divided."""
        for before, word in zip(["", *words], words):
            if word in PERSONS:
                self._person(PERSONS[word], before in ("for", "to"))
            elif word in self.kinds:
                self._kind(word, before)
            elif word in REST:
                self._rest()
            elif word in ("but", "except") and before in ("everything", "all"):
                self._rest()
                self.own = not self.own
            else:
                self.amount = _number(word, self.amount)
        return None if all(part is None for part in self.share) else self._whole()

    def _person(self, own: bool, behind: bool) -> None:
        if behind:  # two balls for me, the rest to you
            for kind, count in self.clause:
                self._give(kind, count, own)
            self.rest, self.nobody = own if self.rest_here else self.rest, []
        self.own, self.named, self.amount = own, True, None
        self.clause, self.rest_here = [], False

    def _kind(self, word: str, before: str) -> None:
        kind, count = self.kinds[word], self._count(word, before)
        self.amount = None
        if count is not None:
            self._give(kind, count, self.own)
            self.clause.append((kind, count))
            self.nobody += [] if self.named else [kind]

    def _rest(self) -> None:
        self.rest, self.rest_here, self.amount = self.own, True, None

    def _give(self, kind: int, count: int, own: bool) -> None:
        self.share[kind] = count if own else self.table[kind] - count

    def _count(self, word: str, before: str) -> int | None:
        """Amount of a kind that is meant; None where it is only spoken about."""
        there, single = self.table[self.kinds[word]], word in self.single
        if self.amount is not None:
            return {-1: there, HALF: there // 2}.get(self.amount, self.amount)
        if self.bare or before in ("the", "your", "my", "that", "those", "these"):
            return 1 if single else there
        return None

    def _whole(self) -> list[int]:
        """The share with what was not named."""
        if self.rest:  # two balls, and i get the rest
            for kind in self.nobody:
                self.share[kind] = self.table[kind] - (self.share[kind] or 0)
        to_speaker = not self.own if self.rest is None else self.rest
        left = [n if to_speaker else 0 for n in self.table]
        return [one if part is None else part for one, part in zip(left, self.share)]


def _number(word: str, before: int | None) -> int | None:
    """The amount that a word says, -1 for all, HALF to split; else that of the words before."""
    if word.isdecimal():
        return int(word)
    return NUMBERS.get(word, before if word in PASSED else None)


def _price(list_price: int, words: list[str]) -> int | None:
    """The last price that can be proposed; NONE where all are beyond that, None without one."""
    numbers = [
        float(word)
        for word, after in zip(words, [*words[1:], ""])
        if word[0].isdigit() and word[-1].isdigit() and after not in UNITS
    ]
    steps = [round(number * STEPS / list_price) for number in numbers]
    possible = [step for step in steps if CHEAPEST <= step <= DEAREST]
    return possible[-1] - CHEAPEST if possible else (NONE if steps else None)
