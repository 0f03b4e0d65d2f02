"""The grammar of all sentences that templates make of all values, in MultiWOZ and slot filling."""

import re
from collections.abc import Iterator

import numpy as np
import pytest

from dialgym.language.text import article
from dialgym.tasks.multiwoz.agenda import NOT_BOOK
from dialgym.tasks.multiwoz.data import load_world
from dialgym.tasks.multiwoz.entries import REQUEST, SYSTEM_ENTRIES, Entry
from dialgym.tasks.multiwoz.languages import MultiWOZEnglish as MultiWOZEnglish
from dialgym.tasks.multiwoz.languages.sentences import values_of_slots
from dialgym.tasks.multiwoz.ontology import BOOKING, SLOT_NAMES
from dialgym.tasks.multiwoz.party_acts import USER_SAID
from dialgym.tasks.multiwoz.slot_values import slot_values
from dialgym.tasks.multiwoz.types import ASKED, NONE, Acts, DialogueAct
from dialgym.tasks.slot_filling.domain.domain import load_domain
from dialgym.tasks.slot_filling.languages import SlotFillingEnglish as SlotEnglish
from tests.support.by_day import by_day
from tests.support.slot_acts import BUILT_IN, REAL, system_acts, user_acts

SEEDS = 3
WRONG = {
    "no capital at the beginning": r"^[^A-Z0-9(]",
    "no mark at the end": r"[^.?)]$",
    "two marks": r"[.?!,]{2}|[ (][.,?]",
    "two spaces": r"  |^ | $",
    "two articles": r"(?i)\b(a|an|the) (a|an|the)\b",
    "an article that does not suit": r"\ba (?!and\b|or\b|one\b|european)([aeio]|8|11\b|18\b)"
    r"|\ban ([bcdgjkpqtvwyz]|[fhlmnrsux]\w|[1-79](?![18]\b)\d?\b)",
    "one of several": r"\b1 (stars|people|nights|\w+ ports|places|choices|\w+s to choose)",
    "several of one": r"\b([02-9]|\d\d+) (star|person|night|\w+ port)\b",
    "a price that is no price": r"\bof (free|unknown|none|dontcare|not available)\b|free price",
    "a word for no value": r"\bdontcare\b|\b(is|has|serves|costs|at) (none|not available)\b",
    "a duration for a time": r"\b(at|time|after|by) \d+ (minutes|hours)\b",
    "a verb without an object": r"\b(want|have|find|need|like|prefer|nothing besides) "
    r"(with|without|in|near|called|of|at|that|for|good|running|costing)\b",
    "a noun behind a noun": r"\b(nothing|something|one|others|else|restaurant|hotel|laptop) the\b",
    "a clause alone": r"^(No|Yes),( and)? (called|the|that (?!is right|is wrong))\b"
    r"|\bbut (called|with|in|the|that)\b"
    r"|^(Called|That (?!is all|is booked))\b[^?]*\.$",
    "a plural that is one": r"\bothers? that (is|does|has|takes|allows)\b"
    r"|\b[Ww]hat is [^?]* and the ",
    "a word twice": r"(?i)\b([a-z]+) \1\b",
    "a question of truth": r"\b[Ww]hat (is|are) (the )?(internet|parking|wifi|kids|dogs)",
}
"""By name: what no sentence has."""


def faults(text: str, values: tuple[str, ...]) -> list[str]:
    """Faults of a sentence, but for those that a value brings along."""
    own = "\n".join(values)
    return [
        f"{name}: {text}"
        for name, pattern in WRONG.items()
        if any(m.group().lower() not in own for m in re.finditer(pattern, text))
    ]


def test_the_rules_find_what_they_are_for():
    for text in (
        "i want one.", "Hello", "It is there..", "I want  one.", "The the one.", "Is it a audi?",
        "Is it an car?", "With 1 stars.", "There is 1 night for 2 person.", "With a fee of free.",
        "It is none.", "At the time 28 minutes.", "I have nothing the south area.",
        "No, called the noriwick anchor.", "I want with business use.", "That is a cinema, please.",
        "Are there others that is a bank?", "What is the phone number and the address?",
        "What is the internet?", "With sea food food.",
    ):  # fmt: skip
        assert faults(text, ()), text


@pytest.mark.parametrize(
    ("noun", "expected"),
    [("audi", "an"), ("cab", "a"), ("european", "a"), ("university", "a"), ("8 gb drive", "an"),
     ("80 gb", "an"), ("11 inch", "an"), ("1 tb", "a"), ("110", "a"), ("hour", "an"),
     ("hotel", "a"), ("a+ rating", "an"), ("b rating", "a"), ("usb port", "a"), ("one", "a"),
     ("estate", "an")],
)  # fmt: skip
def test_articles(noun, expected):
    assert article(noun) == expected


# ---------------------------------------------------------------------- slot filling


