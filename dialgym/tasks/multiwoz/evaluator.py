"""The evaluator: what was told and booked, and how well that meets the goal.

It keeps a small `Record` of a dialogue, which each utterance changes, and judges by the record,
the goal and the user's answers; no utterance is looked at twice.
"""

import re
from dataclasses import dataclass, field, replace
from typing import NamedTuple

from dialgym.tasks.bitsets import indices
from dialgym.tasks.multiwoz.agenda import MultiWOZUserState, complete
from dialgym.tasks.multiwoz.answers import TABLED, TOLD, alike, equal, meets, value_of, well_formed
from dialgym.tasks.multiwoz.data import World
from dialgym.tasks.multiwoz.fidelity import Fidelity
from dialgym.tasks.multiwoz.ontology import BOOKABLE, REQUESTABLE, UNCONSTRAINED
from dialgym.tasks.multiwoz.reactions import TELLING
from dialgym.tasks.multiwoz.types import (
    ASKED,
    EMPTY,
    Acts,
    Constraints,
    DialogueAct,
    DomainGoal,
    MultiWOZBelief,
    MultiWOZGoal,
)
from dialgym.tasks.multiwoz.values import REMEMBERED

TAXI = -1
"""The row of a taxi, of which there is no table."""
BOOKED_BY_REF = ("hotel", "restaurant", "train")
ENDS = ("destination", "departure")


@dataclass(slots=True)
class Record:
    """The evaluator's record of a dialogue."""

    domain: str = ""  # the one that either party named last
    informed: frozenset[tuple[str, str]] = frozenset()  # (domain, slot) told in the right form
    malformed: int = 0  # values told in a wrong form
    booked: dict[str, int] = field(default_factory=dict)  # domain -> row of its table
    booked_by: dict[str, Constraints] = field(default_factory=dict)  # domain -> slot -> value
    rewarded: frozenset[str] = frozenset()  # domains whose bonus was given

    def copy(self) -> "Record":
        """An independent copy."""
        return Record(
            self.domain,
            self.informed,
            self.malformed,
            self.booked.copy(),
            self.booked_by.copy(),
            self.rewarded,
        )


class Counts(NamedTuple):
    """Slots that were asked for and told, told in vain, and asked for in vain."""

    hits: int
    extras: int
    misses: int

    @property
    def recall(self) -> float | None:
        """Share of the requests that were answered; None where there are none."""
        asked = self.hits + self.misses
        return self.hits / asked if asked else None

    @property
    def precision(self) -> float | None:
        """Share of what was told that was asked for; 0 without hits, None without requests."""
        if self.recall is None:
            return None
        return self.hits / (self.hits + self.extras) if self.hits else 0.0

    @property
    def f1(self) -> float | None:
        """Harmonic mean of precision and recall; None without requests."""
        precision, recall = self.precision, self.recall
        if precision is None or recall is None:
            return None
        return 2 * precision * recall / (precision + recall) if self.hits else 0.0


class DialogueMetrics(NamedTuple):
    """Measures of a dialogue against its goal.

    Attributes:
        counts: of inform precision, recall and F1.
        book_rate: mean over the domains to book of the share of constraints that the booked row
            meets; None where nothing is to be booked.
        strict_book_rate: the same times the share of people, day, stay and time booked as wanted.
        match: share of domains in which some row meets the constraints and the answers that the
            user has taken, and is the one that was booked.
        success: all is answered and booked, and matches.
        strict_success: it is a success, and booked as wanted.
        complete: the user takes all for answered and booked.
    """

    counts: Counts
    book_rate: float | None
    strict_book_rate: float | None
    match: float
    success: bool
    strict_success: bool
    complete: bool


class _Reading(NamedTuple):
    """Reading of one act of the system by the evaluator."""

    domain: str  # if it is one of the seven
    told: tuple[str, str] | None  # (domain, slot) whose value it tells
    malformed: bool  # it tells a value in a wrong form
    books: bool  # it may be a booking


