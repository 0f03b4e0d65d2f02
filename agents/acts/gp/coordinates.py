"""Features and acts of a domain by names that other domains share: slots by rank, values sorted.

Slots that the system can ask for are numbered from the one whose values the database tells apart
best for their number: `slot00`, `slot01` and so on (Gasic et al. 2015, Policy committee for
adaptation in multi-domain spoken dialogue systems). What else can be asked for is `info00` ...
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

import numpy as np

from agents.acts.belief_structure import block_entries, offered, value_entries
from agents.storage.values import storable
from dialgym.tasks.acts import BeliefStructure, SlotBelief

TOP = 5
"""Probabilities of a slot's most believed values that are features, where nothing else is said."""
DISTRIBUTIONS = ("methods", "discourse")
"""Blocks whose entries exclude one another; those of others are yes-or-no questions."""
DOMAIN = "domain"
"""Of envs that have no structure, and so no name of their own."""


@storable
class Plain:
    """Beliefs as they are, where nothing is known of what their entries mean.

    Args:
        size: B.
        n_acts: A.
    """

    def __init__(self, size: int, n_acts: int) -> None:
        self.domain = DOMAIN
        self.features = tuple(f"belief.{i}" for i in range(size))
        self.acts = tuple(f"act.{i}" for i in range(n_acts))
        self.slots: dict[str, str] = {}

    def __call__(self, beliefs: np.ndarray) -> np.ndarray:
        """(n, F) of beliefs (n, B)."""
        return beliefs.astype(float)


@storable
class Abstract:
    """Beliefs by slots: the belief in none, then the most believed values, most first.

    A question of yes or no, with probability p, is the two features p and 1 - p.

    Args:
        structure: of the domain's beliefs.
        top: values of each slot.
    """

    def __init__(self, structure: BeliefStructure, top: int = TOP) -> None:
        self.domain, self.top = structure.domain, top
        named = dict(_slot_names(structure))
        by_slot = {slot.name: name for name, slot in named.items()}
        slots = [*named.values()]
        self.nones = np.array([slot.none for slot in slots])
        self.values = value_entries(slots, structure.size, top)
        plain = dict(block_entries(structure, DISTRIBUTIONS))
        asked = dict(_requests(structure, by_slot))
        binary = {**asked, **dict(block_entries(structure, ("offer", "counts")))}
        self.plain, self.binary = np.array([*plain.values()]), np.array([*binary.values()])
        self.features = (
            *(f"{name}.none" for name in named),
            *(f"{name}.top{k}" for name in named for k in range(top)),
            *plain,
            *binary,
            *(f"{name}.not" for name in binary),
        )
        self.acts = tuple(_act_names(structure, named))
        self.slots = {name: slot.name for name, slot in named.items()}

    def __call__(self, beliefs: np.ndarray) -> np.ndarray:
        """(n, F) of beliefs (n, B)."""
        padded = np.zeros((len(beliefs), beliefs.shape[1] + 1))
        padded[:, :-1] = beliefs
        tops = -padded[:, self.values]  # (n, S, V), those of most belief least
        if tops.shape[2] > self.top:
            tops = np.partition(tops, self.top - 1)[:, :, : self.top]
        tops = -np.sort(tops)
        binary = padded[:, self.binary]
        parts = (padded[:, self.nones], tops.reshape(len(beliefs), -1), padded[:, self.plain])
        return np.concatenate((*parts, binary, 1.0 - binary), axis=1)


Coordinates = Plain | Abstract


def coordinates_of(env: Any, top: int = TOP) -> Coordinates:
    """Coordinates of the beliefs of an env; by its structure where it has one."""
    structure = offered(env)
    if structure is None:
        (size,) = env.observation_space.shape or (0,)
        return Plain(size, int(env.action_space.n))
    return Abstract(structure, top)


def ranked(structure: BeliefStructure) -> list[SlotBelief]:
    """The slots that the system can ask for, from the greatest entropy for its values."""

    def share(slot: SlotBelief) -> float:
        return slot.entropy * math.log(max(slot.values, 1)) / max(slot.values, 1)

    return sorted(structure.asked, key=share, reverse=True)


def _slot_names(structure: BeliefStructure) -> Iterator[tuple[str, SlotBelief]]:
    for i, slot in enumerate(ranked(structure)):
        yield f"slot{i:02}", slot
    for slot in structure.slots:
        if not slot.acts:
            yield slot.name, slot


def _act_names(structure: BeliefStructure, named: dict[str, SlotBelief]) -> list[str]:
    names = [""] * structure.n_acts
    for name, act in structure.general.items():
        names[act] = name
    for name, slot in named.items():
        for kind, act in slot.acts.items():
            names[act] = f"{name}.{kind}"
    return names


def _requests(structure: BeliefStructure, by_slot: dict[str, str]) -> Iterator[tuple[str, int]]:
    others = 0
    for slot, entry in structure.requests.items():
        if slot in by_slot:
            yield f"{by_slot[slot]}.requested", entry
        else:
            yield f"info{others:02}.requested", entry
            others += 1
