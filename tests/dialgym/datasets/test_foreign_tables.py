"""Foreign tables and JSON files: which rows there are, which splits, rewards and speakers."""

import json

import pytest

from dialgym.datasets.foreign.import_report import ImportReport
from dialgym.datasets.foreign.input_files import Choices, read_conversations

TALK = [("user", "How do I boil an egg?"), ("bot", "Ten minutes in hot water.")]
TURNS = [{"speaker": who, "text": text} for who, text in TALK]
HEAD = "dialogue_id,speaker,text"


def written(path, content):
    path.parent.mkdir(parents=True, exist_ok=True)
    if path.suffix == ".jsonl":
        content = "".join(json.dumps(row) + "\n" for row in content)
    elif path.suffix == ".json":
        content = json.dumps(content)
    path.write_text(content, "utf-8")
    return path


def read(source, **choices):
    report = ImportReport()
    return read_conversations(source, Choices(**choices), report), report


def texts(conversations):
    return [[line.text for line in one.said] for one in conversations]


def rated(*rows, head=f"{HEAD},rating"):
    return "\n".join([head, *rows]) + "\n"


# JSON under names


def test_each_name_of_a_json_file_is_a_dialogue(tmp_path):
    own = [{**turn, "text": f"{turn['text']} Really?"} for turn in TURNS]
    path = written(tmp_path / "a.json", {"made": "today", "call-1": TURNS, "call-2": own})
    (tmp_path / "paid.csv").write_text("name,reward\ncall-2,3\ncall-1,1\n", "utf-8")
    found, _ = read(path, outcomes=str(tmp_path / "paid.csv"), reward="reward")
    assert texts(found) == [[turn["text"] for turn in some] for some in (TURNS, own)]
    assert [one.reward for one in found] == [1, 3]  # the names are the dialogues'


@pytest.mark.parametrize(
    "content",
    [
        {"a": [["user", "Hello you there"], ["bot", "Hi you"]], "b": [["user", "A"], ["bot", "B"]]},
        {"a": ["How do you do", "I am fine"], "b": ["Yes, I am that", "Oh yes"]},
        {"conversations": [["How do you do", "I am fine", "good"], ["Who are you", "I", "ok"]]},
        {"categories": ["AI", "bots"], "conversations": [["Hi", "Hello", "Ha"], ["A", "B"]]},
        {"conversations": [TURNS, TURNS[:1] + TURNS]},
        {"data": [[list(pair) for pair in TALK]] * 2},
        {"train": [{"turns": TURNS}], "test": [{"turns": TURNS}]},
    ],
    ids=["pairs", "texts", "nested", "beside", "messages", "data", "splits"],
)
def test_two_dialogues_under_names(content, tmp_path):
    found, _ = read(written(tmp_path / "a.json", content))
    assert len(found) == 2


@pytest.mark.parametrize("name", ["a.jsonl", "a.json"])
@pytest.mark.parametrize("row", [TURNS, {"turns": TURNS}], ids=["lists", "objects"])
def test_lines_of_json_are_rows(row, name, tmp_path):
    (tmp_path / name).write_text(f"{json.dumps(row)}\n\n{json.dumps(row)}\n", "utf-8")
    assert texts(read(tmp_path / name)[0]) == [[text for _, text in TALK]] * 2


def test_a_line_of_json_that_is_none_is_named(tmp_path):
    (tmp_path / "a.json").write_text(f"{json.dumps(TURNS)}\n[", "utf-8")
    with pytest.raises(ValueError, match=r"a\.json, line 2: expected JSON"):
        read(tmp_path / "a.json")


def test_names_of_splits_are_splits(tmp_path):
    rows = {"train": [{"prompt": "Hi", "response": "Hello"}], "eval": [{"turns": TURNS}]}
    found, _ = read(written(tmp_path / "a.json", rows))
    assert [one.split for one in found] == ["train", "validation"]


@pytest.mark.parametrize(
    "content",
    [
        {"conversation": [["user", "Hello you"], ["bot", "Hi"], ["user", "Bye"]]},
        {"messages": [[TURNS[0], TURNS[0]], [TURNS[1]]], "ratings": {"a": 1}},
        {"prompt": TURNS[:1], "chosen": TURNS[1:]},
        {"names": ["A", "B"], "lines": ["How do you do", "I am very well"]},
    ],
    ids=["pairs", "by speaker", "prompt", "names"],
)
def test_one_dialogue_in_a_file(content, tmp_path):
    found, _ = read(written(tmp_path / "a.json", content))
    assert len(found) == 1


# Splits


def test_the_card_of_a_folder_says_what_is_of_which_split(tmp_path):
    for name in ("big", "held", "other"):
        written(
            tmp_path / f"{name}.jsonl", [{"turns": [*TURNS, {"speaker": "user", "text": name}]}]
        )
    card = (
        "configs:\n- config_name: default\n  data_files:\n  - {split: train_sft, path: big.jsonl}\n"
        "  - {split: test, path: held.jsonl}\n- config_name: b\n  data_files: other.jsonl\n"
    )
    written(tmp_path / "README.md", f"---\n{card}---\n")
    found, report = read(tmp_path)
    assert {one.said[-1].text: one.split for one in found} == {"big": "train", "held": "test"}
    assert report.left_out == {"files of rows that the card (README.md) does not name": 1}
    for split, texts_ in (("test", ["held"]), ("train", ["big"]), ("train_sft", ["big"])):
        assert [one.said[-1].text for one in read(tmp_path, split=split)[0]] == texts_


