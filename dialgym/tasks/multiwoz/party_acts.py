"""Acts, masks and observations of the system and the user in act views."""

from collections.abc import Iterable, Mapping
from functools import cached_property
from importlib.resources import files
from typing import Any

import numpy as np

from dialgym.tasks.acts import PartyActs
from dialgym.tasks.base import SYSTEM, USER
from dialgym.tasks.multiwoz import policies
from dialgym.tasks.multiwoz.agenda import ANY, CHOICE, DONTCARE, NOT_BOOK, answered
from dialgym.tasks.multiwoz.entries import (
    REQUEST,
    SYSTEM_ENTRIES,
    SYSTEM_NAMES,
    USER_ENTRIES,
    Entry,
    system_numbers,
)
from dialgym.tasks.multiwoz.notation import print_acts
from dialgym.tasks.multiwoz.ontology import (
    BOOKABLE,
    DOMAINS,
    INFORMABLE,
    REQUESTABLE,
    SHORT_NAMES,
    SLOT_NAMES,
    act_domain,
)
from dialgym.tasks.multiwoz.reactions import TELLING
from dialgym.tasks.multiwoz.task import MultiWOZ, MultiWOZDialogue
from dialgym.tasks.multiwoz.types import ASKED, NONE, Acts, DialogueAct
from dialgym.tasks.multiwoz.vectors import STATE_SIZE

Generator = np.random.Generator
INFORM = "Inform"
_TOLD = [
    (domain.lower(), SLOT_NAMES.get(domain, {}).get(slot)) if intent.lower() in TELLING else None
    for domain, intent, slot, _ in SYSTEM_ENTRIES
]
"""Of each act of the system, (domain, slot) whose value it tells."""


class MultiWOZSystemActs(PartyActs):
    """The 209 acts of the system, any of them at once; it observes the 340 features.

    An act is about the k-th row that meets what is believed, and the rules find its value; see
    `Vectoriser`. The mask leaves out what no row has.
    """

    names = SYSTEM_NAMES
    size = STATE_SIZE
    multiple = True
    policies = {"rule": policies.RuleSystemPolicy, "random": policies.RandomMultiWOZSystem}  # noqa: RUF012

    def __init__(self, task: MultiWOZ) -> None:
        self.task = task

    def observe(self, state: MultiWOZDialogue) -> np.ndarray:
        return self.task.vectoriser.state(state.dialogue.belief, state.dialogue.ended)

    def mask(self, state: MultiWOZDialogue) -> np.ndarray:
        if not self.task.masks:
            return np.ones(len(self.names), bool)
        return self.task.vectoriser.mask(state.dialogue.belief)

    def text(self, state: MultiWOZDialogue, action: Any, rng: Generator) -> str:
        """The notation of the acts with their values, which any language's rules read."""
        belief = state.dialogue.belief
        return print_acts(self.task.vectoriser.lexicalise(self.numbers(action), belief, rng))

    def own_reward(self, state: MultiWOZDialogue, action: Any) -> float:
        """-1 for each request that it leaves unanswered (Takanobu et al. 2020).

        The number of a booking is not counted: it takes a booking, which may be impossible.
        """
        told = {_TOLD[number] for number in self.numbers(action)}
        requests = state.dialogue.belief.requests.items()
        waiting = [(d, slot) for d, slots in requests for slot in slots if slot != "Ref"]
        return -float(sum(asked not in told for asked in waiting))

    def read(self, state: MultiWOZDialogue, text: str) -> Any:
        return self.nearest(system_numbers(self.task.meant(text, SYSTEM)))

    def numbers(self, action: Any) -> tuple[int, ...]:
        """Which of the 209 acts an action is."""
        return tuple(np.flatnonzero(action).tolist())

    def nearest(self, numbers: Iterable[int]) -> Any:
        """The action that is, or comes nearest to, these of the 209 acts."""
        vector = np.zeros(len(SYSTEM_NAMES), np.int8)
        vector[list(numbers)] = 1
        return vector


