"""Exact values by value iteration, of all beliefs that one can come to in a deterministic world."""

from collections import Counter
from collections.abc import Iterator
from math import gcd
from typing import Any, NamedTuple

import numpy as np

Belief = tuple[tuple[int, int], ...]
"""Places, ascending, each with its share of the beginnings in whole numbers."""
MOST = 50_000
"""Beliefs that are looked into."""
_SAME = 1e-9


class _Edges(NamedTuple):
    """Parts of what follows a command, in parallel arrays (E,)."""

    slot: np.ndarray  # N-th belief and command, as belief * A + command
    share: np.ndarray  # its probability
    reward: np.ndarray
    after: np.ndarray  # the belief then, N where the goal is reached


class BeliefValues:
    """Values of the N beliefs of a world for each number of turns that are left.

    All beginnings are as likely at first, and commands and what is told afterwards only rule some
    of them out: so a belief is a set of beginnings, each at its place by now. Where all is told it
    is one place. Values are undiscounted, and exact but for rounding.

    Args:
        world: the tables, see `dialgym.tasks.worlds.CommandWorld`.
        signals: (S,) int, what is told at each place, by which beliefs are parted.
        turns: T, commands in a dialogue.
        name: of the task, for errors.
        most: beliefs to look into.

    Raises:
        ValueError: there are more.
    """

    def __init__(
        self, world: Any, signals: np.ndarray, turns: int, name: str, most: int = MOST
    ) -> None:
        self.world, self.turns, self.name, self.most = world, turns, name, most
        self._signals: list[int] = signals.tolist()
        self._number: dict[Belief, int] = {}
        self._beliefs: list[Belief] = []
        parts = list(self._parts(Counter(world.starts.tolist())))
        self._first = [(self._find(part), part.total() / len(world.starts)) for part in parts]
        self._edges = self._expand()
        self._allowed: np.ndarray = world.allowed[[belief[0][0] for belief in self._beliefs]]
        self._values, self._choices = self._solve()

    def __len__(self) -> int:
        """Number of beliefs."""
        return len(self._beliefs)

    def _find(self, part: Counter[int]) -> int:
        belief = belief_of(part)
        if belief in self._number:
            return self._number[belief]
        if len(self) >= self.most:
            raise ValueError(
                f"{self.name}: exact values need more than {self.most:,} beliefs. Choose a "
                "smaller world, or the policy 'informed', which sees all."
            )
        self._beliefs.append(belief)
        return self._number.setdefault(belief, len(self) - 1)

    def _parts(self, places: Counter[int]) -> Iterator[Counter[int]]:
        """Places, each with its beginnings, parted by what is told of them."""
        parts: dict[int, Counter[int]] = {}
        for place, count in places.items():
            parts.setdefault(self._signals[place], Counter())[place] += count
        yield from parts.values()

    def _expand(self) -> _Edges:
        world, commands = self.world, len(self.world.commands)
        after, ends = world.after.tolist(), world.ends.tolist()
        edges: list[tuple[int, float, float, int]] = []
        for number, belief in enumerate(self._beliefs):  # grows on the way
            total = sum(count for _, count in belief)
            for command in np.flatnonzero(world.allowed[belief[0][0]]).tolist():
                moved: Counter[int] = Counter()
                for place, count in belief:
                    moved[after[place][command]] += count
                slot = number * commands + command
                for part in self._parts(moved):
                    share, over = part.total() / total, ends[next(iter(part))]
                    there = -1 if over else self._find(part)
                    edges.append((slot, share, world.goal if over else world.step, there))
        slots, shares, rewards, then = (np.array(column) for column in zip(*edges))
        return _Edges(slots, shares, rewards, np.where(then < 0, len(self), then))

    def _solve(self) -> tuple[list[np.ndarray], list[np.ndarray]]:
        """Values (N, A) of commands, and the best ones (N, A) bool, with 1 to T turns left.

        Of commands that are worth as much those are best by which the goal is reached soonest.
        """
        tables, choices = [], []
        values, turns = np.zeros(len(self) + 1), np.zeros(len(self) + 1)
        for _ in range(self.turns):
            table = self._backed_up(self._edges.reward + values[self._edges.after], -np.inf)
            values[:-1] = table.max(1)
            slow = self._backed_up(1 + turns[self._edges.after], np.inf)
            slow[table < values[:-1, None] - _SAME] = np.inf
            turns[:-1] = slow.min(1)
            tables.append(table)
            choices.append(slow <= turns[:-1, None] + _SAME)
        return tables, choices

    def _backed_up(self, then: np.ndarray, other: float) -> np.ndarray:
        """(N, A) means of what follows each command, and `other` where it cannot be given.

        Args:
            then: (E,) of each edge.
            other: see above.
        """
        sums = np.bincount(self._edges.slot, self._edges.share * then, self._allowed.size)
        return np.where(self._allowed, sums.reshape(self._allowed.shape), other)

    def action_values(self, tracks: np.ndarray, left: int) -> np.ndarray:
        """(A,) best expected return of each command, -inf of those that cannot be given.

        Args:
            tracks: (H,) the place of each beginning, -1 of those that are ruled out.
            left: turns, from 1 to T.
        """
        return self._values[left - 1][self._at(tracks)].copy()

    def best(self, tracks: np.ndarray, left: int) -> np.ndarray:
        """(A,) bool, the commands of the best return, and of those the soonest at the goal.

        Args:
            tracks, left: as of `action_values`.
        """
        return self._choices[left - 1][self._at(tracks)].copy()

    def _at(self, tracks: np.ndarray) -> int:
        return self._number[belief_of(Counter(tracks[tracks >= 0].tolist()))]

    @property
    def best_return(self) -> float:
        """Expected return of the best commands from the first turn on."""
        return self._mean(self._values[-1].max(1))

    @property
    def random_return(self) -> float:
        """Expected return of commands drawn evenly from those that can be given."""
        values = np.zeros(len(self) + 1)
        for _ in range(self.turns):
            table = self._backed_up(self._edges.reward + values[self._edges.after], 0.0)
            values[:-1] = table.sum(1) / self._allowed.sum(1)
        return self._mean(values)

    def _mean(self, values: np.ndarray) -> float:
        return float(sum(values[number] * share for number, share in self._first))


def belief_of(places: Counter[int]) -> Belief:
    """The belief of places with the numbers of beginnings that lead to them."""
    common = gcd(*places.values())
    return tuple(sorted((place, count // common) for place, count in places.items()))
