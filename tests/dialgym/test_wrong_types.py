"""Corpora whose fields hold values of other types: each is read sanely, or one clear error."""

import copy
import json
import os
import sqlite3
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

import dialgym
from dialgym.io.tables import locate
from dialgym.tasks.comments.corpus import load_splits
from dialgym.tasks.daily_dialog.formats import read_dialogues
from dialgym.tasks.multiwoz.corpus import MultiWOZCorpus
from dialgym.tasks.multiwoz.data import load_world
from dialgym.tasks.slot_filling.domain.domain import find_faults, load_domain
from dialgym.tasks.twenty_questions.table import load_table
from dialgym.tasks.visual_dialogue.visdial import VisDialPool
from tests.support import small_city

VALUES: tuple[Any, ...] = (
    *(None, True, 7, -1, 10**30, 1.5, "x", "", "1", [], [7], ["x"], [None], {}, {"a": 7}),
    *({"x": {"y": 7}}, [[["x"]]], json.loads("[" * 90 + "]" * 90)),
)
BY_DAY = (None, True, 10**30, 1.5, "x", [], [None], {"a": 7}, VALUES[-1])
"""One of each type; the fields of a corpus by all of them are tried at night."""
CONVLAB2 = {
    "d1": {
        "goal": {"hotel": {"info": {"area": "east"}, "reqt": ["phone"], "book": {}}},
        "log": [
            {"text": "a", "dialog_act": {"Hotel-Inform": [["Area", "east"]]}},
            {"text": "b", "dialog_act": {"Hotel-Inform": [["Phone", "1"]]}},
        ],
    }
}
ACT = {"intent": "inform", "domain": "hotel", "slot": "area", "value": "east"}
UNIFIED = [
    {
        "data_split": "train",
        "goal": {"inform": {"hotel": {"area": "east"}}, "request": {"hotel": {"phone": ""}}},
        "turns": [
            {"speaker": "user", "dialogue_acts": {"categorical": [ACT], "binary": []}},
            {"speaker": "system", "dialogue_acts": {"non-categorical": [ACT], "binary": [ACT]}},
        ],
    }
]
EVERYDAY = [
    {
        "data_split": "train",
        "turns": [
            {
                "speaker": "user", "utterance": "Hello there.", "emotion": "happiness",
                "dialogue_acts": {"binary": [{"intent": "inform"}]},
            },
            {"utterance": "Good day.", "emotion": 0, "dialogue_acts": {"binary": []}},
        ],
    },
    {"dialog": ["Hello.", "Fine."], "act": [1, 2], "emotion": [0, 4], "split": "test"},
]  # fmt: skip
COMMENTS = [{"parent": "What?", "comment": "A thing.", "score": 3, "toxicity": 0, "split": "test"}]
ROUND = {"question": 0, "answer": 1, "answer_options": [0, 1, 2]}
VISDIAL = {
    "split": "val",
    "data": {
        "questions": ["is it red", "is it big"],
        "answers": ["yes", "no", "can't tell"],
        "dialogs": [{"image_id": i, "caption": "a dog", "dialog": [ROUND]} for i in (1, 2)],
    },
}
DOMAIN = {
    "type": "bar",
    "requestable": ["name", "food"],
    "system_requestable": ["food"],
    "informable": {"name": ["a", "b"], "food": ["thai", "pub"]},
}
ROWS = [{"name": "a", "food": "thai"}, {"name": "b", "food": "pub"}]
THINGS = [{"name": "cat", "can fly": "0"}, {"name": "owl", "can fly": "1"}]
CITY = small_city.tables()
LISTED = {
    "hotel": {"area": ["east", "south"], "type": ["hotel"]},
    "taxi": {"types": ["cab"], "colors": ["red"]},
}


def in_corpus(file: Path) -> None:
    corpus = MultiWOZCorpus(file)
    if len(corpus):
        dialgym.collect("MultiWOZ-act-v0", "corpus", len(corpus), policy_kwargs={"path": str(file)})


def in_domain(file: Path) -> None:
    connection = sqlite3.connect(file.with_name("Bars-dbase.db"))
    connection.executescript("DROP TABLE IF EXISTS Bars; CREATE TABLE Bars(name, food);")
    connection.executemany("INSERT INTO Bars VALUES (:name, :food)", ROWS)
    connection.commit()
    connection.close()
    find_faults(load_domain(file))


def in_city(name: str) -> Callable[[Path], None]:
    return lambda file: load_world(
        small_city.write_city(file.parent / "city", **{name: file.read_text("utf-8")})
    ) and None  # fmt: skip


