"""Reading of shares in English: how many of each kind are for whom."""

import re
from collections.abc import Mapping, Sequence, Set

from dialgym.language.spelled_numbers import in_digits
from dialgym.tasks.bargain.wording import clauses

ALL, HALF, IMPOSSIBLE = -1, -2, 1 << 20
"""Amounts of a kind: all of it, half of it, and what nobody can have: half of an odd number, -1."""
AMOUNTS = dict.fromkeys(("a", "an", "single", "1st"), 1)
AMOUNTS |= dict.fromkeys(("no", "none"), 0)
AMOUNTS |= dict.fromkeys(("all", "both", "every"), ALL) | dict.fromkeys(("split", "half"), HALF)
PASSED = frozenset(("of", "other", "packages", "package", "packs", "pack", "the", "your", "my"))
PASSED |= {"more", "extra", "additional", "those", "these", "least", "just", "only", "up"}
"""Words between an amount and a kind."""
OWN = ("i", "i'd", "i'll", "i'm", "id", "ill", "im", "me", "gimme", "we", "we'd", "we'll", "us")
OTHER = ("you", "you'd", "you'll", "u", "youd", "youll", "ya")
PERSONS = dict.fromkeys((*OWN, "mine", "myself"), True)
PERSONS |= dict.fromkeys((*OTHER, "yours", "yourself"), False)
"""Persons, and whether it is who speaks."""
OWNED = frozenset(("mine", "yours", "myself", "yourself"))
"""Persons that come behind what is theirs."""
GIVES = frozenset(("give", "giving", "offer", "offering", "spare", "trade", "swap", "part", "let"))
"""Words by which things go to the other one than who does it."""
NOUNS = frozenset(
    ("my", "your", "the", "that", "this", "final", "last", "an", "a", "other", "fair", "good")
)
"""Words before an offer or a trade that nobody makes by saying so."""
REST = frozenset(("rest", "else", "others", "remainder", "remaining", "leftovers"))
EVERY = frozenset(("each", "everything", "nothing", "all"))
TAKES = frozenset(
    ("take", "get", "have", "keep", "need", "want", "use", "just", "only", "you", "i", "me")
)
"""Words before an amount of the kind that was named before."""
STARTS = frozenset(("", "ok", "okay", "fine", "sure", "alright", "then", "well", "just", "please"))
"""Words before an order."""
DIVIDES = frozenset(
    ("take", "get", "have", "keep", "give", "yours", "mine", "let", "offer", "trade")
)
"""Verbs of dividing."""
ADDS = frozenset(("throw", "add", "another", "more", "plus"))
"""Words by which an amount comes to that of the offer before."""
PAUSES = frozenset(("and", "then", "while", "please", "if", "though"))
"""Words before which an amount of the kind named before may end."""
LINKS = frozenset(("is", "are", "be", "go", "goes"))
"""Verbs between kinds and the person behind who gets them."""
EXCEPT = ("but", "except", "minus")
SYNONYMS = {"basketball": "ball", "basketballs": "balls", "fire-wood": "firewood"}
SYNONYMS |= {"wood": "firewood", "firewoods": "firewood", "foods": "food", "waters": "water"}
SYNONYMS |= {"woods": "firewood", "bal": "ball", "bball": "ball"}
_WORDS = re.compile(r"[a-z]+(?:['-][a-z]+)*|(?:(?<!\S)-)?\d+(?:\.\d+)?(?:st)?")
_MINUS = re.compile(r"(?<!everything )(?<!all )(?<!else )\bminus (?=\d)")
_NO_COUNT = re.compile(r"-\d.*|\d+\.\d+")
_NEEDS = re.compile(r"\b(need|like|love|prefer|important|favou?rite|value)\b")
_WISHES = re.compile(r"\b(would|i'd|id) (?:really )?(?:like|love|prefer)\b")
_NOT = r"(?:do(?:n'?t| not)|can'?t|cannot|can not|won'?t|will not|not|never)"
_KEEPS = re.compile(
    rf"\b{_NOT} (?:\w+ )?(?:(?:give|spare|offer|trade) (?:you )?(?:up )?|part with|let go of"
    r"|go without)"
)
_TALK = re.compile(
    r"\b(?:worth\w*|useless|no use|points?|value|priority|plenty|did(?:n'?t| not)"
    rf"|{_NOT}(?! mind))\b"
)
_MEANT = re.compile(
    rf"\b(?:{_NOT}|no deal)\b.* without\b|\b(?:can'?t|couldn'?t|won'?t) (?:you|i)\b"
)
_ASKED = re.compile(r"^(?:do|does|are|is|how (?:much|many)|which|why|what)\b")
_SUBJECT = re.compile(
    r"(?<!\bdo)(?<!\bdid)(?<!\ball)\s"
    r"(?=(?:if (?:i|you)|(?:i|you|we) (?:can|will|would|could|get|take|keep|have"
    r"|give)|i (?:need|want)|i'll|i'd|you'll|ill|how about)\b)"
)
_EVENLY = re.compile(
    r"\bsplit (?:it|things|all|the lot)\b(?: all)?(?: evenly| equally| in half| 50 ?[/-] ?50)?"
    r"|^50 ?[/-] ?50\b|\bhalf and half\b|\b(?:we each|each of us) (?:get|take)s? half\b"
)
_AMENDS = re.compile(
    r"\b(?:also|too|as well|throw in|add|another|\d more|more|plus|swap|of your|split|at ?least)\b"
)


