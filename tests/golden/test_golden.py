"""Games replayed from their recordings, line by line."""

import json

import pytest

from dialgym.registry import entries, entry_of
from dialgym.tasks.wordle import Wordle
from tests.golden import brief_recording as briefs
from tests.golden.recording import (
    FINGERPRINTS,
    FOLDER,
    RULES,
    fingerprint,
    path_of,
    record,
    recorded_ids,
    save,
)


@pytest.mark.parametrize("env_id", recorded_ids())
def test_replay(env_id):
    assert record(env_id).splitlines() == path_of(env_id).read_text().splitlines()


def test_no_recording_is_missing_and_none_is_left_over():
    assert set(FOLDER.glob("*.txt")) == {path_of(env_id) for env_id in recorded_ids()}


@pytest.mark.parametrize("env_id", FINGERPRINTS)
def test_the_rules_are_those_of_their_version(env_id):
    """A failure is a change of behaviour, meant or not; CONTRIBUTING.md says what to do."""
    assert fingerprint(env_id) == json.loads((FOLDER.parent / RULES).read_text())[env_id]


def test_each_task_has_a_fingerprint():
    tasks = {entry.row.task for entry in entries().values()}
    assert tasks == {entry_of(env_id).row.task for env_id in FINGERPRINTS}


def test_other_dialogues_are_recorded_with_another_version_only(tmp_path, monkeypatch):
    env_id = "dialgym/Wordle-20-v0"
    folder = tmp_path / "transcripts"
    folder.mkdir()
    monkeypatch.setattr("tests.golden.recording.FINGERPRINTS", (env_id,))
    save(folder, [env_id])
    (file,) = folder.iterdir()
    file.write_text(file.read_text().replace("reward -1 turn 1", "reward 1 turn 1"))
    with pytest.raises(ValueError, match=r"Wordle-20-v0 have changed: raise `version` of the task"):
        save(folder, [env_id])
    monkeypatch.setattr(Wordle, "version", Wordle.version + 1)
    save(folder, [env_id])
    assert file.read_text() == record(env_id)
    assert json.loads((tmp_path / RULES).read_text())[env_id]["task_version"] == Wordle.version


@pytest.mark.parametrize("name", briefs.BRIEFS)
def test_briefs(name):
    recorded = (briefs.FOLDER / f"{name}.txt").read_text()
    assert briefs.record(name).splitlines() == recorded.splitlines()


def test_each_task_has_a_brief_recorded():
    tasks = {entry.row.task for entry in entries().values()}
    assert tasks == {entry_of(env_id).row.task for env_id, _ in briefs.BRIEFS.values()}
    assert {path.stem for path in briefs.FOLDER.iterdir()} == {*briefs.BRIEFS}
