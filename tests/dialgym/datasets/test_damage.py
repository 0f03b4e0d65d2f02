"""Collections that are damaged, shared or unreadable."""

import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import dialgym
from dialgym.datasets import Dataset
from dialgym.datasets.collector import RECIPE
from dialgym.io.locks import FolderInUse

KWARGS: dict[str, Any] = {"seed": 3, "shard_size": 4}


def collect(path: Path, **more: Any) -> Dataset:
    return dialgym.collect("Wordle-20-v0", "random", path=path, **{**KWARGS, "episodes": 8, **more})


@pytest.fixture
def collected(tmp_path: Path) -> tuple[Dataset, Path, Path]:
    """The dialogues, their folder, and its second file."""
    folder = tmp_path / "data"
    return collect(folder), folder, folder / "dialogues-000000004-000000008.parquet"


def test_a_damaged_shard_is_named_at_once_and_collected_anew(collected: Any):
    whole, folder, file = collected
    content = file.read_bytes()
    for place in np.random.default_rng(0).integers(0, len(content), 8).tolist():
        flipped = bytearray(content)
        flipped[place] ^= 16
        file.write_bytes(flipped)
        for streaming in (False, True):
            with pytest.raises(ValueError, match=rf"{file.name}' is damaged"):
                dialgym.load_dataset(folder, streaming=streaming)
        with pytest.warns(UserWarning, match=rf"{file.name}' is damaged.*are collected again"):
            again = collect(folder)
        assert again.table.equals(whole.table)
        assert file.read_bytes() == content


def test_a_collection_that_lacks_a_shard_says_so(collected: Any):
    whole, folder, file = collected
    collect(folder, episodes=12)
    file.unlink()
    with pytest.warns(UserWarning, match=r"is not whole: it lacks episodes 4 to 7\. The same"):
        assert len(dialgym.load_dataset(folder)) == 8
    assert collect(folder, episodes=12).table.slice(0, 8).equals(whole.table)
    last = folder / "dialogues-000000008-000000012.parquet"
    last.unlink()
    with pytest.warns(UserWarning, match=rf"is not whole: it lacks {last.name}"):
        assert dialgym.load_dataset(folder).table.equals(whole.table)


@pytest.mark.parametrize("content", [b"", b"PAR1", b"not Parquet" * 9])
def test_broken_parquet_without_a_checksum_is_named_too(collected: Any, content: bytes):
    whole, folder, file = collected
    file.write_bytes(content)
    file.with_name(f"{file.name}.sha256").unlink()
    with pytest.raises(ValueError, match=rf"{file.name}': expected a Parquet file; it is none"):
        dialgym.load_dataset(folder)
    with pytest.warns(UserWarning, match="collected again"):
        assert collect(folder).table.equals(whole.table)


def test_damage_anywhere_without_a_checksum_is_one_clear_error(collected: Any):
    whole, folder, file = collected
    content, rng = file.read_bytes(), np.random.default_rng(0)
    for sums in folder.glob("*.sha256"):
        sums.unlink()
    told: list[str] = []
    for _ in range(20):
        damaged = bytearray(content)
        place = int(rng.integers(4, len(content) - 48))
        damaged[place : place + 40] = rng.bytes(40)
        file.write_bytes(damaged)
        for streaming in (False, True):
            try:
                list(dialgym.load_dataset(folder, streaming=streaming))
            except ValueError as error:
                told.append(str(error))
    assert len(told) > 30  # a few may hit what nobody reads
    assert all(f"{file.name}'" in text for text in told)
    file.write_bytes(content)
    assert dialgym.load_dataset(folder).table.equals(whole.table)


FULL = r"""
import os, resource, sys, warnings
import dialgym
limit = int(sys.argv[3])
resource.setrlimit(resource.RLIMIT_FSIZE, (limit, limit))  # as on a full disk, for larger files
with warnings.catch_warnings(record=True) as told:
    warnings.simplefilter("always")
    dataset = dialgym.load_dataset(sys.argv[1])
sizes = [os.path.getsize(os.path.join(place, name))
         for place, _, names in os.walk(sys.argv[2]) for name in names]
print(len(dataset), sum(sizes), *(str(one.message) for one in told), sep="\n")
"""


def test_a_cache_that_cannot_be_written_is_gone_without(tmp_path: Path):
    pytest.importorskip("resource")  # of POSIX
    collect(tmp_path / "data", episodes=300, shard_size=300)
    cache = tmp_path / "cache"
    command = [sys.executable, "-c", FULL, str(tmp_path / "data"), str(cache), "4096"]
    environment = {**os.environ, "DIALGYM_CACHE": str(cache)}
    environment["PYTHONDONTWRITEBYTECODE"] = "1"  # compiled modules would be cut short, too
    done = subprocess.run(command, env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    count, left, *told = done.stdout.splitlines()
    assert (count, left) == ("300", "0")  # nothing half-written stays
    assert len(told) == 1
    assert f"the cache '{cache / 'datasets'}' cannot be written ([Errno " in told[0]
    assert "the dialogues are read into memory. Make room" in told[0]


def test_older_collections_have_no_checksums(collected: Any):
    whole, folder, _ = collected
    for file in folder.glob("*.sha256"):
        file.unlink()
    assert collect(folder).table.equals(whole.table)
    assert dialgym.load_dataset(folder).table.equals(whole.table)


@pytest.mark.parametrize(
    ("content", "expected"),
    [
        (b"", "expected what determines a collection, as JSON (nothing"),
        (b'{"env"', "expected what determines a collection, as JSON (Expecting"),
        (b"[1]", "expected what determines a collection; got '[1]'. Remove the folder"),
        (b"[" * 99_999, "expected what determines a collection, as JSON (more than 100"),
    ],
)
def test_a_description_that_is_none(collected: Any, content: bytes, expected: str):
    _, folder, _ = collected
    (folder / RECIPE).write_bytes(content)
    with pytest.raises(ValueError, match=rf"{RECIPE}': {re.escape(expected)}"):
        collect(folder)


COLLECT = """
import sys, dialgym
def wait(ended):
    print("playing", flush=True)
    sys.stdin.read()
dialgym.collect("Wordle-20-v0", "random", 8, 3, path=sys.argv[1], shard_size=4, report=wait)
"""


def test_one_collector_at_a_time(tmp_path: Path):
    command = [sys.executable, "-c", COLLECT, str(tmp_path / "data")]
    first = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    assert first.stdout is not None
    assert first.stdout.readline() == b"playing\n"
    with pytest.raises(FolderInUse, match=f"is being written by process {first.pid}"):
        collect(tmp_path / "data")
    first.communicate()
    assert first.returncode == 0
    assert len(collect(tmp_path / "data")) == 8


def test_a_folder_that_cannot_be_written(tmp_path: Path):
    (tmp_path / "file").write_text("")
    with pytest.raises(OSError, match="a file is where a folder should be; choose another"):
        collect(tmp_path / "file" / "data")
