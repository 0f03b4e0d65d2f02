"""Rows from elsewhere as conversations: rewards, silent turns, prompts, roles."""

import json

import pytest

import dialgym
from dialgym.datasets import Dataset, load_dataset
from dialgym.datasets.foreign import Choices, import_dialogues
from dialgym.datasets.foreign.prompts import prompted_turns
from tests.support.shop_talk import MESSAGES, SAID, parties, rewards, texts


def said(row, **choices):
    """The parties and texts of the dialogue that a row becomes."""
    dataset = Dataset.from_dialogues([row], **choices)
    return list(zip([party[0] for party in parties(dataset)], texts(dataset), strict=True))


def messages(*pairs):
    return [{"role": role, "content": text} for role, text in pairs]


def scored(*scores, **columns):
    """Messages, each of which has a score; more is of the dialogue."""
    turns = [{**message, "score": score} for message, score in zip(MESSAGES, scores)]
    return {"turns": turns, **columns}


# Rewards


@pytest.mark.parametrize(
    ("row", "choices", "expected"),
    [
        (scored(0, 3, 0, 4), {"reward": "none"}, [0, 0, 0, 0]),
        (scored(0, 0.9, 0, 0.8, outcome=1), {"reward": "outcome"}, [0, 0, 0, 1]),
        (scored(0, 1, 0, 2, reward=3), {}, [0, 0, 0, 3]),
        (scored(0, 1, 0, 2), {}, [0, 1, 0, 2]),
        (scored(0, 1, 0, 2), {"reward": "score"}, [0, 1, 0, 2]),
        (scored(0, 1, 0, 2, rewards=[0, 5, 0, 6]), {}, [0, 5, 0, 6]),
    ],
    ids=["none", "named", "of the dialogue", "by turn", "named by turn", "a list"],
)
def test_scores_of_turns_count_where_no_other_reward_does(row, choices, expected):
    assert rewards(Dataset.from_dialogues([row], **choices)) == expected


def test_scores_of_turns_are_no_named_outcome(tmp_path):
    rows = [scored(0, 1, 0, 1, outcome=1), scored(0, 1, 0, 1)]
    dataset = Dataset.from_dialogues(rows, reward="outcome")
    assert dataset.returns.tolist() == [1]
    reason = "dialogues without a reward (--reward none keeps them)"
    assert dataset.report.left_out == {reason: 1}
    with pytest.raises(ValueError, match="no dialogue has a reward in 'outcome'"):
        import_dialogues(rows[1:], tmp_path / "out", Choices(reward="outcome"))


@pytest.mark.parametrize(
    ("told", "expected"),
    [(True, True), (0, False), (1.0, True), ("true", True), ("False", False), ("1", True)],
)
def test_successes_in_numbers_and_words(told, expected):
    rows = [{"turns": SAID, "success": told, "rating": 1}, {"turns": SAID, "rating": 3}]
    assert Dataset.from_dialogues(rows)["success"].tolist() == [expected, True]
    odd = [{**rows[0], "success": "perhaps"}, rows[1]]
    assert Dataset.from_dialogues(odd)["success"].tolist() == [False, True]  # by the return


# Turns without words


@pytest.mark.parametrize("silent", ["", None, "  "])
@pytest.mark.parametrize("form", [lambda text: text, lambda text: {"text": text}])
def test_turns_without_words_keep_their_place(silent, form):
    row = {"dialog": [form(text) for text in ("a", silent, "c", "d")]}
    assert said(row) == [("u", "a c"), ("s", "d")]
    dataset = Dataset.from_dialogues([{**row, "rewards": [0, 1, 0, 2]}])
    assert dataset.returns.tolist() == [3]
    dataset = Dataset.from_dialogues([{**row, "rewards": [0, 1, 2]}])  # of those with words
    assert rewards(dataset) == [0, 3]


def test_a_list_that_begins_with_nothing():
    row = {"dialog": ["", "Hello.", "Hi.", "Bye."], "rewards": [1, 0, 0, 2]}
    assert said(row) == [("s", "Hello."), ("u", "Hi."), ("s", "Bye.")]
    assert rewards(Dataset.from_dialogues([row])) == [1, 0, 2]


def test_silent_speakers_are_none():
    row = {"turns": [{"speaker": "narrator", "text": None}, *MESSAGES]}
    assert said(row) == list(zip("usus", SAID))


def test_rewards_that_fit_neither_all_turns_nor_those_with_words(tmp_path):
    rows = [{"dialog": ["a", "", "c", "d"], "rewards": [1, 2]}, {"dialog": SAID, "rating": 1}]
    report = import_dialogues(rows, tmp_path / "out")
    assert report.left_out["dialogues with 2 rewards for 4 utterances"] == 1


