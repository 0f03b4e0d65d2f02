"""Corpora with acts: their two forms, and that they are held again under the rules of the task."""

import json

import numpy as np
import pytest

import dialgym
from dialgym.tasks.multiwoz.corpus import MultiWOZCorpus, goal_of, with_references
from dialgym.tasks.multiwoz.entries import SYSTEM_NAMES
from dialgym.tasks.multiwoz.task import MultiWOZ
from dialgym.tasks.multiwoz.types import DialogueAct
from tests.support.by_day import at_night
from tests.support.city_logs import convlab2

ID = "dialgym/MultiWOZ-act-v0"


def act(intent, domain="", slot="", value=None):
    item = {"intent": intent, "domain": domain, "slot": slot}
    return item if value is None else {**item, "value": value}


def unified(split="train"):
    """A dialogue of the unified format, in which the system speaks twice in a row."""
    area = act("inform", "restaurant", "price range", "cheap")
    turns = [
        ("user", {"categorical": [area]}),
        ("system", {"binary": [act("request", "restaurant", "area")]}),
        ("system", {"binary": [act("reqmore", "general")]}),
        ("user", {"non-categorical": [act("inform", "restaurant", "book day", "friday")]}),
        ("system", {"non-categorical": [act("book", "restaurant", "ref", "X")]}),
    ]
    goal = {
        "inform": {"restaurant": {"price range": "cheap", "book day": "friday"}},
        "request": {"restaurant": {"ref": ""}},
    }
    said = [{"speaker": party, "dialogue_acts": acts} for party, acts in turns]
    return {"data_split": split, "goal": goal, "turns": said}


def written(folder, content, name="val.json"):
    file = folder / name
    file.write_text(json.dumps(content))
    return file


def chosen(row):
    return [{SYSTEM_NAMES[k] for k in np.flatnonzero(action)} for action in row["actions"]]


def test_a_dialogue_of_convlab2_is_held_again(tmp_path):
    file = written(tmp_path, convlab2())
    data = dialgym.collect(ID, "corpus", 1, policy_kwargs={"path": str(file)})
    (row,) = data
    assert chosen(row) == [
        {"Hotel-Request-Price-?", "Hotel-Inform-Choice-1"},
        {"Hotel-Inform-Phone-1", "general-reqmore-none-none"},
    ]
    assert row["terminated"]
    assert not row["success"]  # there is no such phone number
    assert json.loads(row["options"])["goal"]["hotel"]["info"] == {"area": "north"}
    said = [turn["text"] for turn in row["turns"] if not turn["said"]]
    assert said[0] == 'Hotel-Inform(Area="north")'
    env = dialgym.collect(ID, "rule", 1)
    assert np.shape(row["observations"])[1] == np.shape(env[0]["observations"])[1]


def test_what_is_observed_is_what_the_words_lead_to(tmp_path):
    task = MultiWOZ(world="built-in")
    file = written(tmp_path, convlab2())
    (row,) = dialgym.collect(ID, MultiWOZCorpus(file), 1, env_kwargs={"world": "built-in"})
    log = MultiWOZCorpus(file).log(task, 0)
    rng = np.random.default_rng(0)
    state = task.initial(rng, log.options)
    seen = []
    for party, text in log.turns:
        if party == "system":
            seen.append(task.acts["system"].observe(state))
        if task.speak(state, text, rng).terminated:
            break
    np.testing.assert_array_equal(np.array(row["observations"])[:-1], seen)


def test_the_unified_format_is_brought_to_the_same_acts(tmp_path):
    file = written(tmp_path, [unified(), unified("test")], "dialogues.json")
    corpus = MultiWOZCorpus(file, split="train")
    assert len(corpus) == 1
    log = corpus.log(MultiWOZ(), 0)
    assert log.options["goal"]["restaurant"] == {
        "info": {"pricerange": "cheap"},
        "book": {"day": "friday"},
        "reqt": ["Ref"],
    }
    assert [text for party, text in log.turns if party == "system"] == [
        "Restaurant-Request(Area) general-reqmore()",
        'Booking-Book(Ref="X")',
    ]
    assert log.turns[-1] == ("user", "general-bye()")


