"""Acts, masks and observations of the system and the user in act views."""

from functools import cached_property
from typing import Any

import numpy as np

from dialgym.language.acts import NULL, Act, SlotValue, print_act
from dialgym.tasks.acts import PartyActs, RandomActs
from dialgym.tasks.base import USER
from dialgym.tasks.slot_filling.domain.ontology import DONTCARE, NAME, NONE, TYPE
from dialgym.tasks.slot_filling.policies import HandcraftedSystem, SlotAgendaPolicy
from dialgym.tasks.slot_filling.structure import belief_structure
from dialgym.tasks.slot_filling.task import SlotFilling
from dialgym.tasks.slot_filling.types import SlotFillingState
from dialgym.tasks.slot_filling.user import SlotFillingUserState, listen

Generator = np.random.Generator
HEARD = ("hello", "bye", "request", "confirm", "select", "inform", "reqmore", "repeat", "null")
"""Types of the system's acts."""
TELLING = ("inform", "confirm", "negate")
"""Acts of the user that tell one slot's value, in order."""
PLAIN = ("hello", "affirm", "negate", "reqalts", "repeat", "silence", "ack", "thankyou", "bye")
OTHERS = ("inform_all", "inform_dontcare", "request_all", *PLAIN)
"""Acts of the user that are about no slot in particular, in order."""
QUESTIONS = ("request", "confirm", "confreq", "select", "reqmore")
"""Acts that a yes or a no answers."""


class SlotSystemActs(PartyActs):
    """The system's summary acts; it observes its belief (`Summariser.vector`).

    Args:
        task: the rules.
    """

    policies = {"handcrafted": HandcraftedSystem, "random": RandomActs}  # noqa: RUF012

    def __init__(self, task: SlotFilling) -> None:
        acts = task.summary_acts
        self.acts, self.names = acts, acts.names
        self.size = acts.summariser.layout.vector_size
        self.structure = belief_structure(acts.summariser, acts.names)

    def observe(self, state: SlotFillingState) -> np.ndarray:
        return self.acts.summariser.vector(state.belief, state.summary)

    def mask(self, state: SlotFillingState) -> np.ndarray:
        return self.acts.mask(state.belief, state.summary)

    def text(self, state: SlotFillingState, action: Any, rng: Generator) -> str:
        """The notation of `act`, which any language's rules read."""
        return print_act(self.act(state, action, rng))

    def note(self, state: SlotFillingState, action: int, text: str) -> None:
        state.chosen = self.names[action], text

    def act(self, state: SlotFillingState, action: int, rng: Generator) -> Act:
        """The act that a summary act becomes by what is believed."""
        name = self.names[action]
        return self.acts.act(name, state.belief, state.summary, state.system_act, rng)