def test_files_called_eval_and_testset_are_held_out(tmp_path):
    for name in ("train", "eval", "testset"):
        written(tmp_path / f"{name}.jsonl", [{"turns": TURNS}])
    assert [one.split for one in read(tmp_path)[0]] == ["validation", "test", "train"]


def test_splits_of_rows_in_any_case_and_with_suffixes(tmp_path):
    rows = [{"turns": TURNS, "split": name} for name in ("Train", "train_sft", "TEST", "extra")]
    path = written(tmp_path / "a.jsonl", rows)
    for source in (path, rows):
        assert [one.split for one in read(source)[0]] == ["train", "train", "test", "extra"]
    for wanted, count in (("train", 2), ("Train", 2), ("train_sft", 1), ("extra", 1)):
        assert len(read(path, split=wanted)[0]) == count


def test_names_of_dialogues_begin_anew_in_each_split(tmp_path):
    lines = [f"{split},{n},{who},{text} {split} {n}"
             for split in ("train", "test") for n in (1, 2) for who, text in TALK]  # fmt: skip
    found, _ = read(written(tmp_path / "a.csv", "\n".join([f"split,{HEAD}", *lines]) + "\n"))
    assert [(one.split, len(one.said)) for one in found] == [("train", 2)] * 2 + [("test", 2)] * 2


def test_rows_without_a_dialogue_are_left_out():
    ids = ("1", "1", "2", "2", "", None, " ", float("nan"))
    rows = [
        {"dialogue_id": n, "speaker": who, "text": text} for n, (who, text) in zip(ids, TALK * 4)
    ]
    found, report = read(rows)
    assert [len(one.said) for one in found] == [2, 2]
    assert report.left_out == {"rows without a dialogue": 4}


# Rewards, successes, speakers


def test_a_cell_of_any_length(tmp_path):
    said = "so " * 50_000
    found, _ = read(written(tmp_path / "a.csv", f"{HEAD}\n1,user,{said}\n1,bot,Yes\n"))
    assert texts(found) == [[said, "Yes"]]


def test_an_empty_cell_leaves_the_ratings_of_dialogues_as_they_are(tmp_path):
    rows = ["1,user,a,5", "1,bot,b,5", "1,user,c,5", "1,bot,d,5", "2,user,e,", "2,bot,f,1"]
    found, report = read(written(tmp_path / "a.csv", rated(*rows)))
    assert [one.reward for one in found] == [5, 1]
    assert all(line.reward is None for one in found for line in one.said)
    assert "rewards, at the end, as each dialogue has one" in report.understood["rewards"]


@pytest.mark.parametrize("ratings", [("", "5", "", "1"), ("1", "0", "1", "1")])
def test_ratings_of_turns_stay_ratings_of_turns(ratings, tmp_path):
    rows = [f"{n},{TALK[i % 2][0]},text,{r}" for i, (n, r) in enumerate(zip("1122", ratings))]
    found, _ = read(written(tmp_path / "a.csv", rated(*rows)))
    given = [None if rating == "" else float(rating) for rating in ratings]
    assert [line.reward for one in found for line in one.said] == given


def test_equal_rewards_of_one_speaker_are_of_turns(tmp_path):
    rows = ["1,user,a,", "1,bot,b,-1", "1,user,c,", "1,bot,d,-1", "2,user,e,", "2,bot,f,0"]
    found, report = read(written(tmp_path / "a.csv", rated(*rows)))
    assert [line.reward for one in found for line in one.said] == [None, -1, None, -1, None, 0]
    assert "rewards, by turn" in report.understood["rewards"]


@pytest.mark.parametrize(
    ("column", "known"),
    [
        (("True", "True", "False", "False"), [True, False]),
        (("0", "1", "", "0"), [True, False]),
        (("1", "", "", ""), [True, None]),
    ],
)
def test_the_success_of_a_dialogue_in_its_rows(column, known, tmp_path):
    rows = [f"{n},{TALK[i % 2][0]},text,{s}" for i, (n, s) in enumerate(zip("1122", column))]
    path = written(tmp_path / "a.csv", rated(*rows, head=f"{HEAD},success"))
    assert [one.success for one in read(path)[0]] == known


@pytest.mark.parametrize("name", ["speaker_id", "speaker_idx", "sender_id", "author_id"])
def test_numbers_of_speakers_are_speakers(name, tmp_path):
    rows = [f"{n},{mood},{who},text" for n, mood, who in zip("111222", "abcabc", "ABBAAB")]
    head = f"dialogue_id,emotion,{name},text"
    found, report = read(written(tmp_path / "a.csv", rated(*rows, head=head)))
    assert [line.speaker for one in found for line in one.said] == [*"ABBAAB"]
    assert f"speaker from {name!r}" in str(report)


def test_a_success_or_a_label_of_dialogues_is_no_speaker(tmp_path):
    rows = [f"{n},text,{s},{t}" for n, s, t in zip("1122", (1, 0, 1, 0), "xxyy")]
    head = "dialogue_id,text,success,topic"
    found, _ = read(written(tmp_path / "a.csv", rated(*rows, head=head)))
    assert {line.speaker for one in found for line in one.said} == {None}


@pytest.mark.parametrize(("name", "content"), [("a.jsonl", []), ("a.csv", ""), ("a.json", [])])
def test_an_empty_file_is_named(name, content, tmp_path):
    with pytest.raises(ValueError, match=f"no dialogues were found.*{name} has no rows"):
        read(written(tmp_path / name, content))