# Pairs, histories, prompts

ASKED = [["first question", "first answer"], ["second question", "second answer"]]
SIX = [
    *(("u", "first question"), ("s", "first answer"), ("u", "second question")),
    *(("s", "second answer"), ("u", "third question"), ("s", "third answer")),
]


@pytest.mark.parametrize(
    "history",
    [
        ASKED,
        [text for pair in ASKED for text in pair],
        [m for q, a in ASKED for m in messages(("user", q), ("assistant", a))],
        [m for q, a in ASKED for m in messages(("human", q), ("ai", a))],
        [["human", "first question"], ["ai", "first answer"], ["human", "second question"],
         ["ai", "second answer"]],
    ],
    ids=["pairs", "texts", "messages", "other roles", "speakers"],
)  # fmt: skip
def test_a_history_comes_before_the_prompt(history):
    row = {"instruction": "third question", "input": "", "output": "third answer"}
    assert said({**row, "history": history}) == SIX
    assert said({**row, "history": []}) == SIX[4:]


def test_pairs_of_question_and_answer_and_of_speaker_and_text():
    assert said({"dialogue": ASKED}) == SIX[:4]
    assert said({"dialogue": [[None, "Hello."], ["Hi.", "Yes?"]]}) == [
        ("s", "Hello."), ("u", "Hi."), ("s", "Yes?"),
    ]  # fmt: skip
    repeated = [["same question", "one answer"]] * 2
    assert said({"history": repeated, "prompt": "third", "response": "answer"})[0][1] == (
        "same question"
    )
    named = [[name, text] for name, text in zip(["Ann", "Bob"] * 2, SAID)]
    assert said({"dialogue": named}) == list(zip("usus", SAID))
    assert said({"dialogue": [["user", "Hi."], ["bot", "Hello."]]}) == [
        ("u", "Hi."),
        ("s", "Hello."),
    ]


@pytest.mark.parametrize(
    ("row", "prompt"),
    [
        ({"instruction": "Translate", "input": "Hello", "output": "Yes"}, "Translate Hello"),
        ({"instruction": "Translate", "context": "Hi", "response": "Yes"}, "Translate Hi"),
        ({"prompt": "Translate this", "input": "this", "output": "Yes"}, "Translate this"),
        ({"input": "Translate", "output": "Yes"}, "Translate"),
    ],
)
def test_what_stands_beside_an_instruction_belongs_to_it(row, prompt):
    assert said(row) == [("u", prompt), ("s", "Yes")]  # on one line, as all that is stored


def test_what_stands_beside_an_instruction_is_a_line_of_its_own():
    row = {"instruction": "Translate", "input": "Hello", "output": "Yes"}
    name, turns, _ = prompted_turns(row)
    assert name == "instruction with input and output"
    assert turns == messages(("user", "Translate\nHello"), ("assistant", "Yes"))


def test_answers_that_look_like_lists_are_texts():
    row = {"prompt": "Two fruits in JSON?", "response": '["apple", "pear"]'}
    assert said(row) == [("u", "Two fruits in JSON?"), ("s", '["apple", "pear"]')]
    for text in ('{"a": 1}', '{"text": "A", "k": 1}', '[{"text": "Paris", "label": "LOC"}]'):
        assert said({**row, "response": text})[1] == ("s", text)
        assert said({"prompt": text, "response": "Yes"})[0] == ("u", text)


def test_of_several_answers_to_a_prompt_the_first_is_read():
    row = {"question": "Who wrote it?", "answer": ["Bob", "Bobby", "Robert"]}
    assert said(row) == [("u", "Who wrote it?"), ("s", "Bob")]
    report = Dataset.from_dialogues([row]).report
    assert report.left_out == {"further answers to a prompt, after the first": 2}
    assert said({**row, "answer": [LEARNED[0][1]]})[1] == ("s", LEARNED[0][1])
    whole = {"prompt": LEARNED[0][1], "completion": [text for _, text in LEARNED]}
    assert said(whole) == LEARNED


def test_messages_that_a_table_holds_as_json_are_turns():
    row = {"prompt": "How do I boil an egg?", "response": json.dumps(GOOD[1:])}
    assert said(row) == LEARNED


# Preferences


def marked(turns):
    """Messages as a text of HH-RLHF."""
    names = {"user": "Human", "assistant": "Assistant"}
    return "".join(f"\n\n{names[turn['role']]}: {turn['content']}" for turn in turns)


GOOD = messages(("user", "How do I boil an egg?"), ("assistant", "Ten minutes in hot water."))
BAD = messages(("user", "How do I boil an egg?"), ("assistant", "I will not tell you."))
LEARNED = [("u", "How do I boil an egg?"), ("s", "Ten minutes in hot water.")]


