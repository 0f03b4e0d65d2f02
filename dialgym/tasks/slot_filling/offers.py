"""The system's acts about rows: an offer, details, or that there is nothing."""

from collections.abc import Collection, Sequence
from dataclasses import dataclass

import numpy as np

from dialgym.language.acts import Act, Item
from dialgym.tasks.slot_filling.database import MISSING, Database, first, indices
from dialgym.tasks.slot_filling.ontology import DONTCARE, NAME, NONE
from dialgym.tasks.slot_filling.types import Accepted

Generator = np.random.Generator
MOST = 5
"""Slots that one act tells of."""


@dataclass(frozen=True)
class Offers:
    """Makes acts about the rows of a database.

    Attributes:
        database: the rows.
    """

    database: Database

    def pick(self, found: int, rng: Generator) -> int:
        """The first of the rows, or any where none is ruled out."""
        if found == self.database.everything:
            return int(rng.random() * len(self.database))
        return first(found)

    def offer(self, row: int, accepted: Sequence[Accepted], rng: Generator) -> Act:
        """``inform(name="the nirala",food="indian")``: a row and its values of accepted slots."""
        cells = self.database.rows[row]
        slots = _some([slot for slot, _, _ in accepted], rng)
        told = [Item(s, cells[s]) for s in slots if cells[s] not in (MISSING, "")]
        return Act("inform", (Item(NAME, cells[NAME]), *told))

    def nothing(self, accepted: Sequence[Accepted]) -> Act:
        """``inform(name="none",food="thai")``: no row has these values."""
        said = [Item(slot, value) for slot, value, _ in accepted if value != DONTCARE]
        return Act("inform", (Item(NAME, NONE), *said))

    def nothing_else(self, found: int, accepted: Sequence[Accepted], rng: Generator) -> Act:
        """``inform(name="none",name!="the nirala",food="indian")``: no row but those found."""
        rows = self.database.rows
        names = dict.fromkeys(rows[row][NAME] for row in indices(found))
        slots = _some([slot for slot, _, _ in accepted], rng)
        said = [Item(slot, value) for slot, value, _ in accepted if slot in slots]
        return Act("inform", (Item(NAME, NONE), *(Item(NAME, n, True) for n in names), *said))

    def another(
        self, found: int, accepted: Sequence[Accepted], known: Collection[str], rng: Generator
    ) -> Act:
        """An offer of a row that is not among the `known` names, or that there is no such row."""
        if not found:
            return self.nothing(accepted)
        rows = self.database.rows
        if found == self.database.everything:
            fresh = [i for i, row in enumerate(rows) if row[NAME] not in known]
            fresh = [fresh[int(rng.random() * len(fresh))]] if fresh else []
        else:
            fresh = [i for i in indices(found) if rows[i][NAME] not in known][:1]
        if fresh:
            return self.offer(fresh[0], accepted, rng)
        return self.nothing_else(found, accepted, rng)

    def details(self, name: str, requested: Sequence[str], rng: Generator) -> Act | None:
        """``inform(name="the nirala",phone="01223")``: what is asked for, or else anything.

        None if there is no such row.
        """
        found = self.database.bits(NAME, name)
        if not found:
            return None
        cells = self.database.rows[self.pick(found, rng)]
        if not requested:
            others = [s for s in self.database.ontology.requestable if s != NAME]
            requested = [others[int(rng.random() * len(others))]]
        told = [Item(s, cells.get(s, NONE)) for s in _some(requested, rng) if s != NAME]
        return Act("inform", (Item(NAME, cells[NAME]), *told))


def _some(slots: Sequence[str], rng: Generator) -> Sequence[str]:
    """All slots, or five of them at random."""
    if len(slots) <= MOST:
        return slots
    chosen = set(rng.permutation(len(slots))[:MOST].tolist())
    return [slot for i, slot in enumerate(slots) if i in chosen]
