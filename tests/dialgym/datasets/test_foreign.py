"""Dialogues from elsewhere: what is understood of them, what is left out, what comes of them."""

import csv
import json
import time
from zipfile import ZipFile

import numpy as np
import pytest

import dialgym
from dialgym.datasets import Dataset, concatenate, load_dataset
from dialgym.datasets.foreign import Choices, import_dialogues
from tests.support.commands import fail, succeed

SAID = ["Hello there, you.", "Good day to you.", "I want tea, please.", "Here is your tea."]
MESSAGES = [{"role": role, "content": text} for role, text in zip(["user", "assistant"] * 2, SAID)]


def texts(dataset, row=0):
    return [turn["text"] for turn in dataset[row]["turns"]]


def parties(dataset, row=0):
    return [turn["party"] for turn in dataset[row]["turns"]]


def rewards(dataset, row=0):
    return [turn["reward"] for turn in dataset[row]["turns"]]


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
def test_forms_of_dialogues(form, tmp_path):
    dataset = Dataset.from_dialogues([FORMS[form], FORMS[form]], tmp_path / "out")
    assert len(dataset) == 2
    assert parties(dataset) == ["user", "system"] * 2
    expected = [text.replace(", ", " ") for text in SAID] if "lists" in form else SAID
    assert texts(dataset) == expected
    assert dataset.report.kept == 2


def test_what_rows_may_stand_in():
    assert texts(Dataset.from_dialogues([SAID])) == SAID
    assert texts(Dataset.from_dialogues({"one": {"messages": MESSAGES}})) == SAID
    hf = pytest.importorskip("datasets")
    rows = hf.Dataset.from_list([{"messages": MESSAGES, "rating": 2}])
    for source in (rows, rows.to_pandas()):
        assert rewards(Dataset.from_dialogues(source)) == [0, 0, 0, 2]


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
        (
            {
                "messages": [
                    {**m, "rating": r} for m, r in zip(MESSAGES, [None, "Good", None, "bad"])
                ]
            },
            {},
            [0, 1, 0, 0],
        ),
    ],
)
def test_rewards(row, choices, expected, tmp_path):
    assert rewards(Dataset.from_dialogues([row], tmp_path / "out", **choices)) == expected


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


def test_events_and_who_is_the_system(tmp_path):
    events = [
        {"agent": 0, "action": "message", "data": "Hi, is it sold?"},
        {"agent": 1, "action": "message", "data": "Not yet."},
        {"agent": 1, "action": "offer", "data": {"price": 9.0, "sides": ""}},
        {"agent": 0, "action": "accept", "data": None},
    ]
    row = {"events": events, "outcome": {"reward": 1}}
    second = Dataset.from_dialogues([row], tmp_path / "second")
    assert texts(second) == ["Hi, is it sold?", "Not yet. [offer price 9.0]", "[accept]"]
    assert rewards(second) == [0, 1, 0]
    first = Dataset.from_dialogues([row], tmp_path / "first", system="0")
    assert parties(first) == ["system", "user", "system"]
    with pytest.raises(ValueError, match=r"unknown speaker 'seller'.* Known: 0, 1"):
        Dataset.from_dialogues([row], tmp_path / "third", system="seller")


@pytest.fixture
def table(tmp_path):
    """A table of utterances whose columns tell nothing, and one of outcomes."""
    with (tmp_path / "talk.csv").open("w", encoding="utf-8", newline="") as file:
        rows = csv.writer(file)
        rows.writerow(["", "Unit", "Turn", "B4", "B2"])
        for number in range(6):
            for place, text in enumerate(SAID):
                rows.writerow([4 * number + place, text, place // 2, place % 2, f"talk_{number}"])
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
    ],
)
def test_files_without_dialogues(name, content, message, tmp_path):
    (tmp_path / name).write_text(content, "utf-8")
    with pytest.raises(ValueError, match=f"(?s){message}"):
        import_dialogues(tmp_path / name, tmp_path / "out")
    assert not (tmp_path / "out").exists()


