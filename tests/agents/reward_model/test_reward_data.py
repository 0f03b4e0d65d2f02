"""Data of reward models: files of either kind, stored dialogues, and their faults."""

import math

import pytest

import dialgym
from agents.reward_model.pairs import read_examples
from tests.support.toy_rewards import preferences, scored, write_lines


def test_the_same_lines_as_csv_and_jsonl(tmp_path):
    lines = scored(20)
    of_csv, of_json = (
        read_examples(write_lines(tmp_path / name, lines)) for name in ("a.csv", "a.jsonl")
    )
    assert of_csv == of_json
    assert of_csv.kind == "scores"
    assert [item.context for item in of_csv.items] == [line["context"] for line in lines]
    assert [item.replies for item in of_csv.items] == [(line["reply"],) for line in lines]
    assert of_csv.scores.tolist() == [line["score"] for line in lines]


def test_a_list_of_utterances_is_joined_by_line_breaks(tmp_path):
    lines = preferences(3)
    examples = read_examples(write_lines(tmp_path / "a.jsonl", lines))
    assert examples.kind == "preferences"
    assert examples.items[1].context == "\n".join(lines[1]["context"])
    assert examples.items[1].replies == (lines[1]["chosen"], lines[1]["rejected"])
    twice = read_examples([tmp_path / "a.jsonl", str(tmp_path / "a.jsonl")])
    assert len(twice) == 6
    assert twice.digest() != examples.digest()


@pytest.mark.parametrize("save", [True, False])
def test_stored_dialogues_are_scored_replies(save, tmp_path):
    games = dialgym.collect("dialgym/Wordle-20-v0", "random-mixture", 12, seed=0)
    if save:
        games.save(tmp_path)
    examples = read_examples(tmp_path if save else games)
    assert len(examples) == games.lengths.sum()
    assert examples.scores.sum() == pytest.approx(games.returns.sum())
    number = 0
    for row in games:
        for place, turn in enumerate(row["turns"]):
            if turn["said"]:
                item = examples.items[number]
                before = [other["text"] for other in row["turns"][:place]]
                assert item.context == "\n".join(before)
                assert item[1:3] == ((turn["text"],), turn["reward"])
                number += 1
    learned, held_out = examples.split(0.25, seed=1)
    assert len({item.group for item in held_out.items}) == 3  # whole dialogues
    assert not {i.group for i in learned.items} & {i.group for i in held_out.items}


@pytest.mark.parametrize("share", [0.01, 0.1, 0.5, 0.99])
def test_a_context_is_on_one_side_of_the_split(share, tmp_path):
    examples = read_examples(write_lines(tmp_path / "a.jsonl", preferences(200)))
    learned, held_out = examples.split(share, seed=2)
    assert len(learned) + len(held_out) == 200
    sides = [{item.context for item in side.items} for side in (learned, held_out)]
    assert not sides[0] & sides[1]
    assert len(sides[1]) == min(max(round(share * 40), 1), 39)
    assert examples.split(share, seed=2) == (learned, held_out)
    assert share == 0.99 or examples.split(share, seed=3) != (learned, held_out)


GOOD = {"context": "hi", "reply": "yes", "score": 1.0}
PAIR = {"context": "hi", "chosen": "yes", "rejected": "no"}


@pytest.mark.parametrize(
    ("lines", "message"),
    [
        ([], "no examples in .*; expected lines with context, reply, score or context, chosen"),
        ([{"text": "a", "label": 1}], r"line 1: expected the columns context, .*; got text, label"),
        ([GOOD, {**GOOD, "score": math.nan}], "line 2: expected a finite number as score, got nan"),
        (
            [GOOD, {**GOOD, "score": "good"}],
            "expected a finite number as score, got 'good'",
        ),
        ([GOOD, {**GOOD, "score": None}], "line 2: expected a finite number as score, got None"),
        ([{**GOOD, "reply": None}], "line 1: expected a text as reply, got None"),
        ([{**GOOD, "context": [1]}], "line 1: expected a text as context, got 1"),
        ([GOOD, GOOD], "expected replies of different scores, got 2 of 1 alone"),
        ([PAIR, {**PAIR, "rejected": "yes"}], "line 2: chosen and rejected are the same, 'yes'"),
        ([GOOD, PAIR], "expected scores or preferences, got both in"),
        ([[1]], r"line 1: expected an object with names; got .\[1\]"),
    ],
)
def test_bad_data_is_one_clear_error(lines, message, tmp_path):
    file = write_lines(tmp_path / "a.jsonl", lines)
    with pytest.raises(ValueError, match=message):
        read_examples(file)


def test_other_faults(tmp_path):
    with pytest.raises(FileNotFoundError, match=r"no data at '.*none.csv': expected a JSONL"):
        read_examples(tmp_path / "none.csv")
    (tmp_path / "a.jsonl").write_text("{nothing")
    with pytest.raises(ValueError, match=r"a.jsonl, line 1: expected JSON \("):
        read_examples(tmp_path / "a.jsonl")
    (tmp_path / "a.csv").write_text("context,reply,score\nhi,yes\n")
    with pytest.raises(ValueError, match=r"line 2: expected a cell for each .*; got 2 cells"):
        read_examples(tmp_path / "a.csv")
    (tmp_path / "a.csv").write_bytes(b"\xff\xfe\x00context")
    with pytest.raises(ValueError, match=r"a\.csv.*UTF-8"):
        read_examples(tmp_path / "a.csv")
    one = read_examples(write_lines(tmp_path / "b.jsonl", [GOOD, {**GOOD, "score": 2}]))
    with pytest.raises(ValueError, match="expected examples of at least two contexts"):
        one.split(0.5, 0)