def share_of(
    text: str,
    table: Sequence[int],
    kinds: Mapping[str, int],
    single: Set[str],
    before: Sequence[int] | None = None,
    kept: bool = False,
) -> list[int] | None:
    """Read the share of who speaks, of each kind, from a text in lower case.

    Amounts are of who is named before them, ``i`` or ``you``, or behind: ``for me``. ``the hats``
    are all of them. Clauses that refuse, ask or say what things are worth divide nothing.

    Args:
        text: what is said.
        table: what there is of each kind.
        kinds: the place of each word for a kind.
        single: those of these that mean one.
        before: the share by the offer that the text may refer to: ``one more``.
        kept: whether kinds that are not named stay as they were by that offer, and kinds without
            an amount are only divided by a verb such as ``take``.

    Returns:
        The share, more or less than there is where the text says so; None where nothing is divided.
    """
    text = _EVENLY.sub("split everything", _KEEPS.sub("keep ", _MINUS.sub("-", in_digits(text))))
    several = len({kinds[word] for word in _WORDS.findall(text) if word in kinds}) > 1
    bare = (several and not kept) or bool(_WISHES.search(text)) or not _NEEDS.search(text)
    division = Division(table, kinds, single, bare, kept, before)
    for clause in clauses(text):
        for part in [clause] if _MEANT.search(clause) else _SUBJECT.split(clause):
            if _MEANT.search(part) or not (_TALK.search(part) or _ASKED.search(part)):
                division.hear([SYNONYMS.get(word, word) for word in _WORDS.findall(part)])
    return division.share(kept or bool(_AMENDS.search(text)))


