"""English phrases for slots and values."""

import re
from collections.abc import Iterable, Iterator, Mapping

from dialgym.language.acts import SlotValue
from dialgym.language.text import article
from dialgym.tasks.slot_filling.domain.database import MISSING
from dialgym.tasks.slot_filling.domain.domain import Domain
from dialgym.tasks.slot_filling.domain.ontology import DONTCARE, NAME, NONE, TYPE, Ontology

LABELS: Mapping[str, tuple[str, ...]] = {
    "acceptscreditcards": ("credit cards",),
    "addr": ("address", "where is it", "where is that"),
    "allowedforkids": ("kids", "room for kids", "children", "kids allowed"),
    "area": ("area", "part of town"),
    "battery": ("battery life", "battery"),
    "batteryrating": ("battery rating",),
    "dimension": ("size", "dimension", "dimensions"),
    "dogsallowed": ("dogs", "room for dogs", "dogs allowed"),
    "driverange": ("drive range", "drive size"),
    "ecorating": ("eco rating",),
    "food": ("kind of food", "food", "cuisine"),
    "goodformeal": ("meal",),
    "graphadaptor": ("graphics adaptor",),
    "hasinternet": ("internet", "wifi"),
    "hasparking": ("parking", "car park"),
    "hdmi": ("number of HDMI ports", "hdmi ports", "hdmi"),
    "isforbusinesscomputing": ("business use", "business computing"),
    "near": ("neighbourhood",),
    "openhours": ("opening hours",),
    "phone": ("phone number", "phone", "telephone number", "telephone"),
    "placetostay": ("place to stay",),
    "postcode": ("postcode", "post code", "zip code"),
    "powerconsumption": ("power consumption",),
    "price": ("price",),
    "pricerange": ("price range", "prices", "price", "budget range"),
    "processorclass": ("processor class",),
    "screensize": ("screen size",),
    "screensizerange": ("screen size range",),
    "shopkind": ("kind of shop",),
    "signature": ("signature dish",),
    "stars": ("number of stars", "stars"),
    "sysmemory": ("memory",),
    "transport": ("transport hub", "transport"),
    "transtype": ("kind of transport",),
    "usb": ("number of USB ports", "usb ports", "usb"),
    "utility": ("category", "utility"),
    "weightrange": ("weight range",),
}
"""Names of slots and types, the usual one first; any other is called by its own name."""
PLURAL_LABELS = ("opening hours",)
FORMS: Mapping[str, str] = {
    "addr": "at {}",
    "area": "in {}",
    "battery": "with {} of battery life",
    "batteryrating": "with {article} {} battery rating",
    "description": "described as {}",
    "dimension": "measuring {}",
    "display": "with {article} {} display",
    "drive": "with {article} {} drive",
    "driverange": "with {article} {} drive range",
    "family": "of the {} family",
    "food": "with {} food",
    "goodformeal": "good for {}",
    "graphadaptor": "with {article} {} graphics adaptor",
    "hdmi": "with {} HDMI ports",
    "kind": "that is {article} {}",
    "name": "called {}",
    "near": "near {}",
    "openhours": "with these opening hours: {}",
    "platform": "running {}",
    "powerconsumption": "with a power consumption of {}",
    "price": "costing {}",
    "pricerange": "in the {} price range",
    "processor": "with {article} {} processor",
    "processorclass": "with {article} {} class processor",
    "resolution": "with a resolution of {}",
    "screensize": "with a screen size of {}",
    "screensizerange": "with {article} {} screen",
    "series": "of the {} series",
    "shopkind": "that is {article} {}",
    "stars": "with {} stars",
    "sysmemory": "with {} of memory",
    "transtype": "that is {article} {}",
    "usb": "with {} USB ports",
    "utility": "in the {} category",
    "warranty": "with {article} {} warranty",
    "weight": "weighing {}",
    "weightrange": "in the {} weight range",
}
"""A slot with a value, behind a noun; others are ``with the phone number 0555 385625``."""
OTHERWISE: Mapping[tuple[str, str], str] = {
    **{("area", one): "in the {}" for one in ("centre", "east", "north", "south", "west")},
    **{("area", one): "in the {}" for one in ("center", "middle of town", "town centre")},
    **{("kind", one): "for {}" for one in ("architecture", "boat hire", "entertainment")},
    **{("food", one): "with {}" for one in ("afternoon tea", "coffee and cake")},
    ("kind", "mutliple sports"): "for {}",
    ("hdmi", "1"): "with 1 HDMI port",
    ("pricerange", "free"): "that is free",
    ("stars", "1"): "with 1 star",
    ("usb", "1"): "with 1 USB port",
}
"""The same of single values."""
ANY: Mapping[str, str] = {
    "": "of any kind",
    "area": "in any area",
    "family": "of any family",
    "goodformeal": "good for any meal",
    "kind": "of any sort",
    "near": "in any neighbourhood",
    "platform": "on any platform",
    "price": "at any price",
    "pricerange": "in any price range",
    "screensizerange": "with any size of screen",
    "series": "of any series",
    "shopkind": "of any sort",
    "transtype": "of any sort",
    "utility": "in any category",
    "weightrange": "in any weight range",
}
"""That a slot does not matter; of others ``with any warranty``."""
YES_NO: Mapping[str, tuple[str, str, str]] = {
    "acceptscreditcards": (
        "that takes credit cards",
        "that does not take credit cards",
        "with or without credit cards",
    ),
    "allowedforkids": ("that allows kids", "that does not allow kids", "with or without kids"),
    "dogsallowed": ("that allows dogs", "that does not allow dogs", "with or without dogs"),
    "hasinternet": ("with internet", "without internet", "with or without internet"),
    "hasparking": ("with parking", "without parking", "with or without parking"),
    "isforbusinesscomputing": ("for business use", "not for business use", "for any use"),
}
"""A slot that is true, or not, or does not matter."""
SUBJECTS: Mapping[str, str] = {
    "with or": "is with or",
    "with ": "has ",
    "without ": "has no ",
    "that ": "",
    "costing ": "costs ",
    "measuring ": "measures ",
    "running ": "runs ",
    "weighing ": "weighs ",
}
"""Beginnings of a form behind a noun, and behind a subject; others have ``is`` before them."""
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
        self._clauses: dict[SlotValue, str] = {}

    @property
    def slots(self) -> Iterable[str]:
        """All slots, once."""
        return dict.fromkeys((*self.ontology.informable, *self.ontology.requestable))

    def label(self, slot: str) -> str:
        """The noun of a slot."""
        return LABELS.get(slot, (slot.replace("_", " "),))[0]

    def kind(self) -> str:
        """The noun of a row of the database."""
        return self.label(self.ontology.type)

    @property
    def a_row(self) -> str:
        """A row of the database, with its article."""
        return f"{article(self.kind())} {self.kind()}"

    def noun(self, slot: str) -> str:
        """A slot alone, as it is asked for."""
        return self.label(slot) if self.yes_no(slot) else f"the {self.label(slot)}"

    def yes_no(self, slot: str) -> bool:
        """Return True if a slot is true or false."""
        return slot in self.binary or slot in YES_NO

    def clause(self, item: SlotValue) -> str:
        """A slot with its value, as it is said behind a noun: ``with thai food``; or it alone."""
        found = self._clauses.get(item)
        if found is None:
            if len(self._clauses) >= REMEMBERED:
                self._clauses.clear()
            found = self._clauses[item] = self._clause(item)
        return found

    def _clause(self, item: SlotValue) -> str:
        slot, value, _ = item
        if value is None:
            return self.noun(slot)
        if slot == TYPE:
            return self.a_row
        if value in (MISSING, NONE):
            return f"with no {'known ' if value == MISSING else ''}{self.label(slot)}"
        if self.yes_no(slot) and value in (*_TRUTHS, DONTCARE):
            return self._truth(slot, value)
        if value == DONTCARE:
            return ANY.get(slot, f"with any {self.label(slot)}")
        form = OTHERWISE.get((slot, value)) or FORMS.get(slot, f"with the {self.label(slot)} {{}}")
        if slot == "food" and value.endswith("s") and not value.endswith("ss"):
            form = "with {}"  # burgers, tapas
        return _once(form.format(value, article=article(value)))

    def _truth(self, slot: str, value: str) -> str:
        label = self.label(slot)
        usual = (f"with {label}", f"without {label}", f"with or without {label}")
        return YES_NO.get(slot, usual)[(*_TRUTHS, DONTCARE).index(value)]

    def predicate(self, item: SlotValue) -> str:
        """A slot with its value, as it is said of a row: ``serves thai food``."""
        text = self.clause(item)
        if item.slot == "food" and item.value not in (MISSING, NONE, DONTCARE):
            return "serves " + text.removeprefix("with ")
        for before, instead in SUBJECTS.items():
            if text.startswith(before):
                return instead + text[len(before) :]
        return f"is {text}"

    def items(self, told: bool) -> Iterator[tuple[str, SlotValue]]:
        """Clauses and what they mean; also those of slots that one is only `told` of.

        Cells need not have a value that the ontology lists; who is told of it may object to it.
        """
        for slot, values in {"": (), **self._values(told)}.items():
            for value in (DONTCARE, *values):
                for said in (value, *SYNONYMS.get(value, ())):
                    yield self.clause(SlotValue(slot, said)), SlotValue(slot, value)
                    if told:
                        yield self.predicate(SlotValue(slot, said)), SlotValue(slot, value)

    def empty(self) -> Iterator[SlotValue]:
        """Items of all slots whose clauses are as long as any but for the value."""
        for slot in self.slots:
            yield from (SlotValue(slot, value) for value in ("", "0", DONTCARE, MISSING))

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


REMEMBERED = 1 << 14
"""Clauses that are kept; most dialogues say what others said."""
_TRUTHS = ("1", "0")
_TWICE = re.compile(r"\b(\w+) \1\b")


def _once(text: str) -> str:
    """No word twice in a row: ``with sea food`` of the food ``sea food``."""
    return _TWICE.sub(r"\1", text)
