"""Tables: the built-in ones, those of files, and what is kept of them."""

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from dialgym.tasks.twenty_questions import TwentyQuestions
from dialgym.tasks.twenty_questions.policies import GreedyQuestioner
from dialgym.tasks.twenty_questions.table import (
    BUILT_IN,
    AnswerTable,
    built_in,
    load_table,
    with_article,
)
from dialgym.tasks.twenty_questions.types import NO, UNCLEAR, YES
from tests.support.question_games import play

ROOT = Path(__file__).parents[4]


def written(folder: Path, text: str, name: str = "table.csv") -> str:
    path = folder / name
    path.write_text(text, "utf-8")
    return str(path)


@pytest.mark.parametrize("name", BUILT_IN)
def test_no_two_things_of_a_built_in_table_have_the_same_answers(name: str) -> None:
    truth = built_in(name).truth
    assert len(np.unique(truth, axis=0)) == len(truth)
    assert set(np.unique(truth)) == {NO, YES}


def test_sizes_of_the_built_in_tables_are_those_of_the_docs() -> None:
    sizes = [built_in(name).truth.shape for name in BUILT_IN]
    assert sizes == [(401, 105), (69, 52), (147, 53)]


def test_the_script_makes_the_built_in_tables(tmp_path: Path) -> None:
    script = ROOT / "scripts" / "build_questions.py"
    subprocess.run([sys.executable, str(script), "--out", str(tmp_path)], check=True)
    kept = ROOT / "dialgym" / "tasks" / "twenty_questions" / "tables"
    for name in BUILT_IN:
        assert (tmp_path / f"{name}.csv").read_bytes() == (kept / f"{name}.csv").read_bytes()


def test_what_is_known_of_some_things() -> None:
    def says(table: str, name: str, question: str) -> int:
        found = load_table(table, "test")
        column = next(i for i, wordings in enumerate(found.questions) if question in wordings)
        row = next(i for i, names in enumerate(found.names) if name in names)
        return int(found.truth[row, column])

    assert says("things", "a piano", "is it a musical instrument?") == YES
    assert says("things", "a piano", "does it fit into a pocket?") == NO
    assert says("animals", "a penguin", "can it fly?") == NO
    assert says("cities", "Nairobi", "is it in africa?") == YES
    assert says("cities", "Sydney", "is it a capital?") == NO


def test_a_file_with_columns_that_become_questions(tmp_path: Path) -> None:
    path = written(
        tmp_path,
        "name,can fly;does it fly?,has wings,is alive,red,Does it swim?\n"
        "robin;redbreast,1,yes,TRUE,Y,0\nbrick,0,no,false,n,?\nowl,1,1,1,0,\n",
    )
    table = load_table(path, "test")
    assert table.names == (("a robin", "a redbreast"), ("a brick",), ("an owl",))
    assert table.questions == (
        ("can it fly?", "does it fly?"),
        ("does it have wings?",),
        ("is it alive?",),
        ("is it red?",),
        ("Does it swim?",),
    )
    expected = [[1, 1, 1, 1, 0], [0, 0, 0, 0, UNCLEAR], [1, 1, 1, 0, UNCLEAR]]
    assert table.truth.tolist() == expected


def test_questions_without_their_mark(tmp_path: Path) -> None:
    asked = ("is it alive", "was it made by man", "can they swim", "does it fly")
    path = written(tmp_path, f"name,{','.join(asked)}\nrobin,1,0,0,1\nbrick,0,1,0,0\n")
    assert load_table(path, "test").questions == tuple((f"{text}?",) for text in asked)


