"""``dialgym check-judge``: tables, a file, exit codes, errors; a tape recorded and replayed."""

import json
import re

import pytest

from tests.support.chat_server import chat_server
from tests.support.commands import fail, run, succeed
from tests.support.judging_model import JudgingModel, agreeable, truthful

pytest.importorskip("scipy", reason="the extra agents")
pytest.importorskip("httpx", reason="the extra lm")
ENV, POLICIES, MADE = "SlotFilling-utterance-v0", ["handcrafted", "random"], {"error_rate": 0.3}
COMMAND = ["check-judge", ENV, "-s", "error_rate=0.3", "-n", "20", "-p", "party=user"]


def model(opinion):
    return JudgingModel(ENV, POLICIES, 20, opinion, env_kwargs=MADE)


def test_a_judge_is_checked_recorded_and_replayed(tmp_path):
    tape, out = str(tmp_path / "judge.tape"), tmp_path / "judge.json"
    with chat_server(model(truthful)) as server:
        judge = f"{{model: stub, base_url: '{server.url}'}}"
        command = [*COMMAND, "--judge", judge, "--out", str(out)]
        told = succeed(*command, "--record", tape)
        count = len(server.bodies)
        again = succeed(*command, "--replay", tape)
        assert len(server.bodies) == count == 80
    assert re.search(r"agreement, % +100\.0 \[8", told)
    assert "openai:stub agrees with the rules beyond chance: Cohen's kappa 1.00 [" in told
    assert "Cost of 80 judgements: 80 requests, 800 + 160 tokens." in told
    assert "Cost of 80 judgements: 80 replayed." in again
    assert told.partition("Cost of")[0] == again.partition("Cost of")[0]
    assert json.loads(out.read_text())["tells_success"] is True


def test_one_that_tells_nothing_ends_with_1():
    with chat_server(model(agreeable)) as server:
        more = ("-p", "model=stub", "-p", f"base_url={server.url}", "--repeats", "1")
        told = run(*COMMAND, "--judge", "lm", *more)
    assert told.exit_code == 1
    assert "It calls 100.0 [" in told.stdout
    assert "again" not in told.stdout


def test_one_that_gives_no_score_is_one_line():
    with chat_server(lambda body: "No idea.") as server:
        more = ("-n", "2", "-p", "model=stub", "-p", f"base_url={server.url}")
        told = run("check-judge", ENV, "--judge", "lm", *more)
    assert told.exit_code == 2
    assert "error: SlotFilling, episode 0 of seed 0 with" in told.stderr
    assert "gave no score in 3 answers" in told.stderr


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (["--judge", "lm"], "expected a model"),
        (["--judge", "openai:m", "-p", "question=3"], "question of reward 'lm_judge'"),
        (["--judge", "{model: m, qestion: x}"], "Did you mean 'question'"),
        (["--judge", "nobody"], "unknown reward 'nobody'"),
        (["--judge", "length", "--record", "t"], "unknown setting 'record'"),
        (["--judge", "openai:m", "--replay", "none.tape"], "none.tape"),
        (["--judge", "length", "--policies", "nobody"], "unknown policy"),
    ],
)
def test_bad_arguments_are_one_message(arguments, told, monkeypatch):
    monkeypatch.delenv("DIALGYM_LM_MODEL", raising=False)
    assert told in fail("check-judge", ENV, *arguments, "-n", "2")
