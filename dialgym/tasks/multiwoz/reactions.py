"""Reactions of the user to the system's acts."""

from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np

from dialgym.tasks.multiwoz.agenda import (
    ANY,
    CHOICE,
    DONTCARE,
    NAME,
    NO_ANSWER,
    NOT_BOOK,
    AgendaItem,
    AgendaRules,
    MultiWOZUserState,
    complete,
    drop,
    leave,
)
from dialgym.tasks.multiwoz.database import clock
from dialgym.tasks.multiwoz.types import (
    ASKED,
    EMPTY,
    NONE,
    Acts,
    Constraints,
    DomainGoal,
    MultiWOZGoal,
)

Pair = tuple[str, str]
"""A slot and its value."""
Heard = Mapping[tuple[str, str], Sequence[Pair]]
"""(domain, intent) -> what is said so."""
TELLING = ("inform", "recommend", "offerbook", "offerbooked")
"""The intents that tell the value of a slot."""
REFUSALS = ("nooffer", "nobook")
SILENT = frozenset((ASKED, DONTCARE, NONE, "", "not mentioned"))
"""The values that answer nothing."""
ONE = ("1", "one")
PLACES = ("attraction", "hotel", "restaurant", "police", "hospital")
"""The domains that a taxi can be wanted for."""


def hear(
    agenda: AgendaRules,
    user: MultiWOZUserState,
    goal: MultiWOZGoal,
    acts: Acts,
    rng: np.random.Generator,
) -> None:
    """The system says `acts`; changes `user`."""
    user.pushed = 0
    heard: dict[tuple[str, str], list[Pair]] = {}
    for act in acts:
        found = agenda.vocabulary.heard(act)
        if found is not None:
            heard.setdefault(found[0], []).extend([] if found[1] is None else [found[1]])
    heard = {kind: pairs for kind, pairs in heard.items() if pairs}
    for domain, _ in heard:
        if domain in goal.domains:
            user.domain = domain
    reactions = _Reactions(agenda, user, goal, rng)
    if not reactions.leaves(heard):
        for (domain, intent), pairs in heard.items():
            about = user.domain if domain == "booking" else domain
            if about in goal.domains:
                reactions.to(about, intent, pairs)
        reactions.settle(heard)
        agenda.go_on(user, goal, rng)
    if complete(user, goal, agenda.fidelity):
        leave(user)


class _Wants(NamedTuple):
    """The present requests in a domain."""

    goal: DomainGoal
    info: Constraints
    book: Constraints


