"""MultiWOZEnglish of multi-domain dialogues: templates both ways, and people's own words."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dialgym.tasks.multiwoz import MultiWOZ
from dialgym.tasks.multiwoz.data import load_world
from dialgym.tasks.multiwoz.entries import REQUEST, SYSTEM_ENTRIES
from dialgym.tasks.multiwoz.languages import MultiWOZEnglish
from dialgym.tasks.multiwoz.languages.sentences import values_of_slots
from dialgym.tasks.multiwoz.notation import print_acts, read_acts
from dialgym.tasks.multiwoz.party_acts import USER_SAID
from dialgym.tasks.multiwoz.types import ASKED, NONE, DialogueAct

ENGLISH = MultiWOZEnglish(load_world("built-in"))
KNOWN = values_of_slots(ENGLISH.world)
ENTRIES = {"system": SYSTEM_ENTRIES, "user": USER_SAID}
ODD = ("dontcare", NONE, ASKED, "any", 'a "b" c', "one, and more. ", "back\\slash")


def values(entry) -> tuple[str, ...]:
    """Some values for an act: known ones, and odd ones."""
    if entry.intent == REQUEST:
        return (ASKED,)
    if entry.slot in (NONE, "NotBook"):
        return (NONE,)
    return (*sorted(KNOWN.get(entry.slot, ()))[::40], *ODD)


@pytest.mark.parametrize("party", ["system", "user"])
def test_every_act_comes_back_from_its_sentence(party):
    rng, own = np.random.default_rng(0), 0
    for entry in ENTRIES[party]:
        for value in values(entry):
            acts = (DialogueAct(entry.intent, entry.domain, entry.slot, value),)
            text = ENGLISH.say(acts, party, rng)
            assert ENGLISH.understand(text, party) == acts, text
            own += read_acts(text) is None
    assert own == sum(len(values(entry)) for entry in ENTRIES[party])


@given(st.data(), st.sampled_from(["system", "user"]), st.integers(0, 99))
def test_several_acts_come_back_in_their_order(data, party, seed):
    entries = data.draw(st.lists(st.sampled_from(ENTRIES[party]), min_size=1, max_size=5))
    acts = tuple(
        DialogueAct(e.intent, e.domain, e.slot, data.draw(st.sampled_from(values(e))))
        for e in entries
    )
    text = ENGLISH.say(acts, party, np.random.default_rng(seed))
    assert ENGLISH.understand(text, party) == acts


@given(st.text())
def test_any_text_is_understood_somehow(text):
    for party in ENTRIES:
        acts = ENGLISH.understand(text, party)
        assert acts is None or all(isinstance(act, DialogueAct) for act in acts)


def test_what_has_no_words_is_said_in_notation():
    acts = (DialogueAct("Sing", "Moon", "Song", "x"),)
    assert ENGLISH.say(acts, "user", np.random.default_rng(0)) == print_acts(acts)


@pytest.mark.parametrize(
    ("party", "text", "acts"),
    [
        ("user", "Hi, I'm looking for a cheap hotel in the north with free parking",
         'Hotel-Inform(Price="cheap",Area="north",Parking="yes")'),
        ("user", "what's the phone number of the hotel?", "Hotel-Request(Phone)"),
        ("user", "book a table for four people at 18:30 on saturday",
         'Restaurant-Inform(People="4",Time="18:30",Day="saturday")'),
        ("user", "any train on friday arriving by 9:15 please",
         'Train-Inform(Day="friday",Arrive="09:15")'),
        ("user", "I need a taxi", "Taxi-Inform()"),
        ("user", "Thanks, bye!", "general-bye()"),
        ("user", "no, thank you", "general-thank()"),
        ("system", "Sorry, there is no such restaurant in the west.",
         'Restaurant-NoOffer(Area="west")'),
        ("system", "Which part of town would you like the hotel in?", "Hotel-Request(Area)"),
        ("system", "It is booked, your reference is 00000012.",
         'Booking-Book(Ref="00000012")'),
    ],
)  # fmt: skip
def test_peoples_own_words_are_looked_through(party, text, acts):
    assert ENGLISH.understand(text, party) == read_acts(acts)


def test_what_names_no_domain_is_about_the_one_talked_about():
    task, rng = MultiWOZ(language="english"), np.random.default_rng(0)
    state = task.initial(rng, {"domains": ["restaurant"]})
    task.speak(state, "I want a restaurant in the centre", rng)
    task.speak(state, "Do you have a price range in mind?", rng)
    assert state.dialogue.belief.system_acts == read_acts("Restaurant-Request(Price)")
    task.speak(state, "moderate, and I need a table on friday at 12:15", rng)
    believed = state.dialogue.belief.constraints["restaurant"]
    assert believed == {"area": "centre", "pricerange": "moderate", "day": "friday",
                        "time": "12:15"}  # fmt: skip


def test_the_rule_system_serves_the_agenda_user_in_english():
    from tests.dialgym.tasks.multiwoz.test_task import play

    task = MultiWOZ(language="english")
    assert all(play(task, seed)[1].success for seed in range(20))
