"""Calls and English, as people write them, and dialogues with people."""

import numpy as np
import pytest

from dialgym.language.spelling import SpellingMender
from dialgym.tasks.service_desk import ServiceDesk
from dialgym.tasks.service_desk.desk_goals import goal_of
from dialgym.tasks.service_desk.domains import DOMAINS, NONE
from dialgym.tasks.service_desk.types import (
    ASK,
    ASK_NAME,
    ASK_WHICH,
    CHANGE,
    CLAIM,
    CODE,
    CONFIRM,
    DID,
    FAREWELL,
    LEAVE,
    MORE,
    NAMED,
    NO,
    PLEASE,
    REFUSE,
    SCREEN,
    TALK,
    TELL,
    USE,
    WANT,
    WHICH,
    WRITE,
    YES,
    DeskAct,
)

SHOP = ServiceDesk(language="english")
PHONE = ServiceDesk("phone", language="english")
RNG = np.random.default_rng(0)
WHICH_ORDER, CONFIRMS = DeskAct(ASK, ASK_WHICH), DeskAct(CONFIRM, 0, 35)
READ = DeskAct(PLEASE, 0)


@pytest.mark.parametrize(
    ("text", "act"),
    [
        ('cancel_order(order="45")', DeskAct(WRITE, 0, 35)),
        ("cancel_order(order='forty-five')", DeskAct(WRITE, 0, 35)),
        ("cancel_order( order = 045 ).", DeskAct(WRITE, 0, 35)),
        ('{"name": "cancel_order", "arguments": {"order": 45}}', DeskAct(WRITE, 0, 35)),
        ('{"name": "cancel_order", "arguments": "{\\"order\\": \\"45\\"}"}', DeskAct(WRITE, 0, 35)),
        ('exchange_order(order="45", colour="Blue")', DeskAct(WRITE, 2, 35, 1)),
        ('exchange_order(colour="blue", order="45")', DeskAct(WRITE, 2, 35, 1)),
        ("Should I cancel order 45?", DeskAct(CONFIRM, 0, 35)),
        ("The price of order forty-five is fifteen.", DeskAct(TELL, 0, 35, 1)),
        ("I'm afraid I cannot do this.", DeskAct(REFUSE)),
        ("Can I help you with anything else?", DeskAct(MORE)),
        ("the weather is nice", DeskAct()),
    ],
)
def test_what_a_desk_says_is_understood_by_rules(text, act):
    assert SHOP.reader.read("system", text) == act


@pytest.mark.parametrize(
    ("text", "act"),
    [
        ("I'd like to return my lamp", DeskAct(WANT, 1, NONE, NONE, 7)),
        ("Could you cancel order number 45, please?", DeskAct(WANT, 0, 35)),
        ("how much is the price of order 45?", DeskAct(WANT, 4, 35)),
        ("it's fifty-seven", DeskAct(CODE, value=47)),
    ],
)
def test_what_a_user_says_is_understood_by_rules(text, act):
    assert SHOP.reader.read("user", text) == act


@pytest.mark.parametrize(
    ("text", "last", "act"),
    [
        ("hi", MORE, DeskAct(TALK)),
        ("thx!", MORE, DeskAct(TALK)),
        ("i'd like to swap order 45", MORE, DeskAct(WANT, 2, 35)),
        ("i want 45 in red", MORE, DeskAct(WANT, 2, 35, 4)),
        ("can i get a refund for the lamp", MORE, DeskAct(WANT, 1, name=7)),
        ("I don't want the shirt any more", MORE, DeskAct(WANT, 0, name=10)),
        ("retrun the lamp", MORE, DeskAct(WANT, 1, name=7)),
        ("No, I want to cancel order 45", MORE, DeskAct(WANT, 0, 35)),
        ("How old is the lamp?", MORE, DeskAct(WANT, 5, name=7)),
        ("how much was order 45", MORE, DeskAct(WANT, 4, 35)),
        ("That's it, thank you", MORE, DeskAct(FAREWELL)),
        ("Yes, cancel it", CONFIRMS, DeskAct(YES)),
        ("no, order 46", CONFIRMS, DeskAct(WHICH, number=36)),
        ("don't cancel it", CONFIRMS, DeskAct(LEAVE)),
        ("I changed my mind", CONFIRMS, DeskAct(LEAVE)),
        ("I changed my mind, make it blue", CONFIRMS, DeskAct(CHANGE, 2, value=1)),
        ("no, gray please", CONFIRMS, DeskAct(CHANGE, 2, value=3)),
        ("45", WHICH_ORDER, DeskAct(WHICH, number=35)),
        ("send it to mill street", WHICH_ORDER, DeskAct(CHANGE, 7, value=7)),
        ("my code's forty-five", WHICH_ORDER, DeskAct(CODE, value=35)),
        ("My name is Bob Marley", DeskAct(ASK, ASK_NAME), DeskAct(NAMED)),
        ("but it was delivered", REFUSE, DeskAct(CLAIM, 3, value=2)),
        ("Are you sure? It was not on sale", REFUSE, DeskAct(CLAIM, 6, value=0)),
    ],
)
def test_what_a_customer_of_the_shop_says_is_understood(text, last, act):
    last = last if isinstance(last, DeskAct) else DeskAct(last)
    assert SHOP.reader.read("user", text, last) == act


