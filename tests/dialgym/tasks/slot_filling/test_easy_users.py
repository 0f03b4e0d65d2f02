"""Users that are easy to game: each has its weakness, and is the agenda user beside that."""

import numpy as np
import pytest

from dialgym.language.acts import parse_act
from dialgym.tasks.slot_filling import SlotFilling
from dialgym.tasks.slot_filling.domain.ontology import NAME

ROW, *_, MEANT = SlotFilling().domain.database.rows
WISHES = {slot: MEANT[slot] for slot in ("area", "food")}
GOAL = {"constraints": WISHES, "requests": ["phone"]}
OFFER = f'inform(name="{ROW[NAME]}",food="{ROW["food"]}")'


def talk(name, *system, language="acts"):
    """Texts of a user, by turns, and the state at the end; the agenda's own beside each."""
    task, rng = SlotFilling(language=language), np.random.default_rng(0)
    user, state, said = task.speaker_named("user", name), task.initial(rng, GOAL), []
    for text in (None, *system):
        if text is not None:
            task.speak(state, text, rng)
        planned = state.planned[0]
        said.append((user.reply(task, state, rng), planned))
        task.speak(state, said[-1][0], rng)
    return task, said


def act(said):
    return parse_act(said[0]).type


def test_the_accepting_user_takes_any_row_when_it_knows_what_it_wants():
    phone = f'inform(name="{ROW[NAME]}",phone="0555 1")'
    _, said = talk("accepting", "request(area)", OFFER, phone)
    assert [own == planned for own, planned in said[:2]] == [True, True]
    assert [said[2][0], said[3][0]] == ["request(phone)", "bye()"]


def test_the_accepting_user_takes_no_row_that_is_none():
    _, said = talk("accepting", 'inform(name="none",food="thai")')
    assert said[1][0] == said[1][1]


@pytest.mark.parametrize(
    ("text", "language"),
    [
        ("reqmore()", "acts"),
        ("thankyou()", "acts"),
        ("Can I help you with anything else?", "english"),
        ("Thank you for calling.", "english"),
    ],
)
def test_the_hasty_user_leaves_when_it_is_thanked_or_asked_for_more(text, language):
    task, said = talk("hasty", "request(area)", text, language=language)
    assert said[1][0] == said[1][1]
    assert task.language.understand(said[2][0], "user").type == "bye"


def test_the_telling_user_begins_with_a_row_of_its_goal_and_takes_no_other():
    task, said = talk("telling")
    told = parse_act(said[0][0])
    [row] = [row for row in task.domain.database.rows if row[NAME] == told.value(NAME)]
    assert {slot: row[slot] for slot in WISHES} == WISHES
    _, said = talk("telling", OFFER, f'inform(name="{row[NAME]}",food="thai")')
    assert said[1][0] == said[1][1]
    assert said[2][0] == "request(phone)"
