"""What parties are told in words before they play, and the check of it."""

import re

import numpy as np
import pytest

from dialgym.language import Utterance
from dialgym.registry import entries, make_task
from dialgym.tasks.briefs import choice_sentence, listed, verb_of
from dialgym.tasks.multiwoz import MultiWOZ
from dialgym.tasks.multiwoz.goal_words import goal_words
from dialgym.tasks.multiwoz.types import DomainGoal, MultiWOZGoal
from dialgym.tasks.slot_filling import SlotFilling
from dialgym.tasks.twenty_questions import TwentyQuestions
from dialgym.tasks.visual_dialogue import VisualDialogue
from dialgym.tasks.wordle import Wordle
from dialgym.testing import check_task

ROWS = {entry.row.task: entry for entry in entries().values()}


@pytest.mark.parametrize("path", ROWS)
def test_each_family_tells_both_parties_rules_and_turns(path):
    task = make_task(ROWS[path], {})
    state = task.initial(np.random.default_rng(3))
    for party in task.parties:
        assert task.brief(state, party).startswith(task.how_to_play[party])
    said = task.brief(state, task.parties[0])
    limit = task.facts.turn_limit
    assert re.search("one turn" if limit == 1 else rf"\b{limit} (turns|questions|guesses)", said)


def test_verbs_have_a_name_and_what_they_are_done_with():
    assert verb_of(Wordle(), "system") == ("guess", "word")
    assert verb_of(TwentyQuestions(), "user") == ("answer", "text")
    assert verb_of(SlotFilling(), "system") == ("say", "text")


@pytest.mark.parametrize(
    "verbs", [{"system": "guess"}, {"system": "_guess(word)"}, {"host": "a(b)"}]
)
def test_verbs_of_another_form_or_party_are_found(verbs):
    task = type("Odd", (Wordle,), {"verbs": verbs})()
    with pytest.raises(AssertionError, match=r"verbs .*(such as 'guess|are of .'host)"):
        check_task(task, episodes=1)


SEEDS = range(3)


@pytest.mark.parametrize("language", ["acts", "words", "english", "english_user"])
def test_users_of_slot_filling_are_told_their_goal_in_english(language):
    task = SlotFilling(language=language)
    for seed in SEEDS:
        state = task.initial(np.random.default_rng(seed))
        told = task.scenario(state, "user")
        assert told.startswith("I want something ")
        values = [v for v in state.goal.constraints.values() if v != "dontcare"]
        assert all(value.removesuffix("s") in told for value in values)
        assert task.scenario(state, "system") == ""
    english = SlotFilling(language="english")
    same = english.initial(np.random.default_rng(seed))
    assert english.transcript(same, "user")[0].text == english.scenario(same, "user")


def test_the_briefs_of_the_system_name_the_slots_of_its_domain():
    told = SlotFilling("Laptops11").instructions["system"]
    assert "request batteryrating" in told
    assert "food" not in told


def test_users_of_multiwoz_are_told_what_to_change():
    with_fallback = 0
    task = MultiWOZ()
    for seed in range(60):
        state = task.initial(np.random.default_rng(seed))
        told, wanted = task.scenario(state, "user"), state.dialogue.goal.domains.values()
        fails = [goal for goal in wanted if goal.fail_info]
        assert told.count("if there is none, change that to") == len(fails)
        for goal in fails:
            moved = [v for s, v in goal.fail_info.items() if goal.info[s] != v]
            assert moved
            assert all(value in told for value in (*moved, *goal.info.values()))
        with_fallback += bool(fails)
    assert with_fallback > 5


def test_goals_of_multiwoz_in_words():
    hotel = DomainGoal(
        {"area": "east", "stars": "4"},
        {"area": "north", "stars": "4"},
        {"people": "1", "day": "friday", "stay": "1"},
        {"people": "1", "day": "sunday", "stay": "1"},
        ("Ref", "phone"),
    )
    goal = MultiWOZGoal({"hotel": hotel, "police": DomainGoal(requests=("address",))})
    assert goal_words(goal).splitlines() == [
        "You look for a place to stay: area north and stars 4; if there is none, change that to "
        "area east. Book it for 1 person on sunday for 1 night; if that cannot be, on friday "
        "instead. Ask for its reference number and phone.",
        "You look for the police. Ask for its address.",
    ]


def test_settings_of_wordle_are_told():
    told = Wordle(words=20, guesses="answers", turns=1).instructions["system"]
    assert "You have one guess;" in told
    assert "Only these words can be guessed." in told
    assert all(word in told for word in Wordle(words=20).answers)
    told = Wordle(hard_mode=True, invalid="reject", guesses="any").instructions["system"]
    assert "one of 2,774 words" in told
    assert "Any five letters can be guessed." in told
    assert "must use all that the colours have shown" in told
    assert "6 of them end the game" in told


def test_settings_of_the_other_games_are_told():
    told = TwentyQuestions(items=3, noise=0.1).instructions["system"]
    assert "one of these things:" in told
    assert "10% of the answers are the opposite" in told
    told = VisualDialogue({"name": "scenes", "scenes": 5}, mode="agent_stops").instructions
    assert "Say <stop>" in told["system"]
    assert "<stop>" not in told["user"]
    assert "There are 5 pictures." in told["system"]


def test_the_host_of_wordle_has_no_notes_though_its_word_is_private():
    task = Wordle(words=20)
    state = task.initial(np.random.default_rng(0))
    brief = task.brief(state, "user")
    task.speak(state, "quiet", np.random.default_rng(0))
    assert task.transcript(state, "user")[0].private
    assert task.notes(state, "user") == 0
    assert task.brief(state, "user") == brief


def test_lists_in_sentences():
    assert listed(["a"]) == "a"
    assert listed(["a", "b", "c"], "or") == "a, b or c"
    assert listed(["a", "b", "c"], most=2) == "a, b and 1 more"
    assert choice_sentence("It", ["a", "b"], "words") == "It is one of these words: a, b."
    assert choice_sentence("It", ["a"] * 61, "words") == "It is one of 61 words."


class Told(TwentyQuestions):
    """A task whose faults are in its briefs."""


def faulty(**changes):
    return type("Faulty", (Told,), changes)(items=8)


def leaky(self, state, party):
    from dialgym.tasks.hidden import reveal

    return f"Ask on. {self.table.names[reveal(state.item)][0]}"


FAULTS = {
    "is empty": {"how_to_play": {}, "brief": lambda self, state, party: " "},
    "has the characters": {"how_to_play": {"system": "Frag weiter: \u00fcber was?"}},
    "has changed in the dialogue": {
        "brief": lambda self, state, party: f"Turn {len(state.lines)}.",
    },
    "which only user knows": {"brief": leaky},
    r"of observed\(\) it is": {"brief": lambda self, state, party: f"It is {state.item}."},
    "changed the state": {
        "brief": lambda self, state, party: f"{state.lines.append(Utterance('user', 'no'))}",
    },
}


def test_no_fault_is_found_where_there_is_none():
    check_task(faulty(), 2)


@pytest.mark.parametrize("message", FAULTS)
def test_faulty_briefs_are_found(message):
    with pytest.raises(Exception, match=message):
        check_task(faulty(**FAULTS[message]), 2)
