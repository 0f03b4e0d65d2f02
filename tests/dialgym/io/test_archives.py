"""Archives are opened within limits."""

import gzip
import io
import json
from zipfile import ZIP_DEFLATED, ZipFile

import numpy as np
import pytest

from dialgym.io.archives import BOUNDS, parts_of
from dialgym.io.tables import read_rows


def zipped(members):
    """The bytes of a zip of names and contents."""
    file = io.BytesIO()
    with ZipFile(file, "w", ZIP_DEFLATED) as archive:
        for name, content in members.items():
            archive.writestr(name, content)
    return file.getvalue()


def claiming(size):
    """A zip of a small file that claims to have `size` bytes."""
    content = bytearray(zipped({"a.jsonl": b"{}\n"}))
    place = content.index(b"PK\1\2") + 24
    content[place : place + 4] = size.to_bytes(4, "little")
    return bytes(content)


def nested(depth):
    content = b"{}\n"
    for _ in range(depth):
        content = zipped({"inner.zip": content} if content != b"{}\n" else {"a.jsonl": content})
    return content


def encrypted():
    content = bytearray(zipped({"a.jsonl": b"{}\n"}))
    for mark, place in ((b"PK\3\4", 6), (b"PK\1\2", 8)):
        content[content.index(mark) + place] |= 1
    return bytes(content)


PACKED = zipped({"a.jsonl": b"{}\n"})
HOSTILE = {
    "a bomb": (claiming(3 * 2**30), r"more than 536,870,912 bytes.*DIALGYM_ARCHIVE_EXPANDED"),
    "in one another": (nested(100), "more than 3 archives within one another"),
    "beside one another": (zipped({f"{i}.zip": PACKED for i in range(200)}), "than 100 archives"),
    "many files": (zipped({f"{i}.txt": b"" for i in range(301)}), "more than 300 members"),
    "encrypted": (encrypted(), r"a\.jsonl: it is encrypted. Unpack the archive with its pass"),
    "a lie": (claiming(2), r"a\.jsonl: it cannot be unpacked .*Fetch the archive again"),
    "cut": (PACKED[:-30], r"data\.zip: expected a zip; it is none, or broken"),
}


@pytest.mark.parametrize("name", HOSTILE)
def test_hostile_zips_are_one_clear_error(name, tmp_path, monkeypatch):
    content, expected = HOSTILE[name]
    (tmp_path / "data.zip").write_bytes(content)
    monkeypatch.setenv("DIALGYM_ARCHIVE_MEMBERS", "300")
    with pytest.raises(ValueError, match=expected):
        list(read_rows(tmp_path / "data.zip"))


def test_a_bomb_of_gzip(tmp_path, monkeypatch):
    monkeypatch.setenv("DIALGYM_ARCHIVE_EXPANDED", str(2**20))
    (tmp_path / "a.jsonl.gz").write_bytes(gzip.compress(b"{}\n" * 2**20))
    with pytest.raises(ValueError, match=r"a\.jsonl\.gz: it holds more than 1,048,576 bytes"):
        list(read_rows(tmp_path / "a.jsonl.gz"))


def test_limits_are_settings(tmp_path, monkeypatch):
    (tmp_path / "data.zip").write_bytes(nested(4))
    with pytest.raises(ValueError, match="DIALGYM_ARCHIVE_DEPTH if you trust"):
        parts_of(tmp_path)
    monkeypatch.setenv("DIALGYM_ARCHIVE_DEPTH", "4")
    assert [row for _, row in read_rows(tmp_path)] == [{}]
    monkeypatch.setenv("DIALGYM_ARCHIVE_DEPTH", "many")
    with pytest.raises(ValueError, match="DIALGYM_ARCHIVE_DEPTH must be a whole number from 1"):
        parts_of(tmp_path)
    assert BOUNDS["depth"] == 3


@pytest.mark.parametrize("name", ["a.json", "a.jsonl"])
def test_deep_json(name, tmp_path):
    (tmp_path / name).write_bytes(b"[" * 200_000)
    with pytest.raises(ValueError, match=r"a\.jsonl?(, line 1)?: expected JSON \(more than 100"):
        list(read_rows(tmp_path / name))


def test_parquet_of_more_rows_than_fit(tmp_path, monkeypatch):
    arrow = pytest.importorskip("pyarrow")
    table = arrow.table({"a": arrow.nulls(20_000)})
    pytest.importorskip("pyarrow.parquet").write_table(table, tmp_path / "a.parquet")
    monkeypatch.setenv("DIALGYM_ARCHIVE_EXPANDED", str(2**20))
    with pytest.raises(ValueError, match=r"a\.parquet: 20,000 rows; at most 16,384"):
        list(read_rows(tmp_path / "a.parquet"))


@pytest.mark.parametrize("seed", range(60))
def test_a_damaged_archive_is_read_right_or_not_at_all(seed, tmp_path):
    rng = np.random.default_rng(seed)
    rows = [{"text": f"row {i} of {rng.integers(10**9)}"} for i in range(50)]
    lines = "".join(json.dumps(row) + "\n" for row in rows).encode()
    content = bytearray(zipped({"inner.zip": zipped({"a.jsonl": lines}), "b.jsonl": lines}))
    content[rng.integers(len(content))] ^= 1 << int(rng.integers(8))
    (tmp_path / "data.zip").write_bytes(content)
    try:
        found = [row for _, row in read_rows(tmp_path / "data.zip")]
    except ValueError:
        return
    assert found in ([*rows, *rows], rows)  # a name alone may have been hit
