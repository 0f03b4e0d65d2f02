"""Recorded language models: the same answers at any speed, after any end, without a network."""

import os
import re
import signal
import socket
import subprocess
import sys
from pathlib import Path

import pytest

from dialgym.io.tape_report import merge_tapes
from dialgym.rollouts.player import Player
from tests.support.chat_server import chat_server

pytest.importorskip("httpx", reason="the extra lm")

ENV, COUNT = "SlotFilling-v0", 6


class Greets:
    """A system that goes on until the turns are over."""

    def reply(self, task, state, rng):
        return "hello"


def talks(body):
    return f"i want food {body['seed'] % 1000}"


def played(policy=None, **settings):
    """Texts of dialogues with a model as the user."""
    kwargs = {"language": "english", "simulator": {"lm": {"model": "stub", **settings}}}
    player = Player(ENV, policy or Greets(), kwargs, record=True)
    batches = [*player.play([(0, i) for i in range(COUNT)])]
    return [text for batch in batches for text in batch.turns.text]


def test_the_same_bytes_however_many_are_asked_at_once(tmp_path):
    said, merged = [], []
    with chat_server(talks) as server:
        for most in (1, 64):
            tape = tmp_path / f"tape{most}"
            said.append(played(base_url=server.url, concurrency=most, record=str(tape)))
            merge_tapes(tmp_path / f"merged{most}", [tape])
            merged.append((tmp_path / f"merged{most}").read_bytes())
    assert said[0] == said[1]
    assert merged[0] == merged[1]


KILLED = """
import os, sys
from pathlib import Path
import httpx
from tests.dialgym.simulators.test_recorded_users import ENV, Greets, Player, played
url, tape, number, times = sys.argv[1:]
list(Player(ENV, Greets(), {"language": "english"}).play([(0, 0)]))  # imports all, once
for _ in range(int(times)):
    child = os.fork()
    if not child:
        Path(number).write_text(str(os.getpid()))
        played(base_url=url, record=tape, concurrency=2)
        os._exit(0)
    _, ended = os.waitpid(child, 0)
sys.exit(os.waitstatus_to_exitcode(ended))
"""


@pytest.mark.skipif(not hasattr(os, "fork"), reason="kills forked processes")
@pytest.mark.parametrize("count", [2, pytest.param(20, marks=pytest.mark.slow)])
def test_a_recording_survives_kills_and_asks_nothing_twice(tmp_path, monkeypatch, count):
    tape, whole_tape = tmp_path / "tape", tmp_path / "whole"
    number = tmp_path / "number"
    with chat_server(talks) as server:
        whole = played(base_url=server.url, record=str(whole_tape))
        needed = len(server.bodies)
        each = needed // (count + 1)

        def kills_at_times(body):
            if len(server.bodies) % each == 0 and len(kills) < count:
                kills.append(os.kill(int(number.read_text()), signal.SIGKILL))
            return talks(body)

        kills = []
        server.rule = kills_at_times
        command = [sys.executable, "-c", KILLED, server.url, str(tape), str(number), str(count + 1)]
        last = subprocess.run(command, cwd=Path(__file__).parents[3], check=False)
        assert last.returncode == 0
        assert len(kills) == count
        asked = len(server.bodies) - needed
        assert needed <= asked <= needed + 2 * len(kills)  # those under way when it was killed
        total = len(server.bodies)
        refuse_connections(monkeypatch)
        assert played(replay=str(tape)) == whole
        assert len(server.bodies) == total
    merged = [tmp_path / "merged", tmp_path / "merged whole"]
    for path, one in zip(merged, (tape, whole_tape)):
        merge_tapes(path, [one])
    assert merged[0].read_bytes() == merged[1].read_bytes()


def refuse_connections(monkeypatch):
    def refuse(*arguments):
        raise AssertionError("a connection was opened")

    monkeypatch.setattr(socket.socket, "connect", refuse)
    monkeypatch.setattr(socket.socket, "connect_ex", refuse)


def test_a_replay_opens_no_connection(tmp_path, monkeypatch):
    tape = str(tmp_path / "tape")
    with chat_server(talks) as server:
        recorded = played(base_url=server.url, record=tape)
    refuse_connections(monkeypatch)
    assert played(replay=tape) == recorded


class Leaves(Greets):
    """A system that leaves what was recorded."""

    def reply(self, task, state, rng):
        return "what food do you want?"


def test_who_leaves_the_tape_meets_an_error_or_the_rule(tmp_path):
    tape = str(tmp_path / "tape")
    with chat_server(talks) as server:
        recorded = played(base_url=server.url, record=tape)
    with pytest.raises(LookupError, match=r"episode \d of seed 0.*the tape"):
        played(Leaves(), replay=tape)
    kwargs = {"simulator": {"lm": {"model": "stub", "replay": tape, "on_miss": "rule"}}}
    player = Player(ENV, Leaves(), {"language": "english", **kwargs}, record=True)
    (batch,) = player.play([(0, i) for i in range(COUNT)])
    usage = player.dialogue.other.client.usage
    assert usage.replayed == COUNT  # the first words
    assert usage.missed > COUNT
    ruled = [text for text in batch.turns.text if not re.match("hello|what|i want food", text)]
    assert ruled
    assert played(replay=tape, on_miss="rule") == recorded
