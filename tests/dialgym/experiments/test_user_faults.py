"""Faults of users in short dialogues: each is found where it shows, and in none that is near."""

import numpy as np
import pytest

from dialgym.experiments.user_faults import FAULTS, MANNERS, AuditedDialogue
from dialgym.language import Utterance
from dialgym.language.text import UNKNOWN
from dialgym.tasks.slot_filling import SlotFilling

GOAL = {"constraints": {"area": "north", "food": "thai"}, "requests": ["phone"]}
TASK = SlotFilling()
FIND = {fault.name: fault.find for fault in FAULTS}
HELLO, OFFER = "s hello()", 's inform(name="lunta",area="north",food="thai")'
TOLD = ['u inform(area="north")', "s request(food)", 'u inform(food="thai")', OFFER]
GREEK = OFFER.replace("thai", "greek")
PHONE = ["u request(phone)", 's inform(name="lunta",phone="0555 1")']
WHOLE = [HELLO, *TOLD, *PHONE, "u bye()"]


def dialogue(*lines, goal=True, understood=None) -> AuditedDialogue:
    """A dialogue of lines that begin with ``s`` or ``u``."""
    state = TASK.initial(np.random.default_rng(0), GOAL)
    speakers = {"s": "system", "u": "user"}
    state.heard_by_user = [Utterance(speakers[line[0]], line[2:]) for line in lines]
    talk = TASK.findings(state).talk
    known = [bool(reading.kinds) for reading in talk.readings]
    return AuditedDialogue(
        "policy", (0, 0), "user", (), state.heard_by_user,
        known if goal else [understood] * len(lines), talk if goal else None, True,
    )  # fmt: skip


def found(*lines, goal=True) -> dict[str, int]:
    """Places of all faults that are found."""
    one = dialogue(*lines, goal=goal)
    places = {fault.name: fault.find(one) for fault in FAULTS if goal or not fault.of_goal}
    return {name: place for name, place in places.items() if place is not None}


def test_a_dialogue_as_it_should_be_has_none():
    assert found(*WHOLE) == {}
    assert found(HELLO, "u I am fine, and you, my friend?", "s Good.", goal=False) == {}


@pytest.mark.parametrize(
    ("name", "lines", "place"),
    [
        ("invented value", [HELLO, 'u inform(area="south")'], 1),
        ("invented value", [HELLO, 'u inform(pricerange="cheap")'], 1),
        ("changed goal", [HELLO, *TOLD, 'u reqalts(food="greek")'], 5),
        ("changed goal", [HELLO, 's inform(name="none",area="north")',
                          'u inform(area="dontcare")'], 2),
        ("all told at once", [HELLO, "u hello()", HELLO,
                              'u request(area="north",food="thai",phone)'], 3),
        ("forgotten wish", [HELLO, 'u inform(area="north")', OFFER.replace(',food="thai"', ""),
                            *PHONE, "u bye()"], 5),
        ("forgotten wish", [HELLO, 'u inform(area="north")', "s request(food)",
                            'u inform(="dontcare")'], 3),
        ("forgotten request", [HELLO, *TOLD, "u bye()"], 5),
        ("early end", [HELLO, *TOLD, "u request(phone)", 's request(area)', "u bye()"], 7),
        ("late end", [*WHOLE[:-1], "u thankyou()", "s reqmore()", "u ack()", "s reqmore()",
                      "u negate()"], 11),
        ("accepts the wrong", [HELLO, 's confirm(area="south")', "u affirm()"], 2),
        ("accepts the wrong", [HELLO, GREEK, "u request(phone)"], 2),
        ("ends when asked for more", [HELLO, *TOLD, PHONE[0], "s reqmore()", "u bye()"], 7),
        ("restart", [HELLO, 'u inform(area="north",food="thai")', OFFER, "u request(phone)",
                     "s request(area)", 'u inform(area="north",food="thai")'], 5),
        ("role inversion", [HELLO, 'u select(area="north",area="south")'], 1),
        ("role inversion", [HELLO, "u How may I help you?"], 1),
        ("role inversion", [HELLO, "u I'm here to help with any project."], 1),
        ("role inversion", [OFFER, OFFER.replace("s ", "u ", 1)], 1),
        ("scratchpad", [HELLO, 'u My goal is to find it. inform(area="north")'], 1),
        ("repetition", [HELLO, "u ack()", HELLO, "u ack()", HELLO, "u ack()"], 5),
        ("foreign characters", [HELLO, f"u ack(){UNKNOWN}"], 1),
        ("not understood", [HELLO, "u blorp"], 1),
        ("silence", [HELLO, "u ", HELLO, "u ack()"], 1),
    ],
)  # fmt: skip
def test_a_fault_is_found_where_it_shows(name, lines, place):
    assert found(*lines).get(name) == place


