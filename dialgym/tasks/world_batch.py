"""Worlds that answer commands in batches: the rules of `worlds.py` as look-ups in tables."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from dialgym.language import Constraint, Utterance
from dialgym.tasks.base import SYSTEM, USER
from dialgym.tasks.batch import BatchOutcome, RowStates
from dialgym.tasks.worlds import NOTHING, WorldState, WorldTask

Generators = Sequence[np.random.Generator]


class WorldBatch:
    """`size` dialogues with the host of the rules; equal to as many `WorldState`s."""

    def __init__(self, task: WorldTask, size: int) -> None:
        self.task, self.world = task, task.world
        self.start = np.zeros(size, np.int64)
        self.place = np.zeros(size, np.int64)
        self.turns = np.zeros(size, np.int64)
        self.said = np.full((size, task.turns), "", object)
        self.codes = np.zeros((size, task.turns), np.int64)
        self.seen = np.zeros((size, task.turns + 1), np.int64)
        self.tracks = np.tile(self.world.starts, (size, 1))
        self._texts = np.array(self.world.texts)

    def draw(self, rows: np.ndarray, rngs: Generators, options: Mapping[str, Any]) -> list[int]:
        return [self.task.draw_start(rngs[row], options) for row in rows.tolist()]

    def begin(self, rows: np.ndarray, drawn: list[int], rngs: Generators) -> BatchOutcome:
        self.start[rows], self.turns[rows] = drawn, 0
        self.place[rows] = self.world.starts[drawn]
        signals = self.seen[rows, 0] = self.world.signals[self.place[rows]]
        self.tracks[rows] = self.world.begun(signals[:, None])
        none = np.zeros(len(rows), bool)
        return self._outcome(signals, np.zeros(len(rows)), none, none, {})

    def say(self, rows: np.ndarray, texts: np.ndarray, rngs: Generators) -> BatchOutcome:
        world, said, at = self.world, texts.tolist(), self.turns[rows]
        codes = np.array([self.task.read(text) for text in said], np.int64)
        self.said[rows, at], self.codes[rows, at] = said, codes
        self.turns[rows] += 1
        known, places = codes != NOTHING, self.place[rows]
        self.place[rows] = np.where(known, world.after[places, codes], places)
        signals = self.seen[rows, at + 1] = world.signals[self.place[rows]]
        self.tracks[rows] = world.follow(self.tracks[rows], codes[:, None], signals[:, None])
        goal = world.ends[self.place[rows]]
        kinds = {"goal": goal, "unknown": ~goal & ~known, "step": ~goal & known}
        return self._outcome(
            signals,
            np.select([*kinds.values()], [self.task.amounts[kind] for kind in kinds]),
            goal | (self.turns[rows] == self.task.turns),
            goal,
            {
                k: np.where(is_one, a, 0.0)
                for k, is_one in kinds.items()
                if (a := self.task.amounts[k])
            },
        )

    def _outcome(
        self,
        signals: np.ndarray,
        reward: np.ndarray,
        over: np.ndarray,
        goal: np.ndarray,
        parts: Mapping[str, np.ndarray],
    ) -> BatchOutcome:
        count = len(signals)
        users, none = np.ones(count, np.int64), np.zeros(count, bool)
        told = self._texts[signals]
        return BatchOutcome(reward, over, none, goal, parts, told, users, np.arange(count))

    def transcript(self, row: int) -> list[Utterance]:
        turns, texts = int(self.turns[row]), self.world.texts
        lines = [Utterance(USER, texts[self.seen[row, 0]])]
        for said, seen in zip(self.said[row, :turns].tolist(), self.seen[row, 1:].tolist()):
            lines += (Utterance(SYSTEM, said), Utterance(USER, texts[seen]))
        return lines

    def constraint(self, row: int) -> Constraint:
        return self.task.constraint_at(int(self.seen[row, self.turns[row]]), SYSTEM)

    def turn(self, rows: np.ndarray) -> np.ndarray:
        return self.turns[rows]

    def observations(self) -> np.ndarray:
        """(N, B) float32: see `world_acts.CommandActs.observe`."""
        acts: Any = self.task.acts[SYSTEM]
        seen: np.ndarray = acts.seen(self.tracks, self.turns)
        return seen

    def act_masks(self) -> np.ndarray:
        """(N, A) bool: see `world_acts.CommandActs.mask`."""
        now = self.seen[np.arange(len(self.turns)), self.turns]
        masks: np.ndarray = self.task.allowed[now]
        return masks

    def states(self, rows: np.ndarray) -> "Worlds":
        """The dialogues of the rows."""
        return Worlds(self, rows)

    def state(self, row: int) -> WorldState:
        """The dialogue of a row, made again."""
        turns, start, place = int(self.turns[row]), int(self.start[row]), int(self.place[row])
        return WorldState(
            start,
            place,
            True,
            [Utterance(USER, self.world.names[start], private=True)],
            self.transcript(row),
            self.codes[row, :turns].tolist(),
            self.seen[row, : turns + 1].tolist(),
            bool(self.world.ends[place]) or turns == self.task.turns,
            self.tracks[row].copy(),
        )

    def restore(self, row: int, state: WorldState, turn: int) -> None:
        """Let a row go on from a dialogue."""
        self.start[row], self.place[row], self.turns[row] = state.start, state.place, turn
        said = [line.text for line in state.lines if line.speaker == SYSTEM]
        self.said[row, :turn], self.codes[row, :turn] = said, state.codes
        self.seen[row, : turn + 1] = state.seen
        self.tracks[row] = self.task.tracks(state)


class Worlds(RowStates):
    """Rows of a batch, of which one can know what was told without their states."""

    def known(self) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """The signal told last (k,), places of all beginnings (k, H), and turns so far (k,)."""
        batch, rows = self._batch, self._rows
        turns = batch.turns[rows]
        return batch.seen[rows, turns], batch.tracks[rows], turns


def known_of(
    task: WorldTask, states: Sequence[WorldState]
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """As `Worlds.known`, of any dialogues."""
    if isinstance(states, Worlds):
        return states.known()
    seen, turns = [state.seen[-1] for state in states], [len(state.codes) for state in states]
    return np.array(seen), np.array([task.tracks(state) for state in states]), np.array(turns)
