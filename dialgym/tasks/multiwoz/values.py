"""Values that mean the same: what a party says, by the value that the database has for it."""

from collections.abc import Container, Iterable, Iterator
from difflib import SequenceMatcher
from functools import lru_cache

from dialgym.tasks.multiwoz.data import World
from dialgym.tasks.multiwoz.ontology import BOOKING, DOMAINS, SLOT_NAMES
from dialgym.tasks.multiwoz.types import ASKED, NONE, DialogueAct

Heard = tuple[tuple[str, str], tuple[str, str] | None]
"""(domain, intent) and (slot, value) of an act, by the names of the database; None for no slot
that is known."""

REMEMBERED = 1 << 15
"""Values that a vocabulary remembers the outcome of."""
UNHEARD = frozenset(
    [("Police", "Name")]
    + [("Hotel", slot) for slot in ("Day", "People", "Stay")]
    + [("Restaurant", slot) for slot in ("Day", "People", "Time")]
)
"""Slots that the original's user knows only of bookings, or not at all (`FAULTS`, ``unheard``)."""
NOT_TRACKED = {("restaurant", "name"): ("meze bar restaurant",)}
"""Names that the original's tracker does not know, though its user does."""


class Vocabulary:
    """Maps what is said to known values. Immutable and shared, but for a memory.

    Args:
        world: its values, and those of its rows.
        loose: as the original does it (`FAULTS`, ``loose_values``).
        unheard: slots of a domain that the user does not understand.
    """

    def __init__(self, world: World, loose: bool, unheard: Container[tuple[str, str]] = ()) -> None:
        self._unheard = unheard
        self._spelt = {domain: dict(_spelt(world, domain, loose)) for domain in DOMAINS}
        self._known = {
            domain: {slot: tuple(spelt) for slot, spelt in slots.items()}
            for domain, slots in self._spelt.items()
        }
        for (domain, slot), absent in (NOT_TRACKED if loose else {}).items():
            kept = [value for value in self._known[domain].get(slot, ()) if value not in absent]
            self._known[domain][slot] = tuple(kept)
        self._normalise = _loose if loose else _close
        self._understand = _contained if loose else _close
        self._memory: dict[tuple[bool, str, str, str], str] = {}
        self._heard: dict[DialogueAct, Heard | None] = {}

    def normalised(self, domain: str, slot: str, value: str) -> str:
        """The value that the tracker stores for one that the user has said, in small letters."""
        key = (True, domain, slot, value)
        found = self._memory.get(key)
        if found is None:
            known = self._known[domain].get(slot)
            folded = " ".join(value.lower().split())
            found = self._keep(key, self._normalise(folded, known) if known else folded)
        return found

    def understood(self, domain: str, slot: str, value: str) -> str:
        """The value that the user takes what the system has said for, as the rows spell it."""
        key = (False, domain, slot, value)
        found = self._memory.get(key)
        if found is None:
            spelt = self._spelt.get(domain, {}).get(slot, {})
            if slot in ("parking", "internet") and value == "none":
                found = "yes"  # the corpus writes so of a place that has it
            elif not spelt or value in spelt.values():
                found = value
            else:
                closest = self._understand(" ".join(value.lower().split()), tuple(spelt))
                found = spelt.get(closest, value)
            self._keep(key, found)
        return found

    def heard(self, act: DialogueAct) -> Heard | None:
        """Understanding by the user of an act of the system; None for nothing."""
        found = self._heard.get(act, ...)
        if found is ...:
            if len(self._heard) >= REMEMBERED:
                self._heard.clear()
            found = self._heard[act] = self._hear(act)
        return found

    def _hear(self, act: DialogueAct) -> Heard | None:
        intent, domain, slot, value = act
        names = SLOT_NAMES.get(domain)
        name = NONE if slot == NONE else names.get(slot) if names else None
        if names is None:
            return None
        about, kind = domain.lower(), intent.lower()
        if name is None or (domain, slot) in self._unheard:
            return (about, kind), None
        if name == "choice" and value.strip().lower() in ("0", "zero"):
            return (about, "nooffer"), (NONE, NONE)
        if kind == "request":
            return (about, kind), (name, ASKED)
        if domain != BOOKING:
            value = self.understood(about, name, value)
        return (about, kind), (name, value)

    def _keep(self, key: tuple[bool, str, str, str], value: str) -> str:
        if len(self._memory) >= REMEMBERED:
            self._memory.clear()
        self._memory[key] = value
        return value


