"""Imported dialogues: their splits, characters and folders, trained on, exported and merged."""

import json
import time

import numpy as np
import pytest

import dialgym
from dialgym.datasets import Dataset, concatenate, load_dataset
from dialgym.datasets.foreign import Choices, import_dialogues
from tests.support.commands import fail, succeed
from tests.support.shop_talk import SAID, texts, write_jsonl


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
        write_jsonl(source / split / "part.jsonl", rows)
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


@pytest.mark.parametrize(("rating", "advice"), [(None, "bc"), (1, "ilql")])
def test_what_to_learn_by_is_told_by_the_returns(rating, advice, tmp_path):
    lines = [{"turns": SAID, "rating": rating and rating * i} for i in range(2)]
    file, out = write_jsonl(tmp_path / "a.jsonl", lines), str(tmp_path / advice)
    printed = succeed("import", str(file), "--out", out)
    assert f"dialgym train {advice} dialgym/Logged-v0 --data {out}" in printed
    assert ("all returns are 0, so that there is nothing" in printed) == (advice == "bc")


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


def test_joiners_are_kept_and_other_characters_that_go_are_counted():
    said = ["می\u200cخواهم چای", "\u200bبله \u200f", "👩\u200d🍳 باشه", "خوب"]
    dataset = Dataset.from_dialogues([said] * 2)
    assert texts(dataset) == [said[0], "بله", *said[2:]]
    reason = "characters, such as ZERO WIDTH SPACE, RIGHT-TO-LEFT MARK"
    assert dataset.report.left_out == {reason: 4}
    ascii_only = Dataset.from_dialogues([[*SAID * 3, "Déjà vu \N{THUMBS UP SIGN}"]])
    assert texts(ascii_only)[-1] == "Deja vu"
    assert ascii_only.report.left_out == {"characters, such as THUMBS UP SIGN": 1}


def test_halves_of_characters_are_one_clear_reason(tmp_path):
    lines = [{"turns": [*SAID[:3], last]} for last in ("Tea\ud83d.", "\ud83d", "\ud83d\udc4d yes")]
    file = write_jsonl(tmp_path / "a.jsonl", lines)
    dataset = Dataset.from_dialogues(file)
    assert [texts(dataset, row)[-1] for row in (0, 1)] == ["Tea.", "\N{THUMBS UP SIGN} yes"]
    broken = "broken characters (lone surrogates, U+FFFD)"
    assert dataset.report.left_out[broken] == 2
    assert dataset.report.examples[broken] == "a.jsonl, line 1"
    assert len(Dataset.from_dialogues(file, task="Wordle-v0")) == 3


def test_the_env_shows_what_the_arrays_hold():
    dataset = Dataset.from_dialogues([{"turns": SAID, "rating": 2}] * 2)
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


@pytest.mark.parametrize("ending", [".jsonl", ".csv"])
def test_what_a_learner_was_told_in_private_is_exported_as_heard(ending, tmp_path):
    """Else a clone of what is read again says its own prices aloud."""
    games = dialgym.collect("CarDealer-v0", "random", 4, seed=0)
    games.export(tmp_path / f"games{ending}")
    again = Dataset.from_dialogues(tmp_path / f"games{ending}", tmp_path / "again")
    said, others = (
        [[turn["text"] for turn in row["turns"] if turn["said"]] for row in data]
        for data in (games, again)
    )
    assert others == said
    for one, other in zip(games, again, strict=True):
        first = one["turns"][0]
        assert (first["party"], first["said"]) == ("system", False)
        assert other["turns"][0]["text"].startswith(first["text"])


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


def test_dialogues_of_a_task_of_your_choice():
    games = [["crane", "b y b b g", "shine", "g g g g g"], ["x" * 9000, "b b b b b"]]
    turns = [[["system" if i % 2 == 0 else "user", t] for i, t in enumerate(g)] for g in games]
    rows = [{"turns": t, "reward": -1.0} for t in turns]
    dataset = Dataset.from_dialogues(rows, task="Wordle-200-v0")
    assert dataset.environment()[0] == "dialgym/Wordle-200-v0"
    data = dataset.tokens()
    assert data.layout.tokenizer.decode(data.tokens[1:6]) == "crane"


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