def test_jsonl_with_another_first_column(tmp_path: Path) -> None:
    rows = '{"animal": "cat", "barks": false}\n{"animal": "dog", "barks": true}\n'
    table = load_table(written(tmp_path, rows, "pets.jsonl"), "test")
    assert table.guesses == ["is it a cat?", "is it a dog?"]
    assert table.truth.tolist() == [[NO], [YES]]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("name,red\n", r"expected a row for each of some things"),
        ("name\ncat\ndog\n", r"expected columns of questions; got names only"),
        ("name,red\ncat,1\ndog,maybe\n", r"line 3, column 'red': expected 1 or 0.*got 'maybe'"),
        ("name,red\ncat,1\n,0\n", r"line 3: expected a name or question in Latin letters; got ''"),
        ("name,red\ncat,1\n\u0441\u043e\u0432\u0430,0\n", r"line 3: expected .* in Latin letters"),
        ("name,\u043a\ncat,1\ndog,0\n", r"table .*: expected .* in Latin.*got '\u043a'\. Trans"),
        ("name,red\ncat,1\ndog\n", r"line 3: expected a cell for each of the first row's"),
        ("name,red\ncat,1\ndog,0,1\n", r"line 3, column 'red': expected 1 or 0.*got '0,1'"),
        ("name,red\ncat,1\nCat,0\n", None),  # proper names differ from common ones by an article
        ("name,red\ncat,1\na cat,0\n", r"'is it a cat' would be two different questions"),
        ("name,a cat\ncat,1\ndog,0\n", r"'is it a cat' would be two different questions"),
        ("name,red,is red\ncat,1,1\ndog,0,0\n", r"'is it red\?' would be two different"),
    ],
)
@pytest.mark.filterwarnings("ignore:.*What is too much is read as the last column's")
def test_tables_that_are_none(tmp_path: Path, text: str, message: str | None) -> None:
    path = written(tmp_path, text)
    if message is None:
        assert load_table(path, "test").guesses == ["is it a cat?", "is it Cat?"]
        return
    with pytest.raises(ValueError, match=message):
        load_table(path, "test")


def test_a_file_that_is_not_there() -> None:
    with pytest.raises(ValueError, match=r"data of TwentyQuestions: there is no file.*nothing.csv"):
        TwentyQuestions(table="nothing.csv")


@pytest.mark.parametrize(
    ("name", "said"),
    [("cat", "a cat"), ("owl", "an owl"), ("ukulele", "a ukulele"), ("umbrella", "an umbrella"),
     ("scissors", "scissors"), ("bus", "a bus"), ("glass", "a glass"), ("the sun", "the sun"),
     ("Paris", "Paris")],
)  # fmt: skip
def test_articles(name: str, said: str) -> None:
    assert with_article(name) == said


def test_questions_are_kept_that_tell_most() -> None:
    names = tuple((str(i),) for i in range(4))
    truth = np.array([[1, 0, 0, 1, 0], [0, 0, 0, 1, 0], [0, 1, 1, 0, 0], [0, 1, 0, 0, 0]], np.int8)
    table = AnswerTable(names, tuple((f"q{i}?",) for i in range(5)), truth)
    # the second splits in halves as the fourth, its opposite, does; the last tells nothing
    assert table.only(None, None, "test") is table
    assert table.only(4, None, "test").questions == (("q0?",), ("q1?",), ("q2?",), ("q3?",))
    assert table.only(None, 1, "test").questions == (("q1?",),)
    assert table.only(None, 3, "test").questions == (("q0?",), ("q1?",), ("q2?",))
    assert table.only(2, None, "test").questions == (("q0?",),)
    with pytest.raises(ValueError, match="questions of test must be a whole number from 1 to 4"):
        table.only(None, 5, "test")
    with pytest.raises(ValueError, match="items of test must be a whole number from 2 to 4"):
        table.only(1, None, "test")


def test_the_zoo_is_a_table_too(real_file: Callable[..., Path]) -> None:
    task = TwentyQuestions(table=str(real_file("zoo_20q", "zoo.csv")))
    assert (task.things, task.questions) == (100, 28)
    asked = task.understanding.read("does it have feathers?")
    assert task.said[asked[0]] == "Does the animal have feathers?"
    returns = [
        sum(play(task, GreedyQuestioner(), {"item": names[0]})) for names in task.table.names
    ]
    # 100 things of 59 kinds that questions tell apart
    assert -8.0 < float(np.mean(returns)) < -6.0
