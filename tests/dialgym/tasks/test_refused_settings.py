"""Settings and options that are refused, of tasks that need no data: one clear error for each."""

import numpy as np
import pytest

from dialgym.tasks.logged import Logged
from dialgym.tasks.multiwoz import MultiWOZ
from dialgym.tasks.slot_filling import SlotFilling
from dialgym.tasks.twenty_questions import TwentyQuestions
from dialgym.tasks.visual_dialogue import VisualDialogue
from dialgym.tasks.wordle import Wordle

SETTINGS = {
    Wordle: [
        ({"feedback": "red"}, "feedback of Wordle must be one of 'standard', 'ilql'; got 'red'"),
        ({"secret": "resampled"}, "Did you mean 'resample'"),
        ({"host": "evil"}, "host of Wordle must be one of"),
        ({"invalid": "skip"}, "invalid of Wordle must be one of 'turn', 'reject'"),
        ({"constraint": "trie"}, "constraint of Wordle must be one of"),
        ({"turns": 0}, "turns of Wordle must be a whole number from 1; got 0"),
        ({"words": 10**6}, "words of Wordle must be a whole number from 1 to"),
        ({"answers": ["cranes"]}, "expected words of 5 letters a-z; got 'cranes'"),
        ({"answers": []}, "got no words"),
        ({"answers": 20}, "answers: expected a list of words, or the path of a file; got 20"),
        ({"guesses": None}, "guesses: expected a list of words, or the path of a file; got None"),
        ({"words": True}, "words of Wordle must be a whole number .* got True"),
        ({"guesses": np.array(["cranes"])}, "guesses: expected words of 5 letters a-z; got "),
        ({"hard_mode": "false"}, "hard_mode of Wordle must be True or False; got 'false'"),
        ({"answers": "no/such/file"}, "expected a text file of words at 'no/such/file'"),
        ({"guesses": "any", "constraint": "words"}, "has no list that constraint='words'"),
    ],
    SlotFilling: [
        ({"env": 7}, "env of slot filling must be one of 1, 2, 3, 4, 5, 6; got 7"),
        ({"error_rate": 15}, "error_rate .* number from 0 to 1; got 15"),
        ({"noise": "set2"}, "noise of SlotFilling must be one of 'set1', 'set3', 'single'; got 's"),
        ({"noise": ""}, "noise of SlotFilling must be one of 'set1', 'set3', 'single'; got ''"),
        ({"masks": "no"}, "masks of SlotFilling: expected a YAML file at 'no'"),
        ({"user": "friendly"}, "user of SlotFilling must be one of .* Did you mean 'unfriendly'"),
        ({"fidelity": "exact"}, "fidelity of SlotFilling must be one of 'correct', 'pydial'"),
        ({"tracker": ["x"]}, r"tracker of SlotFilling: expected .*begin.*; got \['x'\]"),
        ({"turns": 0}, "turns of SlotFilling must be a whole number from 1; got 0"),
        ({"domain": "Restaurant"}, "unknown domain 'Restaurant'. Did you mean 'Restaurants'"),
        ({"domain": "no/such"}, "expected a JSON file at 'no/such-rules.json'"),
    ],
    MultiWOZ: [
        ({"fidelity": 3}, "fidelity of MultiWOZ must be one of 'correct', 'convlab2', .*; got 3"),
        ({"fidelity": ["x"]}, r"fidelity of MultiWOZ must be one of .*; got \['x'\]"),
        ({"fidelity": "greets+correct"}, "fidelity of MultiWOZ must be one of .*; got 'correct'"),
    ],
    TwentyQuestions: [
        ({"noise": 0.5}, r"noise of TwentyQuestions must be a rate from 0 to below 0.5; got 0.5"),
        ({"vague": 1}, r"vague of TwentyQuestions must be a rate from 0 to below 1.0; got 1"),
        ({"noise": "much"}, r"noise of TwentyQuestions must be a finite number; got 'much'"),
        ({"turns": 0}, r"turns of TwentyQuestions must be a whole number from 1; got 0"),
        ({"items": 402}, r"items of TwentyQuestions must be a whole number from 2 to 401"),
        (
            {"constraint": "words"},
            r"constraint of TwentyQuestions must be one of 'questions', None",
        ),
    ],
    VisualDialogue: [
        ({"mode": "stop"}, "mode of VisualDialogue must be one of 'env_stops'"),
        ({"penalty": "hart"}, "penalty of VisualDialogue.*Did you mean 'hard'"),
        ({"reward": "raw"}, "reward of VisualDialogue must be one of 'standard', 'ilql'"),
        ({"cutoff": 0.5}, r"cutoff of VisualDialogue must be a pair \(goal, fraction\)"),
        ({"cutoff": (1.0, "half")}, "cutoff of VisualDialogue must be a finite number"),
        ({"cost": float("nan")}, "cost of VisualDialogue must be a finite number"),
        ({"rounds": 0}, "rounds of VisualDialogue must be a whole number from 1; got 0"),
        ({"constraint": "words"}, "constraint of VisualDialogue must be one of"),
        ({"answerer": "rule"}, "unknown answerer 'rule'.*Did you mean 'rules'"),
        ({"pool": {"name": "scenes", "vague": 1.5}}, "vague of SceneBook must be from 0"),
    ],
}
OPTIONS = {
    Wordle: [
        ({"word": "zzzzz"}, "expected one of its .* answers; got 'zzzzz'"),
        ({"wrod": "crane"}, r"unknown option 'wrod'.*Did you mean 'word'\?"),
    ],
    SlotFilling: [
        (
            {"goal": 1},
            "unknown option 'goal' in reset of SlotFilling. Known: constraints, patience",
        ),
        ({"constraints": {"phone": "1"}}, "unknown slot 'phone' in option 'constraints'"),
        (
            {"constraints": {"area": "mars"}},
            "unknown value 'mars' in option 'constraints', slot 'a",
        ),
        ({"constraints": ["area"]}, "expected a mapping of slots to values"),
        ({"requests": "phone"}, "expected a sequence of slots, .*; got 'phone'"),
        ({"requests": 3}, "expected a sequence of slots, .*; got 3"),
        ({"requests": ["fax"]}, "unknown slot 'fax' in option 'requests'"),
        (
            {"patience": 0},
            "option 'patience' of SlotFilling: expected a whole number from 1; got 0",
        ),
        ({"patience": True}, "expected a whole number from 1; got True"),
    ],
    MultiWOZ: [
        ({"goal": {}, "domains": ["hotel"]}, "expected one of 'goal', 'domains' and 'number'"),
        ({"domains": "hotel"}, "expected a sequence of domains"),
        ({"domains": ["hotle"]}, "hotle"),
        ({"domains": ["taxi", "taxi"]}, "expected one or more, each once"),
        ({"number": 3}, "goals='train' or 'test'"),
        ({"goal": {"hotel": {"info": {"moon": "x"}}}}, "moon"),
    ],
    VisualDialogue: [
        ({"image": 1000}, r"option 'image' of VisualDialogue.*0 to 999; got 1000"),
    ],
    TwentyQuestions: [
        ({"item": "guitr"}, r"unknown item 'guitr'.*Did you mean 'guitar'"),
    ],
    Logged: [
        ({"dialogue": 80}, r"option 'dialogue' of Logged must be .* 0 to 79; got 80"),
    ],
}
"""By task: settings, and options of reset, with the message that refuses them."""


def rows(table):
    return [(task, *case) for task, cases in table.items() for case in cases]


@pytest.mark.parametrize(("task", "settings", "message"), rows(SETTINGS))
def test_bad_settings_are_one_clear_error(task, settings, message):
    with pytest.raises(ValueError, match=message):
        task(**settings)


@pytest.mark.parametrize(("task", "options", "message"), rows(OPTIONS))
def test_bad_options_are_one_clear_error(task, options, message):
    with pytest.raises(ValueError, match=message):
        task().initial(np.random.default_rng(0), options)
