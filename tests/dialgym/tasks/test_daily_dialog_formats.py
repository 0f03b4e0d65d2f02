"""One set of dialogues in every format, whole and broken."""

import gzip
import io
import json
from pathlib import Path
from zipfile import ZipFile

import numpy as np
import pyarrow as pa
import pyarrow.parquet
import pytest

from dialgym.tasks.daily_dialog import corpus as corpora
from dialgym.tasks.daily_dialog.corpus import load_corpus, load_splits
from dialgym.tasks.daily_dialog.formats import EMOTIONS
from tests.support.everyday_talk import ACTS, rows, write_jsonl


def convlab(path: Path) -> Path:
    """ConvLab's unified format, zipped."""
    unified = []
    for row in rows():
        turns = [
            {
                "speaker": ("user", "system")[i % 2],
                "utterance": text,
                "dialogue_acts": {"binary": [{"intent": act, "domain": "", "slot": ""}]},
                "emotion": emotion,
            }
            for i, (text, act, emotion) in enumerate(
                zip(row["turns"], row["acts"], row["emotions"])
            )
        ]
        unified.append({"data_split": row["split"], "domains": ["Work"], "turns": turns})
    with ZipFile(path / "data.zip", "w") as archive:
        archive.writestr("data/dialogues.json", json.dumps(unified))
        archive.writestr("data/ontology.json", json.dumps({"domains": {}}))
    return path / "data.zip"


def original_files(split: str | None) -> dict[str, str]:
    """The three files of DailyDialog's release, of one split or of all."""
    chosen = [row for row in rows() if split in (None, row["split"])]
    texts = "".join(" __eou__ ".join(row["turns"]) + " __eou__\n" for row in chosen)
    acts = "".join(" ".join(str(ACTS.index(a) + 1) for a in row["acts"]) + " \n" for row in chosen)
    emotions = "".join(" ".join("4" for _ in row["turns"]) + " \n" for row in chosen)
    return {"": texts, "act_": acts, "emotion_": emotions}


def original(path: Path) -> Path:
    """DailyDialog's release: a zip with all dialogues, and zips of the splits within it."""
    with ZipFile(path / "ijcnlp_dailydialog.zip", "w") as archive:
        for kind, content in original_files(None).items():
            name = kind.rstrip("_") or "text"
            archive.writestr(f"ijcnlp_dailydialog/dialogues_{name}.txt", content)
        archive.writestr("ijcnlp_dailydialog/dialogues_topic.txt", "1\n1\n1\n1\n")
        for split in ("train", "test"):
            inner = io.BytesIO()
            with ZipFile(inner, "w") as zipped:
                for kind, content in original_files(split).items():
                    zipped.writestr(f"{split}/dialogues_{kind}{split}.txt", content)
            archive.writestr(f"ijcnlp_dailydialog/{split}.zip", inner.getvalue())
    return path / "ijcnlp_dailydialog.zip"


def unzipped(path: Path) -> Path:
    with ZipFile(original(path)) as archive:
        archive.extractall(path / "folder")
    for split in ("train", "test"):
        zipped = path / "folder" / "ijcnlp_dailydialog" / f"{split}.zip"
        with ZipFile(zipped) as archive:
            archive.extractall(zipped.parent)
        zipped.unlink()
    return path / "folder"


def jsonl(path: Path) -> Path:
    return Path(write_jsonl(path / "dialogues.jsonl", rows()))


def gzipped(path: Path) -> Path:
    target = path / "dialogues.jsonl.gz"
    target.write_bytes(gzip.compress(jsonl(path).read_bytes()))
    return target


def numbered(path: Path) -> Path:
    """Rows as on the hub: numbers for names, a file for each split."""
    folder = path / "numbered"
    folder.mkdir()
    for split in ("train", "test"):
        table = [
            {
                "dialog": row["turns"],
                "act": [ACTS.index(a) + 1 for a in row["acts"]],
                "emotion": [EMOTIONS.index(e) for e in row["emotions"]],
            }
            for row in rows()
            if row["split"] == split
        ]
        pa.parquet.write_table(pa.Table.from_pylist(table), folder / f"{split}-0000.parquet")
    return folder


FORMATS = {f.__name__: f for f in (jsonl, gzipped, convlab, original, unzipped, numbered)}


def content(splits) -> dict:
    """The content that was read, without the numbers of names."""
    return {
        split: (
            list(corpus.texts),
            [corpus.act_names[a] for a in corpus.acts],
            [corpus.emotion_names[e] for e in corpus.emotions],
            corpus.offsets.tolist(),
        )
        for split, corpus in splits.items()
    }


