"""Dialogues from elsewhere: what is understood of them, what is left out, what comes of them."""

import json
from zipfile import ZipFile

import pytest

from dialgym.datasets import Dataset, load_dataset
from dialgym.datasets.foreign import import_dialogues
from tests.support.commands import fail, succeed
from tests.support.shop_talk import MESSAGES, SAID, parties, rewards, texts, write_csv

NEGOTIATION = (
    "<input> 2 2 3 2 1 0 </input> <dialogue> THEM: i need that ball <eos> YOU: sure <eos> "
    "THEM: <selection> </dialogue> <output> item0=2 item1=3 item2=0 item0=0 item1=0 item2=1 "
    "</output> <partner_input> 2 0 3 1 1 7 </partner_input>\n"
    "<input> 2 0 3 1 1 7 </input> <dialogue> YOU: i need that ball <eos> THEM: no <eos> "
    "YOU: <selection> </dialogue> <output> <disagree> <disagree> </output> "
    "<partner_input> 2 2 3 2 1 0 </partner_input>\n"
)


def utterances(dialogues, **columns):
    """A table: one row for each utterance."""
    return [
        {
            "dialogue_id": d,
            "speaker": "ab"[i % 2],
            "text": text,
            **{k: v[i] for k, v in columns.items()},
        }
        for d in range(dialogues)
        for i, text in enumerate(SAID)
    ]


FORMS = {
    "messages": {"messages": MESSAGES},
    "parts of content": {
        "messages": [{**m, "content": [{"type": "text", "text": m["content"]}]} for m in MESSAGES]
    },
    "sharegpt": {
        "conversations": [
            {"from": name, "value": text} for name, text in zip(["human", "gpt"] * 2, SAID)
        ]
    },
    "convlab": {
        "turns": [
            {"speaker": name, "utterance": text, "utt_idx": i}
            for i, (name, text) in enumerate(zip(["user", "system"] * 2, SAID))
        ]
    },
    "multiwoz": {"goal": {}, "log": [{"text": text, "metadata": {}} for text in SAID]},
    "plain": {"dialog": SAID},
    "json in a cell": {"dialog": json.dumps(SAID)},
    "pairs": {"dialogue": [list(pair) for pair in zip(["customer", "agent"] * 2, SAID)]},
    "lists of messages": {
        "messages": [
            [{"sender": s, "text": part} for part in text.split(", ")]
            for s, text in zip("pqpq", SAID)
        ]
    },
    "prompt and response": {"prompt": MESSAGES[:3], "response": SAID[3]},
    "a name of its own": {"stuff": [{"speaker": s, "text": t} for s, t in zip("abab", SAID)]},
}


@pytest.mark.parametrize("form", FORMS)
def test_forms_of_dialogues(form):
    dataset = Dataset.from_dialogues([FORMS[form], FORMS[form]])
    assert len(dataset) == dataset.report.kept == 2
    assert parties(dataset) == ["user", "system"] * 2
    expected = [text.replace(", ", " ") for text in SAID] if "lists" in form else SAID
    assert texts(dataset) == expected


@pytest.mark.parametrize(
    "content",
    [
        {"messages": MESSAGES},
        {"version": 1, "data": [{"messages": MESSAGES}]},
        {"conversations": [{"messages": MESSAGES}]},
        {"one": {"messages": MESSAGES}},
        [SAID],
        {"rows": utterances(2)},
    ],
)
def test_objects_in_json(content, tmp_path):
    (tmp_path / "a.json").write_text(json.dumps(content), "utf-8")
    assert texts(Dataset.from_dialogues(tmp_path / "a.json")) == SAID


def test_what_rows_may_stand_in():
    assert texts(Dataset.from_dialogues([SAID])) == SAID
    assert texts(Dataset.from_dialogues({"one": {"messages": MESSAGES}})) == SAID
    hf = pytest.importorskip("datasets")
    rows = hf.Dataset.from_list([{"messages": MESSAGES, "rating": 2}])
    for source in (rows, rows.to_pandas(), hf.DatasetDict({"train": rows})):
        assert rewards(Dataset.from_dialogues(source)) == [0, 0, 0, 2]