class Division:
    """Amounts of each kind that are for who speaks, heard word by word.

    Args:
        table, kinds, single: see `share_of`.
        bare: whether a kind alone, without a number or an article, is all of it.
        strict: whether it must then follow a verb of dividing.
    """

    def __init__(
        self,
        table: Sequence[int],
        kinds: Mapping[str, int],
        single: Set[str],
        bare: bool,
        strict: bool,
        before: Sequence[int] | None,
    ) -> None:
        self.before, self.adds = before, False
        self.strict, self.divides = strict, True
        self.table, self.kinds, self.single, self.bare = table, kinds, single, bare
        self.parts: list[int | None] = [None] * len(table)
        self.clause: list[tuple[int, int]] = []  # kinds and amounts since a person was named
        self.run = 0  # place in it from which on kinds follow one another
        self.cut = 0  # the same from the last ``and`` on, where a new sentence may begin
        self.subject = False  # the person named last came before what is theirs
        self.linked = False  # the last word but ``for`` and the like was one of `LINKS`
        self.nobody: list[int] = []  # kinds named before anybody was
        self.own, self.named = True, False  # of the person named last
        self.amount: int | None = None
        self.topic: int | None = None  # the kind named last
        self.alone = False  # the amount, behind a verb
        self.rest: bool | None = None  # whether it is for who speaks
        self.rest_here = False  # named since the person
        self.joined = False  # the rest, by ``and`` with what was named before

    def hear(self, words: Sequence[str]) -> None:
        """Hear the words of a clause."""
        self.adds = self.before is not None and not ADDS.isdisjoint(words)
        self.divides = not self.strict or not DIVIDES.isdisjoint(words)
        self.amount, self.run, self.cut = None, len(self.clause), 0
        self.subject = self.linked = False
        for at, (before, word, after) in enumerate(zip(["", *words], words, [*words[1:], ""])):
            if word in PAUSES or word in PERSONS:
                self._close()
            if before in self.kinds and (word in PASSED or self._is_amount(word)):
                self.run = len(self.clause)  # i get all books the hat is yours
            if word == "and" and self.subject and self._may_begin(after):
                self.cut = len(self.clause)  # i get all books and the hat is yours
            if word in REST:
                self._rest(self.own != (before == "nothing"), "and" in words[max(at - 2, 0) : at])
            else:
                self._hear(before, word, after)
        self._close()

    def _may_begin(self, word: str) -> bool:
        """Tell if a sentence may begin with a word: ``the hat and balls`` is one thing."""
        return word in PASSED or _number(word, None) is not None or not (self.run or self.cut)

    def _hear(self, before: str, word: str, after: str) -> None:
        links = word in LINKS and before != "to"
        self.linked = links or (self.linked and (word in PERSONS or word in ("all", "for", "to")))
        if word in PERSONS:
            self._person(PERSONS[word], before in ("for", "to") or word in OWNED, word in OWNED)
        elif word in ("take", "keep") and before in STARTS:
            self._person(False)  # take the hat
        elif word in self.kinds:
            self._kind(word, before)
        elif word in GIVES and before not in NOUNS:
            self.own, self.named = not self.own, True
        elif word == "for" and self.clause and (after in PASSED or self._is_amount(after)):
            self.own = not self.own  # one book for two hats
        elif word in EXCEPT and before in ("everything", "all", "else"):
            self._rest(self.own, False)
            self.own, self.named, self.divides = not self.own, True, True
        elif word in EVERY and self._is_all(word, before, after):
            self._all(0 if word == "nothing" else ALL if self.amount is None else self.amount)
        else:
            self.amount = _number(word, self.amount)
            self.alone = word.isdecimal() and before in TAKES

    def _close(self) -> None:
        """Take an amount without a kind for one of the kind named last: ``i take 2 you take 1``."""
        if self.alone and self.topic is not None and self.amount is not None:
            self._name(self.topic, self.amount)
        self.amount, self.alone = None, False

    def _is_amount(self, word: str) -> bool:
        return word in self.kinds or _number(word, None) is not None

    def _is_all(self, word: str, before: str, after: str) -> bool:
        """Tell if a word is all of all kinds: ``one of each``, ``everything``."""
        if after in (*REST, *EXCEPT) or after in self.kinds:
            return False
        if word in ("everything", "nothing"):
            return True
        if word == "each":
            return self.amount is not None
        return (before == "of" and self.amount is not None) or after in ("", "please")

    def _person(self, own: bool, behind: bool = False, owner: bool = False) -> None:
        if behind:  # two balls for me, the rest to you
            if not self.rest_here or (self.joined and not self.named):
                start = max(self.run, self.cut) if self.linked else self.run if owner else 0
                for kind, count in self.clause[start:]:
                    self._give(kind, count, own)
                self.nobody = []
            self.rest = own if self.rest_here else self.rest
        self.own, self.named, self.amount = own, True, None
        self.clause, self.rest_here, self.run, self.cut = [], False, 0, 0
        self.subject, self.linked = not behind, False

    def _kind(self, word: str, before: str) -> None:
        kind, count = self.kinds[word], self._count(word, before)
        self.amount, self.topic, self.linked = None, kind, False
        if count is not None:
            self._name(kind, count)

    def _all(self, count: int) -> None:
        for kind, there in enumerate(self.table):
            self._name(kind, _amount(count, there))
        self.amount = None

    def _name(self, kind: int, count: int) -> None:
        self._give(kind, count, self.own)
        self.clause.append((kind, count))
        self.nobody += [] if self.named else [kind]

    def _rest(self, own: bool, joined: bool) -> None:
        self.rest, self.rest_here, self.joined, self.amount = own, True, joined, None

    def _give(self, kind: int, count: int, own: bool) -> None:
        there = self.table[kind]
        if self.adds and self.before is not None and count != IMPOSSIBLE:  # one more of them
            count = self.before[kind] + (count if own else -count)
            self.parts[kind] = min(max(count, 0), there)
        else:
            self.parts[kind] = count if own else there - count

    def _count(self, word: str, before: str) -> int | None:
        """Amount of a kind that is meant; None where it is only spoken about."""
        there, single = self.table[self.kinds[word]], word in self.single
        if self.amount is not None:
            return _amount(self.amount, there)
        if not self.divides:
            return None
        if self.bare or before in ("the", "your", "my", "that", "those", "these"):
            return 1 if single else there
        return None

    def share(self, kept: bool) -> list[int] | None:
        """The share of who speaks; None where nothing was divided.

        What is not named goes to who has ``the rest``, else to the other one of those named last.
        """
        before = self.before
        if all(part is None for part in self.parts):
            return list(before) if self.rest and before is not None else None
        if self.rest:  # two balls, and i get the rest
            for kind in self.nobody:
                self.parts[kind] = self.table[kind] - (self.parts[kind] or 0)
        if kept and self.rest is None and before is not None:
            left = list(before)
        else:
            to_speaker = not self.own if self.rest is None else self.rest
            left = [n if to_speaker or not any(self.parts) else 0 for n in self.table]
        return [one if part is None else part for one, part in zip(left, self.parts)]


def _amount(said: int, there: int) -> int:
    """An amount of a kind of which there is so much."""
    if said == HALF:
        return IMPOSSIBLE if there % 2 else there // 2
    return there if said == ALL else said


def _number(word: str, before: int | None) -> int | None:
    """The amount that a word says; else that of the words before."""
    if word.isdecimal():
        return int(word)
    if _NO_COUNT.fullmatch(word):
        return IMPOSSIBLE
    return AMOUNTS.get(word, before if word in PASSED else None)