@pytest.mark.parametrize(
    ("name", "lines"),
    [
        ("invented value", [HELLO, 'u inform(pricerange="dontcare")']),  # nothing is wished there
        ("invented value", [HELLO, 's confirm(area="south")', 'u deny(area="south",area="north")']),
        ("changed goal", [HELLO, *TOLD, 'u confirm(food="thai")']),
        ("all told at once", [HELLO, 'u inform(area="north",food="thai")']),
        ("forgotten wish", [HELLO, 'u inform(area="north")', "s request(pricerange)",
                            'u inform(="dontcare")', OFFER, *PHONE, "u bye()"]),  # offered by then
        ("forgotten request", [HELLO, *TOLD, "s bye()", "u bye()"]),  # not its own end
        ("early end", [HELLO, *TOLD, "u request(phone)", "s bye()", "u bye()"]),
        ("late end", [*WHOLE[:-1], "u thankyou()", "s reqmore()", "u ack()", HELLO, "u bye()"]),
        ("accepts the wrong", [HELLO, 's confirm(area="south")', 'u negate(area="north")']),
        ("accepts the wrong", [HELLO, GREEK, "u reqalts()"]),
        ("accepts the wrong", [HELLO, OFFER, 'u reqalts(food="greek")', GREEK, PHONE[0]]),
        ("ends when asked for more", [*WHOLE[:-1], "s reqmore()", "u bye()"]),
        ("restart", [HELLO, 'u inform(area="north",food="thai")', OFFER, "u request(phone)",
                     "s repeat()", 'u inform(area="north",food="thai")']),  # it was asked to
        ("role inversion", [HELLO, "u hello()"]),
        ("repetition", [HELLO, "u ack()", HELLO, "u hello()", HELLO, "u ack()", HELLO, "u ack()"]),
    ],
)  # fmt: skip
def test_what_is_nearly_a_fault_is_none(name, lines):
    assert name not in found(*lines)


def test_without_a_goal_words_alone_are_looked_at():
    lines = [HELLO, "u Hello, are you there?", HELLO, "u Yes.", HELLO, "u Hello, are you there?"]
    assert found(*lines, goal=False) == {"restart": 5}
    assert FIND["not understood"](dialogue(*lines, goal=False, understood=False)) == 1
    assert FIND["not understood"](dialogue(*lines, goal=False)) is None


def test_figures_of_manner():
    figures = {each.name: each.measure(dialogue(*WHOLE)) for each in MANNERS}
    assert (figures["wishes told"], figures["requests made"]) == (1, 1)
    assert (figures["utterances"], figures["words"]) == (4, (3 + 3 + 2 + 1) / 4)
    assert figures["distinct-1"] == pytest.approx(8 / 9)
    half = dialogue(HELLO, 'u inform(area="north",food="greek")')
    assert [each.measure(half) for each in MANNERS[:2]] == [0.5, 0]
    assert all(each.measure(dialogue("u ")) in (None, 0, 1) for each in MANNERS[2:])


def test_names_are_told_apart():
    names = [each.name for each in (*FAULTS, *MANNERS)]
    assert len({*names}) == len(names)