def test_splits_of_hugging_face_are_splits(tmp_path):
    hf = pytest.importorskip("datasets")
    rows = [{"messages": MESSAGES, "rating": n} for n in range(3)]
    parts = {"train": rows[:2], "test_sft": rows[2:]}
    source = hf.DatasetDict({name: hf.Dataset.from_list(part) for name, part in parts.items()})
    Dataset.from_dialogues(source, tmp_path / "out")
    assert load_dataset(tmp_path / "out").returns.tolist() == [0, 1]
    assert load_dataset(tmp_path / "out", split="test").returns.tolist() == [2]
    assert Dataset.from_dialogues(source, split="test").returns.tolist() == [2]


def rated(*ratings):
    """Messages, each with its rating."""
    return [{**message, "rating": rating} for message, rating in zip(MESSAGES, ratings)]


@pytest.mark.parametrize(
    ("row", "choices", "expected"),
    [
        ({"messages": MESSAGES, "rating": 4}, {}, [0, 0, 0, 4]),
        ({"messages": MESSAGES, "ratings": {"a": 1, "b": "3", "c": None}}, {}, [0, 0, 0, 2]),
        ({"messages": MESSAGES, "rewards": [0, 1, 0, 2]}, {}, [0, 1, 0, 2]),
        ({"messages": MESSAGES, "rewards": [0, 1, 5, 2]}, {}, [0, 6, 0, 2]),  # of the user's
        ({"messages": [{**m, "reward": 0.5} for m in MESSAGES]}, {}, [0, 1.5, 0, 0.5]),
        ({"messages": MESSAGES, "outcome": {"reward": 1}}, {}, [0, 0, 0, 1]),
        ({"messages": MESSAGES, "deal": {"paid": "7"}}, {"reward": "deal.paid"}, [0, 0, 0, 7]),
        ({"messages": MESSAGES, "rating": 4}, {"reward": "none"}, [0, 0, 0, 0]),
        ({"messages": MESSAGES, "feedback": "thumbs_up"}, {}, [0, 0, 0, 1]),
        ({"messages": rated(None, "Good", None, "bad")}, {}, [0, 1, 0, 0]),
    ],
)
def test_rewards(row, choices, expected):
    assert rewards(Dataset.from_dialogues([row], **choices)) == expected


def test_what_is_left_out_is_said(tmp_path):
    rows = [
        {"messages": [{"role": "system", "content": "Be kind."}, *MESSAGES], "rating": 1},
        {"messages": MESSAGES},
        {"messages": MESSAGES[:1], "rating": 1},
        {"messages": [*MESSAGES, {"role": "another", "content": "Hi."}], "rating": 1},
        {"messages": [*MESSAGES, {"role": "assistant"}], "rating": 2},
    ]
    report = import_dialogues(rows, tmp_path / "out")
    assert dict(report.left_out) == {
        "messages of the role 'system'": 1,
        "dialogues without a reward (--reward none keeps them)": 1,
        "dialogues in which only one speaks": 1,
        "dialogues of 3 speakers": 1,
        "turns without words": 1,
    }
    assert report.kept == 2
    assert "system    assistant (by its name)" in report.to_text()
    assert "left out  1: dialogues of 3 speakers (first row 3)" in report.to_text()


def test_events_and_who_is_the_system():
    events = [
        {"agent": 0, "action": "message", "data": "Hi, is it sold?"},
        {"agent": 1, "action": "message", "data": "Not yet."},
        {"agent": 1, "action": "offer", "data": {"price": 9.0, "sides": ""}},
        {"agent": 0, "action": "accept", "data": None},
    ]
    row = {"events": events, "outcome": {"reward": 1}}
    second = Dataset.from_dialogues([row])
    assert texts(second) == ["Hi, is it sold?", "Not yet. [offer price 9.0]", "[accept]"]
    assert rewards(second) == [0, 1, 0]
    first = Dataset.from_dialogues([row], system="0")
    assert parties(first) == ["system", "user", "system"]
    with pytest.raises(ValueError, match=r"unknown speaker 'seller'.* Known: 0, 1"):
        Dataset.from_dialogues([row], system="seller")


