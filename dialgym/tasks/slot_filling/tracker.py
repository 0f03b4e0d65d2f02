"""Belief trackers: focus, and the baseline that keeps the likeliest value so far.

Focus takes this turn's evidence, and the old belief as far as that leaves room. For each slot, with
m(v) the probability that v was said now: b(v) <- (1 - sum m) b(v) + m(v). Beliefs about the method
go the same way. (Henderson et al. 2014, baselines of DSTC2.)
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Protocol

import numpy as np

from dialgym.errors import one_of
from dialgym.language.acts import Act, Hypotheses
from dialgym.tasks.slot_filling.domain.ontology import DONTCARE, NAME, NONE, Ontology
from dialgym.tasks.slot_filling.error_channel import FIDELITIES
from dialgym.tasks.slot_filling.types import SlotFillingBelief
from dialgym.tasks.slot_filling.understanding import (
    BY_DISCOURSE,
    BY_METHOD,
    DISCOURSE,
    METHODS,
    Interpretation,
    Interpreter,
)

INFORM_COUNTS = 5
"""Counts of the best supported slots that the belief vector tells of, five numbers each."""


@dataclass(frozen=True)
class Layout:
    """Positions of the belief in each value: slot after slot, its values, none, dontcare.

    Attributes:
        ontology: the domain's slots.
    """

    ontology: Ontology

    @cached_property
    def vector_size(self) -> int:
        """Length of the belief vector, see `Summariser.vector`."""
        discourse = len(DISCOURSE) - 1  # all but the last
        rest = len(METHODS) + discourse + len(self.request) + 2 + 5 * INFORM_COUNTS
        return int(self.sizes.sum()) + rest

    @cached_property
    def slots(self) -> tuple[str, ...]:
        """The informable slots, in order."""
        return tuple(self.ontology.informable)

    @cached_property
    def sizes(self) -> np.ndarray:
        """(S,) int64: the number of entries of each slot."""
        return np.array([len(values) + 2 for values in self.ontology.informable.values()])

    @cached_property
    def starts(self) -> np.ndarray:
        """(S,) int64: the first entry of each slot."""
        return np.cumsum(self.sizes) - self.sizes

    @cached_property
    def nones(self) -> np.ndarray:
        """(S,) int64: the entry of each slot for no value at all."""
        return self.starts + self.sizes - 2

    @cached_property
    def seconds(self) -> np.ndarray:
        """(S,) int64: the second entry of each slot that is not none."""
        return self.starts + np.where(self.sizes > 3, 1, 2)

    @cached_property
    def slot_of(self) -> np.ndarray:
        """(G,) int64: the slot that each entry is of."""
        return np.repeat(np.arange(len(self.slots)), self.sizes)

    @cached_property
    def entry(self) -> Mapping[str, Mapping[str, int]]:
        """slot -> value -> entry; none has no text."""
        return {
            slot: {
                **{value: start + i for i, value in enumerate(self.ontology.informable[slot])},
                DONTCARE: start + len(self.ontology.informable[slot]) + 1,
            }
            for slot, start in zip(self.slots, self.starts.tolist())
        }

    @cached_property
    def texts(self) -> tuple[str | None, ...]:
        """The value of each entry, None for none."""
        return tuple(
            text
            for values in self.ontology.informable.values()
            for text in (*values, None, DONTCARE)
        )

    @cached_property
    def values(self) -> tuple[str, ...]:
        """The same, but nothing for none."""
        return tuple([text or "" for text in self.texts])

    @cached_property
    def number(self) -> Mapping[str, int]:
        """slot -> its index."""
        return {slot: i for i, slot in enumerate(self.slots)}

    @cached_property
    def request(self) -> Mapping[str, int]:
        """Requestable slot -> its index among those."""
        return {slot: i for i, slot in enumerate(self.ontology.requestable)}


class Evidence:
    """Probabilities of what the user said in this turn."""

    __slots__ = ("discourse", "goals", "methods", "requested", "slots")

    def __init__(self) -> None:
        self.goals: dict[int, float] = {}  # by entry
        self.slots: dict[int, float] = {}  # by slot, of any value
        self.requested: dict[int, float] = {}  # by requestable slot
        self.methods, self.discourse = [0.0] * len(METHODS), [0.0] * len(DISCOURSE)

    def add(self, meaning: Interpretation, p: float, layout: Layout) -> None:
        self.methods[meaning.method] += p
        self.discourse[meaning.discourse] += p
        for slot in meaning.requested:
            place = layout.request.get(slot)
            if place is not None:
                self.requested[place] = self.requested.get(place, 0.0) + p
        for slot, value in meaning.goals.items():
            number, entry = layout.number[slot], layout.entry[slot].get(value)
            self.slots[number] = self.slots.get(number, 0.0) + p
            if entry is not None:
                self.goals[entry] = self.goals.get(entry, 0.0) + p


class BeliefTracker(Protocol):
    """A tracker, by its methods; your own may be any object that has them."""

    def begin(self) -> SlotFillingBelief:
        """The belief before anything is said; `Layout` has the places in its arrays."""
        ...

    def update(self, belief: SlotFillingBelief, system: Act, heard: Hypotheses) -> None:
        """Take in the system's act and what the user may have answered.

        Changes `belief` by new arrays; those that it has are never written into.
        """
        ...


class FocusTracker:
    """Updates beliefs.

    Args:
        ontology: the domain's slots.
        fidelity: ``"pydial"`` for faults of the original: the belief in no method is never
            reduced, only normalised; a name that was asked for once is asked for ever after; and
            those of `Interpreter`.
    """

    def __init__(self, ontology: Ontology, fidelity: str = "correct") -> None:
        one_of("fidelity", fidelity, FIDELITIES, "the tracker")
        self.layout = Layout(ontology)
        self.faulty = fidelity == "pydial"
        self.interpreter = Interpreter(ontology, self.faulty)

    def begin(self) -> SlotFillingBelief:
        """The belief before anything is said."""
        goals = np.zeros(int(self.layout.sizes.sum()))
        goals[self.layout.nones] = 1.0
        methods, discourse = np.zeros(len(METHODS)), np.zeros(len(DISCOURSE))
        methods[BY_METHOD[NONE]] = discourse[BY_DISCOURSE[NONE]] = 1.0
        return SlotFillingBelief(goals, methods, discourse, np.zeros(len(self.layout.request)))

    def update(self, belief: SlotFillingBelief, system: Act, heard: Hypotheses) -> None:
        """Take in the system's act and what the user may have answered; changes `belief`."""
        evidence = self.gather(belief, system, heard)
        if evidence.slots:
            belief.goals = self._shifted(belief.goals, evidence)
        belief.methods = self._methods(belief.methods, np.array(evidence.methods))
        belief.discourse = np.array(evidence.discourse)

    def gather(self, belief: SlotFillingBelief, system: Act, heard: Hypotheses) -> Evidence:
        """The evidence of this turn; what is no array operation is already done to `belief`."""
        self._remember(belief, system)
        context = self.interpreter.context(system, belief.entity)
        evidence = Evidence()
        for act, p in heard:
            evidence.add(self.interpreter.interpret(act, context), p, self.layout)
        belief.requested = self._requested(belief.requested, system, evidence.requested)
        return evidence

    def _remember(self, belief: SlotFillingBelief, system: Act) -> None:
        """Update the belief by the system's own act."""
        name = system.value(NAME) if system.type == "inform" else None
        belief.told_none = name == NONE
        belief.offered = name is not None and name != NONE
        if belief.told_none:
            belief.entities = ()
        elif name is not None:
            belief.entity = name
            belief.entities = (*belief.entities, name)

    def _requested(self, before: np.ndarray, system: Act, now: Mapping[int, float]) -> np.ndarray:
        """Requests, but for those that the system has answered, and those of now."""
        answered = system.type == "inform" and system.value(NAME) != NONE
        if not (answered or now):
            return before
        left = before.copy()
        for item in system.items if answered else ():
            answers = item.slot != NAME or not self.faulty
            if answers and item.slot in self.layout.request:
                left[self.layout.request[item.slot]] = 0.0
        for slot, p in now.items():
            left[slot] = self._asked(left[slot], p)
        return left

    def _asked(self, before: float, now: float) -> float:
        """The belief that a slot is asked for, which it was before, and is now."""
        return min(before + now, 1.0)

    def _shifted(self, before: np.ndarray, evidence: Evidence) -> np.ndarray:
        layout = self.layout
        room = np.ones(len(layout.slots))
        for slot, p in evidence.slots.items():
            room[slot] = max(1.0 - p, 0.0)
        goals = before * room[layout.slot_of]
        for entry, p in evidence.goals.items():
            goals[entry] += p
        goals[layout.nones] = 0.0
        goals[layout.nones] = np.maximum(1.0 - np.add.reduceat(goals, layout.starts), 0.0)
        return goals

    def _methods(self, before: np.ndarray, now: np.ndarray) -> np.ndarray:
        none = BY_METHOD[NONE]
        methods = before * min(now[none], 1.0) + now
        if self.faulty:
            methods[none] = before[none]
            return methods / max(methods.sum(), 1.0)
        methods[none] = 0.0
        methods[none] = max(1.0 - methods.sum(), 0.0)
        return methods


