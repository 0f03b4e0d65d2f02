"""Tapes: each answer once, found again by its key, whatever has happened to the writer."""

import json
import pickle
from pathlib import Path

import pytest

from dialgym.io.tape import Tape, TapeMissError, key_of

REQUEST = {"model": "m", "messages": [{"role": "user", "content": "hé\n"}], "temperature": 1.0}
ANSWER = {"text": "hällo", "finish_reason": "stop", "prompt_tokens": 3, "answer_tokens": 1}


def recorded(path: Path, *draws: int) -> Tape:
    tape = Tape(path)
    for drawn in draws:
        tape.record(key_of(REQUEST, drawn, 0), REQUEST, {**ANSWER, "text": f"answer {drawn}"})
    tape.close()
    return tape


def test_what_is_recorded_is_replayed(tmp_path):
    recorded(tmp_path / "tape", 1, 2)
    tape = Tape(tmp_path / "tape", "replay")
    assert tape.find(key_of(REQUEST, 2, 0), "here") == {**ANSWER, "text": "answer 2"}
    assert len(tape) == 2


def test_equal_requests_are_apart_by_draw_and_turn():
    keys = {key_of(REQUEST, drawn, turn) for drawn in range(3) for turn in range(3)}
    assert len(keys) == 9
    assert key_of(dict(reversed(REQUEST.items())), 0, 0) == key_of(REQUEST, 0, 0)


def test_a_miss_is_an_error_that_names_the_place(tmp_path):
    recorded(tmp_path / "tape", 1)
    tape = Tape(tmp_path / "tape", "replay")
    with pytest.raises(TapeMissError, match=r"turn 3.*tape.*no answer"):
        tape.find(key_of(REQUEST, 2, 0), "turn 3")


def test_a_recording_goes_on_and_asks_nothing_again(tmp_path):
    recorded(tmp_path / "tape", 1)
    tape = recorded(tmp_path / "tape", 2)
    assert tape.find(key_of(REQUEST, 1, 0), "") == {**ANSWER, "text": "answer 1"}
    assert tape.find(key_of(REQUEST, 3, 0), "") is None
    assert (tmp_path / "tape").read_bytes().count(b"\n") == 2


def test_the_first_answer_of_a_key_holds(tmp_path):
    one, other = Tape(tmp_path / "tape"), Tape(tmp_path / "tape")  # as of two processes
    key = key_of(REQUEST, 1, 0)
    assert one.record(key, REQUEST, ANSWER) == ANSWER
    assert one.record(key, REQUEST, {**ANSWER, "text": "second"}) == ANSWER
    other.record(key, REQUEST, {**ANSWER, "text": "second"})
    assert Tape(tmp_path / "tape", "replay").find(key, "") == ANSWER


@pytest.mark.parametrize("cut", range(1, 40, 3))
def test_a_line_that_was_never_finished_is_not_there_and_harms_none(tmp_path, cut):
    path = tmp_path / "tape"
    recorded(path, 1, 2)
    path.write_bytes(path.read_bytes()[:-cut])
    assert len(Tape(path, "replay")) == 2 - (cut > 1)
    again = recorded(path, 2, 3)
    whole = recorded(tmp_path / "whole", 1, 2, 3)
    assert Tape(path, "replay").digest == again.digest == whole.digest


def test_its_digest_is_of_the_answers_not_of_their_order(tmp_path):
    one, other = recorded(tmp_path / "one", 1, 2), recorded(tmp_path / "other", 2, 1)
    assert one.digest == other.digest != recorded(tmp_path / "less", 1).digest


def test_a_changed_record_is_refused(tmp_path):
    recorded(tmp_path / "tape", 1)
    record = json.loads((tmp_path / "tape").read_text("utf-8"))
    record["answer"]["text"] = "something else"
    (tmp_path / "tape").write_text(json.dumps(record) + "\n", "utf-8")
    with pytest.raises(ValueError, match=r"line 1: the record was changed"):
        Tape(tmp_path / "tape", "replay")


def test_what_is_no_tape_is_refused(tmp_path):
    (tmp_path / "rows").write_text('{"env": "Wordle-v0"}\n', "utf-8")
    with pytest.raises(ValueError, match=r"line 1: expected a record"):
        Tape(tmp_path / "rows")
    with pytest.raises(FileNotFoundError):
        Tape(tmp_path / "none", "replay")
    with pytest.raises(ValueError, match="mode"):
        Tape(tmp_path / "none", "auto")


def test_a_folder_that_is_not_there_is_told_before_anything_is_asked(tmp_path):
    with pytest.raises(FileNotFoundError, match=r"there is no folder .*none.* Make it"):
        Tape(tmp_path / "none" / "tape")


def test_a_pickled_copy_records_on(tmp_path):
    tape = recorded(tmp_path / "tape", 1)
    copy = pickle.loads(pickle.dumps(tape))
    copy.record(key_of(REQUEST, 2, 0), REQUEST, ANSWER)
    assert len(Tape(tmp_path / "tape", "replay")) == 2