class Evaluator:
    """Judges dialogues; immutable and shared.

    Args:
        world: the database.
        fidelity: keeps ``any_value``, ``fuzzy_answers``, ``literal_bookings``, ``missed_extras``.
    """

    def __init__(self, world: World, fidelity: Fidelity) -> None:
        self.database, self.fidelity = world.database, fidelity
        self._read: dict[DialogueAct, _Reading] = {}
        self._right = well_formed if fidelity.any_value else value_of(world)
        self._agrees = alike if fidelity.fuzzy_answers else equal
        extras = _SAME_NAMES if fidelity.missed_extras else REQUESTABLE
        self._extras = {domain: frozenset(slots) for domain, slots in extras.items()}

    def user(self, record: Record, acts: Acts) -> None:
        """The user says `acts`; changes `record`."""
        for act in acts:
            domain = act.domain.lower()
            if domain in TOLD:
                record.domain = domain

    def system(self, record: Record, acts: Acts, belief: MultiWOZBelief) -> None:
        """The system says `acts`, having understood `belief`; changes `record`."""
        told = []
        for act in acts:
            read = self._read.get(act) or self._reading(act)
            if read.domain:
                record.domain = read.domain
            if read.told:
                told.append(read.told)
            elif read.malformed:
                record.malformed += 1
            if read.books:
                self._booking(record, act, belief)
        if told:
            record.informed = record.informed.union(told)

    def _reading(self, act: DialogueAct) -> "_Reading":
        """Reading of an act by the evaluator, in any dialogue."""
        intent, domain = act.intent.lower(), act.domain.lower()
        slot = TOLD.get(domain, EMPTY).get(act.slot)
        told, right = None, True
        if slot is not None and intent in TELLING and act.value.strip() not in UNCONSTRAINED:
            right = self._right(domain, slot, act.value)
            told = (domain, slot) if right else None
        books = act.slot == "Ref" or (domain, intent, act.slot) == ("taxi", "inform", "Car")
        read = _Reading(domain if domain in TOLD else "", told, not right, books)
        if len(self._read) >= REMEMBERED:
            self._read.clear()
        self._read[act] = read
        return read

    def _booking(self, record: Record, act: DialogueAct, belief: MultiWOZBelief) -> None:
        """A booking by the number of a row, or of a taxi; the first of a domain holds."""
        intent, domain, value = act.intent.lower(), act.domain.lower(), act.value
        if act.slot == "Car":
            record.booked.setdefault("taxi", TAXI)
            return
        if domain == "booking" and intent == "book":
            booked = record.domain
        elif domain == "train" and intent in ("inform", "offerbooked"):
            booked = "train"
        else:
            return
        if booked not in BOOKED_BY_REF or booked in record.booked:
            return
        row = int(value) if _REFERENCE(value) else len(self.database.rows(booked))
        if row < len(self.database.rows(booked)):
            known = belief.constraints.get(booked, {})
            record.booked[booked] = row
            record.booked_by[booked] = {slot: known.get(slot, "") for slot in BOOKABLE[booked]}

    def counts(self, goal: MultiWOZGoal, record: Record) -> Counts:
        """Requests and what was told."""
        informed, hits, misses, extras = record.informed, 0, 0, 0
        for domain, wanted in goal.domains.items():
            for slot in wanted.requests:
                if (domain, slot) in informed:
                    hits += 1
                else:
                    misses += 1
        for domain, slot in informed:
            if slot in self._extras[domain]:
                wanted = goal.domains.get(domain, _NOTHING)
                if slot not in wanted.requests and slot not in wanted.info:
                    extras += 1
        return Counts(hits, extras + record.malformed, misses)

    def book_rate(self, goal: MultiWOZGoal, record: Record) -> float | None:
        """See `DialogueMetrics`."""
        return _mean([met for met, _ in self._rates(goal, record)])

    def _rates(self, goal: MultiWOZGoal, record: Record) -> list[tuple[float, float]]:
        rates = [self._rate(d, w, record) for d, w in goal.domains.items()]
        return [rate for rate in rates if rate is not None]

    def _rate(self, domain: str, wanted: DomainGoal, record: Record) -> tuple[float, float] | None:
        """The shares of constraints met, and of the booking's own slots; None without any."""
        if not wanted.book or (self.fidelity.literal_bookings and not wanted.info):
            return None
        row = record.booked.get(domain)
        if row is None:
            return 0.0, 0.0
        met = self._met(domain, wanted, row)
        if met is None:
            return None
        by = record.booked_by.get(domain, EMPTY)
        same = [by.get(slot) == value for slot, value in wanted.book.items()]
        return met, sum(same) / len(same)

    def _met(self, domain: str, wanted: DomainGoal, row: int) -> float | None:
        """The share of constraints that a row meets, where a train goes aside.

        Without any it is all; the original has None.
        """
        if row == TAXI:
            return 1.0
        checked = [(slot, value) for slot, value in wanted.info.items() if slot not in ENDS]
        if self.fidelity.literal_bookings:
            cells = self.database.rows(domain)[row]
            met = [meets(cells, slot, value) for slot, value in checked]
            return sum(met) / len(met) if met else None
        met = [self.database.find(domain, {slot: v}) >> row & 1 == 1 for slot, v in checked]
        return sum(met) / len(met) if met else 1.0

    def match(self, goal: MultiWOZGoal, user: MultiWOZUserState, record: Record) -> float:
        """See `DialogueMetrics`."""
        matches = [self._matches(d, w, user, record) for d, w in goal.domains.items()]
        return sum(matches) / len(matches) if matches else 1.0

    def _matches(
        self, domain: str, wanted: DomainGoal, user: MultiWOZUserState, record: Record
    ) -> bool:
        found = self.database.find(domain, wanted.info)
        if domain not in TABLED:
            return bool(found)
        booked = record.booked.get(domain) if wanted.book else None
        if booked is not None:
            found &= 1 << booked
        if not found or not wanted.requests:
            return bool(found)
        rows, answers = self.database.rows(domain), user.answers
        asked = [(slot, answers.get((domain, slot), ASKED)) for slot in wanted.requests]
        return any(all(self._agrees(rows[i], s, v) for s, v in asked) for i in indices(found))

    def success(
        self, goal: MultiWOZGoal, user: MultiWOZUserState, record: Record, strict: bool = False
    ) -> bool:
        """See `DialogueMetrics`; what is cheap to know comes first."""
        something = False
        for domain, wanted in goal.domains.items():
            done = self._done(domain, wanted, record, strict)
            if done is False:
                return False
            something = something or done is True
        if not something:
            return False
        return all(self._matches(d, w, user, record) for d, w in goal.domains.items())

    def successes(
        self, goal: MultiWOZGoal, user: MultiWOZUserState, record: Record, strict: bool = False
    ) -> dict[str, bool]:
        """Return for each domain of the goal whether it is answered, booked, and matches.

        It is a `success` if all of them are, and something was asked for or booked.
        """
        return {
            domain: self._done(domain, wanted, record, strict) is not False
            and self._matches(domain, wanted, user, record)
            for domain, wanted in goal.domains.items()
        }

    def domain_success(self, goal: MultiWOZGoal, record: Record, domain: str) -> bool:
        """Return True if all that is wanted of a domain is answered and booked."""
        wanted = goal.domains.get(domain)
        return wanted is not None and self._done(domain, wanted, record) is True

    def _done(
        self, domain: str, wanted: DomainGoal, record: Record, strict: bool = False
    ) -> bool | None:
        """Return True if all of a domain is answered and booked; None where nothing is wanted."""
        for slot in wanted.requests:
            if (domain, slot) not in record.informed:
                return False
        rate = self._rate(domain, wanted, record)
        if rate is None:
            return True if wanted.requests else None
        return rate[0] == 1 and (not strict or rate[1] == 1)

    def of_domain(
        self, goal: MultiWOZGoal, user: MultiWOZUserState, record: Record, domain: str
    ) -> DialogueMetrics:
        """Figures of what is wanted and told in one domain of the goal."""
        told = frozenset(pair for pair in record.informed if pair[0] == domain)
        own = replace(record, informed=told, malformed=0)
        return self.metrics(MultiWOZGoal({domain: goal.domains[domain]}), user, own)

    def failures(
        self, goal: MultiWOZGoal, user: MultiWOZUserState, record: Record, strict: bool = False
    ) -> list[str]:
        """Name what keeps each domain of the goal from success."""
        found = []
        for domain, done in self.successes(goal, user, record, strict).items():
            wanted = goal.domains[domain]
            reasons = []
            if any((domain, slot) not in record.informed for slot in wanted.requests):
                reasons.append("requests unanswered")
            rate = self._rate(domain, wanted, record)
            if rate is not None and (rate[0] < 1 or (strict and rate[1] < 1)):
                reasons.append("booked another" if domain in record.booked else "not booked")
            if not done:
                found.append(f"{domain}: {' and '.join(reasons) or 'no row is as it was told'}")
        return found or ([] if self.success(goal, user, record, strict) else ["nothing was wanted"])

    def metrics(
        self, goal: MultiWOZGoal, user: MultiWOZUserState, record: Record
    ) -> DialogueMetrics:
        """All figures of a dialogue."""
        rates = self._rates(goal, record)
        return DialogueMetrics(
            self.counts(goal, record),
            _mean([met for met, _ in rates]),
            _mean([met * same for met, same in rates]),
            self.match(goal, user, record),
            self.success(goal, user, record),
            self.success(goal, user, record, strict=True),
            complete(user, goal, self.fidelity),
        )


_NOTHING = DomainGoal()
_SAME_NAMES = {
    "attraction": ("phone", "area", "type"),
    "restaurant": ("phone", "area", "food"),
    "hotel": ("phone", "internet", "parking", "area", "type", "stars"),
    "hospital": ("phone",),
    "police": ("phone",),
    "taxi": ("phone",),
    "train": (),
}


def _mean(rates: list[float]) -> float | None:
    return sum(rates) / len(rates) if rates else None


_REFERENCE = re.compile(r"[0-9]{8}").fullmatch
