"""Summary acts: what the system can choose from, when, and which act each becomes.

A summary act is ``request_S``, ``confirm_S`` or ``select_S`` for each slot S that the system can
ask for, or one of seven others; as a setting ``confreq_S_R`` too, which takes the value of S as
understood and requests R. The rest follows from the belief. `Offers` makes the acts about rows of
the database.
"""

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from dialgym.language.acts import NULL, Act, SlotValue
from dialgym.tasks.bitsets import Found, first, indices
from dialgym.tasks.slot_filling.domain.database import MISSING, EntityDatabase
from dialgym.tasks.slot_filling.domain.ontology import DONTCARE, NAME, NONE, Ontology
from dialgym.tasks.slot_filling.settings import Masks, SystemSettings
from dialgym.tasks.slot_filling.summary import Summariser
from dialgym.tasks.slot_filling.types import Accepted, SlotFillingBelief, Summary

Generator = np.random.Generator
ASKS = ("request", "confirm", "select")
OTHERS = ("inform", "inform_byname", "inform_alternatives", "bye", "repeat", "reqmore", "restart")
CONFREQ, COUNT = "confreq", "count"
"""Act that takes a value as understood and requests a slot; its item that counts rows."""
NEVER = ("repeat", "restart")
"""Those that can never be chosen."""
DEFAULT, ALL_MASKED = SystemSettings(), Masks()


def act_names(ontology: Ontology) -> tuple[str, ...]:
    """The names of the summary acts in order: three of each slot to be asked for, seven others."""
    asks = [f"{ask}_{slot}" for slot in sorted(ontology.system_requestable) for ask in ASKS]
    return (*asks, *OTHERS)


class SummaryActs:
    """The summary acts of a domain.

    Args:
        summariser: the domain.
        masks: acts that rules restrict; ``repeat`` and ``restart`` can never be chosen.
        settings: numbers of slots.

    Raises:
        ValueError: two acts have one name.
    """

    def __init__(
        self, summariser: Summariser, masks: Masks = ALL_MASKED, settings: SystemSettings = DEFAULT
    ) -> None:
        self.summariser, self.masks, self.settings = summariser, masks, settings
        self._offers = Offers(summariser.database, settings.inform_slots)
        if len(self.number) < len(self.names):
            twice = next(name for i, name in enumerate(self.names) if self.number[name] != i)
            raise ValueError(
                f"confreq of SlotFilling: expected slots of {summariser.ontology.domain} whose "
                f"acts confreq_S_R have names of their own; got {twice!r} for two pairs of slots. "
                "Rename a slot, or leave confreq out."
            )

    @cached_property
    def names(self) -> tuple[str, ...]:
        """Their names in order, see `act_names`."""
        confreqs = [f"{CONFREQ}_{first}_{second}" for first, second in self._pairs]
        return (*act_names(self.summariser.ontology), *confreqs)

    @cached_property
    def _pairs(self) -> list[tuple[str, str]]:
        """Slots of each ``confreq_S_R``."""
        asked = self.summariser.asked
        pairs = [(first, second) for first in asked for second in asked if first != second]
        return pairs if self.settings.confreq else []

    @cached_property
    def number(self) -> dict[str, int]:
        """name -> index."""
        return {name: i for i, name in enumerate(self.names)}

    @cached_property
    def phrases(self) -> tuple[str, ...]:
        """Names of summary acts with their slot: ``request area``, ``inform``."""
        asks = [f"{ask} {slot}" for slot in self.summariser.asked for ask in ASKS]
        return (*asks, *OTHERS, *(f"{CONFREQ} {first} {second}" for first, second in self._pairs))

    @cached_property
    def by_phrase(self) -> dict[str, int]:
        """phrase -> index."""
        return {phrase: i for i, phrase in enumerate(self.phrases)}

    def mask(self, belief: SlotFillingBelief, summary: Summary) -> np.ndarray:
        """(3n+7,) bool: what can be chosen; never empty, as anything can be requested."""
        if not any(self.masks):
            return self.unmasked.copy()
        allowed: list[bool] = []
        for best in summary.best.values():
            allowed += (True, best.p > 0, best.p > 0 and best.second_p > 0)
        pairs = [summary.best[first].p > 0 for first, _ in self._pairs]
        return np.array([*allowed, *self.others(belief, summary), *pairs]) | self.unmasked

    def others(self, belief: SlotFillingBelief, summary: Summary) -> tuple[bool, ...]:
        """Which of `OTHERS` can be chosen."""
        known = belief.entity != ""
        return (
            summary.method == "byconstraints" and self._enough(summary),
            summary.method == "byname" and (known or summary.name is not None),
            belief.alternatives and known,
            summary.method == "finished",
            False,
            known,
            False,
        )

    @cached_property
    def unmasked(self) -> np.ndarray:
        """(3n+7,) bool: what no rule restricts."""
        return np.array([name not in NEVER and not self._masked(name) for name in self.names])

    def _masked(self, name: str) -> bool:
        """Return True if rules restrict an act."""
        if name.startswith("inform"):
            return self.masks.inform
        return self.masks.bye if name == "bye" else self.masks.request

    def _enough(self, summary: Summary) -> bool:
        accepted = summary.accepted
        if len(accepted) >= self.settings.inform_accepted:
            return True
        return not self.summariser.discriminable(self.summariser.found(accepted), accepted)

    def act(
        self, name: str, belief: SlotFillingBelief, summary: Summary, last: Act, rng: Generator
    ) -> Act:
        """The act that a summary act becomes; `last` is the system's last one."""
        if name == "inform":
            return self._inform(belief, summary, rng)
        if name == "inform_byname":
            return self._by_name(belief, summary, rng)
        if name == "inform_alternatives":
            found = self.summariser.found(summary.accepted)
            return self._offers.another(found, summary.accepted, belief.entities, rng)
        if name in OTHERS:
            return {"repeat": last, "restart": NULL}.get(name, Act(name))
        if self.number[name] >= len(self.names) - len(self._pairs):
            return self._confreq(*self._pairs[self.number[name] - len(self.names)], summary)
        ask, slot = name.split("_", 1)
        best = summary.best[slot]
        items: Sequence[SlotValue] = {
            "request": (SlotValue(slot),),
            "confirm": (SlotValue(slot, best.value),),
            "select": (SlotValue(slot, best.value), SlotValue(slot, best.second)),
        }[ask]
        return Act(ask, tuple(items))

    def _confreq(self, first: str, second: str, summary: Summary) -> Act:
        """Take a value as understood and request a slot, perhaps with the rows that are left."""
        items = [SlotValue(first, summary.best[first].value), SlotValue(second)]
        found = self.summariser.found(summary.accepted)
        if self.settings.venue_count and (count := found.bit_count()) > 1:
            told = [SlotValue(s, value) for s, value, _ in summary.accepted if s != first]
            items = [SlotValue(COUNT, str(count)), *told, *items]
        return Act(CONFREQ, tuple(items))

    def _inform(self, belief: SlotFillingBelief, summary: Summary, rng: Generator) -> Act:
        """The row offered last if it still fits, else the first that does."""
        database, accepted = self.summariser.database, summary.accepted
        found = self.summariser.found(accepted)
        if not found:
            return self._offers.nothing(accepted)
        again = found & database.bits(NAME, belief.entity) if belief.entity else 0
        return self._offers.offer(self._offers.pick(again or found, rng), accepted, rng)

    def _by_name(self, belief: SlotFillingBelief, summary: Summary, rng: Generator) -> Act:
        """Answer about the row that the user names, or the one offered last, or any."""
        name = summary.name or belief.entity or DONTCARE
        act = self._offers.details(name, summary.requested, rng)
        return act or Act("inform", (SlotValue(NAME, NONE), SlotValue(NAME, name)))


