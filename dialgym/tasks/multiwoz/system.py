"""The rule system: looks up what the user wants, offers, answers, books."""

from collections.abc import Sequence

import numpy as np

from dialgym.tasks.bitsets import first, indices
from dialgym.tasks.multiwoz.answers import UNKNOWN
from dialgym.tasks.multiwoz.data import World
from dialgym.tasks.multiwoz.database import ANY, REF, Row
from dialgym.tasks.multiwoz.fidelity import Fidelity
from dialgym.tasks.multiwoz.ontology import (
    BOOKABLE,
    BOOKING,
    GENERAL,
    INFORMABLE,
    SHORT_NAMES,
    SLOT_NAMES,
    act_domain,
)
from dialgym.tasks.multiwoz.types import ASKED, EMPTY, Acts, DialogueAct, MultiWOZBelief

Generator = np.random.Generator
TABLED = ("attraction", "hotel", "restaurant", "hospital", "police")
"""The domains in which rows are looked for by whatever the user has said; trains have a form."""
NAMED = ("attraction", "hotel", "restaurant", "police")
_TEXTS_ASIDE = {"restaurant": 1, "attraction": 1, "hotel": 2, "hospital": 1}
"""Cells of a row that are no texts (locations, prices of rooms), which it may draw and not say."""
_SAYABLE = {
    d: {s: short for s, short in SHORT_NAMES[d].items() if s not in (*BOOKABLE[d], REF)}
    for d in TABLED
}
"""By domain: what can be said of a row before it is booked."""
_ANY_SAYABLE = {
    d: {s: n for s, n in slots.items() if (d, s) != ("attraction", "pricerange")} | {REF: REF}
    for d, slots in _SAYABLE.items()
}
"""The same in the original, under the fault ``any_property``."""