def test_bad_choices(tmp_path):
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "x").touch()
    with pytest.raises(ValueError, match="holds something already"):
        import_dialogues([SAID], tmp_path / "full")
    with pytest.raises(ValueError, match=r"unknown setting 'rewrad'.* Did you mean 'reward'"):
        Dataset.from_dialogues([SAID], rewrad="x")
    with pytest.raises(ValueError, match="no dialogue has a reward in 'stars'"):
        Dataset.from_dialogues([SAID], reward="stars")
    with pytest.raises(ValueError, match="window of import must be a whole number from 194"):
        Choices(window=10)
    assert "there is no file or folder 'none.csv'" in fail("import", "none.csv", "--out", "x")


def test_files_by_names_of_dialogues_and_splits(tmp_path):
    source = tmp_path / "source"
    source.mkdir()
    (source / "train.json").write_text(json.dumps({"d1": {"log": SAID}, "d2": {"log": SAID}}))
    (source / "test.json").write_text(json.dumps({"d3": {"log": SAID}}))
    assert import_dialogues(source, tmp_path / "all").kept == 3
    assert import_dialogues(source, tmp_path / "some", Choices(split="test")).kept == 1


def test_splits_stay_splits(tmp_path):
    source, out = tmp_path / "source", tmp_path / "out"
    counts = {"train": 3, "validation": 1, "test": 2}
    for split, count in counts.items():
        rows = [{"turns": [*SAID[:3], f"{split} {i}"], "rating": i} for i in range(count)]
        (source / split).mkdir(parents=True)
        (source / split / "part.jsonl").write_text("\n".join(map(json.dumps, rows)), "utf-8")
    assert "splits   train (3), test (2), validation" in succeed(
        "import", str(source), "--out", str(out)
    )
    assert len(load_dataset(out)) == 3  # what commands train on
    for split, count in counts.items():
        dataset = load_dataset(out, split=split)
        assert [texts(dataset, i)[-1] for i in range(count)] == [
            f"{split} {i}" for i in range(count)
        ]
        env_id, settings = dataset.environment()
        env = dialgym.make(env_id, **settings)
        env.reset(options=json.loads(dataset[count - 1]["options"]))
        assert env.unwrapped.task.corpus.texts[-1] == f"{split} {count - 1}"
        assert len(env.unwrapped.task.corpus) == count
        again = load_dataset(dataset.save(tmp_path / f"saved-{split}"))
        assert again.environment()[1] == {"data": str(tmp_path / f"saved-{split}")} | {
            "window": settings["window"]
        }


def test_splits_that_rows_tell(tmp_path):
    rows = [{"turns": SAID, "data_split": split} for split in ("train", "test", "challenge")]
    dataset = Dataset.from_dialogues(rows, tmp_path / "out")
    assert len(dataset) == 1
    assert dataset.report.left_out == {"dialogues of the split 'challenge' (--split takes them)": 1}
    assert sorted(f.name for f in (tmp_path / "out").glob("*.parquet")) == [
        "test.parquet", "train.parquet",
    ]  # fmt: skip
    with pytest.raises(ValueError, match="no Parquet files of the split 'validation'; it has test"):
        load_dataset(tmp_path / "out", split="validation")
    (tmp_path / "out" / "train.parquet").unlink()
    (tmp_path / "out" / "train.parquet.sha256").unlink()
    assert len(load_dataset(tmp_path / "out")) == 1  # the only one there is


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
    with (tmp_path / "own.csv").open("w", encoding="utf-8", newline="") as file:
        table = csv.DictWriter(file, list(rows[0]))
        table.writeheader()
        table.writerows(rows)
    dataset = Dataset.from_dialogues(tmp_path / "own.csv", tmp_path / "out")
    assert dataset.returns.tolist() == expected


def test_what_to_learn_by_is_told_by_the_returns(tmp_path):
    for rating, advice in ((None, "bc"), (1, "ilql")):
        lines = [{"turns": SAID, "rating": rating and rating * i} for i in range(2)]
        file, out = tmp_path / f"{advice}.jsonl", str(tmp_path / advice)
        file.write_text("\n".join(map(json.dumps, lines)), "utf-8")
        printed = succeed("import", str(file), "--out", out)
        assert f"dialgym train {advice} dialgym/Logged-v0 --data {out}" in printed
        assert ("all returns are 0, so that there is nothing to prefer" in printed) == (
            advice == "bc"
        )