@pytest.fixture
def table(tmp_path):
    """A table of utterances whose columns tell nothing, and one of outcomes."""
    rows = [
        {"": 4 * n + i, "Unit": text, "Turn": i // 2, "B4": i % 2, "B2": f"talk_{n}"}
        for n in range(6)
        for i, text in enumerate(SAID)
    ]
    write_csv(tmp_path / "talk.csv", rows)
    lines = ["B2,B4,B6", *(f"talk_{n},{who},{n * who}" for n in range(6) for who in (0, 1))]
    (tmp_path / "paid.csv").write_text("\n".join(lines), "utf-8")
    return tmp_path


def test_tables_of_utterances(table):
    out = str(table / "out")
    printed = succeed(
        "import", str(table / "talk.csv"), "--out", out, "--outcomes", str(table / "paid.csv"),
        "--reward", "B6", "--where", "B4=1", "--system", "0",
    )  # fmt: skip
    assert "text from 'Unit', speaker from 'B4', dialogue from 'B2'" in printed
    assert "B6 of paid.csv, at the end" in printed
    assert f"dialgym train ilql dialgym/Logged-v0 --data {out}" in printed
    dataset = load_dataset(out)
    assert dataset.returns.tolist() == [0, 1, 2, 3, 4, 5]
    assert parties(dataset) == ["system", "user"] * 2
    assert dataset["success"].tolist() == [False] * 3 + [True] * 3


def test_outcomes_of_which_several_could_count(table):
    error = fail(
        "import", str(table / "talk.csv"), "--out", str(table / "out"), "--outcomes",
        str(table / "paid.csv"), "--reward", "B6",
    )  # fmt: skip
    assert "the dialogue 'talk_1' has several rows, with rewards 0 and 1. Say which" in error
    assert "--where COLUMN=VALUE of B4" in error


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("a.txt", "Hello", "has no files of rows"),
        ("a.json", "{", "a.json: expected JSON"),
        (
            "a.jsonl",
            '{"a": 1}\n{"a": 2}',
            "no dialogues were found.* no utterances in its columns a",
        ),
        ("a.csv", "x,y\n1,2\n", "no dialogues were found"),
        ("a.jsonl", '{"turns": ["Hello."]}', "no dialogue is left of the data.* only one speaks"),
        (
            "a.jsonl",
            f'{{"turns": {json.dumps(SAID)}}}\n' + '{"turns": ' + "[" * 900 + "]" * 900 + "}",
            r"a\.jsonl, line 2: expected JSON \(more than 100 values",
        ),
        (
            "bad.txt",
            f"{NEGOTIATION}<input> 1 2 3 </input>",
            r"bad\.txt, line 3: expected <input> three counts",
        ),
    ],
    ids=["text", "json", "columns", "csv", "one speaks", "deep", "negotiation"],
)
def test_files_without_dialogues(name, content, message, tmp_path):
    (tmp_path / name).write_text(content, "utf-8")
    with pytest.raises(ValueError, match=f"(?s){message}"):
        import_dialogues(tmp_path / name, tmp_path / "out")
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize(
    ("rows", "choices", "message"),
    [
        ([SAID], {"rewrad": "x"}, r"unknown setting 'rewrad'.* Did you mean 'reward'"),
        ([SAID], {"reward": "stars"}, "no dialogue has a reward in 'stars'"),
        ([SAID], {"window": 10}, "window of import must be a whole number from 194"),
        ([SAID], {"out": "full"}, "holds something already"),
        ([SAID], {"task": "Wordle-20-v9"}, "Did you mean"),
        ([["Hello.", "\ud83d"]], {}, r"(?s)no dialogue is left.* broken characters .*row 0"),
    ],
    ids=["name", "reward", "window", "folder", "task", "characters"],
)
def test_bad_choices(rows, choices, message, tmp_path):
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "x").touch()
    with pytest.raises(ValueError, match=message):
        Dataset.from_dialogues(rows, **choices)


