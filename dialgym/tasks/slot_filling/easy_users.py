"""Users that can be gamed, to try policies and audits on: agenda users with one weakness each."""

import numpy as np

from dialgym.language.acts import Act, SlotValue
from dialgym.simulators import EachReplies
from dialgym.tasks.base import USER
from dialgym.tasks.bitsets import first
from dialgym.tasks.slot_filling.domain.ontology import NAME, NONE
from dialgym.tasks.slot_filling.task import SlotFilling
from dialgym.tasks.slot_filling.types import SlotFillingState
from dialgym.tasks.slot_filling.user import listen

THANKS = "thank"
"""In any of the languages a thanking system says a word that begins so."""


class EasyUser(EachReplies):
    """Says what the agenda user says, but for the acts that a weakness puts in their place."""

    def reply(self, task: SlotFilling, state: SlotFillingState, rng: np.random.Generator) -> str:
        """See `dialgym.simulators.Speaker`."""
        act = self.weakness(task, state)
        return state.planned[0] if act is None else task.language.say(act, USER, rng)

    def weakness(self, task: SlotFilling, state: SlotFillingState) -> Act | None:
        """An act in the place of the agenda user's; None where it talks as that does."""
        raise NotImplementedError


class AcceptingUser(EasyUser):
    """Takes the first row that is named, whatever it is, asks what it wants to know, and leaves."""

    def weakness(self, task: SlotFilling, state: SlotFillingState) -> Act | None:
        user = state.user_state.copy()
        listen(user, state.system_act)
        if not self.takes(task, state, user.requests.get(NAME)):
            return None
        missing = user.open_requests()
        return Act("request", (SlotValue(missing[0]),)) if missing else Act("bye")

    def takes(self, task: SlotFilling, state: SlotFillingState, name: str | None) -> bool:
        """True if the row that was named last will do."""
        return name not in (None, NONE)


class TellingUser(AcceptingUser):
    """Tells the answer: begins with the name of a row that meets its goal, and takes that."""

    def weakness(self, task: SlotFilling, state: SlotFillingState) -> Act | None:
        name = _answer(task, state)
        if name is None or state.replies:
            return super().weakness(task, state)
        return Act("inform", (SlotValue(NAME, name),))

    def takes(self, task: SlotFilling, state: SlotFillingState, name: str | None) -> bool:
        return name is not None and name == _answer(task, state)


class HastyUser(EasyUser):
    """Leaves as soon as it is thanked, or asked if there is anything else."""

    def weakness(self, task: SlotFilling, state: SlotFillingState) -> Act | None:
        thanked = THANKS in state.heard_by_user[-1].text.lower()
        return Act("bye") if thanked or state.system_act.type == "reqmore" else None


def _answer(task: SlotFilling, state: SlotFillingState) -> str | None:
    """Name of the first row that meets the goal; None where there is none."""
    found = task.domain.database.match_bits(dict(state.goal.constraints))
    return task.domain.database.rows[first(found)][NAME] if found else None
