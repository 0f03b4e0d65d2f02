"""``dialgym check-user``: tables, files, exit codes, errors; a tape recorded and replayed."""

import json
import re

import pytest

from dialgym.cli.check_user import parse_simulator, with_settings_of
from tests.support.chat_server import chat_server
from tests.support.commands import fail, run, succeed

pytest.importorskip("scipy", reason="the extra agents")
ENV = "SlotFilling-utterance-v0"
ENGLISH = ("-s", "language=english")


def test_a_user_is_audited_and_its_files_written(tmp_path):
    told = run("check-user", ENV, "--simulator", "random", "-n", "20", "--out", str(tmp_path / "a"))
    assert told.exit_code == 1  # there are alarms
    assert re.search(r"early end .* alarm", told.stdout)
    assert "faults are more frequent than in agenda: " in told.stdout
    assert json.loads((tmp_path / "a" / "audit.json").read_text())["episodes"] == 20
    assert "<h2>Examples</h2>" in (tmp_path / "a" / "audit.html").read_text()


def test_any_twin_policies_and_seed():
    told = succeed("check-user", ENV, "--simulator", "agenda", "--twin", "random", "-n", "3",
                   "--policies", "handcrafted", "--seed", "7")  # fmt: skip
    assert "User agenda, twin random; 3 dialogues of either: 3 goals of seed 7 with" in told


def test_a_policy_that_games_the_user_is_named():
    offers = "tests.support.slot_players:OffersTheFirst"
    told = run("check-user", ENV, "--simulator", "accepting", "--policies", f"handcrafted,{offers}",
               "-n", "12", "--trust", *ENGLISH)  # fmt: skip
    assert told.exit_code == 1
    assert "No alarm" in told.stdout
    assert re.search(r"content, not served .* games it", told.stdout)
    assert f"It is gamed by {offers}." in told.stdout


def test_a_user_is_recorded_and_replayed(tmp_path):
    tape = str(tmp_path / "user.tape")
    with chat_server(lambda body: "I want thai food.") as server:
        lm = f"{{lm: {{model: stub, base_url: '{server.url}'}}}}"
        command = ["check-user", ENV, "--simulator", lm, *ENGLISH, "-n", "3"]
        asked = run(*command, "--record", tape)
        count = len(server.bodies)
        again = run(*command, "--replay", tape)
        assert len(server.bodies) == count > 10
    assert asked.exit_code == again.exit_code == 0
    # what both policies open with in the same dialogue is one request
    shared = re.search(r"Cost: (\d+) requests, (\d+) replayed, ([\d,]+) \+", asked.stdout)
    assert shared
    assert shared[1] == str(count)
    assert shared[3] == f"{10 * count:,}"
    assert f"Cost: {count + int(shared[2])} replayed." in again.stdout
    cut = [told.stdout.partition("Cost: ")[0] for told in (asked, again)]
    assert cut[0] == cut[1]
    more = [*command[:-1], "4"]
    assert "has no answer to this request" in fail(*more, "--replay", tape)


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (["--simulator", "nobody"], "unknown speaker for the user 'nobody'"),
        (
            ["--simulator", "agenda", "--record", "t"],
            "--record and --replay are of language models",
        ),
        (["--simulator", "{lm: 3}"], "expected {'lm'"),
        (["--simulator", "{lm: {modle: m}}"], "expected a model"),
        (["--simulator", "{lm"], "--simulator"),
        (["--simulator", "agenda", "-p", "x=3"], "unknown setting 'x'"),
        (["--simulator", "agenda", "--policies", "nobody"], "unknown policy"),
        (["--simulator", "agenda", "--policies", ","], "at least one policy"),
        (["--simulator", "lm", "-p", "model=m", "--replay", "none.tape"], "none.tape"),
    ],
)
def test_bad_arguments_are_one_message(arguments, told, monkeypatch):
    monkeypatch.delenv("DIALGYM_LM_MODEL", raising=False)
    assert told in fail("check-user", ENV, *arguments, "-n", "2")


@pytest.mark.parametrize(
    ("simulator", "own", "tapes", "expected"),
    [
        ("agenda", {}, {}, {"name": "agenda"}),
        ("lm", {"model": "m"}, {"record": "t"}, {"lm": {"model": "m", "record": "t"}}),
        ("{lm: {model: m}}", {"top_p": 1}, {}, {"lm": {"model": "m", "top_p": 1}}),
        ("openai:m", {}, {"replay": "t"}, {"name": "openai:m", "replay": "t"}),
        (
            "{name: retrieval, nearest: 3}",
            {"k": 1},
            {},
            {"name": "retrieval", "nearest": 3, "k": 1},
        ),
    ],
)
def test_settings_go_to_the_user(simulator, own, tapes, expected):
    assert with_settings_of(parse_simulator(simulator, "--simulator"), own, tapes) == expected
