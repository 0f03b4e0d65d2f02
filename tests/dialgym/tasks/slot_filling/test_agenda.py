"""The simulated user, reaction by reaction."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dialgym.language.acts import parse_act
from dialgym.tasks.slot_filling.domain.goals import GoalGenerator
from dialgym.tasks.slot_filling.user.grounding import fits
from dialgym.tasks.slot_filling.user.reactions import REACTIONS
from dialgym.tasks.slot_filling.user.state import STANDARD, UNFRIENDLY, SlotUserBehaviour
from dialgym.tasks.slot_filling.user.user import SlotFillingUser
from tests.support.slot_talk import DATABASE, NEVER, Talk

OFFER = 'inform(name="venue 0",food="thai",area="north")'
NOTHING = 'inform(name="none",food="thai",area="north")'


# agenda and answer


def test_it_opens_with_the_type_and_then_tells_its_constraints():
    talk = Talk()
    assert talk.reply("hello()") == 'inform(type="restaurant")'
    assert talk.reply("reqmore()") == 'inform(food="thai")'
    assert talk.reply("reqmore()") == 'inform(area="north")'


def test_it_may_greet_and_say_all_at_once():
    talk = Talk(greet=1, combine_informs=1)
    assert talk.reply("hello()") == 'hello(type="restaurant",food="thai",area="north")'


def test_it_tells_nothing_twice():
    talk = Talk().agenda(
        "bye()", 'inform(food="thai")', 'confirm(food="thai")', 'inform(food="thai")'
    )
    assert talk.reply("hello()") == 'inform(food="thai")'
    assert talk.me.agenda == [parse_act("bye()")]


def test_it_leaves_when_there_is_nothing_more_to_say():
    talk = Talk().agenda()
    assert talk.reply("hello()") == "bye()"


def test_a_bye_is_answered_by_a_bye():
    assert Talk().reply("hello()", "bye()") == "bye()"


@pytest.mark.parametrize("patience", [2, 4])
def test_patience_goes_with_each_repeated_act_and_is_not_restored(patience):
    talk = Talk(patience=patience)
    talk.reply("hello()", "request(food)")
    for _ in range(patience - 1):
        assert talk.reply("request(food)") == 'inform(food="thai")'
    assert talk.me.patience == 1
    assert talk.reply("request(food)") == "bye()"


def test_the_same_items_in_another_order_are_a_repetition():
    talk = Talk()
    talk.reply('inform(name="venue 0",food="thai")', 'inform(food="thai",name="venue 0")')
    assert talk.me.patience == 3


def test_what_it_does_not_understand_costs_patience_and_it_says_it_again():
    talk = Talk()
    assert talk.reply("hello()", "null()") == 'inform(type="restaurant")'
    assert talk.me.patience == 3
    assert talk.reply("repeat()") == 'inform(type="restaurant")'
    assert talk.me.patience == 3


# request


def test_a_request_is_answered_from_the_agenda_first():
    talk = Talk()
    assert talk.reply("hello()", "request(area)") == 'inform(area="north")'
    assert [act.items[0].slot for act in talk.me.agenda if act.items] == ["food"]


def test_then_from_the_goal():
    assert Talk().agenda("bye()").reply("request(area)") == 'inform(area="north")'


def test_what_does_not_matter_to_the_goal_is_dontcare_from_now_on():
    talk = Talk()
    assert talk.reply("hello()", "request(parking)") == 'inform(parking="dontcare")'
    assert talk.goal[-1] == ("parking", "dontcare")
    answer = talk.reply('inform(name="none",parking="1")')  # dontcare it has been
    assert answer in ('reqalts(parking="0")', 'reqalts(parking="1")')


def test_or_another_constraint_is_repeated():
    talk = Talk(repeat_constraint=1)
    assert talk.reply("request(parking)") in ('inform(food="thai")', 'inform(area="north")')
    assert len(talk.goal) == 2


def test_or_it_says_dontcare_without_meaning_it():
    talk = Talk(no_preference=1)
    assert talk.reply("request(parking)") == 'inform(="dontcare")'
    assert len(talk.goal) == 2


def test_dontcare_may_go_without_its_slot_after_a_request():
    talk = Talk([("food", "dontcare")], omit_slot=1)
    assert talk.reply("hello()", "request(food)") == 'inform(="dontcare")'
    other = Talk([("food", "dontcare")], omit_slot=1)
    assert other.reply("hello()", 'confirm(area="north")') != 'inform(="dontcare")'


def test_or_a_selection():
    talk = Talk([("food", "dontcare")], omit_slot=1)
    assert talk.reply("hello()", 'select(food="thai",food="greek")') == 'inform(="dontcare")'


def test_it_does_not_ask_for_a_name():
    assert Talk().agenda("request(name,phone)").reply("hello()") == "inform(phone)"


def test_a_request_is_answered_by_one_while_something_is_still_to_be_told():
    talk = Talk(requests=("phone", "addr"))
    talk.me.requests.update(name="venue 0")
    assert talk.reply("request(area)") == 'request(name="venue 0",phone)'


def test_what_only_the_user_asks_for_cannot_be_asked_of_it():
    assert Talk().reply("request(phone)") == "negate()"


def test_the_type_can_be_asked_for():
    assert Talk().agenda("bye()").reply("request(type)") == 'inform(type="restaurant")'


# confirm and select


def test_what_is_right_is_affirmed():
    assert Talk().agenda("bye()").reply('confirm(food="thai")') == "affirm()"


def test_a_question_is_not_answered_by_another():
    assert Talk(confirm_unsaid=1).agenda("bye()").reply('confirm(food="thai")') == "affirm()"


def test_a_misunderstanding_makes_answers_void():
    talk = Talk().agenda("bye()")
    talk.reply(OFFER, 'inform(name="venue 0",phone="1")')
    talk.agenda("bye()").reply('confirm(food="greek")')
    assert talk.me.requests == {"name": None, "phone": None}


@pytest.mark.parametrize(
    ("constraint", "said", "good"),
    [
        ('food="x"', 'food="x"', True),
        ('food="x"', 'food="y"', False),
        ('food="dontcare"', 'food="x"', True),
        ('food="x"', 'food="dontcare"', False),
        ('food="dontcare"', 'food="dontcare"', True),
        ('food="x"', 'food!="x"', False),
        ('food="x"', 'food!="y"', True),
        ('food="dontcare"', 'food!="x"', False),
        ('food!="x"', 'food="x"', False),
        ('food!="x"', 'food="y"', True),
        ('food!="x"', 'food="dontcare"', False),
        ('food!="x"', 'food!="x"', True),
        ('food!="x"', 'food!="y"', True),
        ('food="x"', 'area="y"', True),
    ],
)
def test_what_is_said_fits_a_constraint_if_it_is_as_special(constraint, said, good):
    one, other = (parse_act(f"inform({text})").items[0] for text in (constraint, said))
    assert fits(one, other) is good


def test_an_affirm_may_go_with_what_comes_next():
    talk = Talk(combine_affirm=1).agenda("bye()", 'inform(area="north")')
    assert talk.reply('confirm(food="thai")') == 'affirm(area="north")'
    talk = Talk(combine_affirm=1).agenda("bye()")
    assert talk.reply('confirm(food="thai")') == "affirm()"
    assert talk.me.agenda == [parse_act("bye()")]


def test_what_does_not_matter_is_negated():
    assert Talk().agenda().reply('confirm(parking="dontcare")') == "affirm()"
    assert Talk().reply('confirm(parking="1")') == 'negate(parking="dontcare")'
    assert Talk([("food", "dontcare")]).agenda().reply('confirm(food="thai")') == "affirm()"


@pytest.mark.parametrize(
    ("chances", "answer"),
    [
        ({}, 'inform(food="thai")'),
        ({"correct_by_negate": 1}, 'negate(food="thai")'),
        ({"correct_by_deny": 1}, 'deny(food="greek",food="thai")'),
        ({"overrule_correction": 1}, 'confirm(area="north")'),
    ],
)
def test_what_is_wrong_is_corrected(chances, answer):
    talk = Talk([("area", "north"), ("food", "thai")], **chances)
    if "overrule_correction" in chances:  # what the system has not spoken of, food among it
        assert talk.reply('confirm(food="greek")') in (answer, 'confirm(food="thai")')
    else:
        assert talk.reply('confirm(food="greek")') == answer


def test_dontcare_is_not_right_where_something_is_wanted():
    assert Talk().reply('confirm(food="dontcare")') == 'inform(food="thai")'


def test_it_hangs_up_the_sooner_the_less_patience_is_left():
    left = dict.fromkeys((1, 2, 3), 0)
    for patience in left:
        for seed in range(400):
            talk = Talk(seed=seed)
            talk.me.patience = patience
            left[patience] += talk.reply('confirm(food="greek")') == "bye()"
    shares = {patience: count / 400 for patience, count in left.items()}
    expected = {patience: (1 - patience / 4) ** 2 for patience in left}
    assert shares == pytest.approx(expected, abs=0.07)
    assert all(Talk(seed=s).reply('confirm(food="greek")') != "bye()" for s in range(50))


def test_of_two_values_it_selects_the_right_one():
    talk = Talk().agenda("bye()")
    assert talk.reply('select(food="greek",food="thai")') == 'inform(food="thai")'
    assert talk.reply('select(parking="0",parking="1")') == 'inform(parking="dontcare")'
    assert talk.goal[-1] == ("parking", "dontcare")


# reqmore


def test_reqmore_waits_for_the_agenda():
    talk = Talk(affirm_with_agenda=1).agenda("bye()", 'inform(area="north")')
    assert talk.reply("reqmore()") == 'affirm(area="north")'


def test_reqmore_is_not_answered_by_a_yes_before_anything_was_said():
    assert Talk(affirm_with_agenda=1).reply("reqmore()") == 'inform(type="restaurant")'


@pytest.mark.parametrize(("chance", "answer"), [(1, "negate()"), (0, "bye()")])
def test_reqmore_when_all_is_done(chance, answer):
    talk = Talk(requests=(), no_more=chance).agenda("bye()")
    talk.me.requests["name"] = "venue 0"
    assert talk.reply("reqmore()") == answer


def test_reqmore_brings_open_requests():
    talk = Talk(requests=("phone", "addr")).agenda("bye()")
    talk.me.requests["name"] = "venue 0"
    assert talk.reply("reqmore()") == "request(addr)"


@pytest.mark.parametrize(
    ("chance", "answer"),
    [(1, "affirm()"), (0, 'inform(type="restaurant",food="thai")')],
)
def test_reqmore_before_an_offer(chance, answer):
    talk = Talk([("food", "thai"), ("area", "dontcare")], yes_more=chance).agenda("bye()")
    assert talk.reply("reqmore()") == answer


def test_it_leaves_rather_than_answer_once_it_has_all_and_nothing_to_say():
    talk = Talk(requests=()).agenda()
    talk.me.requests["name"] = "venue 0"
    answers = []
    for _ in range(300):
        talk.agenda()
        talk.me.patience = 4
        answers.append(talk.reply("hello()", "request(food)") == "bye()")
    assert np.mean(answers) == pytest.approx(0.85, abs=0.07)
    for seed in range(20):
        talk = Talk(requests=(), no_more=1, seed=seed).agenda()
        talk.me.requests["name"] = "venue 0"
        assert talk.reply("reqmore()") == "negate()"


# all together


def test_every_chance_is_drawn_from_its_range():
    rng = np.random.default_rng(0)
    for ranges in (STANDARD, UNFRIENDLY):
        drawn = [SlotUserBehaviour(ranges).draw(rng) for _ in range(300)]
        for name, (low, high) in ranges.items():
            values = [chances[name] for chances, _ in drawn]
            assert low <= min(values) < low + 0.1 * (high - low) + 1e-9
            assert high - 0.1 * (high - low) - 1e-9 < max(values) <= high
        assert {patience for _, patience in drawn} == {4, 5}
    assert {k for k in STANDARD if STANDARD[k] != UNFRIENDLY[k]} == {
        "greet", "combine_informs", "combine_affirm", "relax", "tell_change",
    }  # fmt: skip
    assert NEVER.keys() == STANDARD.keys()


ACTS = st.sampled_from(
    ["hello()", "bye()", "null()", "repeat()", "reqmore()", "request(food)", "request(parking)",
     "request()", "select()", "confirm()", "inform()", 'confirm(food="greek",area="north")',
     'confirm(parking="1")', 'select(food="thai",food="cafe")', "request(phone)", "inform(phone)",
     OFFER, NOTHING, 'inform(name="venue 4",phone="x",area="south")', 'inform(food="greek")',
     'inform(name="none",name!="venue 0",name!="venue 1",food="thai",area="dontcare")']
)  # fmt: skip


@given(st.lists(ACTS, max_size=25), st.integers(0, 10_000))
@settings(max_examples=100)
def test_whatever_the_system_says_it_has_an_answer_and_a_sound_mind(said, seed):
    rng = np.random.default_rng(seed)
    user = SlotFillingUser(DATABASE.ontology, SlotUserBehaviour(STANDARD))
    me = user.begin(GoalGenerator(DATABASE).draw(rng), rng)
    for text in said:
        before = me.copy()
        user.hear(me, parse_act(text), rng)
        answer = user.answer(me, rng)
        assert not any(item.negated for item in answer.items)
        assert me.patience in (before.patience, before.patience - 1)
        positive = [c.slot for c in me.constraints if not c.negated]
        assert len(positive) == len(set(positive))
        assert "name" in me.requests


def test_a_copied_mind_is_independent():
    talk = Talk(alternative_goal=1)
    talk.reply("hello()")
    kept = talk.me.copy()
    shown = repr(kept)
    talk.reply("request(food)", OFFER, NOTHING, "request(parking)")
    assert repr(kept) == shown


def test_every_act_of_the_system_has_a_reaction():
    from dialgym.tasks.slot_filling.task import SYSTEM_ACTS

    assert {*SYSTEM_ACTS, "null"} == REACTIONS.keys()
