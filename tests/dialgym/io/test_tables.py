"""Rows are the same in whatever file they come, and every fault names its place."""

import csv
import gzip
import io
import json
from zipfile import ZipFile

import pytest

from dialgym.io.tables import FORMATS, RowLocation, read_rows

ROWS = [{"text": "a, \u2028b", "label": "0"}, {"text": 'two\nlines, "quoted"', "label": "1"}]


def jsonl(rows):
    return "\n\n".join(json.dumps(row) for row in rows).encode()


def table(rows, delimiter):
    file = io.StringIO(newline="")
    writer = csv.DictWriter(file, list(rows[0]), delimiter=delimiter)
    writer.writeheader()
    writer.writerows(rows)
    return b"\xef\xbb\xbf" + file.getvalue().encode()  # with a byte order mark


def parquet(rows):
    arrow = pytest.importorskip("pyarrow")
    content = io.BytesIO()
    pytest.importorskip("pyarrow.parquet").write_table(arrow.Table.from_pylist(rows), content)
    return content.getvalue()


def zipped(name, content):
    file = io.BytesIO()
    with ZipFile(file, "w") as archive:
        archive.writestr(name, content)
    return file.getvalue()


FORMS = {
    "a.jsonl": jsonl,
    "a.json": lambda rows: json.dumps(rows).encode(),
    "a.csv": lambda rows: table(rows, ","),
    "a.tsv": lambda rows: table(rows, "\t"),
    "a.parquet": parquet,
    "a.jsonl.gz": lambda rows: gzip.compress(jsonl(rows)),
    "a.zip": lambda rows: zipped("inner.zip", zipped("b/a.jsonl", jsonl(rows))),
}


def test_every_format_has_a_form_here():
    assert {f".{name.partition('.')[2]}" for name in FORMS} >= set(FORMATS)


@pytest.mark.parametrize("name", FORMS)
def test_rows_are_the_same_in_every_form(name, tmp_path):
    (tmp_path / name).write_bytes(FORMS[name](ROWS))
    assert [row for _, row in read_rows(tmp_path / name)] == ROWS
    assert [row for _, row in read_rows(tmp_path)] == ROWS


def test_places_are_lines_where_a_file_has_them(tmp_path):
    for name, places in {
        "a.jsonl": [RowLocation("a.jsonl", 1, "line"), RowLocation("a.jsonl", 3, "line")],
        "a.csv": [
            RowLocation("a.csv", 2, "line"),
            RowLocation("a.csv", 4, "line"),
        ],  # the last line of a row
        "a.json": [RowLocation("a.json", 1), RowLocation("a.json", 2)],
    }.items():
        (tmp_path / name).write_bytes(FORMS[name](ROWS))
        assert [place for place, _ in read_rows(tmp_path / name)] == places


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("a.txt", b"a", r"a.txt': expected files of rows \(.jsonl, .*\); got a.txt"),
        ("a.jsonl", b"{}\n\n{oops", r"a.jsonl, line 3: expected JSON \("),
        ("a.jsonl", b"{}\n[1]", r"a.jsonl, line 2: expected an object with names; got '\[1\]'"),
        ("a.json", b"{}", "a.json: expected a list of rows; got dict"),
        ("a.csv", b'x\n"a"b', r"a.csv: expected CSV \(line 2: .* JSONL takes any text"),
        ("a.csv", b"x;y\n1;2", r"a.csv, line 1: expected columns with commas .* got 'x;y'"),
        ("a.csv", b"\xff\xfe", "a.csv: expected text in UTF-8"),
        ("a.csv.gz", b"a", "a.csv.gz: expected a file of gzip, whole"),
        ("a.zip", b"a", "a.zip: expected a zip"),
    ],
)
def test_faults_are_one_clear_error(name, content, message, tmp_path):
    (tmp_path / name).write_bytes(content)
    with pytest.raises(ValueError, match=message):
        list(read_rows(tmp_path / name))
