"""Acts of the desk: tools and words with arguments from what it has heard and seen."""

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from dialgym.tasks.acts import PartyActs
from dialgym.tasks.hidden import reveal
from dialgym.tasks.service_desk import oracle, policies
from dialgym.tasks.service_desk.desk_goals import OWNED
from dialgym.tasks.service_desk.domains import DEVICE_TOOLS, NAME, NONE, NUMBER
from dialgym.tasks.service_desk.task import ServiceDesk
from dialgym.tasks.service_desk.types import (
    ASK,
    BYE,
    CONFIRM,
    FIND,
    GET,
    IDENTIFY,
    MORE,
    PLEASE,
    REFUSE,
    TELL,
    TRIES,
    USE,
    WANT,
    WRITE,
    DeskAct,
    DeskState,
)

Generator = np.random.Generator
PLACES = tuple(tuple(p for p, owner in enumerate(OWNED) if owner == who) for who in (0, 1, NONE))
"""Records of each customer, and of nobody."""
SLOTS = max(map(len, PLACES))
"""Records of a customer, at most: those of the customer who was found, in their order."""
HEARD = USE
"""Acts of the user that the desk can hear: all but the use of the device."""


class DeskActs(PartyActs):
    """Tools and words of the desk; records are those of the customer who was found.

    Values are those that the user has said: the name, the code, the argument of the open wish; a
    told value is that which was read. An act for which something is missing is masked, and says
    nothing if it is chosen nonetheless. What the policy forbids is not masked.

    Observation, from 0 to 1: the user's last act, one-hot; what the desk knows of the customer; the
    open wish, one-hot, and which record it means; how far it has come; of each record whether it
    was read, and which changes the policy allows; what the screen shows; the share of the turns.

    Args:
        task: the rules.
    """

    policies = {  # noqa: RUF012
        "handcrafted": policies.HandcraftedDesk,
        "careful": policies.Careful,
        "oracle": oracle.Oracle,
        "careless": policies.Careless,
        "hostile": policies.Hostile,
        "random": policies.RandomDesk,
    }

    def __init__(self, task: ServiceDesk) -> None:
        self.task, self.domain = task, task.domain
        domain, slots = task.domain, range(SLOTS)
        writes, tells = range(len(domain.writes)), range(len(domain.tells))
        self.codes: list[tuple[int, int, int]] = [
            (FIND, NONE, NONE),
            (IDENTIFY, NONE, NONE),
            *((GET, NONE, slot) for slot in slots),
            *((WRITE, write, slot) for write in writes for slot in slots),
            *((CONFIRM, write, slot) for write in writes for slot in slots),
            *((TELL, field, slot) for field in tells for slot in slots),
            *((ASK, question, NONE) for question in range(3)),
            (REFUSE, NONE, NONE),
            (MORE, NONE, NONE),
            (BYE, NONE, NONE),
            *((PLEASE, tool, NONE) for tool in range(len(DEVICE_TOOLS) * domain.device)),
        ]
        self.code_of = {code: place for place, code in enumerate(self.codes)}
        self.names = tuple(self._name(*code) for code in self.codes)
        self._allowed: dict[tuple[int, tuple[int, ...]], tuple[float, ...]] = {}
        self.size = len(self.features(task.initial(np.random.default_rng(0), {"goal": 0})))

    def _name(self, op: int, which: int, slot: int) -> str:
        domain = self.domain
        record = f" {domain.noun} {slot + 1}"
        named = {
            FIND: "find_customer",
            IDENTIFY: "identify",
            REFUSE: "refuse",
            MORE: "anything else",
            BYE: "goodbye",
        }
        if op in named:
            return named[op]
        if op == GET:
            return f"get_{domain.noun}{record}"
        if op == ASK:
            return f"ask {('name', 'code', domain.noun)[which]}"
        if op == PLEASE:
            return f"please {DEVICE_TOOLS[which]}"
        if op == TELL:
            return f"tell {domain.fields[domain.tells[which]].name}{record}"
        return f"{'confirm ' if op == CONFIRM else ''}{domain.writes[which].tool}{record}"

    def act(self, state: DeskState, code: int) -> DeskAct:
        """The act of a code; without an `op` where something is missing."""
        return self.act_of(state, *self.codes[code])

    def act_of(self, state: DeskState, op: int, which: int, slot: int) -> DeskAct:
        """The same of an act of `codes`."""
        if slot != NONE:
            return self._of_record(state, op, which, slot)
        if op == FIND:
            return DeskAct(FIND, value=state.name_told) if state.name_told != NONE else DeskAct()
        if op == IDENTIFY:
            known = state.found != NONE and state.code_told != NONE
            return DeskAct(IDENTIFY, value=state.code_told) if known else DeskAct()
        return DeskAct(op, which)

    def _of_record(self, state: DeskState, op: int, which: int, slot: int) -> DeskAct:
        place = place_in(state, slot)
        if place == NONE:
            return DeskAct()
        record: Sequence[int] = reveal(state.records)[place]
        if op == GET:
            return DeskAct(GET, number=record[NUMBER])
        if not state.read >> place & 1:
            return DeskAct()
        if op == TELL:
            return DeskAct(TELL, which, record[NUMBER], record[self.domain.tells[which]])
        value = NONE
        if self.domain.writes[which].value == NONE:
            value = state.wish.value if state.wish.which == which else NONE
            if value == NONE:
                return DeskAct()
        return DeskAct(op, which, record[NUMBER], value)

    def text(self, state: DeskState, action: Any, rng: Generator) -> str:
        return self.text_of(state, self.act(state, int(action)))

    def text_of(self, state: DeskState, act: DeskAct) -> str:
        """The text of an act; "" of one for which something is missing."""
        if act.op == NONE:
            return ""
        if not self.task.english:
            return self.task.texts.desk(act)
        return self.task.texts.said(state, act, self.is_amiss(state))

    def texts(self, state: DeskState) -> Iterator[str]:
        """Words of the acts for which nothing is missing."""
        for code, allowed in zip(self.codes, self.allowed(state)):
            if allowed:
                yield self.task.texts.desk(self.act_of(state, *code))

    def mask(self, state: DeskState) -> np.ndarray:
        return np.array(self.allowed(state), bool)

    def allowed(self, state: DeskState) -> list[bool]:
        """The mask as a list."""
        domain, wish = self.domain, state.wish
        listed = [place_in(state, slot) for slot in range(SLOTS)]
        read = [place != NONE and bool(state.read >> place & 1) for place in listed]
        mask = [
            state.name_told != NONE and state.found == NONE,
            state.found != NONE and state.code_told != NONE and state.verified == NONE,
        ]
        mask += [place != NONE and not seen for place, seen in zip(listed, read)]
        changes: list[bool] = []
        for at, write in enumerate(domain.writes):
            given = write.value != NONE or (wish.which == at and wish.value != NONE)
            changes += read if given else [False] * SLOTS
        mask += changes
        mask += changes
        mask += read * len(domain.tells)
        mask += [True, True, True, wish.op == WANT, True, True]
        return mask + [True] * (len(DEVICE_TOOLS) * domain.device)

    def observe(self, state: DeskState) -> np.ndarray:
        return np.array(self.features(state), np.float32)

    def features(self, state: DeskState) -> list[float]:
        """The observation as a list."""
        domain, wish, heard = self.domain, state.wish, state.heard
        row = [0.0] * (HEARD + len(domain.kinds))
        if 0 <= heard.op < HEARD:
            row[heard.op] = 1.0
        if wish.op == WANT:
            row[HEARD + wish.which] = 1.0
        meant = self.meant(state)
        row += (
            state.name_told != NONE,
            state.found != NONE,
            state.code_told != NONE,
            state.verified != NONE,
            state.wrong_codes > 0,
            state.wrong_codes >= TRIES,
            wish.op == WANT,
            wish.number != NONE,
            wish.name != NONE,
            state.proposed.op == WRITE,
            state.confirmed.op == WRITE,
            state.done.op == WRITE and self.is_wished(state, state.done, meant),
            state.last.op == REFUSE,
            state.turns / self.task.turns,
        )
        for slot in range(SLOTS):
            place = place_in(state, slot)
            row.append(place == meant != NONE)
            row += self.seen(state, place)
        if domain.device:
            screen = state.screen
            row += (screen != NONE, *(float(screen != NONE and screen >> b & 1) for b in range(3)))
        return row

    def is_wished(self, state: DeskState, act: DeskAct, place: int) -> bool:
        """Tell if a change is that of the open wish."""
        if place == NONE:
            return False
        number = reveal(state.records)[place][NUMBER]
        return act[1:4] == (state.wish.which, number, state.wish.value)

    def meant(self, state: DeskState) -> int:
        """The record that the open wish means, as far as the desk can tell; else NONE."""
        number, name = state.wish.number, state.wish.name
        if number == name or state.found == NONE:
            return NONE
        records, read = reveal(state.records), state.read
        for place in PLACES[state.found]:
            if number == records[place][NUMBER]:
                return place
            if name == records[place][NAME] and read >> place & 1:
                return place
        return NONE

    def is_amiss(self, state: DeskState) -> bool:
        """Tell if the open wish names a record, and none that could be meant is the customer's."""
        named = state.wish.op == WANT and state.wish.number != state.wish.name
        known = state.found != NONE and not self.unread(state)
        return named and known and self.meant(state) == NONE

    def slot_of(self, state: DeskState, place: int) -> int:
        """The slot of a record of the customer who was found."""
        return place - PLACES[state.found][0]

    def unread(self, state: DeskState) -> list[int]:
        """Slots of records that were listed, and not read."""
        places = PLACES[state.found]
        return [slot for slot, place in enumerate(places) if not state.read >> place & 1]

    def seen(self, state: DeskState, place: int) -> tuple[float, ...]:
        """Flags of a record: it was read; each change is allowed."""
        if place == NONE or not state.read >> place & 1:
            return (0.0,) * (1 + len(self.domain.writes))
        record = reveal(state.records)[place]
        key = state.policy, record
        found = self._allowed.get(key)
        if found is None:
            if len(self._allowed) >= policies.REMEMBERED:
                self._allowed.clear()
            writes = range(len(self.domain.writes))
            allowed = (float(self.domain.allows(state.policy, w, record)) for w in writes)
            found = self._allowed[key] = (1.0, *allowed)
        return found

    def read(self, state: DeskState, text: str) -> int:
        """The act that a text is taken for; anything else if it is none of them."""
        act = self.task.reader.read("system", text)
        for code, allowed in enumerate(self.allowed(state)):
            if allowed and self.act(state, code) == act:
                return code
        return self.code_of[MORE, NONE, NONE]


def place_in(state: DeskState, slot: int) -> int:
    """The place of a record of the customer who was found, or NONE."""
    places = PLACES[state.found]
    return places[slot] if slot < len(places) else NONE
