"""Acts of the policy of each domain, and of the topic manager, in dialogues of several domains."""

from typing import Any

import numpy as np

from dialgym.language.acts import Act, print_act
from dialgym.tasks.acts import PartyActs
from dialgym.tasks.slot_filling.party_acts import SlotSystemActs
from dialgym.tasks.slot_filling.task import SlotFilling

Generator = np.random.Generator
TOPICS = "topics"
"""The party that speaks while it is not known which domain the user means."""
HELLO, ASK, BYE = "hello", "ask_topic", "bye"


def spoken(name: str) -> str:
    """The text of an act that has no slots."""
    return print_act(Act(name))


class DomainActs(PartyActs):
    """The acts of the system in one of the domains."""

    def __init__(self, domain: str, task: SlotFilling) -> None:
        self.domain, self.own = domain, SlotSystemActs(task)
        self.names, self.size, self.structure = self.own.names, self.own.size, self.own.structure

    def observe(self, state: Any) -> np.ndarray:
        return self.own.observe(state.dialogues[self.domain])

    def mask(self, state: Any) -> np.ndarray:
        return self.own.mask(state.dialogues[self.domain])

    def text(self, state: Any, action: Any, rng: Generator) -> str:
        return self.own.text(state.dialogues[self.domain], action, rng)

    def note(self, state: Any, action: Any, text: str) -> None:
        self.own.note(state.dialogues[self.domain], action, text)


class TopicActs(PartyActs):
    """Acts and observations of `topics`; see `MultiDomain`."""

    names = (HELLO, ASK, BYE)

    def __init__(self, domains: tuple[str, ...], turns: int) -> None:
        self.domains, self.turns, self.size = domains, turns, 2 * len(domains) + 1

    def observe(self, state: Any) -> np.ndarray:
        left = [name not in state.success for name in self.domains]
        return np.array([*state.evidence, *left, state.attempts / self.turns], np.float32)

    def text(self, state: Any, action: Any, rng: Generator) -> str:
        return spoken(self.names[action])
