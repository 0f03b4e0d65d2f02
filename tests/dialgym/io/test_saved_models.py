"""Saved models by path, in the zoo and on the hub: one resolver, and its errors."""

from pathlib import Path

import pytest

from dialgym.errors import one_of
from dialgym.io import saved_models
from dialgym.io.hub import SourceError
from dialgym.io.saved_models import find_checkpoint, find_language_model, is_saved, zoo_names
from dialgym.registry import entry_of, make_task
from dialgym.trust import is_code
from dialgym.views.speakers import find_speaker

ROOT = Path(__file__).parents[3]


@pytest.fixture
def zoo(tmp_path, monkeypatch) -> Path:
    """A zoo of two agents without content, and a folder in it that is none."""
    folder = tmp_path / "animals"
    for name in ("wordle-20-ppo", "questions-bc"):
        (folder / name).mkdir(parents=True)
        (folder / name / "model.zip").write_bytes(b"")
    (folder / "empty").mkdir()
    (folder / "zoo.json").write_text("{}", "utf-8")
    monkeypatch.setenv("DIALGYM_ZOO", str(folder))
    return folder


def test_names_of_the_zoo_are_its_models(zoo):
    assert zoo_names() == ["questions-bc", "wordle-20-ppo"]
    found = find_checkpoint("zoo:wordle-20-ppo")
    assert found == zoo / "wordle-20-ppo" / "model.zip"
    assert find_checkpoint(Path("zoo:wordle-20-ppo")) == found
    assert is_saved("zoo:questions-bc")
    assert find_language_model("zoo:questions-bc") is None
    assert not is_code("zoo:questions-bc")


@pytest.mark.parametrize("name", ["wordle-20-pp", "empty", "", "..", "../animals/questions-bc"])
def test_an_unknown_name_is_an_error_that_says_all(zoo, name):
    with pytest.raises(ValueError, match=r"unknown agent .* Known: questions-bc, wordle-20-ppo\."):
        find_checkpoint(f"zoo:{name}")
    with pytest.raises(ValueError, match="unknown agent"):
        is_saved(f"zoo:{name}")


def test_a_name_that_is_nearly_right_is_suggested(zoo):
    with pytest.raises(ValueError, match=r"Did you mean 'wordle-20-ppo'\?"):
        find_checkpoint("zoo:wordle-20-pp")


def test_without_a_zoo_the_message_says_how_to_get_it(tmp_path, monkeypatch):
    monkeypatch.setenv("DIALGYM_ZOO", str(tmp_path))
    with pytest.raises(SourceError, match=r"DIALGYM_ZOO names .* which has no zoo.json.*checkout"):
        find_checkpoint("zoo:x")
    assert zoo_names() == []
    monkeypatch.delenv("DIALGYM_ZOO")
    installed = tmp_path / "site-packages" / "dialgym" / "io" / "saved_models.py"
    monkeypatch.setattr(saved_models, "__file__", str(installed))
    with pytest.raises(SourceError, match=r"This installation has no zoo.json.*DIALGYM_ZOO=FOLDER"):
        find_checkpoint("zoo:x")
    with pytest.raises(SourceError, match="This installation has no"):
        find_speaker(make_task(entry_of("Wordle-20-v0"), {}), "user", "zoo:x")


def test_the_zoo_of_a_checkout_is_found_by_itself():
    assert saved_models.zoo_folder() == ROOT / "zoo"
    for name in zoo_names():
        one_of("agent", name, [path.name for path in (ROOT / "zoo").iterdir()])


def test_a_path_is_a_file_one_with_zip_or_a_run(tmp_path):
    (tmp_path / "run").mkdir()
    assert find_checkpoint("run") is None
    assert not is_saved("run")
    (tmp_path / "run" / "model.zip").write_bytes(b"")
    (tmp_path / "one.zip").write_bytes(b"")
    (tmp_path / "talker").mkdir()
    (tmp_path / "talker" / "config.json").write_text("{}", "utf-8")
    assert find_checkpoint("run") == find_checkpoint("run/") == Path("run/model.zip")
    assert find_checkpoint("one") == find_checkpoint("one.zip") == Path("one.zip")
    assert find_checkpoint("one/") == Path("one.zip")  # where agents.save("one/") writes
    assert find_checkpoint("talker") is None
    assert all(map(is_saved, ("run", "one", "talker", "hf:me/model")))
    assert not is_saved("talker/none")
