"""Acts of multi-domain dialogues, sensible and not, for hypothesis."""

from hypothesis import strategies as st

from dialgym.tasks.multiwoz.ontology import SLOT_NAMES
from dialgym.tasks.multiwoz.types import Acts, DialogueAct

DOMAINS = (*SLOT_NAMES, "general", "", "hotel", "Spaceship")
INTENTS = ("Inform", "Request", "Recommend", "Select", "NoOffer", "NoBook", "Book", "OfferBook",
           "OfferBooked", "bye", "thank", "greet", "reqmore", "", "Ponder")  # fmt: skip
SLOTS = (
    *sorted({s for slots in SLOT_NAMES.values() for s in slots}),
    "none",
    "",
    "Mood",
    "NotBook",
)
VALUES = ("?", "none", "dontcare", "", "north", "centre", "cheap", "yes", "no", "monday", "09:15",
          "25:99", ":", "2", "0", "zero", "1", "00000000", "00000003", "99999999", "cambridge",
          "tr0001", "01223000000", "cb11aa", "5 pounds", "the same", "é🙂")  # fmt: skip


def acts_of_anyone() -> st.SearchStrategy[Acts]:
    """Utterances of up to five acts of any intent, domain, slot and value."""
    parts = (INTENTS, DOMAINS, SLOTS, VALUES)
    act = st.builds(DialogueAct, *[st.sampled_from(part) for part in parts])
    return st.lists(act, max_size=5).map(tuple)
