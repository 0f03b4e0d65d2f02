"""The tables of `act_mdps` with slots, for learners that want to know what acts are about."""

from __future__ import annotations

from types import SimpleNamespace

from stable_baselines3.common.monitor import Monitor
from stable_baselines3.common.vec_env import DummyVecEnv, VecEnv

from dialgym.tasks import BeliefStructure, SlotBelief
from tests.support.act_mdps import Table, TableEnv


def structure_of_table(states: int, acts: int) -> BeliefStructure:
    """The state is the one block, and the belief of the one slot.

    The first half of the acts is general; the others are about the slot.
    """
    general = {f"act {act}": act for act in range(acts // 2)}
    about = {f"kind {act}": act for act in range(acts // 2, acts)}
    slot = SlotBelief("where", 0, states, states - 2, states - 1, states - 2, 0.5, about, None)
    return BeliefStructure("Table", states, acts, (slot,), {"state": (0, states)}, {}, general)


class SlotTableEnv(TableEnv):
    """An env of a `Table` that says what its beliefs and acts are about."""

    def __init__(self, table: Table) -> None:
        super().__init__(table)
        self.acts = SimpleNamespace(structure=structure_of_table(*table.masks.shape))


def slot_vec_env(table: Table, rows: int = 1, seed: int = 0) -> VecEnv:
    """As `act_mdps.vec_env`."""
    env = DummyVecEnv([lambda: Monitor(SlotTableEnv(table))] * rows)
    env.seed(seed)
    return env
