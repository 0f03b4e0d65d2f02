"""CSV and TSV whose rows are not as wide as their columns, or whose quotes are astray."""

import pytest

from dialgym.io.archives import ArchiveMember, split_in
from dialgym.io.tables import read_rows

HEAD = ("dialogue_id", "speaker", "text")


def rows_in(tmp_path, name, *lines):
    (tmp_path / name).write_text("\n".join(lines) + "\n", "utf-8")
    return [tuple(row.values()) for _, row in read_rows(tmp_path / name)]


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("1,user", r"a.csv, line 3: expected a cell for each of the first row's 3 columns "
         r"\(dialogue_id, speaker, text\); got 2 cells, the last 'user'. Put a text with commas"),
        ("1,user,\"Hello", r"a.csv: expected CSV \(line 4: unexpected end of data\)"),
        ("1,user,\"Hi\" there", r"a.csv: expected CSV \(line 3: .* expected after"),
    ],
    ids=["short", "open quote", "stray quote"],
)  # fmt: skip
def test_a_malformed_row_of_csv_is_refused(line, message, tmp_path):
    with pytest.raises(ValueError, match=message):
        rows_in(tmp_path, "a.csv", ",".join(HEAD), "1,bot,Hi", line, "1,bot,Bye")


def test_two_columns_of_one_name_are_refused(tmp_path):
    with pytest.raises(ValueError, match=r"a.csv, line 1: .*; got 'text' 2 times. Rename or"):
        rows_in(tmp_path, "a.csv", "id,text,text", "1,a,b")


def test_lines_without_anything_are_no_rows(tmp_path):
    assert rows_in(tmp_path, "a.csv", "", "a,b", "1,2", "", "  ", ",,", "3,4") == [
        ("1", "2"), ("3", "4"),
    ]  # fmt: skip


@pytest.mark.parametrize(
    "texts",
    [('"Hello', "Hi there", "Bye"), ('"Hello', 'Hi"', "Bye"), ('"Hi" there', 'a 5" pipe', "Bye")],
    ids=["open", "swallows rows", "words"],
)
def test_a_stray_quote_of_tsv_is_a_character(texts, tmp_path):
    lines = ["\t".join(("1", "user", text)) for text in texts]
    found = rows_in(tmp_path, "a.tsv", "\t".join(HEAD), *lines)
    assert found == [("1", "user", text) for text in texts]


def test_quotes_around_cells_of_tsv_are_none_of_the_text(tmp_path):
    found = rows_in(tmp_path, "a.tsv", "a\tb", '"say ""hi"""\t"two\nlines"')
    assert found == [('say "hi"', "two\nlines")]


@pytest.mark.parametrize(("name", "sign"), [("a.csv", ","), ("a.tsv", "\t")])
def test_cells_too_many_are_the_last_columns_and_said_once(name, sign, tmp_path):
    """As in the files of EmpatheticDialogues, and of texts with commas that nobody quoted."""
    rows = ["a", "b"], ["1", "Hello", " how are you", " today?"], ["2", "Hi"], ["3", "x", "y"]
    with pytest.warns(UserWarning, match=r"line 2: .* 2 columns .*; got 4 .* as the last") as told:
        found = rows_in(tmp_path, name, *map(sign.join, rows))
    assert found == [("1", sign.join(rows[1][1:])), ("2", "Hi"), ("3", f"x{sign}y")]
    assert len(told) == 1


@pytest.mark.parametrize(
    ("name", "split"),
    [
        ("eval.jsonl", "validation"), ("data/evaluation-00001.parquet", "validation"),
        ("testset.jsonl", "test"), ("my_devset.csv", "validation"), ("trainset.tsv", "train"),
        ("evaluations.jsonl", None), ("retrieval.jsonl", None),
    ],
)  # fmt: skip
def test_splits_in_names_of_files(name, split):
    assert ArchiveMember(name, bytes).split == split


def test_a_split_in_a_name_of_the_data():
    assert [split_in(name) for name in ("Train", "test_sft", "TEST", "extra")] == [
        "train", "test", "test", None,
    ]  # fmt: skip