def nested(depth):
    return json.loads("[" * depth + '"Hello there."' + "]" * depth)


def test_values_within_one_another_without_end(tmp_path):
    lines = [json.dumps({"turns": SAID}), json.dumps({"turns": [nested(900), *SAID]})]
    (tmp_path / "a.jsonl").write_text("\n".join(lines), "utf-8")
    with pytest.raises(ValueError, match=r"a\.jsonl, line 2: expected JSON \(more than 100 values"):
        import_dialogues(tmp_path / "a.jsonl", tmp_path / "out")
    rows = [{"turns": SAID}, {"turns": nested(900)}, {"turns": [*SAID * 2, nested(900)]}]
    report = import_dialogues(rows, tmp_path / "out")
    assert report.left_out == {"rows without utterances": 1, "turns without words": 1}


def seconds_of(rows, folder):
    begun = time.process_time()
    import_dialogues(rows, folder)
    return time.process_time() - begun


@pytest.mark.slow
@pytest.mark.parametrize(
    "row",
    [
        lambda n: {"turns": [f"Hello number {i} there." for i in range(n)], "rating": 1},
        lambda n: {"turns": ["x" * (5 * n), "Pardon?"], "rating": 1},
    ],
    ids=["turns", "a word"],
)
def test_time_grows_as_dialogues_do(row, tmp_path):
    import_dialogues([row(10)], tmp_path / "warm")
    short, long = (seconds_of([row(n)], tmp_path / f"{n}") for n in (1_000, 48_000))
    assert long < 96 * short  # 48 at most where each part is looked at once


NEGOTIATION = (
    "<input> 2 2 3 2 1 0 </input> <dialogue> THEM: i need that ball <eos> YOU: sure <eos> "
    "THEM: <selection> </dialogue> <output> item0=2 item1=3 item2=0 item0=0 item1=0 item2=1 "
    "</output> <partner_input> 2 0 3 1 1 7 </partner_input>\n"
    "<input> 2 0 3 1 1 7 </input> <dialogue> YOU: i need that ball <eos> THEM: no <eos> "
    "YOU: <selection> </dialogue> <output> <disagree> <disagree> </output> "
    "<partner_input> 2 2 3 2 1 0 </partner_input>\n"
)


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
    (tmp_path / "bad.txt").write_text(NEGOTIATION + "<input> 1 2 3 </input>", "utf-8")
    with pytest.raises(ValueError, match=r"bad\.txt, line 3: expected <input> three counts"):
        import_dialogues(tmp_path / "bad.txt", tmp_path / "no")


@pytest.mark.parametrize(
    "content",
    [
        {"messages": MESSAGES},
        {"version": 1, "data": [{"messages": MESSAGES}]},
        {"conversations": [{"messages": MESSAGES}]},
        {"one": {"messages": MESSAGES}},
        [SAID],
        {
            "rows": [
                {"dialogue_id": d, "speaker": "ab"[i % 2], "text": text}
                for d in (1, 2)
                for i, text in enumerate(SAID)
            ]
        },
    ],
)
def test_objects_in_json(content, tmp_path):
    (tmp_path / "a.json").write_text(json.dumps(content), "utf-8")
    assert texts(Dataset.from_dialogues(tmp_path / "a.json", tmp_path / "out")) == SAID


def test_long_ones_lose_their_beginning(tmp_path):
    long = {"turns": SAID * 40, "rating": 3}
    choices = Choices(window=64, utterance_tokens=16)
    report = import_dialogues([long, {"turns": SAID, "rating": 1}], tmp_path / "out", choices)
    assert report.understood["shortened"] == {"dialogues to their last 64 tokens": 1}
    dataset = load_dataset(tmp_path / "out")
    assert dataset.returns.tolist() == [3, 1]
    assert texts(dataset)[-1] == SAID[-1]
    assert dataset.tokens().lengths.max() <= 64