def _spelt(world: World, domain: str, loose: bool) -> Iterator[tuple[str, dict[str, str]]]:
    """Slot -> value in small letters -> as it is spelt: of the value set, then of the rows."""
    values = {slot: list(known) for slot, known in world.values.get(domain, {}).items()}
    for row in () if loose else world.database.rows(domain):
        for slot, value in row.items():
            values.setdefault(slot, []).append(value)
    for slot, spelt in values.items():
        spellings = {value.lower(): value for value in reversed(spelt)}
        yield slot, {value.lower(): spellings[value.lower()] for value in spelt}


def _close(value: str, known: tuple[str, ...]) -> str:
    """The known value that differs by case, spaces, an article or two letters of a long word."""
    folded = value.lower()
    for form in (folded, *_variants(folded)):
        if form in known:
            return form
    return _misspelt(folded, known) or value


def _loose(value: str, known: tuple[str, ...]) -> str:
    """As the tracker of ConvLab-2 does it: equal, containing, contained, then misspelt."""
    for form in (value, *_variants(value)):
        if form in known:
            return form
        part = next((v for v in known if v in form or form in v), None)
        found = part or _misspelt(form, known)
        if found:
            return found
    return value


def _contained(value: str, known: tuple[str, ...]) -> str:
    """As the user of ConvLab-2 does it: equal, else the alphabetically first that shares text."""
    for form in (value, value.replace(" 's", "'s"), value.replace(" - ", "-")):
        close = "".join(form.split())
        for v in (form,) if form in known else sorted(known):
            if form in v or v in form or close in v or v in close:
                return v
    return value


def _variants(value: str) -> Iterator[str]:
    if " 's" in value:
        yield value.replace(" 's", "'s")
    if " - " in value:
        yield value.replace(" - ", "-")
    if value in ("center", "centre"):
        yield "centre" if value == "center" else "center"
    yield value[4:] if value.startswith("the ") else "the " + value


def _misspelt(value: str, known: Iterable[str]) -> str | None:
    """The first known value at two letters from one of ten, or at three from one of fifteen."""
    allowed = 3 if len(value) >= 15 else 2
    if len(value) < 10:
        return None
    for candidate in known:
        if abs(len(candidate) - len(value)) <= allowed and _edits(value, candidate) <= allowed:
            return candidate
    return None


def _edits(first: str, second: str) -> int:
    """The fewest letters to insert, delete or replace."""
    row = list(range(len(second) + 1))
    for i, a in enumerate(first):
        diagonal, row[0] = row[0], i + 1
        for j, b in enumerate(second):
            diagonal, row[j + 1] = (
                row[j + 1],
                min(diagonal + (a != b), row[j] + 1, row[j + 1] + 1),
            )
    return row[-1]


@lru_cache(maxsize=REMEMBERED)
def partial_ratio(first: str, second: str) -> int:
    """Share of the shorter text that is found in one place of the longer one, in per cent.

    The measure of fuzzywuzzy, with the matching blocks of difflib.
    """
    short, long = sorted((first, second), key=len)
    if not short or short in long:
        return 100 if short or not long else 0
    best = 0.0
    for a, b, _ in SequenceMatcher(None, short, long, autojunk=False).get_matching_blocks():
        start = max(b - a, 0)
        part = long[start : start + len(short)]
        best = max(best, 2 * _common(short, part) / (len(short) + len(part)))
    return round(100 * best)


def _common(first: str, second: str) -> int:
    """Letters of the longest subsequence that both have."""
    row = [0] * (len(second) + 1)
    for a in first:
        diagonal = 0
        for j, b in enumerate(second):
            diagonal, row[j + 1] = row[j + 1], diagonal + 1 if a == b else max(row[j], row[j + 1])
    return row[-1]
