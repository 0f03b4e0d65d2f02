"""The meaning of beliefs and acts, as an env offers it and as saved policies keep it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

import numpy as np
from stable_baselines3.common.vec_env import VecEnv

from agents.storage.values import storable
from dialgym.tasks import BeliefStructure, SlotBelief

storable(BeliefStructure)
storable(SlotBelief)


def structure_of(env: VecEnv, who: str) -> BeliefStructure:
    """Structure of the env's beliefs and acts; `who` needs that, for the message.

    Raises:
        ValueError: the env does not say, or its acts are about no slots.
    """
    structure = offered(env)
    if structure is None or not structure.asked:
        raise ValueError(
            f"{who}: expected an env that says what its beliefs and acts are about (the system's "
            "act view of a slot-filling task; see dialgym.tasks.BeliefStructure); got one that "
            "does not. Use an algorithm that takes any beliefs, such as dqn or acer."
        )
    return structure


def offered(env: VecEnv) -> BeliefStructure | None:
    """Structure of the env's beliefs and acts; None where it does not say."""
    acts = env.get_attr("acts", 0)[0] if env.has_attr("acts") else None
    found: BeliefStructure | None = getattr(acts, "structure", None)
    return found


def block_entries(structure: BeliefStructure, blocks: Iterable[str]) -> Iterator[tuple[str, int]]:
    """Yield the entries of blocks, by names; of a block that the domain lacks, none."""
    for name in blocks:
        start, stop = structure.blocks.get(name, (0, 0))
        for entry in range(start, stop):
            yield f"{name}.{entry - start}", entry


def value_entries(slots: Sequence[SlotBelief], beyond: int, least: int = 0) -> np.ndarray:
    """(S, V) int64: entries of the values of each slot, that of none aside.

    Args:
        slots: S of them.
        beyond: stands where a slot has fewer values than V.
        least: of V.
    """
    rows = [[i for i in range(slot.start, slot.stop) if i != slot.none] for slot in slots]
    width = max([least, *map(len, rows)])
    return np.array([row + [beyond] * (width - len(row)) for row in rows])