KINDS: dict[str, tuple[str, Any, Callable[[Path], Any]]] = {
    "ConvLab-2": ("own.json", CONVLAB2, in_corpus),
    "ConvLab-3": ("own.json", UNIFIED, in_corpus),
    "everyday": ("own.json", EVERYDAY, lambda file: list(read_dialogues(file))),
    "comments": ("own.json", COMMENTS, lambda file: load_splits(file)),
    "visual": ("own.json", VISDIAL, VisDialPool),
    "ontology": ("Bars-rules.json", DOMAIN, in_domain),
    "domain": ("Bars.yml", {**DOMAIN, "rows": ROWS}, lambda file: find_faults(load_domain(file))),
    "things": ("own.json", THINGS, lambda file: load_table(file, "TwentyQuestions")),
    "values": ("value_set.json", LISTED, in_city("value_set")),
    **{
        name: (f"{name}_db.json", CITY[name][:2] if name != "taxi" else CITY[name],
               in_city(f"{name}_db"))
        for name in CITY
    },
}  # fmt: skip
NAMED = ("own.json", "Bars", "_db.json", "value_set.json")


def places(value: Any, at: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """The whole, and each field within."""
    yield at
    parts = dict(enumerate(value)) if isinstance(value, list) else value
    for name, part in parts.items() if isinstance(parts, dict) else ():
        yield from places(part, (*at, name))


def replaced(value: Any, at: tuple[Any, ...], new: Any) -> Any:
    """A copy with another value at a place."""
    if not at:
        return new
    value = part = copy.deepcopy(value)
    for name in at[:-1]:
        part = part[name]
    part[at[-1]] = new
    return value


SLOW = {"attraction", "restaurant", "train", "taxi", "hospital", "police"}
"""Kinds that nightly tests: they are read as those of the hotels are."""


@pytest.mark.parametrize(
    "kind", [pytest.param(kind, marks=[pytest.mark.slow] * (kind in SLOW)) for kind in KINDS]
)
@pytest.mark.parametrize(
    "values", [BY_DAY, pytest.param(VALUES, marks=pytest.mark.slow)], ids=["some", "all"]
)
def test_every_field_with_values_of_other_types(kind, values, tmp_path, monkeypatch):
    monkeypatch.setenv("DIALGYM_CACHE", str(tmp_path / "cache"))
    name, good, read = KINDS[kind]
    file = tmp_path / name
    file.write_text(json.dumps(good), "utf-8")
    read(file)
    refused, unclear = 0, []
    for at in places(good):
        for new in values:
            file.write_text(json.dumps(replaced(good, at, new)), "utf-8")
            try:
                read(file)
            except ValueError as error:
                refused += 1
                if not any(part in str(error) for part in NAMED) or len(str(error)) > 1_000:
                    unclear.append((at, new, f"{error}"[:200]))
            except Exception as error:
                unclear.append((at, new, f"{type(error).__name__}: {error}"[:200]))
    assert not unclear, unclear[:5]
    assert refused > len(values)


@pytest.mark.parametrize("kind", KINDS)
def test_values_within_one_another_without_end(kind, tmp_path):
    name, _, read = KINDS[kind]
    (tmp_path / name).write_text('{"a": ' + "[" * 900 + "]" * 900 + "}", "utf-8")
    with pytest.raises(ValueError, match=r"more than 100 values within one another"):
        read(tmp_path / name)


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="no pipes")
@pytest.mark.parametrize(
    ("name", "read"),
    [
        *(
            (name, read)
            for name, _, read in (KINDS[k] for k in ("ConvLab-3", "comments", "things"))
        ),
        ("Bars-rules.json", lambda file: load_domain(file)),
        ("Bars.yml", lambda file: load_domain(file)),
        ("own.zip", lambda file: list(read_dialogues(locate(file, "a test")))),
        ("dialogues.parquet", lambda file: dialgym.load_dataset(file)),
        ("dialogues.parquet", lambda file: dialgym.load_dataset(file.parent)),
        ("words.txt", lambda file: dialgym.make("Wordle-v0", answers=str(file))),
    ],
)
def test_a_pipe_in_the_place_of_a_file_keeps_nobody_waiting(name, read, tmp_path):
    os.mkfifo(tmp_path / name)
    with pytest.raises(ValueError, match=f"{name}'.*expected a regular file; it is a pipe"):
        read(tmp_path / name)
