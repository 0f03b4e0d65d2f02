"""Success, and what it, each turn and the end of a dialogue are worth."""

from dataclasses import dataclass

from dialgym.rewards import Components
from dialgym.tasks.base import SYSTEM, USER, Outcome
from dialgym.tasks.bitsets import indices
from dialgym.tasks.slot_filling.domain.database import EntityDatabase
from dialgym.tasks.slot_filling.domain.ontology import DONTCARE, NAME, NONE
from dialgym.tasks.slot_filling.user import SlotFillingUserState


@dataclass(frozen=True)
class Rewards:
    """Rewards of either party.

    Attributes:
        turn: for each utterance of the system.
        closing: for the system's answer to the user's goodbye, in which it has no choice.
        success, failure: at the end.
    """

    turn: float = -1.0
    closing: float = -1.0
    success: float = 20.0
    failure: float = 0.0

    @property
    def components(self) -> tuple[str, ...]:
        """The names by which rewards are logged."""
        return ("turn", "closing", "success", *(["failure"] if self.failure else []))

    def bounds(self, turns: int) -> tuple[float, float]:
        """The least and the greatest return of a dialogue of at most so many turns.

        The user may close it after any of them but the last, and the system with any.
        """
        spoken = [self.turn * n for n in (1, turns)]
        closed = [self.turn * n + self.closing for n in (1, turns - 1) if 0 < n < turns]
        ends = self.success, self.failure
        return min(spoken + closed) + min(ends), max(spoken + closed) + max(ends)

    def on_turn(self) -> Outcome:
        """An utterance of the system, after which the dialogue goes on."""
        return outcome({"turn": self.turn})

    def at_end(self, last: str, success: bool) -> Outcome:
        """The end: with a ``turn`` of the system, or with its ``closing``."""
        components = {last: self.turn if last == "turn" else self.closing}
        if success:
            components["success"] = self.success
        elif self.failure:
            components["failure"] = self.failure
        return outcome(components, True, success)


def outcome(
    components: Components, terminated: bool = False, success: bool | None = None
) -> Outcome:
    """The same for both parties."""
    return Outcome.of({SYSTEM: components, USER: components}, terminated, False, success)


def succeeded(user: SlotFillingUserState, database: EntityDatabase, checked: bool = True) -> bool:
    """True if all requests are answered, and the row named meets the goal as it is at the end.

    An answer counts if the row of which it was told has that; not `checked`, any counts, and
    ``dontcare`` is a row, as in the original.
    """
    name = user.requests.get(NAME)
    if name is None or user.open_requests() or name in user.unwanted(NAME):
        return False
    wanted = {c.slot: str(c.value) for c in user.constraints if not c.negated}
    if wanted.pop(NAME, name) not in (name, DONTCARE):
        return False
    found = bool(database.match_bits({NAME: name, **wanted}))
    return found and (not checked or (name != DONTCARE and _told_truly(user, name, database)))


def _told_truly(user: SlotFillingUserState, name: str, database: EntityDatabase) -> bool:
    """Return True if each answer is that of a row of the name of which it was told.

    Names may be those of several rows. An answer told before any row was named is about that
    which is named at last, and one of no row (see `SlotFillingUserState.take_answers`) about none.
    """
    for slot, value in user.requests.items():
        row = user.row_of.get(slot) or name
        if slot not in database.columns or row == NONE:
            continue
        if all(
            database.rows[i].get(slot, NONE) != value for i in indices(database.bits(NAME, row))
        ):
            return False
    return True
