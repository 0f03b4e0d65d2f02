"""The agenda of the user: a stack of acts to say, changed by what the system says.

Schatzmann et al. 2007, "Agenda-Based User Simulation for Bootstrapping a POMDP Dialogue System", as
ConvLab-2 has it for several domains: the informs of all domains lie on the stack from the start,
and requests and bookings are pushed when a domain has nothing else left.
"""

from dataclasses import dataclass, field
from functools import lru_cache
from typing import NamedTuple

import numpy as np

from dialgym.tasks.multiwoz.database import REF
from dialgym.tasks.multiwoz.fidelity import Fidelity
from dialgym.tasks.multiwoz.ontology import (
    BOOKABLE,
    DOMAINS,
    GENERAL,
    INFORMABLE,
    REQUESTABLE,
    SLOT_NAMES,
)
from dialgym.tasks.multiwoz.types import (
    ASKED,
    EMPTY,
    NONE,
    Acts,
    DialogueAct,
    MultiWOZGoal,
)
from dialgym.tasks.multiwoz.values import Vocabulary

Generator = np.random.Generator
ALL = 1 << 10
ANY, DONTCARE = "any", "dontcare"
NO_ANSWER = frozenset((ASKED, DONTCARE, NONE, "no"))
"""Values that the original takes for none, though ``no`` is one of parking and internet."""
CHOICE, NOT_BOOK, NAME = "choice", "NotBook", "name"
SAID_AGAIN = {
    "people": "the same",
    "day": "the same day",
    "pricerange": "in the same price range as the {}",
    "area": "same area as the {}",
}
"""Wording of a value that another domain has too, now and then, under the fault ``same_as``."""


class AgendaItem(NamedTuple):
    """One act on the agenda, by names of the database: ``hotel``, ``inform``, ``area`` ..."""

    domain: str
    intent: str
    slot: str
    value: str

    @property
    def sayable(self) -> bool:
        """Return True if the user has an act for it."""
        if self.slot in SLOTS.get(self.domain, ()):
            return self.slot != REF or self.intent == "request"
        return (self.slot, self.value) in ((NONE, NONE), (NOT_BOOK, NONE), (CHOICE, ANY))


BYE = AgendaItem(GENERAL, "bye", NONE, NONE)


@dataclass(slots=True)
class MultiWOZUserState:
    """The agenda and what the user has been told. The goal itself never changes."""

    stack: list[AgendaItem]  # the last is said next
    answers: dict[tuple[str, str], str] = field(default_factory=dict)  # (domain, slot) -> value
    booked: frozenset[str] = frozenset()  # domains in which it takes itself to have booked
    retired: frozenset[str] = frozenset()  # domains whose fail_info it no longer asks for
    rebooked: frozenset[str] = frozenset()  # domains whose fail_book it no longer asks for
    pushed: int = 0  # acts put on the stack since it spoke last
    domain: str = ""  # the one that either named last: what bookings are in

    def copy(self) -> "MultiWOZUserState":
        """An independent copy."""
        return MultiWOZUserState(
            self.stack.copy(),
            self.answers.copy(),
            self.booked,
            self.retired,
            self.rebooked,
            self.pushed,
            self.domain,
        )


