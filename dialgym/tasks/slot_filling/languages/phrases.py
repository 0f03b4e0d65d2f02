"""English phrases for slots and values."""

from collections.abc import Iterable, Iterator, Mapping

from dialgym.domains.database import MISSING
from dialgym.domains.domain import Domain
from dialgym.domains.ontology import DONTCARE, NAME, NONE, TYPE, Ontology
from dialgym.language.acts import Item

LABELS: Mapping[str, tuple[str, ...]] = {
    "acceptscreditcards": ("credit cards",),
    "addr": ("address", "where is it", "where is that"),
    "allowedforkids": ("room for kids", "kids", "children", "kids allowed"),
    "area": ("area", "part of town"),
    "batteryrating": ("battery rating",),
    "dogsallowed": ("room for dogs", "dogs", "dogs allowed"),
    "driverange": ("drive range", "drive size"),
    "ecorating": ("eco rating",),
    "food": ("food", "cuisine"),
    "goodformeal": ("meal",),
    "graphadaptor": ("graphics adaptor",),
    "hasinternet": ("internet", "wifi"),
    "hasparking": ("parking", "car park"),
    "hdmi": ("hdmi ports", "hdmi"),
    "isforbusinesscomputing": ("business use", "business computing"),
    "near": ("neighbourhood",),
    "openhours": ("opening hours",),
    "phone": ("phone number", "phone", "telephone number", "telephone"),
    "placetostay": ("place to stay",),
    "postcode": ("post code", "zip code"),
    "powerconsumption": ("power consumption",),
    "price": ("price",),
    "pricerange": ("price range", "prices", "price", "budget range"),
    "processorclass": ("processor class",),
    "screensize": ("screen size",),
    "screensizerange": ("screen size range",),
    "shopkind": ("kind of shop",),
    "signature": ("signature dish",),
    "sysmemory": ("memory",),
    "transtype": ("kind of transport",),
    "usb": ("usb ports", "usb"),
    "weightrange": ("weight range",),
}
"""Names of slots and types, the usual one first; any other is called by its own name."""
FORMS: Mapping[str, str] = {
    "area": "the {} area",
    "food": "{} food",
    "goodformeal": "good for {}",
    "hdmi": "{} hdmi ports",
    "name": "called {}",
    "near": "somewhere near {}",
    "pricerange": "{} prices",
    "stars": "{} stars",
    "usb": "{} usb ports",
}
"""A slot with a value; others are the label and the value."""
SYNONYMS: Mapping[str, tuple[str, ...]] = {
    "centre": ("center", "middle of town", "town centre"),
    "cheap": ("inexpensive", "low cost"),
    "expensive": ("pricey", "upmarket"),
    "heavy": ("heavyweight",),
    "light weight": ("light", "lightweight"),
    "mid weight": ("mid-weight", "midweight"),
    "moderate": ("moderately priced", "mid-priced", "mid-range"),
}
"""Other words for values."""


class Phrases:
    """The phrases of a domain."""

    def __init__(self, domain: Domain) -> None:
        self.ontology: Ontology = domain.ontology
        self._domain = domain
        self.binary = frozenset(self.ontology.binary)

    @property
    def slots(self) -> Iterable[str]:
        """All slots, once."""
        return dict.fromkeys((*self.ontology.informable, *self.ontology.requestable))

    def label(self, slot: str) -> str:
        """What a slot is called."""
        return LABELS.get(slot, (slot.replace("_", " "),))[0]

    def kind(self) -> str:
        """What a row of the database is called."""
        return self.label(self.ontology.type)

    def clause(self, item: Item) -> str:
        """A slot with its value, ``thai food``, or the slot alone."""
        slot, value, _ = item
        if value is None:
            return f"the {self.label(slot)}"
        if slot == TYPE:
            return f"a {self.kind()}"
        if value == DONTCARE:
            return f"any {self.label(slot)}" if slot else "anything"
        if slot in self.binary and value in ("0", "1"):
            return f"{'with' if value == '1' else 'without'} {self.label(slot)}"
        return FORMS.get(slot, self.label(slot) + " {}").format(value)

    def items(self, told: bool) -> Iterator[tuple[str, Item]]:
        """Clauses and what they mean; also those of slots that one is only `told` of.

        Cells need not have a value that the ontology lists; who is told of it may object to it.
        """
        for slot in self.slots:
            yield self.clause(Item(slot, DONTCARE)), Item(slot, DONTCARE)
        for slot, values in self._values(told).items():
            for value in values:
                yield self.clause(Item(slot, value)), Item(slot, value)
                for other in SYNONYMS.get(value, ()):
                    yield self.clause(Item(slot, other)), Item(slot, value)

    def _values(self, told: bool) -> Mapping[str, Iterable[str]]:
        values = {slot: dict.fromkeys(own) for slot, own in self.ontology.informable.items()}
        for slot in self.slots if told else self.ontology.informable:
            cells = (row[slot] for row in self._domain.database.rows if slot in row)
            more = dict.fromkeys((*cells, MISSING, NONE))
            values[slot] = {**values.get(slot, {}), **more}
        return values

    def bare(self) -> Iterator[tuple[str, str, str]]:
        """Words for values without their slots; the value, and the slot."""
        for slot, values in self.ontology.informable.items():
            for value in () if slot in self.binary else values:
                yield value, slot, value
                for other in SYNONYMS.get(value, ()):
                    yield other, slot, value
                if slot == NAME and value.startswith("the "):
                    yield value.removeprefix("the "), slot, value

    def labels(self) -> Iterator[tuple[str, str]]:
        """Words for slots, and the slot."""
        for slot in self.slots:
            yield slot, slot
        for slot in self.slots:
            for label in LABELS.get(slot, (slot.replace("_", " "),)):
                yield label, slot