@pytest.mark.parametrize(
    ("text", "last", "act"),
    [
        ("no bars", MORE, DeskAct(WANT, 6)),
        ("no bars", READ, DeskAct(SCREEN, value=0b010)),
        ("airplane mode is on, data off", READ, DeskAct(SCREEN, value=0b001)),
        ("It works now!", READ, DeskAct(SCREEN, value=0b110)),
        ("How much do I owe for line 45?", MORE, DeskAct(WANT, 4, 35)),
        ("when does the contract of my son run out", MORE, DeskAct(WANT, 5, name=9)),
        ("turn off airplane mode", READ, DeskAct(USE, 2)),
        ("i restarted it", READ, DeskAct(DID)),
        ("No, thanks", MORE, DeskAct(NO)),
    ],
)
def test_what_a_customer_with_a_telephone_says_is_understood(text, last, act):
    last = last if isinstance(last, DeskAct) else DeskAct(last)
    assert PHONE.reader.read("user", text, last) == act


@pytest.mark.parametrize("task", [SHOP, PHONE], ids=repr)
def test_every_example_of_a_brief_is_understood(task):
    for party in task.parties:
        brief = " ".join(task.conditions(party))
        for text in task.texts.examples(party):
            assert f'"{text}"' in brief
            assert task.reader.read(party, text).op != NONE, text


@pytest.mark.parametrize("task", [SHOP, PHONE], ids=repr)
def test_what_a_desk_says_of_what_it_has_heard_does_not_change_what_it_says(task):
    state, acts = task.initial(RNG, {"goal": 0}), task.acts["system"]
    for heard in (DeskAct(), DeskAct(CODE), DeskAct(NAMED), DeskAct(CLAIM, 3), DeskAct(TALK)):
        for found in (NONE, 0):
            state.heard, state.found = heard, found
            for code, allowed in enumerate(acts.allowed(state)):
                text = acts.text(state, code, RNG)
                assert not allowed or task.reader.read("system", text) == acts.act(state, code)


def held(task, goal, lines):
    """What the careful desk says to the lines of a person, and the state then."""
    state, desk = task.initial(RNG, {"goal": goal}), task.speaker_named("system", "careful")
    said = []
    for line in lines:
        task.speak(state, line, RNG)
        while not state.waiting and not state.over:
            text = desk.reply(task, state, RNG)
            said += [] if "(" in text else [text]
            task.speak(state, text, RNG)
    return said, state


def test_a_person_who_says_what_a_desk_cannot_use_is_told_so():
    goal = goal_of("shop", "train", 3)  # wants a vase cancelled, which is allowed
    assert goal.requests[0].kind == 0
    lines = ["hi", "what's new", "cancle the vase", "my name is anna adler", "olga moser"]
    lines += ["12", "61", "yes", "great", "no"]
    said, state = held(SHOP, 3, lines)
    assert said == [
        "How can I help you?",
        "I did not understand that. How can I help you?",
        "What is your name, please?",
        "I find nobody of that name. What is your name, please?",
        "What is your code, please?",
        "That code is not right. What is your code, please?",
        "Shall I cancel order 50?",
        "Is there anything else?",
        "Is there anything else?",
        "Goodbye.",
    ]
    assert SHOP.metrics(state)["database"] == SHOP.metrics(state)["policy"] == 1.0


def test_a_person_is_told_how_a_dialogue_was_judged():
    _, state = held(SHOP, 3, ["cancel the vase", "olga moser", "61", "no", "no"])
    assert SHOP.judgement(state) == ["The user wants the desk to cancel order 50: not met."]
    state.faults = 2
    assert SHOP.judgement(state)[1:] == ["Fault: something was changed without a yes to just that."]


def test_a_person_is_asked_for_what_a_wish_lacks():
    lines = ["can i swap something", "irene lopez", "66", "86", "white", "no", "return the vase"]
    said, _ = held(SHOP, 0, lines)
    assert said[2:] == [
        "Which order is it?",
        "Which colour shall it be?",
        "Shall I exchange order 86 for a white one?",
        "Is there anything else?",
        "I find no such order. Is there anything else?",
    ]


def test_rules_and_claims_are_english_sentences():
    lines = [
        line
        for domain in DOMAINS.values()
        for policy in range(len(domain.every))
        for line in domain.policy_lines(policy, english=True)
    ]
    assert "You may take back an order only if it is at most 14 days old." in lines
    assert not any("days is" in line or "overdue is" in line for line in lines)


def test_a_word_is_mended_if_it_is_a_slip_away():
    spelling = SpellingMender(["return", "order", "back", "older"])
    assert spelling.mend("retrun my oder, retun the odrer bak") == (
        "return my oder, return the order bak"
    )
    assert spelling.mend("older returns") == "older return"
