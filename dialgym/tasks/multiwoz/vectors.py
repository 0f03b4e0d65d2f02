"""The system's state as 340 features; masks of its 209 acts, and the values that they get."""

from collections.abc import Iterable, Mapping, Sequence
from functools import lru_cache

import numpy as np

from dialgym.tasks.bitsets import first
from dialgym.tasks.multiwoz.database import CityDatabase
from dialgym.tasks.multiwoz.entries import (
    REFUSALS,
    REQUEST,
    SYSTEM_ENTRIES,
    SYSTEM_NAMES,
    USER_ENTRIES,
    USER_NAMES,
    system_numbers,
    user_numbers,
)
from dialgym.tasks.multiwoz.fidelity import Fidelity
from dialgym.tasks.multiwoz.ontology import (
    BOOKABLE,
    BOOKING,
    DOMAINS,
    GENERAL,
    INFORMABLE,
    SLOT_NAMES,
)
from dialgym.tasks.multiwoz.types import ASKED, NONE, Acts, DialogueAct, MultiWOZBelief

OPEN, UNKNOWN = "?", "unknown"
"""A cell that the database does not know, and what the system says of it."""
TABLES = ("attraction", "restaurant", "train", "hotel")
"""The domains whose matches are counted, in the order of the features."""
_BELIEF_ORDER = ("attraction", "restaurant", "train", "hotel", "taxi", "hospital", "police")
_BELIEVED = {
    (domain, slot): number
    for number, (domain, slot) in enumerate(
        [(domain, slot) for domain in _BELIEF_ORDER for slot in INFORMABLE[domain]],
        len(USER_ENTRIES) + len(SYSTEM_ENTRIES),
    )
}
_ACTED = len(USER_ENTRIES)
_BOOKED = _ACTED + len(SYSTEM_ENTRIES) + len(_BELIEVED)
_COUNTED = _BOOKED + len(TABLES)
BINS = 6
TERMINATED = _COUNTED + BINS * len(TABLES)
STATE_SIZE = TERMINATED + 1
FEW, MANY = (0, 1, 2, 3, 4), (0, 2, 5, 10, 40)
"""The most matches of each bin but the last: of places, and of trains."""


def feature_names() -> tuple[str, ...]:
    """The names of the 340 features, as ``user:Hotel-Inform-Area-1`` or ``matches:train:2``."""
    return (
        *(f"user:{name}" for name in USER_NAMES),
        *(f"system:{name}" for name in SYSTEM_NAMES),
        *(f"belief:{domain}-{slot}" for domain, slot in _BELIEVED),
        *(f"booked:{domain}" for domain in TABLES),
        *(f"matches:{domain}:{place}" for domain in TABLES for place in range(BINS)),
        "terminated",
    )


_PLACED = {domain: number for number, domain in enumerate((*DOMAINS, BOOKING, GENERAL))}
_DOMAIN = np.array(
    [_PLACED.get(e.domain, _PLACED.get(e.domain.lower(), 0)) for e in SYSTEM_ENTRIES]
)
_PLACE = np.array([entry.place for entry in SYSTEM_ENTRIES])
_NO_OFFERS = np.array([n for n, e in enumerate(SYSTEM_ENTRIES) if e.intent == "NoOffer"])
_REFUSED = [
    (n, e.domain.lower(), SLOT_NAMES[e.domain][e.slot])
    for n, e in enumerate(SYSTEM_ENTRIES)
    if e.intent == "NoOffer" and e.slot != NONE
]
_PLACE[[n for n, e in enumerate(SYSTEM_ENTRIES) if e.intent in REFUSALS]] = 0
_PLACE[SYSTEM_NAMES.index("Booking-Book-none-none")] = 1