class _Reactions(NamedTuple):
    """Fields of a user that an utterance changes."""

    agenda: AgendaRules
    user: MultiWOZUserState
    goal: MultiWOZGoal
    rng: np.random.Generator

    def leaves(self, heard: Heard) -> bool:
        """Return True if the user gives up, because there is nothing that it wants."""
        for domain, intent in heard:
            if intent == "nooffer" and self._nothing(domain):
                return True
            if intent == "nobook" and self._no_room(self.user.domain):
                return True
        return False

    def _nothing(self, domain: str) -> bool:
        """No row: ask for one that there is; True if the user leaves."""
        user, wanted = self.user, self.goal.domains.get(domain)
        if wanted is None:
            return False
        if domain in user.retired or not wanted.fail_info:
            if wanted.requests:
                leave(user)
            return bool(wanted.requests)
        self._change(domain, wanted.fail_info, wanted.info)
        user.retired |= {domain}
        return False

    def _no_room(self, domain: str) -> bool:
        """No booking: try another; True if the user leaves."""
        user, wanted = self.user, self.goal.domains.get(domain)
        if wanted is None:
            return False
        if domain in user.rebooked or not wanted.fail_book:
            if wanted.book:
                leave(user)
            return bool(wanted.book)
        self._change(domain, wanted.fail_book, wanted.book)
        user.rebooked |= {domain}
        return False

    def _change(self, domain: str, tried: Constraints, instead: Constraints) -> None:
        for slot, value in instead.items():
            if tried.get(slot) != value:
                self._inform(domain, slot, value)

    def to(self, domain: str, intent: str, pairs: Sequence[Pair]) -> None:
        """Acts of one domain and intent."""
        goal, user = self.goal.domains[domain], self.user
        wants = _Wants(
            goal,
            (EMPTY if domain in user.retired else goal.fail_info) or goal.info,
            (EMPTY if domain in user.rebooked else goal.fail_book) or goal.book,
        )
        pairs = [pair for slot, value in pairs if (pair := _timed(domain, slot, value))]
        if intent in TELLING or intent == "book":
            right = self._told(domain, pairs, wants)
            if right and intent in ("book", "offerbooked") and goal.book:
                user.booked |= {domain}
        elif intent == "request":
            self._asked(domain, pairs, wants)
        elif intent == "select":
            self._offered(domain, pairs, wants)

    def _told(self, domain: str, pairs: Sequence[Pair], wants: _Wants) -> bool:
        """Take answers and correct wrong ones; True if none was wrong."""
        right = True
        for slot, value in pairs:
            if slot == CHOICE and value.strip().lower() not in ONE:
                self._inform(domain, CHOICE, ANY)
            if slot in wants.goal.requests:
                if not self.agenda.has_more(self.user, domain):
                    self._take(domain, slot, self._quoted(value))
            elif _contradicts(slot, value, wants):
                self._inform(domain, slot, wants.info.get(slot) or wants.book[slot])
                right = False
        return right

    def _take(self, domain: str, slot: str, value: str) -> None:
        """An answer to a request."""
        if not self.agenda.fidelity.null_answers and value.strip().lower() in SILENT:
            return
        drop(self.user, domain, "request", slot)
        self.user.answers[domain, slot] = value

    def _quoted(self, value: str) -> str:
        """The value as the original keeps it, so that it counts as an answer whatever it is."""
        null = self.agenda.fidelity.null_answers and value in NO_ANSWER
        return f'"{value}"' if null else value

    def _asked(self, domain: str, pairs: Sequence[Pair], wants: _Wants) -> None:
        """Say what is wanted, or that it does not matter."""
        for slot, _ in pairs:
            if slot not in wants.goal.requests:
                value = wants.info.get(slot) or wants.book.get(slot)
                if value is None and domain == "taxi" and slot in ("destination", "departure"):
                    value = _end_of_ride(self.goal, slot)
                self._inform(domain, slot, value or DONTCARE)

    def _offered(self, domain: str, pairs: Sequence[Pair], wants: _Wants) -> None:
        """Choose what is wanted, else anything of what is offered; no value reopens a request."""
        if any(slot == CHOICE and value.strip().lower() not in ONE for slot, value in pairs):
            self._inform(domain, CHOICE, ANY)
        offers = [(slot, value) for slot, value in pairs if slot != CHOICE]
        if not offers:
            return
        slot = offers[0][0]
        wanted = wants.info.get(slot) or wants.book.get(slot)
        if wanted is not None:
            self._inform(domain, slot, wanted)
        elif not self.agenda.has_more(self.user, domain):
            slot, value = offers[int(self.rng.random() * len(offers))]
            self._inform(domain, slot, value)
            if slot in wants.goal.requests:
                self._take(domain, slot, value)

    def settle(self, heard: Heard) -> None:
        """A name ends a choice; who does not want to book says so."""
        user = self.user
        for (domain, intent), pairs in heard.items():
            if intent in ("inform", "recommend") and any(slot == NAME for slot, _ in pairs):
                drop(user, domain, "inform", CHOICE)
            if domain == "booking" and user.domain and not self.goal.domains[user.domain].book:
                self._inform(user.domain, NOT_BOOK, NONE)

    def _inform(self, domain: str, slot: str, value: str) -> None:
        self.agenda.push(self.user, AgendaItem(domain, "inform", slot, value), self.rng)


def _timed(domain: str, slot: str, value: str) -> Pair | None:
    """Slot of ``Booking``'s time: one of restaurants, or how long a train takes."""
    if slot != "time" or domain == "restaurant":
        return slot, value
    return ("duration", value) if domain == "train" else None


def _contradicts(slot: str, value: str, wants: _Wants) -> bool:
    """Return True if a value is not what is wanted; a train may leave later and arrive earlier."""
    wanted = wants.info.get(slot)
    if wanted is None:
        return slot in wants.book and value != wants.book[slot]
    if slot in ("leaveAt", "arriveBy") and wants.info is wants.goal.info:
        limit, time = clock(wanted), clock(value)
        if limit is None or time is None:
            return False
        return time < limit if slot == "leaveAt" else time > limit
    return value != wanted


def _end_of_ride(goal: MultiWOZGoal, slot: str) -> str | None:
    """The place that was talked about last, to go to; or the one before, to leave from."""
    before = list(goal.domains)
    places = [domain for domain in before[: before.index("taxi")] if domain in PLACES]
    place = 1 if slot == "destination" else 2
    if len(places) < place:
        return None
    return goal.domains[places[-place]].info.get(NAME) or f"the {places[-place]}"
