"""Anchors: alike in the same situation, in any order, process and run; else different."""

import subprocess
import sys
from itertools import permutations

import numpy as np
import pytest

from dialgym.tasks.slot_filling import SlotFilling
from dialgym.tasks.wordle import Wordle
from tests.support.toy_pictures import NameIt

SYSTEM, USER = "system", "user"
FIXED = """
import numpy as np
from dialgym.tasks.slot_filling import SlotFilling
from dialgym.tasks.wordle import Wordle
for task, texts in ((Wordle(), ["crane", "zz"]), (SlotFilling(), [None, "request(area)", None])):
    rng = np.random.default_rng(0)
    state = task.initial(rng)
    if task.name == "Wordle":
        task.speak(state, task.answers[9], rng)
    for text in texts:
        task.speak(state, text or state.planned[0], rng)
    print(*[task.anchor(state, party) for party in task.parties])
"""


def game(task, word, guesses):
    rng = np.random.default_rng(0)
    state = task.initial(rng, {"word": word})
    task.speak(state, word, rng)
    for guess in guesses:
        task.speak(state, guess, rng)
    return state


@pytest.mark.parametrize("seed", range(5))
def test_the_order_of_guesses_does_not_matter_in_wordle(seed):
    task, rng = Wordle(words=200), np.random.default_rng(seed)
    word, *guesses = rng.choice(task.answers, 4, replace=False).tolist()
    states = [game(task, word, order) for order in permutations(guesses)]
    assert len({task.anchor(state, SYSTEM) for state in states}) == 1
    assert len({task.anchor(game(task, word, guesses[:n]), SYSTEM) for n in range(4)}) == 4


def test_what_is_hidden_does_not_matter_and_what_is_known_does():
    task = Wordle(words=200)
    words = list(task.answers[:60])
    states = {word: game(task, word, ["crane", "xxxxx"]) for word in words}
    by_colours, by_anchor = {}, {}
    for word, state in states.items():
        by_colours.setdefault(tuple(state.patterns), []).append(word)
        by_anchor.setdefault(task.anchor(state, SYSTEM), []).append(word)
    assert sorted(by_colours.values()) == sorted(by_anchor.values())
    assert len(by_anchor) < len(words)
    assert len({task.anchor(state, USER) for state in states.values()}) == len(words)


def ask(task, seed, *texts):
    """A dialogue in which the user says what the simulated one would."""
    rng = np.random.default_rng(seed)
    goal = {"constraints": {"area": "north"}, "requests": ("phone",), "patience": 4}
    state = task.initial(rng, goal)
    for text in (None, *texts):
        task.speak(state, state.planned[0] if text is None else text, rng)
    return state


def test_slot_filling_is_in_a_situation_by_its_belief_and_by_what_it_heard():
    task = SlotFilling(env=1)
    texts = ("request(area)", None)
    first, again = (ask(task, 1, *texts) for _ in range(2))
    assert task.anchor(first, SYSTEM) == task.anchor(again, SYSTEM)
    again.turns += 3  # how long it took is no part of it
    assert task.anchor(first, SYSTEM) == task.anchor(again, SYSTEM)
    assert task.anchor(ask(task, 1), SYSTEM) != task.anchor(first, SYSTEM)
    belief = again.belief.copy()
    belief.goals = belief.goals + 0.1
    again.belief = belief
    assert task.anchor(first, SYSTEM) != task.anchor(again, SYSTEM)


def test_dialogues_of_slot_filling_meet_in_one_situation():
    """Without noise, users who want the same say the same here."""
    task = SlotFilling(env=1)
    anchors = [task.anchor(ask(task, seed, "request(area)", None), SYSTEM) for seed in range(20)]
    assert len(set(anchors)) < len(anchors)


def test_by_default_a_situation_is_the_transcript():
    task, anchors = NameIt(), []
    for name in ("apple", "boat"):
        rng = np.random.default_rng(0)
        state = task.initial(rng, {"name": name})
        for text in ("cat", "no"):
            task.speak(state, text, rng)
        anchors.append([task.anchor(state, party) for party in task.parties])
    assert anchors[0] == anchors[1]
    assert anchors[0][0] != anchors[0][1]  # each party knows its own


def test_anchors_are_the_same_in_every_process(capsys):
    other = subprocess.run(
        [sys.executable, "-c", FIXED], env={"PYTHONHASHSEED": "1", "PYTHONPATH": ":".join(
            sys.path)}, capture_output=True, text=True, check=True,
    ).stdout  # fmt: skip
    exec(FIXED, {})
    assert capsys.readouterr().out == other
    assert [len(word) for word in other.split()] == [16] * 4


def test_a_situation_of_anything_else_is_refused():
    class Odd(NameIt):
        def situation(self, state, party):
            return object()

    with pytest.raises(TypeError, match="situation: expected strings, numbers, arrays"):
        Odd().anchor(None, SYSTEM)