class CompositeActs(MultiWOZSystemActs):
    """Each of the 209 acts and the frequent combinations of them, one at a time: for DQN.

    The combinations are those that the rule system says most often in the built-in city
    (``scripts/count_composite_acts.py``), so that there are `COMPOSITES` acts in all.
    """

    multiple = False

    def __init__(self, task: MultiWOZ) -> None:
        super().__init__(task)
        self.names = composite_names()
        number = {name: i for i, name in enumerate(SYSTEM_NAMES)}
        self._parts = [tuple([number[n] for n in name.split(";")]) for name in self.names]
        self._has = np.zeros((len(self.names), len(SYSTEM_NAMES)), np.float32)  # (A, 209)
        for row, parts in enumerate(self._parts):
            self._has[row, list(parts)] = 1
        self._sizes = self._has.sum(1)

    def mask(self, state: MultiWOZDialogue) -> np.ndarray:
        forbidden: np.ndarray = ~super().mask(state)[: len(SYSTEM_NAMES)]
        allowed: np.ndarray = self._has @ forbidden.astype(np.float32) == 0
        return allowed

    def numbers(self, action: Any) -> tuple[int, ...]:
        return self._parts[int(action)]

    def nearest(self, numbers: Iterable[int]) -> int:
        """The action that differs in the fewest acts; the first of those."""
        wanted = list(numbers)
        return int(np.argmin(self._sizes - 2 * self._has[:, wanted].sum(1)))


COMPOSITES = 500


def composite_names() -> tuple[str, ...]:
    """The acts of `CompositeActs`: parts joined by ``;``, in the order of the 209."""
    text = (files("dialgym.tasks.multiwoz") / "composite_acts.txt").read_text("utf-8")
    return (*SYSTEM_NAMES, *text.split())[:COMPOSITES]


_MORE = [Entry(act_domain(d), INFORM, s, 0) for d in DOMAINS for s in ("Choice", NOT_BOOK)]
_ASKABLE = [
    Entry(act_domain(domain), REQUEST, SHORT_NAMES[domain][slot], 0)
    for domain in DOMAINS
    for slot in REQUESTABLE[domain]
]
USER_SAID = (*USER_ENTRIES, *_MORE, *(e for e in _ASKABLE if e not in USER_ENTRIES))
"""All acts that the user says without their values: the 78 of the corpus, and those of its agenda
and its requests that are not among them."""
Slots = tuple[tuple[str, str], ...]
_INFORMED: Slots = tuple((d, slot) for d in DOMAINS for slot in INFORMABLE[d])
_BOOKED: Slots = tuple((d, slot) for d in DOMAINS for slot in BOOKABLE[d])
_REQUESTED: Slots = tuple((d, slot) for d in DOMAINS for slot in REQUESTABLE[d])


