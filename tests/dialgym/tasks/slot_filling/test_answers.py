"""Answers in slot filling: what the user was told counts for the row of which it was told."""

import json

import numpy as np
import pytest

from dialgym.tasks.base import SYSTEM
from dialgym.tasks.slot_filling import SlotFilling
from dialgym.tasks.slot_filling.rewards import succeeded
from tests.support.slot_domains import ASKED, REQUESTABLE, VALUES, row_of
from tests.support.slot_talk import DATABASE, Talk

OFFER = 'inform(name="venue 0",food="thai",area="north")'
PHONE, OTHER = (DATABASE.rows[row]["phone"] for row in (0, 1))
ANSWER = f'inform(name="venue 0",phone="{PHONE}")'
PART = 'inform(name="venue 0",food="thai",parking="{}")'
"""An offer that leaves out the area, which some users then ask about."""
ELSE = 'inform(name="none",name!="venue {}",food="thai",area="north",{})'
"""There is nothing else but that."""


def told(*texts, **chances):
    """A user that wants the phone of something Thai in the north, after acts of the system."""
    talk = Talk(**chances).agenda("bye()")
    talk.reply(*texts)
    return talk.me


@pytest.mark.parametrize(
    ("texts", "chances"),
    [
        ([OFFER, ANSWER], {}),
        # what was looked for, of a slot that the user has been told of, says nothing of a row
        ([PART.format(1), ELSE.format(0, 'parking="dontcare"'), ANSWER], {"confirm_unsaid": 1}),
        ([PART.format(1), ELSE.format(0, 'parking="1"'), ANSWER], {"confirm_unsaid": 1}),
    ],
)
def test_a_system_that_says_nothing_false_does_not_lose_by_its_answers(texts, chances):
    me = told(*texts, **chances)
    assert succeeded(me, DATABASE, checked=False)
    assert succeeded(me, DATABASE)


@pytest.mark.parametrize(("phone", "true"), [(PHONE, True), (OTHER, False)])
def test_an_answer_is_about_the_row_of_which_it_was_told(phone, true):
    """Not about the one that the user picks later, which has the other phone."""
    talk = Talk().agenda("bye()", 'inform(parking="dontcare")')
    talk.reply(OFFER, f'inform(name="venue 0",phone="{phone}")')
    talk.reply('inform(name="none",name!="venue 1",food="thai")')
    assert talk.me.requests == {"name": "venue 1", "phone": phone}
    assert succeeded(talk.me, DATABASE, checked=False)
    assert succeeded(talk.me, DATABASE) == true


@pytest.mark.parametrize(
    ("texts", "chances"),
    [
        ([OFFER, f'inform(name="venue 0",phone="{OTHER}")'], {}),
        ([OFFER, f'inform(phone="{OTHER}")'], {}),
        ([OFFER, 'inform(name="venue 0",phone="dontcare")'], {}),
        ([OFFER, ELSE.format(0, f'phone="{OTHER}"')], {}),
        ([OFFER, ELSE.format(0, 'phone="dontcare"')], {}),
        # before any row was named
        ([f'inform(phone="{OTHER}")', ELSE.format(0, 'parking="1"')], {}),
        # of a slot that the user did not ask for
        ([PART.format(0), ANSWER], {"confirm_unsaid": 1}),
        ([f'inform(name="dontcare",food="thai",area="north",phone="{PHONE}")'], {}),
    ],
)
def test_a_system_that_lies_loses_but_in_the_original(texts, chances):
    me = told(*texts, **chances)
    assert succeeded(me, DATABASE, checked=False)
    assert not succeeded(me, DATABASE)


def namesakes(folder):
    """The file of a domain in which each name is that of two rows."""
    cells = [
        {"food": food, "area": area, "parking": parking}
        for food in VALUES["food"] for area in VALUES["area"] for parking in VALUES["parking"]
    ]  # fmt: skip
    rows = [{**row_of(i, **row), "name": f"venue {i // 2}"} for i, row in enumerate(cells)]
    informable = {**VALUES, "name": sorted({row["name"] for row in rows})}
    rules = {"type": "restaurant", "requestable": REQUESTABLE, "system_requestable": ASKED}
    file = folder / "namesakes.yml"
    file.write_text(json.dumps({**rules, "informable": informable, "rows": rows}), "utf-8")
    return str(file)


@pytest.mark.parametrize("env", [1, 6])
@pytest.mark.parametrize("domain", ["SFRestaurants", "Laptops", "namesakes"])
@pytest.mark.parametrize("random", [0.0, 0.3])
@pytest.mark.parametrize("seeds", [range(30), pytest.param(range(30, 250), marks=pytest.mark.slow)])
def test_no_dialogue_is_lost_by_the_answers_of_a_scripted_system(
    domain, env, random, seeds, tmp_path
):
    """They are read from the rows: the original, which takes any answer, scores it alike."""
    task = SlotFilling(namesakes(tmp_path) if domain == "namesakes" else domain, env)
    speakers = [task.speaker_named(SYSTEM, name) for name in ("handcrafted", "random")]
    found = []
    for seed in seeds:
        rng = np.random.default_rng(seed)
        state = task.initial(rng)
        over = False
        while not over:
            speaker = speakers[int(rng.random() < random)]
            own = task.speaker(state) == SYSTEM
            text = speaker.reply(task, state, rng) if own else state.planned[0]
            outcome = task.speak(state, text, rng)
            over = outcome.terminated
        found.append(outcome.success)
        any_answer = succeeded(state.user_state, task.domain.database, checked=False)
        assert outcome.success == any_answer, f"seed {seed}: {state.user_state.requests}"
    assert sum(found) > 0.4 * len(found)