class AgendaRules:
    """Changes the state of the user by what is said; immutable and shared.

    Args:
        vocabulary: what the system's values mean.
        fidelity: keeps ``same_as``, ``day_is_booking``, ``unsayable``, and, in `reactions`,
            ``null_answers``.
    """

    def __init__(self, vocabulary: Vocabulary, fidelity: Fidelity) -> None:
        self.vocabulary, self.fidelity = vocabulary, fidelity

    def begin(self, goal: MultiWOZGoal, rng: Generator) -> MultiWOZUserState:
        """The agenda of a goal: each domain's informs in random order, goodbye at the bottom."""
        user = MultiWOZUserState([BYE])
        for domain, wanted in reversed(list(goal.domains.items())):
            constraints = list((wanted.fail_info or wanted.info).items())
            for place in rng.permutation(len(constraints)).tolist():
                self._put(user, AgendaItem(domain, "inform", *constraints[place]), rng)
            user.stack.append(AgendaItem(domain, "inform", NONE, NONE))
        return user

    def say(self, user: MultiWOZUserState, goal: MultiWOZGoal, acts: Acts) -> None:
        """The user says `acts`: they leave the stack, whoever chose them; changes `user`."""
        said = set()
        for act in acts:
            read = read_act(act)
            said.add(read)
            if read[0] in BOOKED and read[0] in goal.domains:
                user.domain = read[0]
        if self.fidelity.unsayable:
            self._drop_unsayable(user, said)
        user.stack = [i for i in user.stack if (i.domain, i.intent, i.slot) not in said]
        user.pushed = 0

    def _drop_unsayable(self, user: MultiWOZUserState, said: set[tuple[str, str, str]]) -> None:
        """Take along what there is no act for, if that is from the top."""
        batch, below = self.batch(user), 0
        while below < len(user.stack) and not any(item.sayable for item in batch):
            below += len(batch)
            batch = self.batch(user, below)
        if {item[:3] for item in batch if item.sayable} == said:
            del user.stack[len(user.stack) - below - len(batch) :]

    def batch(
        self,
        user: MultiWOZUserState,
        below: int = 0,
        initiative: int = 4,
        answers: int = ALL,
        bookings: int = 10,
    ) -> list[AgendaItem]:
        """The topmost acts of one domain and intent, leaving out `below`; a booking whole.

        As many as were pushed since the user spoke last; or, where those are none or do not
        matter, `initiative`. There are at most `answers` and `bookings` otherwise.
        """
        stack = user.stack[: len(user.stack) - below]
        top = stack[-1] if stack else BYE
        booking = top.intent == "inform" and self.books(top.domain, top.slot)
        if booking:
            most = min(user.pushed or ALL, bookings)
        elif user.pushed == 0 or all(i.value == DONTCARE for i in stack[-user.pushed :]):
            most = initiative
        else:
            most = min(user.pushed, answers)
        items: list[AgendaItem] = []
        for item in reversed(stack):
            if item.domain != top.domain or item.intent != top.intent:
                break
            if booking and not self.books(item.domain, item.slot):
                break
            items.append(item)
            if len(items) >= most or (item.intent == "request" and item.slot == NAME):
                break
        return items

    def go_on(self, user: MultiWOZUserState, goal: MultiWOZGoal, rng: Generator) -> None:
        """Ask or book in the first domain that is open, if nothing else is left to say of it."""
        for domain, wanted in goal.domains.items():
            open_slots = [
                slot for slot in wanted.requests if not answered(user, domain, slot, self.fidelity)
            ]
            if open_slots:
                asking = any(i.domain == domain and i.intent == "request" for i in user.stack)
                if not asking and not self.has_more(user, domain):
                    for slot in (NAME,) if NAME in open_slots else open_slots:
                        self.push(user, AgendaItem(domain, "request", slot, ASKED), rng)
                return
            if wanted.book and domain not in user.booked:
                if not self.has_more(user, domain) and not self._has_booking(user, domain):
                    tried = EMPTY if domain in user.rebooked else wanted.fail_book
                    for slot, value in (tried or wanted.book).items():
                        self.push(user, AgendaItem(domain, "inform", slot, value), rng)
                return

    def books(self, domain: str, slot: str) -> bool:
        """Return True if a slot is one of bookings."""
        return slot in BOOKABLE[domain] or (self.fidelity.day_is_booking and slot in BOOKING_SLOTS)

    def has_more(self, user: MultiWOZUserState, domain: str) -> bool:
        """Return True if constraints of a domain are still to be said."""
        for about, intent, slot, _ in user.stack:
            if about == domain and intent == "inform" and not self.books(domain, slot):
                return True
        return False

    def _has_booking(self, user: MultiWOZUserState, domain: str) -> bool:
        return any(
            i.domain == domain and i.intent == "inform" and self.books(domain, i.slot)
            for i in user.stack
        )

    def push(self, user: MultiWOZUserState, item: AgendaItem, rng: Generator) -> None:
        """Put an act on top, in place of one of the same slot."""
        if not (item.sayable or self.fidelity.unsayable):
            return
        drop(user, item.domain, item.intent, item.slot)
        self._put(user, item, rng)
        user.pushed += 1

    def _put(self, user: MultiWOZUserState, item: AgendaItem, rng: Generator) -> None:
        if self.fidelity.same_as and item.slot in SAID_AGAIN:
            for place, other in enumerate(user.stack):
                same = other.slot == item.slot and other.value == item.value
                if same and rng.random() < 0.3:
                    text = SAID_AGAIN[item.slot].format(item.domain)
                    user.stack[place] = other._replace(value=text)
        user.stack.append(item)


_OTHERS = {"Choice": CHOICE}
BOOKED = ("attraction", "hotel", "restaurant", "taxi", "train")
"""The domains that bookings can be about."""
SLOTS = {d: {*INFORMABLE[d], *BOOKABLE[d], *REQUESTABLE[d]} for d in DOMAINS}
"""By domain: the slots that the user can say something of."""
BOOKING_SLOTS = frozenset(slot for slots in BOOKABLE.values() for slot in slots)


@lru_cache(maxsize=1 << 14)
def read_act(act: DialogueAct) -> tuple[str, str, str]:
    """Domain, intent and slot of an act of the user, by the names of the agenda."""
    names = SLOT_NAMES.get(act.domain, _OTHERS)
    slot = names.get(act.slot) or _OTHERS.get(act.slot, act.slot)
    return act.domain.lower(), act.intent.lower(), slot


def drop(user: MultiWOZUserState, domain: str, intent: str, slot: str) -> None:
    """Take an act off the stack, wherever it lies."""
    stack = user.stack
    for place, item in enumerate(stack):
        if item.slot == slot and item.domain == domain and item.intent == intent:
            del stack[place]
            return


def leave(user: MultiWOZUserState) -> None:
    """The user has nothing more to say but goodbye."""
    user.stack, user.pushed = [BYE], 0


def answered(user: MultiWOZUserState, domain: str, slot: str, fidelity: Fidelity) -> bool:
    """Return True if the user takes a request for answered."""
    open_values = NO_ANSWER if fidelity.null_answers else _UNANSWERED
    return user.answers.get((domain, slot), ASKED) not in open_values


_UNANSWERED = NO_ANSWER - {"no"}


def complete(user: MultiWOZUserState, goal: MultiWOZGoal, fidelity: Fidelity) -> bool:
    """Return True if the user takes all that it wanted for answered and booked."""
    for domain, wanted in goal.domains.items():
        if wanted.book and domain not in user.booked:
            return False
        for slot in wanted.requests:
            if not answered(user, domain, slot, fidelity):
                return False
    return True
