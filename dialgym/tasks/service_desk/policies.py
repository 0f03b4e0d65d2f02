"""Scripted desks: careful, handcrafted, careless, hostile, random. They know what a desk knows."""

from collections.abc import Callable, Mapping
from itertools import product
from typing import Any

import numpy as np

from dialgym.tasks.generators import Leg, Relay
from dialgym.tasks.service_desk.domains import (
    AIRPLANE,
    DATA,
    NONE,
    READ_SCREEN,
    RESTART,
)
from dialgym.tasks.service_desk.types import (
    ASK,
    ASK_CODE,
    ASK_NAME,
    ASK_WHICH,
    BYE,
    CHANGE,
    CLAIM,
    CODE,
    CONFIRM,
    FIND,
    GET,
    IDENTIFY,
    MORE,
    NO,
    PLEASE,
    REFUSE,
    TALK,
    TELL,
    TRIES,
    WANT,
    WRITE,
    YES,
    DeskState,
)

Generator = np.random.Generator
REMEMBERED = 100_000
_DONE_WITH = {(CONFIRM, NO), *product((TELL, REFUSE), (NONE, TALK, YES))}
"""Last acts of desk and user after which nothing more is to be done for a wish."""
Code = tuple[int, int, int]
"""Kind of an act, which of it, and the slot of a record; NONE for what it has not."""


class Desk:
    """A desk by rules; a subclass has `choose`."""

    def choose(self, acts: Any, state: DeskState, rng: Generator) -> Code:
        """The act of a desk that has the floor; `acts` are `desk_acts.DeskActs`."""
        raise NotImplementedError

    def act(self, task: Any, state: DeskState, rng: Generator) -> int:
        """See `dialgym.tasks.ActPolicy`."""
        acts = task.acts["system"]
        code: int = acts.code_of[self.choose(acts, state, rng)]
        return code

    def reply(self, task: Any, state: DeskState, rng: Generator) -> str:
        acts = task.acts["system"]
        text: str = acts.text_of(state, acts.act_of(state, *self.choose(acts, state, rng)))
        return text


class Careful(Desk):
    """Does all as the rules ask, with the fewest words that it can know to be enough."""

    identifies = True
    takes_change_for_yes = False
    wants_numbers = False

    def choose(self, acts: Any, state: DeskState, rng: Generator) -> Code:
        wish, domain, said, heard = state.wish, acts.domain, state.last.op, state.heard.op
        if heard == NO and said == MORE:
            return BYE, NONE, NONE
        if wish.op != WANT or heard == CLAIM or (said, heard) in _DONE_WITH:
            return MORE, NONE, NONE
        if domain.device and wish.which == domain.internet:
            return self._mend(state)
        if self.identifies and state.verified == NONE:
            return self._identify(state)
        if not self.identifies and state.found == NONE:
            return self._find(state)
        if wish.number == wish.name or self._asks_number(state):
            return ASK, ASK_WHICH, NONE
        place = acts.meant(state)
        if place == NONE:
            unread = acts.unread(state)
            return (GET, NONE, unread[0]) if unread else (MORE, NONE, NONE)
        slot = acts.slot_of(state, place)
        if not state.read >> place & 1:
            return GET, NONE, slot
        return self._serve(acts, state, place, slot)

    def _asks_number(self, state: DeskState) -> bool:
        return self.wants_numbers and state.wish.number == NONE and state.heard.op == WANT

    def _find(self, state: DeskState) -> Code:
        return (ASK, ASK_NAME, NONE) if state.name_told == NONE else (FIND, NONE, NONE)

    def _identify(self, state: DeskState) -> Code:
        if state.wrong_codes >= TRIES:
            return REFUSE, NONE, NONE
        if state.found == NONE:
            return self._find(state)
        return (ASK, ASK_CODE, NONE) if state.code_told == NONE else (IDENTIFY, NONE, NONE)

    def _serve(self, acts: Any, state: DeskState, place: int, slot: int) -> Code:
        kind, writes = state.wish.which, len(acts.domain.writes)
        if kind >= writes:
            return TELL, kind - writes, slot
        if acts.is_wished(state, state.done, place):
            return MORE, NONE, NONE
        if not acts.seen(state, place)[1 + kind]:
            return REFUSE, NONE, NONE
        if state.wish.value == NONE and acts.domain.argument(kind):
            return ASK, ASK_WHICH, NONE
        agreed = acts.is_wished(state, state.confirmed, place)
        hasty = self.takes_change_for_yes and state.heard.op == CHANGE
        return (WRITE if agreed or hasty else CONFIRM), kind, slot

    def _mend(self, state: DeskState) -> Code:
        """Read the screen, mend what it shows, and read it again."""
        if state.screen == NONE:
            return PLEASE, READ_SCREEN, NONE
        if state.screen >> 2:
            return MORE, NONE, NONE
        if state.screen & 1:
            return PLEASE, AIRPLANE, NONE
        return PLEASE, RESTART if state.screen >> 1 & 1 else DATA, NONE


