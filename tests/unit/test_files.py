"""A file is there whole or not at all."""

import pytest

from dialgym.files import write_atomically, write_folder_atomically, write_text


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
