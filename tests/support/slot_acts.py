"""The acts that the two parties of a domain can mean to say."""

from collections.abc import Iterator
from itertools import pairwise

import numpy as np

from dialgym.language.acts import Act, SlotValue
from dialgym.tasks.slot_filling.domain.database import MISSING
from dialgym.tasks.slot_filling.domain.domain import COUNTERPARTS, Domain
from dialgym.tasks.slot_filling.domain.ontology import DONTCARE, NAME

BUILT_IN = tuple(COUNTERPARTS.values())
REAL = ("CamRestaurants", "SFRestaurants", "Laptops11", "CamHotels", "CamAttractions", "CamShops",
        "CamTransport")  # fmt: skip
ANY = SlotValue("", DONTCARE)
NOTHING = SlotValue(NAME, "none")
PLAIN = ("hello", "bye", "affirm", "negate", "reqalts", "thankyou", "ack", "repeat", "silence",
         "restart")  # fmt: skip
TELLING = ("inform", "affirm", "negate", "confirm", "reqalts", "hello")


def user_acts(domain: Domain, seed: int = 0) -> Iterator[Act]:
    """Every act of one item and every pair with another that the agenda makes; others at random."""
    ontology = domain.ontology
    kind = SlotValue("type", ontology.type)
    yield from map(Act, PLAIN)
    yield from (Act("inform", (kind,)), Act("inform", (ANY,)), Act("hello", (kind,)))
    for slot, values in ontology.informable.items():
        for value in (*values, DONTCARE):
            item = SlotValue(slot, value)
            yield from (Act(type, (item,)) for type in TELLING)
            yield from (Act("inform", (other, item)) for other in (kind, ANY))
        for wrong, right in pairwise((*values, DONTCARE)):
            yield Act("deny", (SlotValue(slot, wrong), SlotValue(slot, right)))
        yield Act("deny", (SlotValue(slot, MISSING), SlotValue(slot, values[0])))
    asked = [SlotValue(slot) for slot in ontology.requestable]
    for name in ontology.informable[NAME]:
        yield Act("request", (SlotValue(NAME, name), asked[-1]))
        yield Act("request", (asked[-1], SlotValue(NAME, name)))
    yield from (Act("request", (item,)) for item in asked)
    yield from _several(domain, asked, np.random.default_rng(seed))


def _several(domain: Domain, asked: list[SlotValue], rng: np.random.Generator) -> Iterator[Act]:
    informable = domain.ontology.informable
    for _ in range(100):
        slots = rng.permutation(list(informable))[: rng.integers(2, 5)].tolist()
        told = [SlotValue(s, str(rng.choice((*informable[s], DONTCARE)))) for s in slots]
        yield Act(str(rng.choice(("inform", "hello", "affirm"))), tuple(told))
        yield Act("request", tuple(asked[i] for i in rng.permutation(len(asked))[:3]))


def system_acts(domain: Domain) -> Iterator[Act]:
    """Every question, every row with each of its cells and with several, and that there is none."""
    ontology, asked = domain.ontology, domain.ontology.system_requestable
    yield from map(Act, ("hello", "bye", "reqmore", "repeat"))
    for slot in asked:
        values = (*ontology.informable[slot], DONTCARE)
        yield Act("request", (SlotValue(slot),))
        yield from (Act("confirm", (SlotValue(slot, value),)) for value in values)
        yield from (
            Act("select", (SlotValue(slot, a), SlotValue(slot, b))) for a, b in pairwise(values)
        )
    for row in domain.database.rows:
        name = SlotValue(NAME, row[NAME])
        cells = [SlotValue(s, row.get(s, "none")) for s in ontology.requestable if s != NAME]
        yield from (Act("inform", (name, cell)) for cell in cells)
        yield Act("inform", (name, *cells[:5]))
        wanted = [SlotValue(s, row[s]) for s in asked if row[s] in ontology.index[s]]
        yield Act("inform", (NOTHING, *wanted[:5]))
    yield from (Act("inform", (NOTHING,)), Act("inform", (NOTHING, name)))
    for names in pairwise(ontology.informable[NAME]):
        excepted = [SlotValue(NAME, name, True) for name in names]
        yield Act("inform", (NOTHING, *excepted, *wanted[:1]))