def test_the_user_can_be_learned_from_a_corpus_too(tmp_path):
    file = written(tmp_path, convlab2())
    kwargs = {"learner": "user"}
    (row,) = dialgym.collect(ID, MultiWOZCorpus(file), 1, env_kwargs=kwargs)
    assert [sum(action) for action in row["actions"]] == [1, 2, 1]


def test_references_are_those_of_the_rows_named_last():
    world = MultiWOZ(world="built-in").world
    row = world.database.rows("hotel")[4]
    turns = [
        ("system", (DialogueAct("Recommend", "Hotel", "Name", row["name"].upper()),)),
        ("user", (DialogueAct("Inform", "Hotel", "People", "2"),)),
        ("system", (DialogueAct("Book", "Booking", "Ref", "7GAWK763"),)),
    ]
    assert with_references(turns, world)[-1][1][0].value == row["Ref"]
    assert with_references(turns[1:], world)[-1][1][0].value == "7GAWK763"


def test_a_goal_that_nothing_meets_becomes_what_the_user_said(tmp_path):
    content = convlab2()
    content["PMUL1.json"]["goal"]["hotel"]["info"]["stars"] = "77"
    corpus = MultiWOZCorpus(written(tmp_path, content))
    goal = goal_of(corpus.dialogues[0], MultiWOZ().world)
    assert goal.domains["hotel"].info == {"area": "north"}
    assert goal.domains["hotel"].requests == ("phone",)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ({"a": {"log": [{"text": "hi"}]}}, "log > 0: expected an entry 'dialog_act', got"),
        ({"a": {"log": [{"dialog_act": {"Hotel-Inform": ["x"]}}]}}, "pairs of slot and value"),
        (
            [{"turns": [{"speaker": "bot", "dialogue_acts": {}}]}],
            "unknown speaker 'bot' in corpus, val.json > 0 > turns > 0",
        ),
        ([1, 2], "expected JSON of ConvLab-2"),
    ],
)
def test_what_is_no_corpus_is_one_clear_error(content, message, tmp_path):
    with pytest.raises(ValueError, match=message):
        MultiWOZCorpus(written(tmp_path, content))


@pytest.mark.parametrize(
    ("use", "message"),
    [
        (lambda file: MultiWOZCorpus(file.with_name("nothing.json")),
         r"there is no file or folder .*Check the path\.$"),
        (lambda file: MultiWOZCorpus(file, split="test"),
         "expected dialogues of the split 'test'; got validation"),
        (lambda file: MultiWOZCorpus(file, split="dev"), "split of the corpus must be one of"),
        (lambda file: dialgym.collect(ID, MultiWOZCorpus(file), 2), "at most 1 episodes"),
        (lambda file: dialgym.collect(ID, MultiWOZCorpus(file), 1, options={"number": 0}),
         "the dialogues of 'MultiWOZCorpus' bring their own"),
    ],
)  # fmt: skip
def test_bad_arguments_are_one_clear_error(use, message, tmp_path):
    with pytest.raises(ValueError, match=message):
        use(written(tmp_path, convlab2()))


@pytest.mark.parametrize(
    ("name", "count"),
    [at_night(("multiwoz21_convlab/val.json.zip", 999)), ("camrest_unified/data.zip", 676)],
)
def test_real_corpora_load_whole(name, count, real_file):
    corpus = MultiWOZCorpus(real_file(name))
    assert len(corpus) == count
    assert not corpus.left_out
    real = {"world": str(real_file("convlab2"))}
    decisions = dialgym.collect(ID, corpus, 30, env_kwargs=real).acts().decisions
    acts = decisions.actions.sum(1)
    assert 1.5 < acts.mean() < 3.5
    assert (decisions.actions.astype(bool) & ~decisions.action_masks).sum() < 0.05 * acts.sum()