def test_another_script_is_kept(tmp_path):
    said = ["Где мой заказ?", "Он уже в пути.", "Спасибо большое!", "Пожалуйста."]
    dataset = Dataset.from_dialogues([said] * 3, tmp_path / "out")
    assert texts(dataset) == said
    env = dialgym.make("dialgym/Logged-v0", data=str(tmp_path / "out"))
    tokenizer = env.unwrapped.tokenizer
    assert [tokenizer.decode(tokenizer.encode(text)) for text in said] == said


def test_joiners_are_kept_and_other_characters_that_go_are_counted(tmp_path):
    said = ["می\u200cخواهم چای", "\u200bبله \u200f", "👩\u200d🍳 باشه", "خوب"]
    dataset = Dataset.from_dialogues([said] * 2, tmp_path / "out")
    assert texts(dataset) == [said[0], "بله", *said[2:]]
    reason = "characters, such as ZERO WIDTH SPACE, RIGHT-TO-LEFT MARK"
    assert dataset.report.left_out == {reason: 4}
    ascii_only = Dataset.from_dialogues([[*SAID * 3, "Déjà vu \N{THUMBS UP SIGN}"]], tmp_path / "2")
    assert texts(ascii_only)[-1] == "Deja vu"
    assert ascii_only.report.left_out == {"characters, such as THUMBS UP SIGN": 1}


def test_halves_of_characters_are_one_clear_reason(tmp_path):
    lines = [{"turns": [*SAID[:3], last]} for last in ("Tea\ud83d.", "\ud83d", "\ud83d\udc4d yes")]
    (tmp_path / "a.jsonl").write_text("\n".join(map(json.dumps, lines)), "utf-8")
    dataset = Dataset.from_dialogues(tmp_path / "a.jsonl", tmp_path / "out")
    assert [texts(dataset, row)[-1] for row in (0, 1)] == ["Tea.", "\N{THUMBS UP SIGN} yes"]
    broken = "broken characters (lone surrogates, U+FFFD)"
    assert dataset.report.left_out[broken] == 2
    assert dataset.report.examples[broken] == "a.jsonl, line 1"
    wordle = Dataset.from_dialogues(tmp_path / "a.jsonl", tmp_path / "2", task="Wordle-v0")
    assert len(wordle) == 3
    with pytest.raises(ValueError, match=r"(?s)no dialogue is left.* broken characters .*row 0"):
        Dataset.from_dialogues([["Hello.", "\ud83d"]], tmp_path / "3")


def test_rows_come_by_their_turns_where_these_are_numbers(tmp_path):
    rows = [
        {"dialogue_id": d, "turn": str(turn), "text": SAID[turn]}
        for turn in (2, 0, 3, 1)
        for d in (1, 2)
    ]
    dataset = Dataset.from_dialogues(rows, tmp_path / "out")
    assert [texts(dataset, row) for row in (0, 1)] == [SAID, SAID]
    assert "order from 'turn'" in dataset.report.to_text()
    parties = [{**row, "turn": "ab"[int(row["turn"]) % 2]} for row in rows]
    unsorted = Dataset.from_dialogues(parties, tmp_path / "2", speaker="turn")
    assert texts(unsorted)[0] == f"{SAID[2]} {SAID[0]}"


@pytest.mark.parametrize(
    "rows",
    [
        [{"turns": SAID, "rating": rating} for rating in ("4/5", "good", "n/a")],
        [
            {
                "messages": [
                    {**m, "rating": r} for m, r in zip(MESSAGES, ["4/5", "good", "n/a", None])
                ]
            }
        ],
        [
            {"dialogue_id": 1, "speaker": who, "text": text, "rating": rating}
            for who, text, rating in zip("abab", SAID, ["4/5", "good", "n/a", None])
        ],
        [{"turns": SAID, "ratings": {"a": "4/5", "b": "good", "c": "n/a"}}],
    ],
    ids=["dialogues", "turns", "table", "mapping"],
)
def test_ratings_that_cannot_be_read_are_said(rows, tmp_path):
    report = import_dialogues(rows, tmp_path / "out")
    assert report.left_out["ratings that are no numbers"] == 2
    assert "2: ratings that are no numbers (first '4/5' in row " in report.to_text()


