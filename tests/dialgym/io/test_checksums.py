"""A file whose content has changed is never taken for what was written."""

import os
import subprocess
from contextlib import suppress

import numpy as np
import pytest

from dialgym.io.cache import cached_array, cached_arrays
from dialgym.io.checksums import (
    SUFFIX,
    DamagedFile,
    check,
    check_folder,
    checksum,
    read_json_checked,
    write_checked,
    write_json_checked,
    write_sums,
)


def write(path, content):
    write_checked(path, lambda temporary: temporary.write_bytes(content))


def flip(path, place):
    """Change one bit of a file."""
    content = bytearray(path.read_bytes())
    content[place] ^= 1 << place % 8
    path.write_bytes(content)


def test_every_flipped_bit_is_found(tmp_path):
    path = tmp_path / "data.bin"
    write(path, bytes(range(50)))
    check(path)
    for place in range(50):
        flip(path, place)
        with pytest.raises(DamagedFile, match=r"data\.bin' is damaged.*delete data\.bin\.sha256"):
            check(path)
        flip(path, place)
    check(path)


def test_a_file_without_checksum_is_checked_only_where_one_is_required(tmp_path):
    path = tmp_path / "old.bin"
    path.write_bytes(b"x")
    check(path)
    with pytest.raises(DamagedFile):
        check(path, required=True)
    (tmp_path / f"old.bin{SUFFIX}").write_text("")
    with pytest.raises(DamagedFile):
        check(path)


def test_coreutils_read_the_checksum(tmp_path):
    for content in (b"first", b"second"):
        write(tmp_path / "data.bin", content)
        done = subprocess.run(["sha256sum", "-c", f"data.bin{SUFFIX}"], cwd=tmp_path, check=False)
        assert done.returncode == 0


@pytest.mark.parametrize("replaced", [False, True])
def test_a_kill_at_any_move_leaves_a_file_with_its_checksum(tmp_path, monkeypatch, replaced):
    path, move = tmp_path / "data.bin", os.replace
    for allowed in range(4):
        path.unlink(missing_ok=True)
        if replaced:
            write(path, b"old")
        left = [allowed]

        def killed(source, target, left=left):
            if not left[0]:
                raise KeyboardInterrupt
            left[0] -= 1
            move(source, target)

        monkeypatch.setattr("os.replace", killed)
        with suppress(KeyboardInterrupt):
            write(path, b"new")
        monkeypatch.setattr("os.replace", move)
        assert path.exists() or not replaced
        if path.exists():
            check(path, required=True)


@pytest.mark.parametrize("suffix", [".npy", ".npz"])
def test_a_damaged_cache_entry_is_computed_again(tmp_path, monkeypatch, suffix):
    monkeypatch.setenv("DIALGYM_CACHE", str(tmp_path))
    computed = []

    def compute():
        computed.append(1)
        return np.arange(100)

    def read():
        if suffix == ".npy":
            return cached_array("a", compute)
        return cached_arrays("a", lambda: {"a": compute()})["a"]

    read()
    path = tmp_path / f"a{suffix}"
    for place in np.random.default_rng(0).integers(0, path.stat().st_size, 50).tolist():
        before = checksum(path)
        flip(path, place)
        np.testing.assert_array_equal(read(), np.arange(100))
        assert checksum(path) == before
    assert len(computed) == 51
    read()
    assert len(computed) == 51


def test_the_files_of_a_folder_are_checked_by_those_sums_that_are_there(tmp_path):
    for name in ("weights", "part/settings"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_bytes(bytes(range(50)))
    write_sums(tmp_path)
    (tmp_path / "more").write_text("added later, without a sum")
    check_folder(tmp_path)
    flip(tmp_path / "part/settings", 7)
    with pytest.raises(DamagedFile, match=r"settings' is damaged"):
        check_folder(tmp_path)
    flip(tmp_path / "part/settings", 7)
    (tmp_path / "weights").unlink()
    with pytest.raises(DamagedFile, match=r"weights' is missing, and weights\.sha256 says"):
        check_folder(tmp_path)


def test_no_flipped_bit_of_a_checked_object_is_taken_for_a_value(tmp_path):
    path, values = tmp_path / "results.json", {"returns": [0.1, float("nan"), -3], "é": None}
    for indent in (None, 1):
        write_json_checked(path, values, indent)
        whole = path.read_bytes()
        assert repr(read_json_checked(path, "JSON")) == repr(values)
        refused = 0
        for place in range(len(whole)):
            path.write_bytes(whole)
            flip(path, place)
            try:
                found = read_json_checked(path, "JSON")
            except ValueError:
                refused += 1
            else:
                assert {k: repr(found[k]) for k in values} == {
                    k: repr(v) for k, v in values.items()
                }
        assert refused > len(whole) / 2


def test_objects_without_a_checksum_are_read_and_edited_ones_refused(tmp_path):
    path = tmp_path / "results.json"
    path.write_text('{"a": 1}')
    assert read_json_checked(path, "JSON") == {"a": 1}
    path.write_text('{"a": 1, "sha256": "0"}')
    with pytest.raises(DamagedFile, match=r"results.json' is damaged.*delete that entry"):
        read_json_checked(path, "JSON")
