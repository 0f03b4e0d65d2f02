"""`dialgym export`: what folders declare, and what it is told in error. See tests/doors too."""

import json
import tomllib

import pytest

from dialgym.cli.export import openenv_values
from dialgym.testing.agreement import FAMILIES, case_of
from tests.support.commands import fail, succeed
from tests.support.own_task import GUESS

WORDLE = "Wordle-20-v0"


def test_the_files_of_a_folder(tmp_path):
    folder = tmp_path / "new"
    told = succeed("export", "openenv", WORDLE, str(folder), "-s", "guesses=answers")
    names = ["Dockerfile", "README.md", "openenv.yaml", "server/__init__.py", "server/app.py"]
    assert sorted(str(path.relative_to(folder)) for path in folder.rglob("*.*")) == names[1:]
    assert f"{folder}: {', '.join(names)}" in told
    assert (
        "openenv.app(\"Wordle-20-v0\", guesses='answers')" in (folder / "server/app.py").read_text()
    )
    assert "uvicorn" in (folder / "Dockerfile").read_text()


@pytest.mark.parametrize("family", FAMILIES)
def test_rewards_are_within_the_bounds_that_a_folder_declares(family):
    for seed in range(4):
        env_id, settings, _, record = case_of(family, seed)
        low, high = json.loads(openenv_values(env_id, settings)["REWARDS"])
        assert all(low <= reward <= high for reward in record.rewards)


def test_bounds_are_those_of_the_rewards_that_a_folder_gives():
    settings = {"reward_scale": 10.0, "reward_shift": -1.0}
    assert openenv_values(WORDLE, settings)["REWARDS"] == "[-66.0, 0.0]"


def test_a_folder_that_cannot_be_written(tmp_path):
    there = str(tmp_path)
    assert "is there already" in fail("export", "openenv", WORDLE, there)
    assert "Did you mean 'openenv'" in fail("export", "openen", WORDLE, f"{there}/new")
    assert "unknown environment id" in fail("export", "openenv", "Wordl-v0", f"{there}/new")
    assert "unexpected keyword argument 'no'" in fail(
        "export", "openenv", WORDLE, f"{there}/new", "-s", "no=1"
    )
    assert list(tmp_path.iterdir()) == []


def test_a_package_holds_the_module_of_a_task_of_your_own(tmp_path, monkeypatch):
    (tmp_path / "one_file.py").write_text(GUESS.replace("MODULE", "one_file"))
    (tmp_path / "folder").mkdir()
    (tmp_path / "folder/__init__.py").write_text(GUESS.replace("MODULE", "folder"))
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(str(tmp_path))
    for module in ("one_file", "folder"):
        succeed("export", "verifiers", f"{module}:GuessNumber", f"{module}_package")
    parts = [
        tomllib.loads((tmp_path / f"{module}_package/pyproject.toml").read_text())
        for module in ("one_file", "folder")
    ]
    (alone, below) = (part["tool"]["setuptools"] for part in parts)
    assert alone["py-modules"][1:] == ["one_file"]
    assert len(below["py-modules"]) == 1
    assert below["packages"] == {"find": {"include": ["folder", "folder.*"]}}


@pytest.mark.parametrize("env_id", [WORDLE, "dialgym.tasks.wordle:Wordle"])
def test_nothing_is_to_be_copied_for_a_task_of_dialgym(env_id, tmp_path):
    told = succeed("export", "verifiers", env_id, str(tmp_path / "new"))
    assert "Copy" not in told
    text = (tmp_path / "new/pyproject.toml").read_text()
    assert len(tomllib.loads(text)["tool"]["setuptools"]["py-modules"]) == 1