@dataclass(frozen=True)
class Offers:
    """Makes acts about the rows of a database.

    Attributes:
        database: the rows.
        most: slots that one act tells of.
    """

    database: EntityDatabase
    most: int = DEFAULT.inform_slots

    def pick(self, found: Found, rng: Generator) -> int:
        """The first of the rows, or any where none is ruled out."""
        if found == self.database.everything:
            return int(rng.random() * len(self.database))
        return first(found)

    def offer(self, row: int, accepted: Sequence[Accepted], rng: Generator) -> Act:
        """``inform(name="the nirala",food="indian")``: a row and its values of accepted slots."""
        cells = self.database.rows[row]
        slots = self._some([slot for slot, _, _ in accepted], rng)
        told = [SlotValue(s, cells[s]) for s in slots if cells[s] not in (MISSING, "")]
        return Act("inform", (SlotValue(NAME, cells[NAME]), *told))

    def nothing(self, accepted: Sequence[Accepted]) -> Act:
        """``inform(name="none",food="thai")``: no row has these values."""
        said = [SlotValue(slot, value) for slot, value, _ in accepted if value != DONTCARE]
        return Act("inform", (SlotValue(NAME, NONE), *said))

    def nothing_else(self, found: Found, accepted: Sequence[Accepted], rng: Generator) -> Act:
        """``inform(name="none",name!="the nirala",food="indian")``: no row but those found."""
        rows = self.database.rows
        names = dict.fromkeys(rows[row][NAME] for row in indices(found))
        slots = self._some([slot for slot, _, _ in accepted], rng)
        said = [SlotValue(slot, value) for slot, value, _ in accepted if slot in slots]
        return Act(
            "inform", (SlotValue(NAME, NONE), *(SlotValue(NAME, n, True) for n in names), *said)
        )

    def another(
        self, found: Found, accepted: Sequence[Accepted], known: Collection[str], rng: Generator
    ) -> Act:
        """An offer of a row that is not among the `known` names, or that there is no such row."""
        if not found:
            return self.nothing(accepted)
        fresh: Any = found
        for name in known:
            fresh &= ~self.database.bits(NAME, name) if name != DONTCARE else found
        if not fresh:
            return self.nothing_else(found, accepted, rng)
        if found == self.database.everything:
            return self.offer(self._any(fresh, rng), accepted, rng)
        return self.offer(first(fresh), accepted, rng)

    def _any(self, found: Found, rng: Generator) -> int:
        """Any of the rows, of which few are missing."""
        row = int(rng.random() * found.bit_count())
        for missing in indices(self.database.everything & ~found):
            row += missing <= row
        return row

    def details(self, name: str, requested: Sequence[str], rng: Generator) -> Act | None:
        """``inform(name="the nirala",phone="01223")``: what is asked for, or else anything.

        None if there is no such row.
        """
        found = self.database.bits(NAME, name)
        if not found:
            return None
        cells = self.database.rows[self.pick(found, rng)]
        others = [s for s in self.database.ontology.requestable if s != NAME]
        if not requested and others:
            requested = [others[int(rng.random() * len(others))]]
        told = [SlotValue(s, cells.get(s, NONE)) for s in self._some(requested, rng) if s != NAME]
        return Act("inform", (SlotValue(NAME, cells[NAME]), *told))

    def _some(self, slots: Sequence[str], rng: Generator) -> Sequence[str]:
        """All slots, or so many of them at random as one act tells of."""
        if len(slots) <= self.most:
            return slots
        chosen = set(rng.permutation(len(slots))[: self.most].tolist())
        return [slot for i, slot in enumerate(slots) if i in chosen]
