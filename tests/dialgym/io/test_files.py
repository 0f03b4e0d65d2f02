"""A file is there whole or not at all."""

import errno
import os
import stat
from pathlib import Path

import pytest

from dialgym.io.files import (
    check_writable,
    files_in,
    read_json,
    write_atomically,
    write_folder_atomically,
    write_text,
)


def test_a_failed_write_leaves_the_old_file_and_nothing_else(tmp_path):
    path = tmp_path / "deep" / "notes.txt"
    write_text(path, "old")

    def fail(temporary):
        temporary.write_text("half")
        raise RuntimeError("interrupted")

    with pytest.raises(RuntimeError, match="interrupted"):
        write_atomically(path, fail)
    assert path.read_text() == "old"
    assert list(path.parent.iterdir()) == [path]


def test_the_temporary_file_keeps_the_suffix_and_the_usual_rights(tmp_path):
    path, plain = tmp_path / "array.npy", tmp_path / "plain"
    plain.write_text("")
    suffixes = []

    def write(temporary):
        suffixes.append(temporary.suffix)
        temporary.write_text("x")

    write_atomically(path, write)
    assert suffixes == [".npy"]
    assert path.stat().st_mode == plain.stat().st_mode


def test_a_folder_is_there_whole_or_not_at_all(tmp_path):
    target = tmp_path / "folder"
    for content in ("old", "new"):
        write_folder_atomically(target, lambda part, c=content: (part / c).write_text(c))
        assert [path.name for path in target.iterdir()] == [content]

    def fails(part):
        (part / "half").write_text("")
        raise OSError("disk full")

    with pytest.raises(OSError, match="disk full"):
        write_folder_atomically(target, fails)
    assert [path.name for path in tmp_path.rglob("*")] == ["folder", "new"]


def test_a_folder_that_cannot_be_moved_into_place_leaves_the_old_one(tmp_path, monkeypatch):
    target, replace = tmp_path / "folder", os.replace
    write_folder_atomically(target, lambda part: (part / "old").write_text(""))

    def interrupted(source, place):
        if any(Path(source).glob("new")):
            raise KeyboardInterrupt
        replace(source, place)

    monkeypatch.setattr("os.replace", interrupted)
    with pytest.raises(KeyboardInterrupt):
        write_folder_atomically(target, lambda part: (part / "new").write_text(""))
    assert [path.name for path in tmp_path.rglob("*")] == ["folder", "old"]


def test_a_folder_behind_a_link_is_replaced_where_it_lies(tmp_path):
    (tmp_path / "disk").mkdir()
    (tmp_path / "link").symlink_to(tmp_path / "disk")
    write_folder_atomically(tmp_path / "link", lambda part: (part / "a").write_text(""))
    assert (tmp_path / "link").is_symlink()
    assert [path.name for path in (tmp_path / "disk").iterdir()] == ["a"]
    assert {path.name for path in tmp_path.iterdir()} == {"disk", "link"}


# What cannot be written


@pytest.mark.parametrize(
    ("number", "expected"),
    [
        (errno.ENOSPC, "the disk is full; make room"),
        (errno.EROFS, "the file system is read-only; choose another folder"),
        (errno.EACCES, "no permission to write there; choose another folder"),
    ],
)
@pytest.mark.parametrize("kind", [write_atomically, write_folder_atomically])
def test_the_error_names_the_file_and_says_what_to_do(tmp_path, kind, number, expected):
    def fails(part):
        raise OSError(number, os.strerror(number), str(part))

    with pytest.raises(OSError, match=expected) as raised:
        kind(tmp_path / "model.zip", fails)
    assert raised.value.filename == str(tmp_path / "model.zip")
    assert raised.value.errno == number
    assert not any(tmp_path.iterdir())


def test_a_file_in_the_place_of_a_folder(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(OSError, match="a file is where a folder should be; choose another"):
        write_text(tmp_path / "file" / "notes.txt", "x")
    with pytest.raises(OSError, match="a file is where a folder should be; choose another"):
        write_folder_atomically(tmp_path / "file", lambda part: None)
    assert [path.name for path in tmp_path.iterdir()] == ["file"]


def test_the_current_folder_stays_as_it_is(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(OSError, match="it is the current folder, or a disk is mounted there"):
        write_folder_atomically(Path(), lambda part: None)
    assert not any(tmp_path.iterdir())


def test_a_folder_is_tried_before_anything_is_made(tmp_path):
    check_writable(tmp_path / "new" / "folder")
    assert list((tmp_path / "new" / "folder").iterdir()) == []
    (tmp_path / "file").write_text("in the way")
    for folder in (tmp_path / "file", tmp_path / "file" / "below"):
        with pytest.raises(OSError, match="a file is where a folder should be"):
            check_writable(folder)


def test_content_and_name_are_synced_before_it_returns(tmp_path, monkeypatch):
    events, sync, move = [], os.fsync, os.replace

    def fsync(descriptor):
        events.append("folder" if stat.S_ISDIR(os.fstat(descriptor).st_mode) else "file")
        sync(descriptor)

    def replace(source, target):
        events.append("move")
        move(source, target)

    monkeypatch.setattr("os.fsync", fsync)
    monkeypatch.setattr("os.replace", replace)
    write_text(tmp_path / "notes.txt", "x")
    assert events == ["file", "move", "folder"]
    events.clear()
    write_folder_atomically(tmp_path / "folder", lambda part: (part / "a").write_text("x"))
    assert events == ["file", "folder", "move", "folder"]


# JSON


@pytest.mark.parametrize(
    ("content", "expected"),
    [
        (b"", r"expected a list of it \(nothing"),
        (b"{", r"expected a list of it \(Expecting"),
        (b"\xff\xfe\xff", r"expected a list of it \('utf"),
        (b"[" * 100_000, r"expected a list of it \(more than 100 values within"),
        (b"9" * 5000, r"expected a list of it \(Exceeds the limit"),
    ],
)
def test_what_is_no_json_is_one_clear_error(tmp_path, content, expected):
    path = tmp_path / "x.json"
    path.write_bytes(content)
    with pytest.raises(ValueError, match=rf"x\.json': {expected}"):
        read_json(path, "a list of it")


def test_files_are_found_behind_links_to_folders_each_once(tmp_path):
    """A loop ends, and a folder that two links lead to is taken once."""
    data, real = tmp_path / "data", tmp_path / "elsewhere"
    for folder in (data / "own", real / "deep"):
        folder.mkdir(parents=True)
        (folder / "a.csv").write_text("x", "utf-8")
    (data / "db").symlink_to(real)
    (data / "again").symlink_to(real)
    (real / "up").symlink_to(tmp_path)
    (data / "lost").symlink_to(tmp_path / "nowhere")
    found = [file.relative_to(data).as_posix() for file in files_in(data)]
    assert found == ["again/deep/a.csv", "own/a.csv"]
