"""Scripted speakers: agenda users, the rule system, and random ones."""

from functools import partial
from typing import Any

import numpy as np

from dialgym.simulators import EachReplies
from dialgym.tasks.base import SYSTEM, USER
from dialgym.tasks.multiwoz.entries import system_numbers
from dialgym.tasks.multiwoz.task import MultiWOZ, MultiWOZDialogue
from dialgym.tasks.multiwoz.types import Acts
from dialgym.tasks.multiwoz.user import MultiWOZUser

Generator = np.random.Generator
MOST_RANDOM = 3
"""Acts that a random system says at once, at most."""


class MultiWOZAgendaPolicy(EachReplies):
    """The user who speaks from its agenda, as in `user.BEHAVIOURS`.

    Args:
        behaviour: one of them, or None for the one that the task names.
    """

    def __init__(self, behaviour: str | None = None) -> None:
        self.behaviour = behaviour

    def acts(self, task: MultiWOZ, state: MultiWOZDialogue, rng: Generator) -> Acts:
        """Choose the next acts."""
        user = MultiWOZUser(task.rules.agenda, self.behaviour or task.user)
        return user.acts(state.dialogue, rng)

    def reply(self, task: MultiWOZ, state: MultiWOZDialogue, rng: Generator) -> str:
        return task.nlg.say(self.acts(task, state, rng), USER, rng)

    def act(self, task: MultiWOZ, state: MultiWOZDialogue, rng: Generator) -> np.ndarray:
        """(A,) int8: the same acts, without their values."""
        vector: np.ndarray = task.acts[USER].action(self.acts(task, state, rng))
        return vector


class RuleSystemPolicy(EachReplies):
    """The rule system. In act views and in words it says its acts without their values."""

    def reply(self, task: MultiWOZ, state: MultiWOZDialogue, rng: Generator) -> str:
        acts = task.rules.system.acts(state.dialogue.belief, rng)
        named = task.language.name_entries(system_numbers(acts))
        return task.nlg.say(acts, SYSTEM, rng) if named is None else named

    def act(self, task: MultiWOZ, state: MultiWOZDialogue, rng: Generator) -> Any:
        """The action that comes nearest to what it would say."""
        acts = task.rules.system.acts(state.dialogue.belief, rng)
        return task.acts[SYSTEM].nearest(system_numbers(acts))


class RandomMultiWOZSystem(EachReplies):
    """One to three of the acts that the masks allow, or any one action where actions are few."""

    def reply(self, task: MultiWOZ, state: MultiWOZDialogue, rng: Generator) -> str:
        acts = task.acts[SYSTEM]
        chosen = self.act(task, state, rng)
        numbers = acts.numbers(chosen)
        named = task.language.name_entries(numbers)
        if named is not None:
            return named
        said = task.vectoriser.lexicalise(numbers, state.dialogue.belief, rng)
        return task.nlg.say(said, SYSTEM, rng)

    def act(self, task: MultiWOZ, state: MultiWOZDialogue, rng: Generator) -> Any:
        acts = task.acts[SYSTEM]
        allowed = np.flatnonzero(acts.mask(state))
        if not acts.multiple:
            return int(allowed[int(rng.random() * len(allowed))])
        return _random_vector(allowed, len(acts.names), rng)


class RandomUser(EachReplies):
    """One to three acts of the user; goodbye among them, so that dialogues end."""

    def reply(self, task: MultiWOZ, state: MultiWOZDialogue, rng: Generator) -> str:
        acts = task.acts[USER]
        return str(task.nlg.say(acts.said(state, self.act(task, state, rng)), USER, rng))

    def act(self, task: MultiWOZ, state: MultiWOZDialogue, rng: Generator) -> np.ndarray:
        acts = task.acts[USER]
        return _random_vector(np.flatnonzero(acts.mask(state)), len(acts.names), rng)


def _random_vector(allowed: np.ndarray, size: int, rng: Generator) -> np.ndarray:
    """(size,) int8 of 0 and 1: up to `MOST_RANDOM` of the `allowed` acts."""
    count = 1 + int(rng.random() * MOST_RANDOM)
    vector = np.zeros(size, np.int8)
    vector[rng.choice(allowed, min(count, len(allowed)), replace=False)] = 1
    return vector


unfriendly_user = partial(MultiWOZAgendaPolicy, "unfriendly")
terse_user = partial(MultiWOZAgendaPolicy, "terse")
verbose_user = partial(MultiWOZAgendaPolicy, "verbose")
