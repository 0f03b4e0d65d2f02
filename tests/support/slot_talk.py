"""Users and beliefs to test slot filling with."""

import numpy as np

from dialgym.language.acts import SlotValue, parse_act, print_act
from dialgym.tasks.slot_filling.domain.goals import SlotFillingGoal
from dialgym.tasks.slot_filling.own_settings import tracker_of
from dialgym.tasks.slot_filling.summary import Summariser
from dialgym.tasks.slot_filling.understanding import METHODS
from dialgym.tasks.slot_filling.user.state import STANDARD, SlotUserBehaviour
from dialgym.tasks.slot_filling.user.user import SlotFillingUser
from tests.support.slot_domains import database_of

DATABASE = database_of(
    {"food": "thai", "area": "north", "parking": "1"},
    {"food": "thai", "area": "south", "parking": "1"},
    {"food": "greek", "area": "north", "parking": "0"},
    {"food": "greek", "area": "north", "parking": "1"},
    {"food": "cafe", "area": "south", "parking": "0"},
)
NEVER = dict.fromkeys(STANDARD, 0.0)


class Talk:
    """A simulated user that makes no choice by chance, but for those given as 1 (or between)."""

    def __init__(self, constraints=(("food", "thai"), ("area", "north")), requests=("phone",),
                 seed=0, patience=4, row=None, **chances):  # fmt: skip
        self.user = SlotFillingUser(DATABASE.ontology, SlotUserBehaviour(STANDARD))
        self.rng = np.random.default_rng(seed)
        goal = SlotFillingGoal(dict(constraints), ("name", *requests))
        self.me = self.user.begin(goal, self.rng)
        self.me.patience = self.me.full_patience = patience
        self.me.probabilities = {**NEVER, **chances}
        self.me.requests["name"] = row

    def reply(self, *texts):
        """The user's answer to the last of some acts of the system."""
        for text in texts:
            self.user.hear(self.me, parse_act(text), self.rng)
            answer = print_act(self.user.answer(self.me, self.rng))
        return answer

    def agenda(self, *texts):
        """Put acts on the agenda, the last on top."""
        self.me.agenda = [parse_act(text) for text in texts]
        return self

    @property
    def goal(self):
        """The constraints, as pairs; what must not be as ``!value``."""
        return [(slot, f"!{v}" if negated else v) for slot, v, negated in self.me.constraints]

    @goal.setter
    def goal(self, pairs):
        self.me.constraints = [
            SlotValue(slot, value.lstrip("!"), value.startswith("!")) for slot, value in pairs
        ]


def check_answers(given, agenda, answers, after):
    """Hold a user to what it says, and to what it has in mind then.

    Args:
        given: arguments of `Talk`.
        agenda: what it is about to say, the last first; None for what follows from its goal.
        answers: pairs of an act of the system and what the user says to it: a text, a set of
            texts that it may say, or None for any.
        after: goal, requests, patience and agenda in the end.
    """
    talk = Talk(**given)
    if agenda is not None:
        talk.agenda(*agenda)
    for act, expected in answers:
        said = talk.reply(act)
        any_of = {expected} if isinstance(expected, str) else expected
        assert any_of is None or said in any_of, f"{act} -> {said}"
    found = {"goal": talk.goal, "requests": talk.me.requests, "patience": talk.me.patience,
             "agenda": [print_act(act) for act in talk.me.agenda]}  # fmt: skip
    assert {name: found[name] for name in after} == after


class Ear:
    """A belief that is told acts."""

    def __init__(self, database=DATABASE, fidelity="correct", tracker="focus"):
        self.tracker, limits = tracker_of(tracker, database.ontology, fidelity)
        self.belief = self.tracker.begin()
        self.summariser = Summariser(self.tracker.layout, database, fidelity == "pydial", limits)

    def hear(self, system, *heard):
        """`heard` are texts, or pairs of a text and a probability; null() gets the rest."""
        pairs = [(one, 1.0) if isinstance(one, str) else one for one in heard]
        acts = [(parse_act(text), p) for text, p in pairs]
        acts.append((parse_act("null()"), max(1.0 - sum(p for _, p in pairs), 0.0)))
        self.tracker.update(self.belief, parse_act(system), acts)
        return self

    def p(self, slot, value=None):
        """The belief in a value, or in none."""
        layout = self.tracker.layout
        if value is None:
            return float(self.belief.goals[layout.nones[layout.number[slot]]])
        return float(self.belief.goals[layout.entry[slot][value]])

    @property
    def methods(self):
        return {m: round(float(p), 6) for m, p in zip(METHODS, self.belief.methods) if p}

    @property
    def requested(self):
        slots = self.tracker.layout.request
        return {s: float(self.belief.requested[i]) for s, i in slots.items()
                if self.belief.requested[i]}  # fmt: skip

    @property
    def summary(self):
        return self.summariser.summarise(self.belief)