REFUSAL = BAD[1]["content"]
ANSWERS = ("rejected", "chosen")
PREFERENCES = {
    "implicit": {"rejected": BAD, "chosen": GOOD},
    "twice": {"rejected": BAD, "prompt": "How do I boil an egg? ", "chosen": GOOD},
    "list twice": {"prompt": GOOD[:1], "chosen": GOOD, "rejected": BAD},
    "lists": {"prompt": GOOD[:1], "chosen": GOOD[1:], "rejected": BAD[1:]},
    "texts": {"prompt": LEARNED[0][1], "chosen": LEARNED[1][1], "rejected": REFUSAL},
    "messages": {"prompt": LEARNED[0][1], "response": "x", "chosen": GOOD[1], "rejected": BAD[1]},
    "conversations": {"conversations": GOOD[:1], "chosen": GOOD[1], "rejected": BAD[1]},
    "whole": {"messages": GOOD[:1], "chosen": GOOD, "rejected": BAD},
    "thrice": {"prompt": LEARNED[0][1], "messages": GOOD, "chosen": GOOD, "rejected": BAD},
    "answered": {"messages": GOOD, "chosen": LEARNED[1][1], "rejected": REFUSAL},
    "marked": {"chosen": marked(GOOD), "rejected": marked(BAD)},
    "marked prompt": {
        "prompt": f"{marked(GOOD[:1])}\n\nAssistant:",
        "chosen": " Ten minutes in hot water.",
        "rejected": f" {REFUSAL}",
    },
}


@pytest.mark.parametrize("row", PREFERENCES.values(), ids=PREFERENCES)
def test_the_chosen_answer_alone_is_learned(row):
    assert said(row) == LEARNED
    report = Dataset.from_dialogues([row]).report
    assert report.left_out == {"rejected answers (--rejected keeps them, for DPO)": 1}


def test_rejected_answers_are_branches_of_the_chosen_ones(tmp_path):
    rows = [*PREFERENCES.values(), {"prompt": "Bye!", "chosen": "Goodbye."}]
    dataset = Dataset.from_dialogues(rows, tmp_path / "all", rejected=True)
    chosen, rejected, shared = dataset.pairs("rejected").T
    told = [[turn["text"] for turn in row["turns"]] for row in dataset]
    both = [[text for _, text in LEARNED], [message["content"] for message in BAD]]
    assert told == both * len(PREFERENCES) + [["Bye!", "Goodbye."]]
    assert rejected.tolist() == (chosen + 1).tolist() == list(range(1, 2 * len(PREFERENCES), 2))
    assert (dataset["seed"][chosen] == dataset["seed"][rejected]).all()
    assert (dataset["options"][chosen] == dataset["options"][rejected]).all()
    assert dataset.returns.tolist() == [1, 0] * len(chosen) + [1]
    assert dataset["success"].tolist() == [True, False] * len(chosen) + [True]
    assert not shared.any()
    assert dataset.report.left_out == {}
    _, settings = dataset.environment()
    assert len(dialgym.make(dataset.environment()[0], **settings).task.corpus) == len(rows)


def test_pairs_stay_pairs_where_dialogues_are_chosen_and_stored(tmp_path):
    rows = [{"prompt": text, "chosen": "Yes.", "rejected": "No."} for text in SAID]
    dataset = Dataset.from_dialogues(rows, tmp_path / "all", rejected=True)
    for n, part in enumerate(dataset.split(0.5)):
        part.save(tmp_path / str(n))
        stored = load_dataset(tmp_path / str(n))
        assert len(stored.pairs("rejected")) == len(set(stored["options"])) == len(stored) // 2 > 0
    alone = dataset.filter(~dataset["success"])
    alone.save(tmp_path / "rejected")
    env_id, settings = load_dataset(tmp_path / "rejected").environment()
    corpus = dialgym.make(env_id, **settings).task.corpus
    assert corpus.texts[1::2] == ["No."] * len(rows)
    played = dialgym.collect(env_id, "random", 3, env_kwargs=settings)
    played = load_dataset(played.save(tmp_path / "played"))
    assert played["options"].tolist() == [f'{{"dialogue": {n}}}' for n in range(3)]


def test_scores_of_chosen_and_rejected_answers():
    both = {"prompt": "Is it late?", "chosen": "No.", "rejected": "Hm."}
    rows = [
        {**both, "score_chosen": 8.0, "score_rejected": 3.5},
        {**both, "score_chosen": 9.0, "score_rejected": None},
    ]
    dataset = Dataset.from_dialogues(rows, rejected=True, reward="score_chosen")
    assert dataset.returns.tolist() == [8, 3.5, 9]
    assert Dataset.from_dialogues(rows, rejected=True).returns.tolist() == [1, 0, 1, 0]
    nested = {"prompt": "Hi.", **{c: {**BAD[1], "score": n} for n, c in enumerate(ANSWERS)}}
    found = Dataset.from_dialogues([nested], rejected=True, reward="chosen.score")
    assert found.returns.tolist() == [1, 0]


