"""Noise of speech recognition and understanding: acts that are taken for others.

With the shares of `dialgym.simulators.speech_errors`: of the acts that are misheard two in ten get
lost, in three the slot is another, in the others the value is one that sounds alike; what has no
value or no other slot gets lost too.
"""

from collections.abc import Mapping

import numpy as np

from dialgym.simulators.speech_errors import (
    CONFUSE_SLOT,
    CONFUSE_TYPE,
    Neighbour,
    check_rate,
    draw_neighbour,
    neighbours,
)
from dialgym.tasks.multiwoz.data import World
from dialgym.tasks.multiwoz.entries import USER_ENTRIES
from dialgym.tasks.multiwoz.ontology import GENERAL, SLOT_NAMES
from dialgym.tasks.multiwoz.slot_values import slot_values
from dialgym.tasks.multiwoz.types import ASKED, NONE, Acts, DialogueAct

Generator = np.random.Generator
BYE = "bye"
MANY = 500
"""Values of a slot from which on, as with times, any sounds like any other."""


class NoisyChannel:
    """Channel through which the system hears the user's acts.

    A goodbye is always understood, so that a dialogue ends for both or for none.

    Args:
        world: the known values.
        rate: how often an act is misheard, 0 to 1.

    Raises:
        ValueError: the rate is no number from 0 to 1.
    """

    def __init__(self, world: World, rate: float) -> None:
        self.world, self.rate = world, check_rate(rate)
        self._known: dict[tuple[str, str], tuple[tuple[str, ...], Mapping[str, Neighbour]]] = {}

    def hear(self, acts: Acts, rng: Generator) -> Acts:
        """The acts, each with probability `rate` another or none."""
        if not self.rate:
            return acts
        heard: list[DialogueAct] = []
        for act in acts:
            wrong = act.intent != BYE and rng.random() < self.rate
            other = self._mistaken(act, rng) if wrong else act
            if other is not None:
                heard.append(other)
        return tuple(heard)

    def _mistaken(self, act: DialogueAct, rng: Generator) -> DialogueAct | None:
        draw = rng.random()
        if draw < CONFUSE_TYPE or act.slot == NONE or act.domain == GENERAL:
            return None
        if act.value == ASKED or draw < CONFUSE_TYPE + CONFUSE_SLOT:
            return self._other_slot(act, rng)
        values, near = self._values(act.domain, act.slot)
        if act.value in near:
            return act._replace(value=draw_neighbour(near[act.value], rng))
        return act._replace(value=_any(values, rng)) if values else None

    def _other_slot(self, act: DialogueAct, rng: Generator) -> DialogueAct | None:
        """The act with another slot of the domain, and a value of that slot."""
        slots = [
            entry.slot
            for entry in USER_ENTRIES
            if entry[:2] == (act.domain, act.intent) and entry.slot not in (NONE, act.slot)
        ]
        if not slots:
            return None
        slot = _any(slots, rng)
        if act.value == ASKED:
            return act._replace(slot=slot)
        values, _ = self._values(act.domain, slot)
        return act._replace(slot=slot, value=_any(values, rng)) if values else None

    def _values(self, domain: str, slot: str) -> tuple[tuple[str, ...], Mapping[str, Neighbour]]:
        """The values of a slot, and of each of them those that sound alike."""
        kind = domain, slot
        if kind not in self._known:
            name = SLOT_NAMES.get(domain, {}).get(slot, slot)
            values = slot_values(self.world, domain.lower(), name)
            few = 1 < len(values) < MANY
            self._known[kind] = values, neighbours(values) if few else {}
        return self._known[kind]


def _any(options: tuple[str, ...] | list[str], rng: Generator) -> str:
    return options[int(rng.random() * len(options))]
