"""The names of slots: one to one, and all that the vocabularies of the corpus use."""

import pytest

from dialgym.tasks.multiwoz.data import load_world
from dialgym.tasks.multiwoz.ontology import (
    BOOKABLE,
    DOMAINS,
    INFORMABLE,
    REQUESTABLE,
    SHORT_NAMES,
    SLOT_NAMES,
    act_domain,
)


def test_short_names_are_one_to_one():
    for domain, slots in SLOT_NAMES.items():
        assert {name: short for short, name in slots.items()} == SHORT_NAMES[domain.lower()]
        assert len(set(slots.values())) == len(slots)


def test_each_slot_of_a_domain_has_a_short_name():
    for domain in DOMAINS:
        slots = {*INFORMABLE[domain], *BOOKABLE[domain], *REQUESTABLE[domain]}
        assert slots <= set(SLOT_NAMES[act_domain(domain)].values())


def test_24_slots_can_be_constrained():
    assert sum(map(len, INFORMABLE.values())) == 24


def test_the_built_in_goal_model_asks_for_what_can_be_asked_for():
    for domain, model in load_world("built-in").goal_model.domains.items():
        assert {slot for slot, _ in model.requests} <= set(REQUESTABLE[domain])
        assert set(model.probability) <= set(INFORMABLE[domain])
        assert {slot for slot, _, _ in model.bookings} in (set(), set(BOOKABLE[domain]))


@pytest.mark.parametrize("party", ["sys", "usr"])
def test_the_acts_of_the_corpus_are_known(party, real_file):
    path = real_file("multiwoz21_convlab", f"{party}_da_voc.txt")
    for line in path.read_text("utf-8").split():
        domain, intent, slot, _ = line.split("-")
        if domain == "general" or slot == "none":
            continue
        assert slot in SLOT_NAMES[domain], line
        if party == "usr" and intent == "Request":
            assert SLOT_NAMES[domain][slot] in REQUESTABLE[domain.lower()], line
        if party == "usr" and intent == "Inform" and domain != "Police":
            name, low = SLOT_NAMES[domain][slot], domain.lower()
            assert name in INFORMABLE[low] + BOOKABLE[low], line
