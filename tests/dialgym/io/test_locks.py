"""One writer at a time."""

import os
import subprocess
import sys
from threading import Thread

import pytest

from dialgym.io.locks import LOCK, FolderInUse, locked

HOLD = """
import sys
from pathlib import Path
from dialgym.io.locks import locked
with locked(Path(sys.argv[1])):
    print("held", flush=True)
    sys.stdin.read()
"""


@pytest.fixture
def holder(tmp_path):
    command = [sys.executable, "-c", HOLD, str(tmp_path / "out")]
    process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    assert process.stdout.readline() == b"held\n"
    yield process
    process.kill()
    process.communicate()


def test_another_process_is_refused_and_told_who_writes(tmp_path, holder):
    expected = rf"out' is being written by process {holder.pid} on .*give another folder"
    with pytest.raises(FolderInUse, match=expected), locked(tmp_path / "out"):
        pass
    assert (tmp_path / "out" / LOCK).exists()


def test_the_lock_ends_with_its_process_however_it_ends(tmp_path, holder):
    holder.kill()
    holder.wait()
    with locked(tmp_path / "out"):
        pass
    assert not any((tmp_path / "out").iterdir())


def test_a_thread_may_ask_again_but_no_other_one(tmp_path):
    found = []

    def other():
        try:
            with locked(tmp_path):
                found.append("in")
        except FolderInUse:
            found.append("refused")

    def ask():
        thread = Thread(target=other)
        thread.start()
        thread.join()

    with locked(tmp_path):
        with locked(tmp_path):
            ask()
        ask()
    ask()
    assert found == ["refused", "refused", "in"]


def test_a_forked_child_that_ends_leaves_the_lock(tmp_path, holder):
    with locked(tmp_path / "mine"):
        if not (child := os.fork()):
            os._exit(0)
        os.waitpid(child, 0)
        command = [sys.executable, "-c", HOLD, str(tmp_path / "mine")]
        done = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, check=False)
        assert b"FolderInUse" in done.stderr