class RuleSystem:
    """Chooses the system's acts from its belief alone; immutable and shared.

    Args:
        world: the database.
        fidelity: keeps ``first_row``, ``books_early``, ``any_property``, ``ends_unasked``,
            ``greets``.
    """

    def __init__(self, world: World, fidelity: Fidelity) -> None:
        self.world, self.database, self.fidelity = world, world.database, fidelity

    def acts(self, belief: MultiWOZBelief, rng: Generator) -> Acts:
        """Answer `belief.user_acts`; leaves `belief` as it is."""
        groups: dict[tuple[str, str], list[DialogueAct]] = {}
        for act in belief.user_acts:
            groups.setdefault((act.domain, act.intent), []).append(act)
        said: list[DialogueAct] = []
        booking: DialogueAct | None = None
        for (name, intent), acts in groups.items():
            domain = name.lower()
            booking = booking or self._booking(belief, domain, acts)
            if booking is not None and intent != "Request":
                continue  # a booking takes the place of an offer
            if domain == GENERAL:
                said += self._general(intent)
            elif domain == "taxi":
                said += self._taxi(belief, rng)
            elif domain == "train":
                said = self._train(said, belief, intent, acts, rng)
            elif domain in TABLED:
                said += self._place(belief, domain, intent, acts, rng)
        if booking is not None:
            said = [booking] if self.fidelity.books_early else [*said, booking]
        if said:
            return tuple(said)
        return (DialogueAct("greet" if self.fidelity.greets else "reqmore", GENERAL),)

    def _general(self, intent: str) -> list[DialogueAct]:
        if intent == "thank":
            return [DialogueAct("welcome", GENERAL)]
        if intent == "bye" and not self.fidelity.greets:
            return [DialogueAct("bye", GENERAL)]
        return []

    # Places

    def _place(
        self,
        belief: MultiWOZBelief,
        domain: str,
        intent: str,
        acts: Sequence[DialogueAct],
        rng: Generator,
    ) -> list[DialogueAct]:
        """About an attraction, hotel, restaurant, hospital or the police."""
        found = self.database.find(domain, self._wanted(belief, domain))
        if not found:
            return self._no_offer(belief, domain)
        if intent == "Request":
            return self._answers(self._row(belief, domain, found), domain, acts)
        if found & (found - 1):
            return self._recommend(domain, found, rng)
        return self._describe(domain, self.database.rows(domain)[first(found)], rng)

    def _wanted(self, belief: MultiWOZBelief, domain: str) -> dict[str, str]:
        known = belief.constraints.get(domain, EMPTY)
        return {s: v for s, v in known.items() if s in INFORMABLE[domain]}

    def _row(self, belief: MultiWOZBelief, domain: str, found: int) -> Row:
        """The row that is talked about: the one offered last, if it still matches."""
        rows = self.database.rows(domain)
        offered = belief.offered.get(domain)
        if offered is not None and found >> offered & 1 and not self.fidelity.first_row:
            return rows[offered]
        return rows[first(found)]

    def _no_offer(self, belief: MultiWOZBelief, domain: str) -> list[DialogueAct]:
        name, shorts = act_domain(domain), SHORT_NAMES[domain]
        wanted = self._wanted(belief, domain)
        acts = [
            DialogueAct("NoOffer", name, shorts[slot], wanted[slot])
            for slot in INFORMABLE[domain]
            if wanted.get(slot, "dontcare") not in ("dontcare", "do nt care", "do n't care", "")
        ]
        return acts or [DialogueAct("NoOffer", name)]

    def _answers(self, row: Row, domain: str, acts: Sequence[DialogueAct]) -> list[DialogueAct]:
        """Values of a row for the slots that are asked for."""
        name, names = act_domain(domain), SLOT_NAMES[act_domain(domain)]
        told = []
        for act in acts:
            value = row.get(names.get(act.slot, act.slot), UNKNOWN)
            if value == ANY and not self.fidelity.first_row:
                value = UNKNOWN
            told.append(DialogueAct("Inform", name, act.slot, value))
        return told

    def _describe(self, domain: str, row: Row, rng: Generator) -> list[DialogueAct]:
        """Some of the slots that a user could have said, of the only row there is."""
        slots = [slot for slot in INFORMABLE[domain] if slot in row]
        if not slots:
            return []
        name, shorts = act_domain(domain), SHORT_NAMES[domain]
        number = int(rng.random() * len(slots)) + 1
        return [
            DialogueAct("Inform", name, shorts[slots[place]], row[slots[place]])
            for place in rng.permutation(len(slots))[:number].tolist()
        ]

    def _recommend(self, domain: str, found: int, rng: Generator) -> list[DialogueAct]:
        """Number of rows, one of them, and up to two things about it."""
        name, faulty = act_domain(domain), self.fidelity.any_property
        sayable = (_ANY_SAYABLE if faulty else _SAYABLE)[domain]
        rows = indices(found)
        row = self.database.rows(domain)[rows[int(rng.random() * len(rows))]]
        said = [DialogueAct("Inform", name, "Choice", str(len(rows)))]
        if domain in NAMED:
            said.append(DialogueAct("Recommend", name, "Name", row["name"]))
        slots = list(row)
        total, number = len(slots) + _TEXTS_ASIDE.get(domain, 0), int(rng.random() * 3)
        places: list[int] = []
        while len(places) < number:
            place = int(rng.random() * total)
            if place not in places:
                places.append(place)
        for place in places:
            slot = slots[place] if place < len(slots) else ""
            if slot in sayable and (row[slot] != ANY or self.fidelity.first_row):
                act = DialogueAct("Recommend", name, sayable[slot], row[slot])
                said += [act] if faulty or act not in said else []
        return said

    # Trains and taxis

    def _train(
        self,
        said: list[DialogueAct],
        belief: MultiWOZBelief,
        intent: str,
        acts: Sequence[DialogueAct],
        rng: Generator,
    ) -> list[DialogueAct]:
        """Asks for time, day and ends; with four constraints, offers to book."""
        known = self._wanted(belief, "train")
        wanted = {s: known[s] for s in _TRAIN if known.get(s)}
        found = self.database.find("train", wanted)
        if intent == "Request":
            told = self._answers(self._row(belief, "train", found), "train", acts) if found else []
            if self.fidelity.first_row:
                told = [act for act in told if act.value != UNKNOWN]
            elif not found:
                told = self._no_offer(belief, "train")
            return [act for act in said if act.intent != "Request"] + told
        shorts = SHORT_NAMES["train"]
        if not found or len(wanted) >= 4:
            intent = "OfferBook" if found else "NoOffer"
            told = [DialogueAct(intent, "Train", shorts[s], v) for s, v in wanted.items()]
            return [act for act in said if act.intent != "Request"] + told
        missing = [slot for slot in ("day", "destination", "departure") if slot not in wanted]
        asked = _times(wanted, rng) + missing
        return said + [DialogueAct("Request", "Train", shorts[slot], ASKED) for slot in asked]

    def _taxi(self, belief: MultiWOZBelief, rng: Generator) -> list[DialogueAct]:
        """Asks when, and where to and from; then gives car and phone."""
        known, shorts = belief.constraints.get("taxi", EMPTY), SHORT_NAMES["taxi"]
        asked: list[str] = []
        if not known.get("leaveAt") and not known.get("arriveBy"):
            asked = ["leaveAt", "arriveBy"][: int(rng.random() * 2) + 1]
        if not self.fidelity.ends_unasked:
            asked += [slot for slot in ("departure", "destination") if not known.get(slot)]
        if asked:
            return [DialogueAct("Request", "Taxi", shorts[slot], ASKED) for slot in asked]
        taxi = self.database.taxi(rng)
        return [
            DialogueAct("Inform", "Taxi", "Car", taxi["car type"]),
            DialogueAct("Inform", "Taxi", "Phone", taxi["phone"]),
        ]

    # Bookings

    def _booking(
        self, belief: MultiWOZBelief, domain: str, acts: Sequence[DialogueAct]
    ) -> DialogueAct | None:
        """The reference of the row, if the user has said how to book and there is one."""
        bookable = BOOKABLE.get(domain, ())
        names = SLOT_NAMES.get(act_domain(domain), EMPTY)
        if not bookable or not any(names.get(act.slot) in bookable for act in acts):
            return None
        found = self.database.find(domain, self._wanted(belief, domain))
        if not found:
            return None
        if not self.fidelity.books_early:
            known = belief.constraints.get(domain, EMPTY)
            missing = [slot for slot in bookable if not known.get(slot)]
            if missing:
                return DialogueAct("Request", BOOKING, SHORT_NAMES["booking"][missing[0]], ASKED)
        return DialogueAct("Book", BOOKING, "Ref", self._row(belief, domain, found)["Ref"])


_TRAIN = ("leaveAt", "arriveBy", "day", "destination", "departure")


def _times(wanted: dict[str, str], rng: Generator) -> list[str]:
    """Which times to ask for, where none is known: one of them, or both."""
    if "leaveAt" in wanted or "arriveBy" in wanted:
        return []
    drawn = rng.random()
    if drawn < 0.66:
        return ["leaveAt" if drawn < 0.33 else "arriveBy"]
    return ["leaveAt", "arriveBy"]
