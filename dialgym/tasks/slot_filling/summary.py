"""The summary of a belief: best values, accepted slots, method, requests; the belief vector."""

from collections.abc import Hashable, Sequence
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np

from dialgym.tasks.bitsets import Found
from dialgym.tasks.slot_filling.domain.database import EntityDatabase
from dialgym.tasks.slot_filling.domain.ontology import DONTCARE, NAME, NONE, Ontology
from dialgym.tasks.slot_filling.tracker import INFORM_COUNTS, Layout
from dialgym.tasks.slot_filling.types import Accepted, SlotFillingBelief, Summary, TopValues
from dialgym.tasks.slot_filling.understanding import BY_METHOD, DISCOURSE, METHODS

REMEMBERED = 10_000
"""Sets of rows, and of constraints, of which is remembered what follows from them."""


class Thresholds(NamedTuple):
    """Probabilities above which a belief counts.

    Attributes:
        requested: of a slot that the user asks for.
        accepted: of a slot's value; None for that of chance, 1 / (n - 0.1) of n values.
        sure: of what else the user does, and of a goodbye or another beginning.
    """

    requested: float = 0.5
    accepted: float | None = None
    sure: float = 0.5


DEFAULT = Thresholds()


class Summariser:
    """Makes summaries, in the domain of a tracker.

    Args:
        layout: where a belief has what.
        database: the domain's rows.
        faulty: as the original, in which no method at all is never the most believed.
        limits: probabilities above which a belief counts.
    """

    def __init__(
        self,
        layout: Layout,
        database: EntityDatabase,
        faulty: bool,
        limits: Thresholds = DEFAULT,
    ) -> None:
        self.layout, self.database, self.faulty, self.limits = layout, database, faulty, limits
        self._known: dict[tuple[Hashable, tuple[str, ...]], bool] = {}
        self._counted: dict[tuple[tuple[str, str], ...], list[bool]] = {}

    def __reduce__(self) -> tuple[Any, ...]:
        made_of = self.layout, self.database, self.faulty, self.limits
        return Summariser, made_of  # without what it remembers

    @cached_property
    def ontology(self) -> Ontology:
        return self.layout.ontology

    @cached_property
    def asked(self) -> tuple[str, ...]:
        """The slots that the system can ask for, alphabetical."""
        return tuple(sorted(self.ontology.system_requestable))

    @cached_property
    def thresholds(self) -> list[tuple[str, int, float]]:
        """Of each its number, and what a value must be believed at least."""
        sizes = {slot: len(values) for slot, values in self.ontology.informable.items()}
        least = self.limits.accepted
        chance = {slot: 1 / (sizes[slot] - 0.1) for slot in self.asked}
        found = chance if least is None else dict.fromkeys(self.asked, least)
        return [(slot, self.layout.number[slot], found[slot]) for slot in self.asked]

    @cached_property
    def _slot_of(self) -> list[int]:
        return self.layout.slot_of.tolist()

    @cached_property
    def _unknown(self) -> list[TopValues]:
        """Of each slot, what is best while nothing is believed."""
        lists = [(*values, DONTCARE) for values in self.ontology.informable.values()]
        return [TopValues(values[0], 0.0, values[1], 0.0) for values in lists]

    def summarise(self, belief: SlotFillingBelief) -> Summary:
        """The summary of a belief."""
        best, none = self._best(belief.goals)
        accepted = [
            Accepted(slot, best[i].value, best[i].p)
            for slot, i, threshold in self.thresholds
            if best[i].p >= none[i] and best[i].p > threshold
        ]
        name = self.layout.number[NAME]
        known = best[name].p >= none[name]
        return Summary(
            {slot: best[i] for slot, i, _ in self.thresholds},
            tuple(accepted),
            best[name].value if known else None,
            best[name].p if known else none[name],
            self.method(belief.methods.tolist()),
            self.discourse(belief.discourse.tolist()),
            tuple(
                [
                    self.ontology.requestable[i]
                    for i in _above(belief.requested, self.limits.requested)
                ]
            ),
        )

    def _best(self, goals: np.ndarray) -> tuple[list[TopValues], list[float]]:
        """Of each slot its best values, and the belief in none of them."""
        none = goals[self.layout.nones].tolist()
        best = self._unknown.copy()
        places = np.flatnonzero(goals)
        texts, slots = self.layout.texts, self._slot_of
        for place, p in zip(places.tolist(), goals[places].tolist()):
            value = texts[place]
            if value is None:
                continue
            slot = slots[place]
            first = best[slot]
            if p > first.p:
                best[slot] = TopValues(value, p, first.value, first.p)
            elif p > first.second_p:
                best[slot] = TopValues(first.value, first.p, value, p)
        return [_two(b, u) if b.value == b.second else b for b, u in zip(best, self._unknown)], none

    def discourse(self, p: Sequence[float]) -> str:
        """Discourse acts of the user, by the belief in each of `DISCOURSE`."""
        top = max(range(len(p)), key=p.__getitem__)
        return DISCOURSE[top] if p[top] > self.limits.sure else NONE

    def method(self, p: list[float]) -> str:
        """Search method of the user, by the belief in each of `METHODS`."""
        if self.faulty:
            p = p.copy()
            p[BY_METHOD[NONE]] = 1.0 - sum(p)
        top = max(range(len(p)), key=p.__getitem__)
        name = METHODS[top]
        if name in ("byalternatives", "byname") or (
            name in ("finished", "restart") and p[top] > self.limits.sure
        ):
            return name
        return "byconstraints"

    def found(self, accepted: Sequence[Accepted]) -> Any:
        """The set of rows that have the accepted values; see `EntityDatabase`."""
        return self.database.match_bits({slot: value for slot, value, _ in accepted})

    def discriminable(self, found: Found, accepted: Sequence[Accepted]) -> bool:
        """Return True if asking on could tell the rows `found` apart."""
        free = tuple([slot for slot, value, _ in accepted if value == DONTCARE])
        return self._differ(found, free)

    def _differ(self, found: Found, free: tuple[str, ...]) -> bool:
        """`EntityDatabase.discriminable`, remembered."""
        key = found if isinstance(found, int) else found.key, free
        known = self._known.get(key)
        if known is None:
            if len(self._known) >= REMEMBERED:
                self._known.clear()
            known = self._known[key] = self.database.discriminable(found, free)
        return known

    def best_supported(self, summary: Summary, count: int) -> list[Accepted]:
        """The `count` accepted slots that are believed most."""
        return sorted(summary.accepted, key=lambda accepted: -accepted.p)[:count]

    def vector(self, belief: SlotFillingBelief, summary: Summary) -> np.ndarray:
        """(belief_size,) float32: goals, methods, discourse, requests, flags, inform counts.

        The last are, for each k from 1 to 5, whether the k most believed accepted slots leave no
        row, one, two to four, or more, and whether asking on could tell these apart.
        """
        flags = self.flags(belief, summary)
        return np.concatenate(
            (belief.goals, belief.methods, belief.discourse[:-1], belief.requested, flags)
        ).astype(np.float32)

    def flags(self, belief: SlotFillingBelief, summary: Summary) -> list[bool]:
        """The last 27 entries of the vector, each 0 or 1: two flags, and the inform counts."""
        ranked = tuple([(a.slot, a.value) for a in self.best_supported(summary, INFORM_COUNTS)])
        counts = self._counted.get(ranked)
        if counts is None:
            if len(self._counted) >= REMEMBERED:
                self._counted.clear()
            counts = self._counted[ranked] = self._counts(ranked)
        return [belief.told_none, belief.offered, *counts]

    def _counts(self, ranked: tuple[tuple[str, str], ...]) -> list[bool]:
        found, free = self.database.everything, tuple[str, ...]()
        counts: list[bool] = []
        for k in range(INFORM_COUNTS):
            if k < len(ranked):
                slot, value = ranked[k]
                found &= self.database.bits(slot, value)
                free += (slot,) if value == DONTCARE else ()
            if k < max(len(ranked), 1):
                n = found.bit_count()
                more = n > 1 and self._differ(found, free)
                block = [n == 0, n == 1, 2 <= n <= 4, n > 4, more]
            counts += block
        return counts


def _two(best: TopValues, unknown: TopValues) -> TopValues:
    """With another second value than the first."""
    other = unknown.second if best.value == unknown.value else unknown.value
    return best._replace(second=other, second_p=0.0)


def _above(p: np.ndarray, threshold: float) -> list[int]:
    return [i for i, value in enumerate(p.tolist()) if value > threshold]