@pytest.fixture
def expected(tmp_path_factory):
    return content(load_splits(jsonl(tmp_path_factory.mktemp("expected"))))


def test_what_is_read(expected):
    assert list(expected) == ["train", "test"]
    texts, acts, emotions, offsets = expected["train"]
    assert texts[5:8] == ["Any tea?", "Yes, please.", "Here you are."]
    assert acts[5:8] == ["inform", "inform", "question"]
    assert set(emotions) == {"happiness"}
    assert offsets == [0, 5, 8, 10]


@pytest.mark.parametrize("kind", FORMATS)
def test_formats(tmp_path, kind, expected):
    assert content(load_splits(FORMATS[kind](tmp_path))) == expected


def test_a_dataset_of_the_hub(tmp_path, expected, pretend_hub):
    pretend_hub.add("who/talk", numbered(tmp_path), "v1")
    assert content(load_splits("hf:who/talk@v1")) == expected


def test_splits_that_a_card_names(tmp_path, expected):
    folder = numbered(tmp_path)
    (folder / "train-0000.parquet").rename(folder / "a.parquet")
    (folder / "test-0000.parquet").rename(folder / "b.parquet")
    files = "[{split: train, path: a.parquet}, {split: test, path: 'b*'}]"
    (folder / "README.md").write_text(f"---\nconfigs:\n- data_files: {files}\n---\n")
    assert content(load_splits(folder)) == expected


def test_text_is_made_plain(tmp_path):
    path = write_jsonl(tmp_path / "t.jsonl", [{"turns": ["It’s\tme —", {"text": "Café?\nYes"}]}])
    assert load_corpus(path, "train").texts == ["It's me -", "Cafe? Yes"]


def test_acts_and_emotions_of_other_names(tmp_path):
    rows = [{"turns": ["a", "b"], "acts": ["greet", "inform"], "emotions": ["calm", "anger"]}]
    corpus = load_corpus(write_jsonl(tmp_path / "t.jsonl", rows), "train")
    assert [corpus.labels(0, i) for i in (0, 1)] == [
        {"act": "greet", "emotion": "calm"},
        {"act": "inform", "emotion": "anger"},
    ]


def test_breaks_within_an_utterance_are_no_lines(tmp_path):
    turns = ["one\u2028two", "three\x85four", "five\x0bsix"]
    path = write("t.jsonl", json.dumps({"turns": turns}, ensure_ascii=False) + "\r\n")(tmp_path)
    assert load_corpus(path, "train").texts == ["one two", "three four", "five six"]
    original = write("dialogues_text.txt", " __eou__ ".join([*turns, "\n"]))(tmp_path / "d")
    assert load_corpus(original, "train").texts == ["one two", "three four", "five six"]


def test_lists_of_a_table_are_json(tmp_path):
    table = 'dialog,act\n"[""Hi."", ""Hello.""]","[1, 2]"\n'
    corpus = load_corpus(write("t.csv", table)(tmp_path), "train")
    assert corpus.texts == ["Hi.", "Hello."]
    assert [corpus.labels(0, turn)["act"] for turn in (0, 1)] == ["inform", "question"]


def write(name: str, text: str | bytes):
    """Make a function that writes a file of that name."""

    def make(path: Path) -> Path:
        target = path / name
        target.parent.mkdir(exist_ok=True)
        target.write_bytes(text if isinstance(text, bytes) else text.encode())
        return target

    return make


def with_acts(acts: str):
    """Make a function that writes the release's files: two dialogues of two turns, these acts."""

    def make(path: Path) -> Path:
        texts = "Hi. __eou__ Hello. __eou__\nA __eou__ B __eou__\n"
        (path / "dialogues_text.txt").write_text(texts)
        (path / "dialogues_act.txt").write_text(acts)
        return path

    return make


