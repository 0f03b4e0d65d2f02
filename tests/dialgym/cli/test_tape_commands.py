"""Commands about tapes: described, verified, merged."""

import json

from dialgym.io.tape import Tape, key_of
from tests.support.commands import fail, succeed

REQUEST = {"model": "m", "messages": [{"role": "user", "content": "hi"}]}


def recorded(path, texts):
    """A tape with a record a draw."""
    tape = Tape(path)
    for drawn, text in texts.items():
        answer = {
            "text": text,
            "finish_reason": "stop",
            "prompt_tokens": 3,
            "answer_tokens": 1,
        }
        held = {**REQUEST, "drawn": drawn, "turn": 2}
        tape.record(key_of(REQUEST, drawn, 2), held, answer)
    tape.close()
    return str(path)


def test_a_tape_is_described(tmp_path):
    told = succeed("tape", "describe", recorded(tmp_path / "tape", {1: "a", 2: " "}))
    assert "2 answers (m 2), turns 0 to 2, 6 + 2 tokens" in told
    assert "1 empty, 0 cut" in told
    assert Tape(tmp_path / "tape", "replay").digest in told


def test_a_whole_tape_holds_and_its_torn_line_is_told(tmp_path):
    file = recorded(tmp_path / "tape", {1: "a", 2: "b"})
    with (tmp_path / "tape").open("ab") as tape:
        tape.write(b'{"tape": "dialgym ta')
    told = succeed("tape", "verify", file)
    assert "2 answers hold, 1 unfinished lines are left out" in told


def test_a_changed_record_and_a_strange_key_are_found(tmp_path):
    recorded(tmp_path / "good", {1: "a"})
    changed = recorded(tmp_path / "changed", {1: "a"})
    text = (tmp_path / "changed").read_text("utf-8")
    (tmp_path / "changed").write_text(text.replace('"a"', '"b"'), "utf-8")
    strange = Tape(tmp_path / "strange")
    answer = json.loads((tmp_path / "good").read_text("utf-8"))["answer"]
    strange.record("0" * 64, {**REQUEST, "drawn": 1, "turn": 0}, answer)
    assert "changed, line 1: the record was changed" in fail("tape", "verify", changed)
    error = fail("tape", "verify", str(tmp_path / "strange"))
    assert "record 1: its key is not that of its request" in error


def test_the_same_answers_merge_into_the_same_bytes(tmp_path):
    one = recorded(tmp_path / "one", {1: "a", 2: "b"})
    other = recorded(tmp_path / "other", {3: "c", 2: "not b"})
    told = succeed("tape", "merge", one, other, "--out", str(tmp_path / "whole"))
    assert "3 answers, 1 again, 1 differing" in told
    whole = Tape(tmp_path / "whole", "replay")
    assert whole.find(key_of(REQUEST, 2, 2), "here")["text"] == "b"
    swapped = recorded(tmp_path / "swapped", {3: "c", 2: "b", 1: "a"})
    succeed("tape", "merge", swapped, "--out", str(tmp_path / "again"))
    assert (tmp_path / "whole").read_bytes() == (tmp_path / "again").read_bytes()
    assert "is there already" in fail("tape", "merge", one, "--out", other)