class MultiWOZUserActs(PartyActs):
    """The acts of the user, any of them at once: each gets its value from the goal.

    An act that is on the agenda is said as it stands there; other values are those of the goal,
    ``dontcare`` where it has none. Masked are the acts about what the goal does not have, requests
    that have been answered, and a goodbye before the system has spoken.

    Observation, each entry from 0 to 1:

    - which of its 209 acts the system said last;
    - of each domain: whether the goal has it, whether it is the one talked about, whether the user
      takes it for booked, whether it has given up what could not be met;
    - of each slot to constrain or to book by: whether the goal has it, whether it is still to be
      said, whether the system said another value just now;
    - of each slot to ask for: whether the goal has it, whether it is unanswered;
    - the share of the turns that are over.
    """

    multiple = True
    policies = {"agenda": policies.MultiWOZAgendaPolicy, "random": policies.RandomUser}  # noqa: RUF012
    names = tuple([entry.name for entry in USER_SAID])
    size = (
        len(SYSTEM_NAMES)
        + 4 * len(DOMAINS)
        + 3 * len(_INFORMED + _BOOKED)
        + 2 * len(_REQUESTED)
        + 1
    )

    def __init__(self, task: MultiWOZ) -> None:
        self.task = task

    @cached_property
    def _number(self) -> dict[tuple[str, str, str], int]:
        """Domain, intent and slot as on the agenda -> number."""
        numbers: dict[tuple[str, str, str], int] = {}
        for number, (domain, intent, slot, _) in enumerate(USER_SAID):
            name = SLOT_NAMES.get(domain, {}).get(slot, slot)
            numbers[domain.lower(), intent.lower(), name] = number
        return numbers

    def action(self, acts: Acts) -> np.ndarray:
        """(A,) int8: the acts without their values; those that have no entry are left out."""
        vector = np.zeros(len(self.names), np.int8)
        for intent, domain, slot, _ in acts:
            name = SLOT_NAMES.get(domain, {}).get(slot, slot)
            number = self._number.get((domain.lower(), intent.lower(), name))
            if number is not None:
                vector[number] = 1
        return vector

    def text(self, state: MultiWOZDialogue, action: Any, rng: Generator) -> str:
        return str(self.task.nlg.say(self.said(state, action), USER, rng))

    def read(self, state: MultiWOZDialogue, text: str) -> np.ndarray:
        return self.action(self.task.meant(text, USER))

    def own_reward(self, state: MultiWOZDialogue, action: Any) -> float:
        """-1 for each constraint untold of a domain in which it asks (Takanobu et al. 2020)."""
        chosen = set(np.flatnonzero(action).tolist())
        asked = {USER_SAID[number].domain.lower() for number in chosen
                 if USER_SAID[number].intent == REQUEST}  # fmt: skip
        untold = [item for item in state.dialogue.user.stack if item.domain in asked
                  and item.intent == "inform" and item.slot in INFORMABLE[item.domain]]  # fmt: skip
        return -float(sum(self._number.get(item[:3]) not in chosen for item in untold))

    def said(self, state: MultiWOZDialogue, action: Any) -> Acts:
        """The acts of an action: what is on the agenda in its order, then all others."""
        chosen = dict.fromkeys(np.flatnonzero(action).tolist())
        acts: list[DialogueAct] = []
        for domain, intent, slot, value in reversed(state.dialogue.user.stack):
            number = self._number.get((domain, intent, slot), -1)
            if number in chosen:
                del chosen[number]
                acts.append(_act(USER_SAID[number], value))
        for number in chosen:
            entry = USER_SAID[number]
            acts.append(_act(entry, self._value(state, entry)))
        return tuple(acts)

    def _value(self, state: MultiWOZDialogue, entry: Entry) -> str:
        domain, intent, short, _ = entry
        if intent != INFORM or short in (NONE, NOT_BOOK):
            return ASKED if intent == REQUEST else NONE
        if short == "Choice":
            return ANY
        slot = SLOT_NAMES[domain][short]
        return self._wanted(state, domain.lower()).get(slot, DONTCARE)

    def _wanted(self, state: MultiWOZDialogue, domain: str) -> Mapping[str, str]:
        """Requests of the user in a domain at present, and its wishes for a booking."""
        goal, user = state.dialogue.goal.domains.get(domain), state.dialogue.user
        if goal is None:
            return {}
        info = goal.info if domain in user.retired else goal.fail_info or goal.info
        book = goal.book if domain in user.rebooked else goal.fail_book or goal.book
        return {**info, **book}

    def mask(self, state: MultiWOZDialogue) -> np.ndarray:
        """(A,) bool: what the goal has; everything where the task has no masks."""
        if not self.task.masks:
            return np.ones(len(self.names), bool)
        mask = np.zeros(len(self.names), bool)
        dialogue, number = state.dialogue, self._number
        fidelity = self.task.rules.fidelity
        on = [number["general", intent, NONE] for intent in ("bye", "greet", "thank")]
        for domain, goal in dialogue.goal.domains.items():
            on += [number[domain, "inform", slot] for slot in (NONE, CHOICE, NOT_BOOK)
                   if (domain, "inform", slot) in number]  # fmt: skip
            on += [number[domain, "inform", slot] for slot in self._wanted(state, domain)]
            on += [number[domain, "request", slot] for slot in goal.requests
                   if not answered(dialogue.user, domain, slot, fidelity)]  # fmt: skip
        on += [number[item[:3]] for item in dialogue.user.stack if item[:3] in number]
        mask[on] = True
        mask[number["general", "bye", NONE]] = dialogue.turns > 0
        return mask

    def observe(self, state: MultiWOZDialogue) -> np.ndarray:
        dialogue = state.dialogue
        goals, user, told = dialogue.goal.domains, dialogue.user, dialogue.belief.system_acts
        fidelity = self.task.rules.fidelity
        vector = np.zeros(self.size, np.float32)
        vector[list(system_numbers(told))] = 1
        seen: list[bool] = []
        for domain in DOMAINS:
            gave_up = domain in user.retired or domain in user.rebooked
            seen += domain in goals, domain == user.domain, domain in user.booked, gave_up
        waiting = {item[:3] for item in user.stack}
        said = {(a.domain.lower(), SLOT_NAMES.get(a.domain, {}).get(a.slot, "")): a.value
                for a in told if a.intent not in (REQUEST, "NoOffer", "NoBook")}  # fmt: skip
        wanted = {domain: self._wanted(state, domain) for domain in goals}
        for domain, slot in _INFORMED + _BOOKED:
            value = wanted.get(domain, {}).get(slot)
            other = value is not None and said.get((domain, slot), value) != value
            seen += value is not None, (domain, "inform", slot) in waiting, other
        for domain, slot in _REQUESTED:
            asked = domain in goals and slot in goals[domain].requests
            seen += asked, asked and not answered(user, domain, slot, fidelity)
        vector[len(SYSTEM_NAMES) : -1] = seen
        vector[-1] = dialogue.turns / self.task.turns
        return vector


def _act(entry: Entry, value: str) -> DialogueAct:
    return DialogueAct(entry.intent, entry.domain, entry.slot, value)