class BaselineTracker(FocusTracker):
    """Of each slot the value that was heard with the highest probability so far, and no other.

    A request is believed as much as when it was heard last; an act that shows no method keeps the
    one before.
    """

    def _asked(self, before: float, now: float) -> float:
        return min(now, 1.0)

    def _shifted(self, before: np.ndarray, evidence: Evidence) -> np.ndarray:
        goals, layout = before.copy(), self.layout
        for entry, p in evidence.goals.items():
            slot = layout.slot_of[entry]
            start, none = layout.starts[slot], layout.nones[slot]
            if p >= 1.0 - goals[none]:
                goals[start : start + layout.sizes[slot]] = 0.0
                goals[entry] = min(p, 1.0)
                goals[none] = 1.0 - goals[entry]
        return goals

    def _methods(self, before: np.ndarray, now: np.ndarray) -> np.ndarray:
        none, kept = BY_METHOD[NONE], now.copy()
        kept[before.argmax()] += kept[none] if before.argmax() != none else 0.0
        kept[none] = 0.0
        kept /= max(kept.sum(), 1.0)
        kept[none] = 1.0 - kept.sum()
        return kept


TRACKERS: Mapping[str, Callable[[Ontology, str], BeliefTracker]] = {
    "focus": FocusTracker,
    "baseline": BaselineTracker,
}
"""By name; each is made of an ontology and the fidelity."""
