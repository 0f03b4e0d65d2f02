"""Games replayed from their recordings, line by line."""

import pytest

from tests.golden.recording import FOLDER, path_of, record, recorded_ids


@pytest.mark.parametrize("env_id", recorded_ids())
def test_replay(env_id):
    assert record(env_id).splitlines() == path_of(env_id).read_text().splitlines()


def test_no_recording_is_missing_and_none_is_left_over():
    assert set(FOLDER.glob("*.txt")) == {path_of(env_id) for env_id in recorded_ids()}
