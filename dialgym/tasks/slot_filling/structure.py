"""Layout of the belief vector; see `BeliefStructure` and `Summariser.vector`."""

from collections.abc import Iterator, Sequence
from itertools import accumulate, pairwise

import numpy as np

from dialgym.tasks.acts import BeliefStructure, SlotBelief
from dialgym.tasks.slot_filling.domain.database import EntityDatabase
from dialgym.tasks.slot_filling.summary import Summariser
from dialgym.tasks.slot_filling.summary_acts import ASKS
from dialgym.tasks.slot_filling.tracker import INFORM_COUNTS, Layout
from dialgym.tasks.slot_filling.understanding import DISCOURSE, METHODS


def belief_structure(summariser: Summariser, names: Sequence[str]) -> BeliefStructure:
    """The structure of a domain's belief vector; `names` are those of the summary acts.

    Blocks: ``methods`` and ``discourse`` have the order of `METHODS` and `DISCOURSE` (the last of
    which is left out), ``requested`` that of the requestable slots; ``offer`` is whether the last
    act was that there is nothing, and whether it was an offer; ``counts`` are five numbers for each
    of the five most believed slots.
    """
    layout = summariser.layout
    blocks = dict(_blocks(layout))
    first = blocks["requested"][0]
    requests = {slot: first + i for slot, i in layout.request.items()}
    slots = tuple(_slots(layout, summariser.database, names, requests))
    about = {act for slot in slots for act in slot.acts.values()}
    general = {name: i for i, name in enumerate(names) if i not in about}
    return BeliefStructure(
        layout.ontology.domain, layout.vector_size, len(names), slots, blocks, requests, general
    )


def _blocks(layout: Layout) -> Iterator[tuple[str, tuple[int, int]]]:
    """Entries that follow the slots."""
    sizes = {
        "methods": len(METHODS),
        "discourse": len(DISCOURSE) - 1,
        "requested": len(layout.request),
        "offer": 2,
        "counts": 5 * INFORM_COUNTS,
    }
    bounds = accumulate(sizes.values(), initial=int(layout.sizes.sum()))
    return zip(sizes, pairwise(bounds))


def _slots(
    layout: Layout, database: EntityDatabase, names: Sequence[str], requests: dict[str, int]
) -> Iterator[SlotBelief]:
    number = {name: i for i, name in enumerate(names)}
    asked = layout.ontology.system_requestable
    for slot, start, size in zip(layout.slots, layout.starts.tolist(), layout.sizes.tolist()):
        kinds = ASKS if slot in asked else ()
        yield SlotBelief(
            name=slot,
            start=start,
            stop=start + size,
            none=start + size - 2,
            dontcare=start + size - 1,
            values=size - 2,
            entropy=_evenness(database, slot, size - 2),
            acts={kind: number[f"{kind}_{slot}"] for kind in kinds},
            requested=requests.get(slot),
        )


def _evenness(database: EntityDatabase, slot: str, values: int) -> float:
    """The entropy of a column, in units of the greatest that so many values can have."""
    if values < 2:
        return 0.0
    return min(database.entropy(slot) / float(np.log(values)), 1.0)