def test_a_file_that_is_not_there():
    assert "there is no file or folder 'none.csv'" in fail("import", "none.csv", "--out", "x")


@pytest.mark.parametrize(
    ("ratings", "expected"),
    [
        ([[5] * 4, [1] * 4], [5, 1]),  # of the dialogue
        ([["good"] * 4, [None] * 4], [1]),
        ([[0, 1, 0, 2], [1] * 4], [3, 4]),  # of the turns
        ([[None, None, None, 5], [None, None, None, 1]], [5, 1]),
    ],
)
def test_a_rating_in_every_row_of_a_dialogue_counts_once(ratings, expected, tmp_path):
    rows = [
        {"dialogue_id": d, "speaker": who, "text": text, "rating": rating}
        for d, column in enumerate(ratings)
        for who, text, rating in zip("abab", SAID, column)
    ]
    dataset = Dataset.from_dialogues(write_csv(tmp_path / "own.csv", rows))
    assert dataset.returns.tolist() == expected


def test_values_within_one_another_without_end(tmp_path):
    nested = json.loads("[" * 900 + '"Hello there."' + "]" * 900)
    rows = [{"turns": SAID}, {"turns": nested}, {"turns": [*SAID * 2, nested]}]
    report = import_dialogues(rows, tmp_path / "out")
    assert report.left_out == {"rows without utterances": 1, "turns without words": 1}


def test_deal_or_no_deal_as_it_comes(tmp_path):
    with ZipFile(tmp_path / "deal.zip", "w") as archive:
        archive.writestr("train.txt", NEGOTIATION)
        archive.writestr("test.txt", NEGOTIATION.splitlines()[0])
        archive.writestr("selfplay.txt", "1 0 1 1 3 3\n1 1 1 0 3 3\n")
    dataset = Dataset.from_dialogues(tmp_path / "deal.zip", tmp_path / "out")
    assert texts(dataset) == [
        "[books 2 at 2, hats 3 at 2, balls 1 at 0] i need that ball", "sure", "[selection]",
    ]  # fmt: skip
    assert parties(dataset) == ["user", "system", "user"]
    assert parties(dataset, 1) == ["user", "system"] * 2
    assert dataset.returns.tolist() == [10, 0]
    assert dataset["success"].tolist() == [True, False]
    assert len(load_dataset(tmp_path / "out", split="test")) == 1


def test_rows_come_by_their_turns_where_these_are_numbers():
    rows = [
        {"dialogue_id": d, "turn": str(turn), "text": SAID[turn]}
        for turn in (2, 0, 3, 1)
        for d in (1, 2)
    ]
    dataset = Dataset.from_dialogues(rows)
    assert [texts(dataset, row) for row in (0, 1)] == [SAID, SAID]
    assert "order from 'turn'" in dataset.report.to_text()
    parties = [{**row, "turn": "ab"[int(row["turn"]) % 2]} for row in rows]
    unsorted = Dataset.from_dialogues(parties, speaker="turn")
    assert texts(unsorted)[0] == f"{SAID[2]} {SAID[0]}"


@pytest.mark.parametrize(
    "rows",
    [
        [{"turns": SAID, "rating": rating} for rating in ("4/5", "good", "n/a")],
        [{"messages": rated("4/5", "good", "n/a", None)}],
        utterances(1, rating=["4/5", "good", "n/a", None]),
        [{"turns": SAID, "ratings": {"a": "4/5", "b": "good", "c": "n/a"}}],
    ],
    ids=["dialogues", "turns", "table", "mapping"],
)
def test_ratings_that_cannot_be_read_are_said(rows, tmp_path):
    report = import_dialogues(rows, tmp_path / "out")
    assert report.left_out["ratings that are no numbers"] == 2
    assert "2: ratings that are no numbers (first '4/5' in row " in report.to_text()