def test_a_rejected_answer_belongs_to_the_dialogue_that_begins_alike():
    turns = [("user", SAID[0]), ("assistant", SAID[1]), ("user", SAID[2]), ("assistant", "Yes.")]
    later = {"chosen": messages(*turns), "rejected": messages(*turns[:3], ("assistant", "No."))}
    apart = {"chosen": GOOD, "rejected": messages(("user", "Who?"), ("assistant", "I."))}
    dataset = Dataset.from_dialogues([later, apart], rejected=True)
    assert dataset.pairs("rejected").tolist() == [[0, 1, 1]]
    assert len(dataset) == 3
    assert list(dataset.report.left_out.values()) == [1]


@pytest.mark.parametrize(
    ("row", "choices", "message"),
    [
        ({"dialog": SAID}, {}, "no row has a rejected answer beside a chosen one"),
        ({"dialog": SAID}, {"reward": "none"}, "expected a reward such as 'score_chosen'"),
        ({"dialog": SAID}, {"outcomes": "o.csv"}, "and no outcomes; got reward=None, outcomes='o"),
    ],
)
def test_rejected_answers_that_cannot_be_had(row, choices, message, tmp_path):
    with pytest.raises(ValueError, match=message):
        Dataset.from_dialogues([row], tmp_path / "out", rejected=True, **choices)


def test_rejected_answers_alone_are_no_dialogues(tmp_path):
    with pytest.raises(ValueError, match="no dialogues were found"):
        import_dialogues([{"rejected": BAD}], tmp_path / "out")


def test_labels_of_answers_are_their_rewards():
    row = {"prompt": "Is it late?", "completion": "It is not."}
    rows = [{**row, "label": label, "stars": 4} for label in (True, False, "true")]
    dataset = Dataset.from_dialogues(rows)
    assert dataset.returns.tolist() == [1, 0, 1]
    assert "label (1 for true, 0 for false), at the end" in dataset.report.to_text()
    assert Dataset.from_dialogues(rows, reward="stars").returns.tolist() == [4, 4, 4]
    assert Dataset.from_dialogues(rows, reward="none").returns.tolist() == [0, 0, 0]
    classes = [{**row, "label": 1}, {"dialog": SAID, "label": True}]  # of topics, perhaps
    assert Dataset.from_dialogues(classes).returns.tolist() == [0, 0]


# Speakers


def test_speakers_in_a_list_of_their_own():
    row = {"dialogue": ["Hi.", "Is it you?", "It is."], "speakers": ["Ann", "Ann", "Bob"]}
    assert said(row) == [("u", "Hi. Is it you?"), ("s", "It is.")]
    assert said({"dialog": SAID, "roles": ["bot", "user"] * 2}) == list(zip("susu", SAID))
    assert said({"dialog": SAID, "who": list("abab")}, speaker="who", system="a")[0][0] == "s"
    assert said({"dialog": SAID, "speakers": ["Ann", "Bob"]}) == list(zip("usus", SAID))


def test_types_of_messages_that_are_roles():
    types = ["system", "human", "ai", "ai", "human"]
    texts = ["Be kind.", *SAID]
    known = [("u", SAID[0]), ("s", f"{SAID[1]} {SAID[2]}"), ("u", SAID[3])]
    plain = [{"type": t, "content": c, "id": c, "name": None} for t, c in zip(types, texts)]
    assert said({"messages": plain}) == known
    nested = [{"type": t, "data": {"content": c}} for t, c in zip(types, texts)]
    assert said({"messages": nested}) == known
    called = [*plain[:2], {"type": "ai", "content": ""}, *plain[2:]]
    assert said({"messages": called}) == known


def test_calls_of_tools_are_beside_the_two_who_talk():
    roles = ["human", "function_call", "observation", "gpt"]
    row = {"conversations": [{"from": r, "value": text} for r, text in zip(roles, SAID)]}
    assert said(row) == [("u", SAID[0]), ("s", SAID[3])]


@pytest.mark.parametrize(
    ("names", "expected"),
    [
        (["User", "assistant", "user", "Assistant"], "usus"),
        (["human", "assistant", "user", "gpt"], "usus"),
        (["Ann", "Bob", "ann", "bob"], "usus"),
        (["customer", "visitor"] * 2, "usus"),
    ],
)
def test_names_of_one_speaker(names, expected):
    row = {"turns": [{"speaker": n, "text": text} for n, text in zip(names, SAID)]}
    assert said(row) == list(zip(expected, SAID))
