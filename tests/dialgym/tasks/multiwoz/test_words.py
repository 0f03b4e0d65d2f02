"""Acts of multi-domain dialogues as words, with a grammar for each party."""

import numpy as np
import pytest

from dialgym.language import allows, compile_constraint
from dialgym.tasks.multiwoz import MultiWOZ
from dialgym.tasks.multiwoz.entries import SYSTEM_NAMES
from dialgym.tasks.multiwoz.languages.grammar import MOST
from dialgym.tasks.multiwoz.languages.words import HEARD
from dialgym.tasks.multiwoz.types import DialogueAct
from dialgym.views.spaces import tokenizer_of
from tests.dialgym.tasks.multiwoz.test_task import play

TASK = MultiWOZ(language="words")
WORDS = TASK.language
RNG = np.random.default_rng(0)


def numbers(*names: str) -> tuple[int, ...]:
    return tuple(SYSTEM_NAMES.index(name) for name in names)


@pytest.mark.parametrize(
    ("names", "text"),
    [
        (
            ("Hotel-Recommend-Name-1", "Train-Request-Day-?"),
            "hotel-recommend name train-request day",
        ),
        (("Hotel-Inform-Area-1", "Hotel-Inform-Area-2"), "hotel-inform area area2"),
        (("Hotel-NoOffer-none-none", "general-reqmore-none-none"), "hotel-nooffer general-reqmore"),
    ],
)
def test_the_system_names_acts_without_values(names, text):
    assert WORDS.name_entries(numbers(*names)) == text
    assert WORDS.entries(text) == numbers(*names)
    assert allows(TASK.static_constraint("system"), text)


@pytest.mark.parametrize("text", ["", "name", "hotel-inform", "hotel-inform north", "hotel"])
def test_other_words_of_the_system_name_nothing(text):
    assert WORDS.entries(text) is None
    assert not allows(TASK.static_constraint("system"), text)


def test_every_act_of_the_system_has_words_of_its_own():
    said = [WORDS.name_entries([number]) for number in range(len(SYSTEM_NAMES))]
    assert len(set(said)) == len(SYSTEM_NAMES)
    assert [WORDS.entries(text) for text in said] == [(n,) for n in range(len(SYSTEM_NAMES))]
    assert all(allows(TASK.static_constraint("system"), text) for text in said)


def test_what_the_user_says_comes_back():
    acts = (
        DialogueAct("Inform", "Restaurant"),
        DialogueAct("Inform", "Restaurant", "Area", "centre"),
        DialogueAct("Inform", "Restaurant", "Time", "18:05"),
        DialogueAct("Request", "Restaurant", "Phone", "?"),
        DialogueAct("Inform", "Restaurant", "Choice", "any"),
        DialogueAct("bye", "general"),
    )
    text = WORDS.say(acts, "user", RNG)
    first = "restaurant-inform restaurant-inform area centre time 18h 05m"
    assert text == f"{first} restaurant-request phone restaurant-inform choice any general-bye"
    assert WORDS.understand(text, "user") == acts
    assert allows(TASK.static_constraint("user"), text)


def test_dialogues_keep_to_grammar_vocabulary_and_length():
    known = set(TASK.words())
    for seed in range(15):
        _, outcome, state = play(TASK, seed)
        assert outcome.success
        for party in ("system", "user"):
            for line in TASK.transcript(state, party):
                assert set(line.text.split()) <= known, line
        for line in state.heard_by_system:
            if line.speaker == "system":
                assert allows(TASK.static_constraint("system"), line.text)
            assert len(line.text.split()) <= HEARD
        for line in state.heard_by_user:
            if line.speaker == "user":
                assert allows(TASK.static_constraint("user"), line.text)


def test_the_system_is_given_matches_and_belief():
    state = TASK.initial(RNG, {"domains": ["hotel"]})
    TASK.speak(state, "hotel-inform area west stars 4", RNG)
    heard = state.heard_by_system[-1].text
    place = TASK.vectoriser.bin("hotel", {"area": "west", "stars": "4"})
    assert heard == f"hotel-inform area west stars 4 = hotel matches{place} area west stars 4"


def test_masks_of_the_token_view_are_the_grammar():
    tokenizer = tokenizer_of(TASK)
    automaton = compile_constraint(TASK.static_constraint("system"), tokenizer)
    said = tokenizer.encode("hotel-inform area area2 train-request day")
    allowed = automaton.allowed[automaton.walk(said)]
    spelled = {tokenizer.piece(token, False).strip() for token in np.flatnonzero(allowed)}
    assert {"dest", "leave", "hotel-nooffer", "general-bye"} <= spelled
    assert "area2" not in spelled
    full = tokenizer.encode(" ".join(["general-bye"] * MOST))
    assert automaton.allowed[automaton.walk(full)].sum() == 1  # <end>
