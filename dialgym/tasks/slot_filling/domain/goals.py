"""User goals: constraints that a few rows meet and slots to ask for, and how they are drawn."""

from collections.abc import Mapping, Sequence
from itertools import chain, combinations
from math import comb, perm, prod
from typing import Any, NamedTuple

import numpy as np

from dialgym.language.acts import Act, SlotValue
from dialgym.tasks.slot_filling.domain.database import EntityDatabase
from dialgym.tasks.slot_filling.domain.ontology import DONTCARE, NAME
from dialgym.tasks.splits import Secrets, split_of


class SlotFillingGoal(NamedTuple):
    """A user's goal at the start of a dialogue.

    Attributes:
        constraints: slot -> value or ``dontcare``, in the order in which the user thinks of them.
        requests: the slots to ask for, `name` first.
    """

    constraints: Mapping[str, str]
    requests: tuple[str, ...]


class GoalGenerator:
    """Draws goals as PyDial does, without its trials.

    PyDial draws `constraints` system-requestable slots, a value or ``dontcare`` for each, 0 to
    `extra_requests` requests beside `name`, which can be drawn again and adds nothing, none where
    there are too few slots, and begins again until the number of matching rows is
    within `matches`. Here all goals that would pass are listed once, each with its probability; of
    a `split`, those whose constraints are of it (`dialgym.tasks.splits`).

    Attributes:
        slots: (goals, k) int64: indices into the system-requestable slots, ascending.
        values: (goals, k) int64: indices into the slots' values, -1 for ``dontcare``.
        probability: (goals,) float64, summing to 1.

    Raises:
        ValueError: no goal has as many matching rows as `matches` asks for.
    """

    def __init__(
        self,
        database: EntityDatabase,
        constraints: int = 3,
        extra_requests: int = 2,
        matches: tuple[int, int] = (2, 3),
        split: str | None = None,
    ) -> None:
        ontology = database.ontology
        self._names = ontology.system_requestable
        self._texts = [(*ontology.informable[slot], DONTCARE) for slot in self._names]
        self.slots, self.values, weights = _listed(database, constraints, matches)
        if not len(weights):
            raise ValueError(
                f"goals of {ontology.domain}: expected constraints that {matches[0]} to "
                f"{matches[1]} rows of the database meet; got none. Give other `matches`, or a "
                "database with more rows that are alike."
            )
        if split is not None:
            names = [goal_name(self._constraints(place)) for place in range(len(weights))]
            kept = Secrets(names, split, f"goals of {ontology.domain}", "constraints").rows
            self.slots, self.values, weights = self.slots[kept], self.values[kept], weights[kept]
        self.split = split
        self.probability = weights / weights.sum()
        self._below = np.cumsum(self.probability)
        self._asked = ontology.user_requests
        self._sizes = [n if n <= len(self._asked) else 0 for n in range(extra_requests + 1)]

    def draw(self, rng: np.random.Generator) -> SlotFillingGoal:
        """A goal; takes three uniform numbers."""
        which, order, asked = rng.random(3).tolist()
        place = min(int(self._below.searchsorted(which, "right")), len(self._below) - 1)
        count = self.slots.shape[1]
        size = self._sizes[int(asked * len(self._sizes))]
        extra = _arrangement(self._asked, size, asked * len(self._sizes) % 1)
        constraints = self._constraints(place, _arrangement(range(count), count, order))
        return SlotFillingGoal(constraints, tuple(dict.fromkeys((NAME, *extra))))

    def _constraints(self, place: int, order: Sequence[int] | None = None) -> dict[str, str]:
        slots, values = self.slots[place].tolist(), self.values[place].tolist()
        return {
            self._names[slots[i]]: self._texts[slots[i]][values[i]]
            for i in order or range(len(slots))
        }

    def checked(self, goal: SlotFillingGoal) -> SlotFillingGoal:
        """The goal.

        Raises:
            ValueError: its constraints are of another split.
        """
        if self.split is None or split_of(goal_name(goal.constraints)) == self.split:
            return goal
        raise ValueError(
            f"option 'constraints' of SlotFilling: expected some of the split {self.split!r}; got "
            f"{dict(goal.constraints)}. Choose others, or leave `split` out of goals."
        )