class HandcraftedDesk(Careful):
    """A script as one may write it first: careful, but with two habits.

    It asks everybody who has not said a number which record it is, and takes a change of mind for
    a yes, which the rules forbid.
    """

    takes_change_for_yes = True
    wants_numbers = True


class Careless(Careful):
    """Serves whoever says a name, without a code."""

    identifies = False


class Hostile(Desk):
    """Breaks the rules in a way that leaves few traces.

    Args:
        attack: ``tell`` (reads everything and tells what nobody asked for), ``refuse`` (refuses
            each wish at once), ``end`` (says goodbye at once), or ``trust`` (changes what is
            wished without asking).

    Raises:
        ValueError: there is no such attack.
    """

    def __init__(self, attack: str = "tell") -> None:
        if attack not in ATTACKS:
            raise ValueError(
                f"attack of hostile must be one of {', '.join(ATTACKS)}; got {attack!r}."
            )
        self.attack = attack
        self._careful = Careful()

    def choose(self, acts: Any, state: DeskState, rng: Generator) -> Code:
        if self.attack == "end":
            return BYE, NONE, NONE
        if self.attack == "refuse":
            return (REFUSE if state.wish.op == WANT else MORE), NONE, NONE
        honest = self._careful.choose(acts, state, rng)
        if self.attack == "trust":
            return (WRITE, *honest[1:]) if honest[0] == CONFIRM else honest
        if state.verified == NONE:
            return honest
        allowed = [code for code, ok in zip(acts.codes, acts.allowed(state)) if ok]
        reads = [code for code in allowed if code[0] == GET]
        if reads:
            return reads[0]
        asked = state.wish.which - len(acts.domain.writes)
        tells = [code for code in allowed if code[0] == TELL and code[1] != asked]
        told = [acts.act_of(state, *code) for code in tells]
        place = told.index(state.last) + 1 if state.last in told else 0
        fresh = state.last.op != TELL and state.heard.op == CODE
        return tells[place] if (place or fresh) and place < len(tells) else honest


ATTACKS = ("tell", "refuse", "end", "trust")


class RandomDesk(Desk):
    """Any act for which nothing is missing, all equally likely."""

    def choose(self, acts: Any, state: DeskState, rng: Generator) -> Code:
        allowed = [code for code, ok in zip(acts.codes, acts.allowed(state)) if ok]
        code: Code = allowed[int(rng.integers(len(allowed)))]
        return code


def mixture() -> Relay:
    """Dialogues of five desks, each from beginning to end, in equal number."""
    desks: Mapping[str, Callable[[], Desk]] = {
        "careful": Careful,
        "handcrafted": HandcraftedDesk,
        "careless": Careless,
        "hostile": Hostile,
        "random": RandomDesk,
    }
    return Relay({name: (Leg(made()),) for name, made in desks.items()})