def test_the_env_shows_what_the_arrays_hold(tmp_path):
    dataset = Dataset.from_dialogues([{"turns": SAID, "rating": 2}] * 2, tmp_path / "out")
    env_id, settings = dataset.environment()
    env = dialgym.make(env_id, **settings)
    seen, _ = env.reset(options={"dialogue": 0})
    data = dataset.tokens()
    row = data.batch([0])
    for place in np.flatnonzero(row.is_action[0]):
        assert seen[:place].tolist() == row.tokens[0, :place].tolist()
        seen, _, over, *_ = env.step(int(row.tokens[0, place]))
    assert over
    assert row.reward.sum() == 2


def test_a_folder_can_be_moved_split_and_exported(tmp_path):
    rows = [{"turns": [*SAID[:3], f"Here is cup {i}."], "rating": i} for i in range(20)]
    import_dialogues(rows, tmp_path / "out")
    (tmp_path / "out").rename(tmp_path / "moved")
    moved = load_dataset(tmp_path / "moved")
    assert moved.environment()[1]["data"] == str(tmp_path / "moved")
    printed = succeed(
        "data", "split", str(tmp_path / "moved"), "--out", str(tmp_path / "parts"), "--share", "0.6"
    )
    assert printed.count("dialogues in") == 2
    (tmp_path / "moved").rename(tmp_path / "gone")
    parts = [load_dataset(tmp_path / "parts" / name) for name in ("train", "test")]
    assert sum(map(len, parts)) == 20
    last = len(parts[1]) - 1
    env = dialgym.make("dialgym/Logged-v0", **parts[1].environment()[1])
    env.reset(options=json.loads(parts[1][last]["options"]))
    assert env.unwrapped.task.corpus.texts[-1] == texts(parts[1], last)[-1]

    for name in ("talk.jsonl", "talk.csv"):
        file = str(tmp_path / name)
        assert "dialogues in" in succeed("data", "export", str(tmp_path / "gone"), "--out", file)
        again = Dataset.from_dialogues(file, tmp_path / f"again-{name}")
        assert again.returns.tolist() == moved.returns.tolist()
        assert texts(again, 5) == texts(moved, 5)
    assert "must be one of '.jsonl', '.csv'" in fail(
        "data", "export", str(tmp_path / "gone"), "--out", str(tmp_path / "a.xml")
    )


def test_describe_and_merge(tmp_path):
    for name in ("a", "b"):
        import_dialogues([{"turns": SAID, "rating": 1}], tmp_path / name)
        games = dialgym.collect("Wordle-20-v0", "random", 3, seed=ord(name))
        games.save(tmp_path / f"w{name}")
    shown = succeed("data", "describe", str(tmp_path / "a"))
    assert "dialogues   1, 2 utterances of the learner" in shown
    assert "system: Here is your tea.  (1)" in shown
    merged = str(tmp_path / "merged")
    succeed("data", "merge", str(tmp_path / "wa"), str(tmp_path / "wb"), "--out", merged)
    assert len(load_dataset(merged)) == 6
    error = fail("data", "merge", str(tmp_path / "a"), str(tmp_path / "b"), "--out", merged + "2")
    assert "import their files together instead" in error
    assert "holds something already" in fail(
        "data", "merge", str(tmp_path / "wa"), "--out", str(tmp_path / "wb")
    )
    assert len(concatenate([load_dataset(merged)])) == 6


def test_dialogues_of_a_task_of_ones_choice(tmp_path):
    games = [["crane", "b y b b g", "shine", "g g g g g"], ["x" * 9000, "b b b b b"]]
    turns = [[["system" if i % 2 == 0 else "user", t] for i, t in enumerate(g)] for g in games]
    rows = [{"turns": t, "reward": -1.0} for t in turns]
    dataset = Dataset.from_dialogues(rows, tmp_path / "out", task="Wordle-200-v0")
    assert dataset.environment()[0] == "dialgym/Wordle-200-v0"
    data = dataset.tokens()
    assert data.layout.tokenizer.decode(data.tokens[1:6]) == "crane"
    with pytest.raises(ValueError, match="Did you mean"):
        Dataset.from_dialogues(rows, tmp_path / "no", task="Wordle-20-v9")