def goal_name(constraints: Mapping[str, str]) -> str:
    """The constraints in one order, by which their split is found."""
    return ", ".join(f"{slot}={value}" for slot, value in sorted(constraints.items()))


def _listed(
    database: EntityDatabase, most: int, matches: tuple[int, int]
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """The slots, values and weights of all goals."""
    ontology = database.ontology
    asked = ontology.system_requestable
    sizes = [len(ontology.informable[slot]) + 1 for slot in asked]
    size = min(most, len(asked))
    fitting = _fitting(database, size, matches)
    parts = [
        _spread(chosen, fitting, 1 / (comb(len(asked), size) * prod(sizes[s] for s in chosen)))
        for chosen in combinations(range(len(asked)), size)
    ]
    slots, values, weights = (np.concatenate(part) for part in zip(*parts))
    return slots, values, weights


def _spread(
    chosen: tuple[int, ...], fitting: Mapping[tuple[int, ...], np.ndarray], weight: float
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """The goals about the slots `chosen`, any of which may be ``dontcare``."""
    found = []
    for cared in _subsets(chosen, len(chosen)):
        known = fitting[cared]
        values = np.full((len(known), len(chosen)), -1)
        values[:, [chosen.index(slot) for slot in cared]] = known
        found.append(values)
    goals = np.concatenate(found)
    return np.tile(chosen, (len(goals), 1)), goals, np.full(len(goals), weight)


def _fitting(
    database: EntityDatabase, most: int, matches: tuple[int, int]
) -> dict[tuple[int, ...], np.ndarray]:
    """By set of slots: (n, slots) the values that as many rows as `matches` asks for have."""
    ontology = database.ontology
    order = list(ontology.informable)
    columns = [order.index(slot) for slot in ontology.system_requestable]
    codes = database.codes[:, columns]
    return {
        cared: _common(codes[:, list(cared)], matches)
        for cared in _subsets(range(len(columns)), most)
    }


def _common(codes: np.ndarray, matches: tuple[int, int]) -> np.ndarray:
    """The rows of `codes` that occur as often as `matches` asks for; rows with -1 are none."""
    known = codes[(codes >= 0).all(1)]
    if not codes.shape[1]:
        return known[: int(matches[0] <= len(known) <= matches[1])]
    _, places, counts = np.unique(_numbered(known), return_index=True, return_counts=True)
    return known[places[(matches[0] <= counts) & (counts <= matches[1])]]


def _numbered(rows: np.ndarray) -> np.ndarray:
    """(n,) int64: a number for each row of (n, k), which sorts as the rows do."""
    numbers = rows[:, 0]
    for column in rows.T[1:]:
        _, numbers = np.unique(numbers, return_inverse=True)  # so that no product overflows
        numbers = numbers * (int(column.max(initial=0)) + 1) + column
    return numbers


def _subsets(of: range | tuple[int, ...], most: int) -> chain[tuple[int, ...]]:
    return chain.from_iterable(combinations(of, size) for size in range(most + 1))


def _arrangement(of: Sequence[Any], size: int, u: float) -> list[Any]:
    """Some of the items in some order, by a uniform number: any arrangement alike.

    They are numbered as by `itertools.permutations`, which would list them all.
    """
    left, total = list(of), perm(len(of), size)
    number, found = min(int(u * total), total - 1), []
    for _ in range(size):
        total //= len(left)
        place, number = divmod(number, total)
        found.append(left.pop(place))
    return found


def goal_acts(goal: SlotFillingGoal) -> tuple[Act, Act]:
    """Constraints and requests of the user as acts."""
    wants = Act("inform", tuple([SlotValue(*pair) for pair in goal.constraints.items()]))
    return wants, Act("request", tuple([SlotValue(slot) for slot in goal.requests]))
