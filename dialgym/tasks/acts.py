"""Dialogue acts as actions: the act space, observation and masks of a party, and act policies."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from operator import index
from typing import Any, ClassVar, Protocol, runtime_checkable

import numpy as np

from dialgym.errors import unknown

Action = int | np.ndarray
"""The index of an act; or (A,) int8 of 0 and 1, where several acts are chosen at once."""


@runtime_checkable
class ActPolicy(Protocol):
    """Chooses acts by rules, for the party whose turn it is."""

    def act(self, task: Any, state: Any, rng: np.random.Generator) -> Action:
        """The action of `task.speaker(state)`. Must leave `state` as it was."""
        ...


class ActTask(Protocol):
    """As much of a `Task` as act policies ask for."""

    @property
    def acts(self) -> Mapping[str, "PartyActs"]:
        """The acts of each party that has any."""
        ...

    def speaker(self, state: Any) -> str:
        """The party whose turn it is."""
        ...


class RandomActs:
    """Any act that the mask allows, all equally likely; in a vector each with probability 1/2."""

    def act(self, task: ActTask, state: Any, rng: np.random.Generator) -> Action:
        acts = task.acts[task.speaker(state)]
        mask = acts.mask(state)
        if acts.multiple:
            return (mask & (rng.random(len(mask)) < 0.5)).astype(np.int8)
        return int(rng.choice(np.flatnonzero(mask)))


@dataclass(frozen=True)
class SlotBelief:
    """Which entries of an observation are about a slot, and which acts.

    Attributes:
        name: of the slot.
        start, stop: its block: one probability for each value, for ``none`` and for ``dontcare``,
            which sum to 1.
        none: the entry, of the observation, for no value at all.
        dontcare: the entry for any value.
        values: number of values, these two not counted.
        entropy: that of the slot's values over the rows of the database, from 0 to 1: 1 where all
            values are as frequent as one another.
        acts: index of each act about the slot by its kind, such as ``{"request": 3}``; empty
            where the party has none.
        requested: the entry for the belief that the slot is asked for; None where it cannot be.
    """

    name: str
    start: int
    stop: int
    none: int
    dontcare: int
    values: int
    entropy: float
    acts: Mapping[str, int]
    requested: int | None


@dataclass(frozen=True)
class BeliefStructure:
    """Meaning of an observation's entries and of the acts, in any domain.

    Policies that do not depend on a domain read beliefs through it. It holds plain values only, so
    that a saved policy can have that of its domain.

    Attributes:
        domain: its name.
        size: B, the length of an observation.
        n_acts: A.
        slots: in the order of the observation.
        blocks: (start, stop) of each other part of the observation by its name.
        requests: the entry of each slot that can be asked for, by its name.
        general: index of each act that is about no slot in particular, by its name.
    """

    domain: str
    size: int
    n_acts: int
    slots: tuple[SlotBelief, ...]
    blocks: Mapping[str, tuple[int, int]]
    requests: Mapping[str, int]
    general: Mapping[str, int]

    @property
    def asked(self) -> tuple[SlotBelief, ...]:
        """The slots that the party has acts about."""
        return tuple(slot for slot in self.slots if slot.acts)


class PartyActs(ABC):
    """The acts of one party of a task: everything that its act view is made of.

    A task offers one for each party that has acts, as `Task.acts`. It is immutable and shared by
    all dialogues, as the task is. A subclass has `names`, `size`, and the methods below.

    Attributes:
        names: of the A acts.
        multiple: whether an action is a vector of acts that are chosen together,
            `MultiBinary(A)`, rather than one of them, `Discrete(A)`.
        size: B, the length of an observation.
        low, high: bounds of an observation, each a number or (B,).
        structure: what the entries of an observation mean; None where that has no such form.
        policies: who can choose the party's acts, by name.
    """

    names: Sequence[str]
    size: int
    multiple: bool = False
    low: float | np.ndarray = 0.0
    high: float | np.ndarray = 1.0
    structure: BeliefStructure | None = None
    policies: ClassVar[Mapping[str, Callable[..., ActPolicy]]] = {"random": RandomActs}

    @abstractmethod
    def observe(self, state: Any) -> np.ndarray:
        """(B,) float32, a new array: what the party knows or believes in this state."""

    def observe_many(self, states: Sequence[Any]) -> np.ndarray:
        """(k, B) float32: the same of k dialogues."""
        return np.stack([self.observe(state) for state in states])

    @abstractmethod
    def text(self, state: Any, action: Any, rng: np.random.Generator) -> str:
        """Utterance of the party by an `Action`; each of the action space is legal."""

    def say(self, state: Any, action: Any, rng: np.random.Generator) -> str:
        """The same, of an action that is chosen to be said now: the state takes note of it."""
        text = self.text(state, action, rng)
        self.note(state, action, text)
        return text

    def note(self, state: Any, action: Any, text: str) -> None:  # noqa: B027
        """Let a state know which action its next `text` says, where its rules depend on that."""

    def mask(self, state: Any) -> np.ndarray:
        """(A,) bool: the acts that can be chosen, or the entries of a vector that can be 1.

        At least one where an action is one act; a vector can always be all 0.
        """
        return np.ones(len(self.names), bool)

    def mask_many(self, states: Sequence[Any]) -> np.ndarray:
        """(k, A) bool: the same of k dialogues."""
        return np.stack([self.mask(state) for state in states])

    def allows(self, state: Any, action: Any) -> bool:
        """Tell if an action is one that the mask allows."""
        mask = self.mask(state)
        return bool(mask[action == 1].all() if self.multiple else mask[action])

    def own_reward(self, state: Any, action: Any) -> float:
        """Reward of the party alone for choosing `action` in this state.

        It is no part of the dialogue's rewards; learners that teach both parties at once may add
        it (`agents.MADPL`).
        """
        return 0.0

    def read(self, state: Any, text: str) -> Action:
        """The action that says `text`, or comes nearest to it: what a corpus is learned from.

        Raises:
            NotImplementedError: the task has no corpora.
        """
        raise NotImplementedError(f"{type(self).__name__}: texts cannot be read as acts.")

    def policy_named(self, name: str, **settings: Any) -> ActPolicy:
        """A new policy of the party, by its registered name.

        Raises:
            ValueError: there is no policy of that name.
        """
        if name not in self.policies:
            raise unknown("act policy", name, self.policies)
        return self.policies[name](**settings)


def check_act(action: Any, acts: PartyActs, name: str) -> Action:
    """The index of an act, or (A,) int8 of 0 and 1.

    Raises:
        ValueError: the action is neither, whichever the acts ask for.
    """
    if acts.multiple:
        return _check_vector(action, len(acts.names), name)
    try:
        chosen = index(action)
    except TypeError:
        chosen = -1
    if not 0 <= chosen < len(acts.names):
        raise ValueError(
            f"action of {name}: expected a whole number from 0 to {len(acts.names) - 1}, one of "
            f"its acts; got {action!r}."
        )
    return chosen


def _check_vector(action: Any, count: int, name: str) -> np.ndarray:
    vector = np.asarray(action)
    right = vector.shape == (count,) and vector.dtype.kind in "biuf"
    if right and ((vector == 0) | (vector == 1)).all():
        return vector.astype(np.int8)
    raise ValueError(
        f"action of {name}: expected ({count},) of 0 and 1, one entry for each of its acts; "
        f"got {action!r}."
    )


class ActSpeaker:
    """Says what an act policy chooses, so that it can play its party in any view.

    Args:
        policy: of whichever party has the floor.
    """

    def __init__(self, policy: ActPolicy) -> None:
        self.policy = policy
        self.oracle = bool(getattr(policy, "oracle", False))

    def reply(self, task: ActTask, state: Any, rng: np.random.Generator) -> str:
        """See `dialgym.simulators.Speaker`."""
        acts = task.acts[task.speaker(state)]
        chosen = self.policy.act(task, state, rng)
        return acts.say(state, check_act(chosen, acts, type(self.policy).__name__), rng)