class SlotUserActs(PartyActs):
    """The user's summary acts: each becomes an act by the user's goal and what it has heard.

    ``inform_S``, ``confirm_S`` and ``negate_S`` tell, ask about, or set right the value that the
    goal has for a slot S, ``dontcare`` where it has none; ``request_S`` asks for S; twelve others
    are about no slot or all, of which ``inform_all`` tells the whole goal and ``request_all`` asks
    for all that is missing. Where the simulated user's next act is of the kind that is chosen, it
    is said as it stands, with what that user would say in the same breath: the agenda can be played
    by choosing its acts one by one.

    Observation, each entry from 0 to 1 (after El Asri et al. 2016, arXiv 1607.00070: the machine's
    act, inconsistencies, status of constraints and requests):

    - the type of the system's last act, one-hot over `HEARD`;
    - of each slot that the system can ask for: whether the goal has a value for it, whether that is
      ``dontcare``, whether the user has told it; whether the system's last act asks for it, gives
      the goal's value, gives another;
    - of each slot that the user can ask for, `name` aside: whether the goal asks for it, whether
      it is still missing, the system's last act included, whether that act tells it;
    - whether that act names a row, says that there is none, names one that the user does not want;
      whether any row has been named; the share of the turns that are over.

    Args:
        task: the rules.
    """

    policies = {"agenda": SlotAgendaPolicy, "random": RandomActs}  # noqa: RUF012

    def __init__(self, task: SlotFilling) -> None:
        ontology = task.domain.ontology
        self.ontology, self.language = ontology, task.language
        self.masks, self.turns = any(task.masks), task.turns
        self.asked = ontology.system_requestable
        self.told = (TYPE, *self.asked, NAME)
        self.requests = tuple(slot for slot in ontology.requestable if slot != NAME)
        telling = [f"{kind}_{slot}" for kind in TELLING for slot in self.told]
        self.names = (*telling, *(f"request_{slot}" for slot in self.requests), *OTHERS)
        self.size = len(HEARD) + 6 * len(self.asked) + 3 * len(self.requests) + 5

    @cached_property
    def number(self) -> dict[str, int]:
        """name -> index."""
        return {name: i for i, name in enumerate(self.names)}

    def text(self, state: SlotFillingState, action: Any, rng: Generator) -> str:
        """Act that the simulated user is about to say, if of this kind; else the act alone."""
        if self.planned(state) == action:
            return state.planned[0]
        return self.language.say(self.act(state, action), USER, rng)

    def planned(self, state: SlotFillingState) -> int:
        """The kind of act that the simulated user is about to say."""
        return self.kind(state.planned[1].said or NULL)

    def kind(self, act: Act) -> int:
        """The action that comes nearest to an act of the user."""
        slots = [item.slot for item in act.items]
        if act.type == "request":
            asked = [item.slot for item in act.items if item.value is None]
            return self.number.get(f"request_{asked[0]}" if asked else "", self.number["silence"])
        if act.type in ("inform", "confirm", "negate", "deny") and slots:
            telling = "negate" if act.type == "deny" else act.type
            told = next((s for s in slots if s in self.asked), slots[0])
            return self.number.get(f"{telling}_{told}", self.number["inform_dontcare"])
        return self.number.get(act.type, self.number["silence"])

    def listening(self, state: SlotFillingState) -> SlotFillingUserState:
        """The user with the answers of the system's last act; the rules note them as it speaks."""
        user = state.user_state.copy()
        listen(user, state.system_act)
        return user

    def act(self, state: SlotFillingState, action: int) -> Act:
        """The act that an action becomes by the goal, whatever the simulated user would say."""
        user, name = self.listening(state), self.names[action]
        if name == "inform_dontcare":
            return Act("inform", (SlotValue("", DONTCARE),))
        if name == "inform_all":
            known = [
                SlotValue(item.slot, item.value) for item in user.constraints if not item.negated
            ]
            return Act("inform", (SlotValue(TYPE, self.ontology.type), *known))
        if name == "request_all":
            return Act("request", tuple([SlotValue(slot) for slot in self._missing(user)]))
        if name in PLAIN:
            return Act(name)
        kind, slot = name.split("_", 1)
        value = None if kind == "request" else self._wanted(user, slot)
        return Act(kind, (SlotValue(slot, value),))

    def _wanted(self, user: SlotFillingUserState, slot: str) -> str:
        return self.ontology.type if slot == TYPE else user.wanted(slot) or DONTCARE

    def _missing(self, user: SlotFillingUserState) -> list[str]:
        return [slot for slot in user.open_requests() if slot != NAME]

    def mask(self, state: SlotFillingState) -> np.ndarray:
        """(A,) bool: what means something now; everything where the task has no masks."""
        if not self.masks:
            return np.ones(len(self.names), bool)
        user, last = self.listening(state), state.system_act
        about = {slot for slot in self.told if user.wanted(slot) or last.mentions(slot)} | {TYPE}
        cares = {slot for slot in self.told if user.wanted(slot) not in (None, DONTCARE)} | {TYPE}
        missing = self._missing(user)
        return np.array([
            *(slot in about for slot in self.told),
            *(slot in cares for slot in self.told),
            *(slot in about and slot != TYPE for slot in self.told),
            *(slot in missing for slot in self.requests),
            *self._others(state, user, len(missing) > 1),
        ])  # fmt: skip

    def _others(
        self, state: SlotFillingState, user: SlotFillingUserState, missing: bool
    ) -> tuple[bool, ...]:
        """Which of `OTHERS` can be chosen."""
        asked, spoken = state.system_act.type in QUESTIONS, state.replies > 0
        known = user.requests.get(NAME) is not None or state.system_act.type == "inform"
        answers = {"affirm": asked, "negate": asked, "reqalts": known, "hello": not spoken}
        plain = (answers.get(name, spoken) for name in PLAIN)
        return (len(user.constraints) > 1, asked, missing, *plain)

    def observe(self, state: SlotFillingState) -> np.ndarray:
        user, last = self.listening(state), state.system_act
        kind = "request" if last.type == "confreq" else last.type
        kind = kind if kind in HEARD else NULL.type
        seen = [float(kind == other) for other in HEARD]
        for slot in self.asked:
            wanted, given = user.wanted(slot), [v for v in last.values(slot) if v is not None]
            right = wanted in given
            seen += (
                wanted is not None, wanted == DONTCARE, slot in state.told,
                last.mentions(slot) and not given, right, bool(given) and not right,
            )  # fmt: skip
        for slot in self.requests:
            wants = slot in user.requests
            seen += wants, wants and user.requests[slot] is None, last.value(slot) is not None
        name = last.value(NAME) if last.type == "inform" else None
        seen += (
            name not in (None, NONE), name == NONE, bool(name) and name in user.unwanted(NAME),
            user.requests.get(NAME) is not None, state.turns / self.turns,
        )  # fmt: skip
        return np.array(seen, np.float32)