class Vectoriser:
    """Turns beliefs into features and masks, and chosen acts into acts with values.

    Args:
        database: the rows.
        fidelity: the faults of the original to keep: ``train_bins``, ``never_booked``,
            ``null_answers`` and ``rows_alone``.
    """

    def __init__(self, database: CityDatabase, fidelity: Fidelity) -> None:
        self.database, self.fidelity = database, fidelity
        find = database.find
        self._find = lru_cache(maxsize=1 << 14)(lambda domain, known: find(domain, dict(known)))
        bins = dict.fromkeys(TABLES, FEW)
        bins["train"] = FEW if fidelity.train_bins else MANY
        self._bin = {domain: _bin_of(most) for domain, most in bins.items()}
        counts = {domain: database.count(domain, {}) for domain in DOMAINS}
        self._counts = np.array([counts.get(name, 0) for name in _PLACED], np.int64)
        self._bins = {domain: self._bin_for(domain, counts[domain]) for domain in TABLES}

    def state(self, belief: MultiWOZBelief, terminated: bool = False) -> np.ndarray:
        """(340,) float32 of 0 and 1, in the order of `feature_names`."""
        on = [*user_numbers(belief.user_acts)]
        on += [_ACTED + number for number in system_numbers(belief.system_acts)]
        constraints = belief.constraints
        for domain, slots in constraints.items():
            for slot, value in slots.items():
                number = _BELIEVED.get((domain, slot)) if value else None
                if number is not None:
                    on.append(number)
        for place, domain in enumerate(TABLES):
            on.append(_COUNTED + BINS * place + self.bin(domain, constraints.get(domain)))
            if domain in belief.booked and not self.fidelity.never_booked:
                on.append(_BOOKED + place)
        if terminated:
            on.append(TERMINATED)
        vector = np.zeros(STATE_SIZE, np.float32)
        vector[on] = 1
        return vector

    def bin(self, domain: str, constraints: Mapping[str, str] | None) -> int:
        """The bin, 0 to 5, of the number of rows that meet the constraints, if there are any."""
        if not constraints:
            return self._bins[domain]
        return self._bin_for(domain, self.found(domain, constraints).bit_count())

    def found(self, domain: str, constraints: Mapping[str, str]) -> int:
        """`CityDatabase.find`, remembered: features, mask and values of a turn ask for the same."""
        found: int = self._find(domain, tuple(constraints.items()))
        return found

    def _bin_for(self, domain: str, count: int) -> int:
        bins = self._bin[domain]
        return bins[min(count, len(bins) - 1)]

    def action(self, acts: Acts) -> np.ndarray:
        """(209,) int8: the acts of an utterance without their values."""
        vector = np.zeros(len(SYSTEM_ENTRIES), np.int8)
        vector[list(system_numbers(acts))] = 1
        return vector

    def mask(self, belief: MultiWOZBelief) -> np.ndarray:
        """(209,) bool: the acts that have something to say.

        An act about the k-th match needs k of them; NoOffer needs that there are none, and that
        what it refuses has been asked for; a booking needs a match in a domain that takes one.
        """
        counts = self._counts.copy()
        for domain, known in belief.constraints.items():
            counts[_PLACED[domain]] = self.found(domain, known).bit_count()
        if BOOKABLE.get(belief.domain):
            counts[_PLACED[BOOKING]] = counts[_PLACED[belief.domain]]
        mask: np.ndarray = counts[_DOMAIN] >= _PLACE
        mask[_NO_OFFERS] = counts[_DOMAIN[_NO_OFFERS]] == 0
        for number, domain, slot in _REFUSED:
            if mask[number] and not belief.constraints.get(domain, {}).get(slot):
                mask[number] = False
        return mask

    def lexicalise(
        self, numbers: Iterable[int], belief: MultiWOZBelief, rng: np.random.Generator
    ) -> Acts:
        """The acts of these numbers with their values, ``none`` where there is no such value.

        Values are those of the k-th row that meets what is believed; of ``Booking``, of the domain
        spoken of. Of a refusal, and where a row has no such cell (when to book, where a taxi is
        to go), they are what is believed.
        """
        taxi: Mapping[str, str] | None = None
        acts: list[DialogueAct] = []
        for number in numbers:
            entry = SYSTEM_ENTRIES[number]
            domain, intent, slot, place = entry
            if slot == NONE or intent == REQUEST:
                value = ASKED if intent == REQUEST else NONE
                acts.append(DialogueAct(intent, domain, slot, value))
                continue
            about = belief.domain if domain == BOOKING else domain.lower()
            known = belief.constraints.get(about, {})
            name = SLOT_NAMES[domain][slot]
            if intent in REFUSALS or not about:
                value = known.get(name, NONE)
            elif about == "taxi":
                taxi = taxi or self.database.taxi(rng)
                value = taxi.get(name) or self._believed(known, name)
            else:
                value = self._cell(about, name, self.found(about, known), place, known)
            acts.append(DialogueAct(intent, domain, slot, value or NONE))
        return tuple(acts)

    def _cell(
        self, domain: str, slot: str, found: int, place: int, known: Mapping[str, str]
    ) -> str:
        """Value of the `place`-th of the rows found in a slot."""
        if slot == "choice":
            return str(found.bit_count())
        for _ in range(place - 1):
            found &= found - 1
        if not found:
            return NONE
        cell = self.database.rows(domain)[first(found)].get(slot)
        if cell is None or cell == OPEN:
            return self._missing(cell, domain, slot, known)
        return cell

    def _missing(self, cell: str | None, domain: str, slot: str, known: Mapping[str, str]) -> str:
        """Value said of a missing cell: what is believed, or that it is not known."""
        if cell is None and (self.fidelity.rows_alone or slot in known):
            return self._believed(known, slot)
        if self.fidelity.null_answers or slot in BOOKABLE[domain]:
            return cell or NONE
        return UNKNOWN

    def _believed(self, known: Mapping[str, str], slot: str) -> str:
        return NONE if self.fidelity.rows_alone else known.get(slot, NONE)


def _bin_of(most: Sequence[int]) -> bytes:
    """The bin of each number of matches up to one above all bounds; more are in the last, too."""
    return bytes(sum(count > bound for bound in most) for count in range(most[-1] + 2))