GOOD = '{"turns": ["Hi.", "Hello."]}\n'
FAULTS = {
    "missing file": (lambda path: path / "no.zip", "there is no file or folder '.*no.zip'"),
    "missing folder": (lambda path: path / "no/where", "there is no file or folder"),
    "no JSON": (write("a.jsonl", GOOD + "{oops\n"), "a.jsonl, line 2: expected JSON"),
    "not a row": (write("a.jsonl", GOOD + "[1]\n"), r"a.jsonl, line 2: expected an object .*\[1\]"),
    "no utterances": (
        write("a.jsonl", GOOD + '{"words": 1}\n'),
        "a.jsonl, line 2: expected utterances as dialog or dialogue or utterances or turns"),
    "no text": (
        write("a.jsonl", '{"turns": [1]}\n'), "line 1: expected text as an utterance; got 1"),
    "too few acts": (
        write("a.jsonl", GOOD + '{"turns": ["a", "b"], "acts": [1]}\n'),
        "a.jsonl, line 2: 2 utterances, but 1 of act"),
    "no such act": (
        write("a.jsonl", '{"turns": ["a"], "act": [5]}\n'),
        "line 1: expected act from 0 to 4; got 5"),
    "acts that are no list": (
        write("a.jsonl", '{"turns": ["a", "b"], "act": 3}\n'),
        "line 1: expected a list of labels as act; got 3"),
    "acts that are none": (
        write("a.jsonl", '{"turns": ["a", "b"], "act": [1, [2]]}\n'),
        r"line 1: expected act from 0 to 4; got \[2\]"),
    "a list that is no JSON": (
        write("a.csv", "dialog,act\n\"['Hi.' 'Hello.']\",[3 4]\n"),
        r"a.csv, line 2: expected utterances as dialog .*; got \"\['Hi"),
    "no gzip": (write("a.jsonl.gz", "hello"), "a.jsonl.gz: expected a file of gzip, whole"),
    "half a gzip": (
        write("a.jsonl.gz", gzip.compress(b"{}" * 99)[:-9]),
        "a.jsonl.gz: expected a file of gzip, whole"),
    "a field too long": (
        write("a.csv", "dialog\n" + "x" * 200_000 + "\n"),
        r"a.csv, line 2: expected utterances as .*; got 'x{79}\.$"),
    "no list": (write("dialogues.json", '{"a": 1}'), "dialogues.json: expected a list of rows"),
    "broken JSON": (write("dialogues.json", "[1,"), "dialogues.json: expected JSON"),
    "no zip": (write("data.zip", "hello"), "data.zip: expected a zip"),
    "no UTF-8": (write("a.jsonl", b"\xff\xfe{}"), "a.jsonl: expected text in UTF-8"),
    "no Parquet": (write("a.parquet", "hello"), "a.parquet: expected a Parquet file"),
    "nothing known": (
        lambda path: write("d/read.me", "")(path).parent,
        "expected dialogues.json, dialogues_text.txt or files of rows .* got read.me"),
    "empty": (write("a.jsonl", "\n"), "has no dialogues. Give data that has at least one"),
    "mismatch": (
        with_acts("1 1\n1 2 3\n"), "dialogues_text.txt, row 2: 2 utterances, but 3 of act"),
    "too few lines": (
        with_acts("1 1\n"), "dialogues_text.txt, row 2: texts, acts and emotions have not"),
}  # fmt: skip


@pytest.mark.parametrize("fault", FAULTS)
def test_faults(tmp_path, fault):
    make, message = FAULTS[fault]
    with pytest.raises(ValueError, match=message):
        load_splits(str(make(tmp_path)))


def test_a_name_that_is_neither_file_nor_dataset():
    with pytest.raises(ValueError, match=r"data of DailyDialog: there is no .*'hf:no-one/nowhere'"):
        load_splits("no-one/nowhere")


def test_an_unknown_split(tmp_path):
    with pytest.raises(ValueError, match=r"unknown split 'tset'.* Did you mean 'test'"):
        load_corpus(str(jsonl(tmp_path)), "tset")


def test_read_once_per_process_and_again_when_the_file_changes(tmp_path, monkeypatch):
    path = jsonl(tmp_path)
    first = load_splits(path)
    assert load_splits(str(path)) is first
    corpora._load.cache_clear()
    monkeypatch.setattr(corpora, "read_dialogues", None)  # from the cache on disk
    again = load_splits(path)
    assert content(again) == content(first)
    monkeypatch.undo()
    write_jsonl(path, rows()[:2])
    assert len(load_splits(path)["train"]) == 2


@pytest.mark.slow
def test_the_real_data(data):
    """All of DailyDialog; the counts are those that its paper and its release give."""
    splits = load_splits(data / "dailydialog_unified" / "data.zip")
    assert {name: len(corpus) for name, corpus in splits.items()} == {
        "train": 11118,
        "validation": 1000,
        "test": 1000,
    }
    train = splits["train"]
    assert len(train.texts) == 87170
    assert train.acts.all()
    assert np.diff(train.offsets).min() >= 2
    assert len(train.places(5)) == 35781