@pytest.mark.parametrize("name", by_day(BUILT_IN, *sorted(BUILT_IN)[::5]))
def test_slot_filling(name):
    check_domain(load_domain(name))


@pytest.mark.slow
@pytest.mark.parametrize("name", REAL)
def test_slot_filling_in_real_domains(name, data):
    """Texts of their own in cells are not ours to mend."""
    check_domain(load_domain(data / "pydial" / name), longest=30)


def check_domain(domain, longest: int = 100):
    language, rng = SlotEnglish(domain, 6), np.random.default_rng(0)
    wrong: list[str] = []
    for party, acts in (("user", user_acts(domain)), ("system", system_acts(domain))):
        for act in acts:
            values = tuple(str(item.value) for item in act.items)
            if max(map(len, values), default=0) <= longest:
                texts = {language.say(act, party, rng) for _ in range(SEEDS)}
                wrong += [fault for text in texts for fault in faults(text, values)]
    assert not wrong, "\n".join(wrong[:20])


# ---------------------------------------------------------------------- MultiWOZ

MULTIWOZ = MultiWOZEnglish(load_world("built-in"))
KNOWN = values_of_slots(MULTIWOZ.world)


def values_of(entry: Entry) -> tuple[str, ...]:
    """The values that an act can have in dialogues of the simulated parties."""
    domain, intent, short, _ = entry
    if intent == REQUEST:
        return (ASKED,)
    if short in (NONE, NOT_BOOK):
        return (NONE,)
    if short == "Choice":
        return ("any",) if entry in USER_SAID else ("1", "2", "44")
    if domain == BOOKING:
        own = tuple(KNOWN[short]) if short != "Time" else ("12:15",)
    else:
        own = slot_values(MULTIWOZ.world, domain.lower(), SLOT_NAMES[domain][short])
    numbers = {
        "Ref": ("00000012",),
        "Phone": ("01223365454",),
        "Car": MULTIWOZ.world.database.taxis.types,
    }
    return (*own, *numbers.get(short, ()), *(("dontcare",) if entry in USER_SAID else ()))


def utterances(entries, every: int) -> Iterator[Acts]:
    """Each act with some values, alone and after one that names its domain; and all at once."""
    together: dict[tuple[str, str], list[DialogueAct]] = {}
    for entry in entries:
        domain, intent, slot, _ = entry
        acts = [DialogueAct(intent, domain, slot, value) for value in values_of(entry)]
        together.setdefault((domain, intent), []).append(acts[0])
        for act in (*acts[::every], acts[-1]):
            yield (act,)
            if slot != NONE and intent != REQUEST and domain not in (BOOKING, "general"):
                yield (DialogueAct(intent, domain), act)
    for acts in together.values():
        yield tuple(acts)


@pytest.mark.parametrize(("party", "entries"), [("system", SYSTEM_ENTRIES), ("user", USER_SAID)])
@pytest.mark.parametrize("every", [24, pytest.param(1, marks=pytest.mark.slow)])
def test_multiwoz(party, entries, every):
    rng, wrong = np.random.default_rng(0), []
    for acts in utterances(entries, every):
        values = tuple(act.value for act in acts)
        text = MULTIWOZ.say(acts, party, rng)
        assert '="' not in text, text  # the notation
        for sentence in re.split(r"(?<=[.?]) (?=[A-Z])", text):
            wrong += faults(sentence, values)
    assert not wrong, "\n".join(wrong[:20])


def test_multiwoz_times_are_facts_of_the_system_and_limits_of_the_user():
    rng = np.random.default_rng(0)
    for intent, party, leave, arrive in (
        ("Inform", "system", "leaves at", "arrives at"),
        ("Inform", "user", "leaving after", "arriving by"),
        ("NoOffer", "system", "leaving after", "arriving by"),
        ("OfferBook", "system", "leaving at or after", "arriving at or before"),
        ("OfferBooked", "system", "leaving at", "arriving at"),
        ("Recommend", "system", "leaving at", "arriving at"),
    ):
        for slot, words in (("Leave", leave), ("Arrive", arrive)):
            acts = (DialogueAct(intent, "Train", slot, "05:24"),)
            assert f"{words} 05:24" in MULTIWOZ.say(acts, party, rng)
    told = MULTIWOZ.say((DialogueAct("Inform", "Train", "Time", "51 minutes"),), "system", rng)
    assert told == "The train takes 51 minutes."


def test_multiwoz_a_domain_is_named_once_in_a_turn():
    rng, about = np.random.default_rng(0), DialogueAct("Inform", "Restaurant")
    acts = (about, about._replace(slot="Area", value="north"))
    for _ in range(20):
        text = MULTIWOZ.say(acts, "user", rng)
        assert text.count("restaurant") == text.count(".") == 1
        assert MULTIWOZ.understand(text, "user") == acts
        assert MULTIWOZ.understand(MULTIWOZ.say(acts[1:], "user", rng), "user") == acts[1:]
