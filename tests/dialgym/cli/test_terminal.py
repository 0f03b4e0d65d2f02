"""The program where the locale knows ASCII alone, and where the terminal has no width."""

import os
import signal
import subprocess
import sys
from pathlib import Path
from types import ModuleType

import pytest

from dialgym import cli
from dialgym.cli.terminal import prepare_terminal

ROOT = Path(__file__).parents[3]
BARE = {"LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0", "COLUMNS": "0"}
GAMES = ("collect", "Wordle-20-v0", "--policy", "random", "-n", "8", "--out", "données")


def start(*arguments, cwd, **more):
    environment = {**os.environ, **BARE, "PYTHONPATH": str(ROOT)}
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    command = [sys.executable, "-m", "dialgym", *arguments]
    return subprocess.Popen(command, cwd=cwd, env={**environment, **more}, **pipes)


def ran(*arguments, cwd, said="", **more):
    """All that a command prints; its status is 0."""
    process = start(*arguments, cwd=cwd, **more)
    out, errors = process.communicate(said.encode())
    assert process.returncode == 0, errors
    return out.decode()


@pytest.fixture(scope="module")
def games(tmp_path_factory):
    pytest.importorskip("pyarrow")
    folder = tmp_path_factory.mktemp("été")
    assert "8 dialogues stored in données: 8 episodes in" in ran(
        *GAMES, "--workers", "1", cwd=folder
    )
    assert (folder / "données" / "collection.json").is_file()
    return folder


@pytest.mark.slow
def test_a_width_of_nothing_is_no_width(tmp_path):
    assert "dialgym/Wordle-20-v0" in ran("list", cwd=tmp_path)


def test_texts_with_accents_are_read_and_shown(tmp_path):
    shown = ran("play", "Wordle-20-v0", "--seed", "1", cwd=tmp_path, said="né\ncr\ufffdne\n/quit\n")
    assert "'né' is not what the rules foresee here" in shown
    assert "'cr\ufffdne' is not" in shown
    process = start("play", "Wordle-20-v0", "-o", "word=né", cwd=tmp_path, PYTHONIOENCODING="ascii")
    assert "got 'né'" in process.communicate()[1].decode()


@pytest.mark.slow
def test_folders_with_accents_are_read(games):
    assert "Wordle-20-v0 8" in ran("data", "describe", "données", cwd=games)


@pytest.mark.slow
def test_a_run_is_trained_in_a_folder_with_accents(games):
    pytest.importorskip("stable_baselines3")
    small = "policy_kwargs={n_layer: 1, n_embd: 16}"
    shown = ran("train", "bc", "Wordle-20-v0", "--data", "données", "--timesteps", "4", "-p", small,
                "--final-episodes", "0", "--out", "modèle", cwd=games)  # fmt: skip
    assert str(games / "modèle") in shown or "modèle" in shown
    assert (games / "modèle" / "model.zip").is_file()


@pytest.mark.slow
def test_data_with_accents_is_viewed(games):
    pytest.importorskip("fastapi", reason="the extra 'web' is not installed")
    process = start("view", "données", "--port", "0", cwd=games)
    try:
        assert b"showing 1 source at http://127.0.0.1:" in process.stdout.readline()
        process.terminate()
        _, errors = process.communicate()
        assert process.returncode in (0, 128 + signal.SIGTERM), errors
    finally:
        process.kill()


def test_a_closed_input_has_nothing_to_read(monkeypatch):
    monkeypatch.setattr(sys, "stdin", None)
    prepare_terminal()
    with sys.stdin as nothing:
        assert nothing.read() == ""


def test_an_interrupt_while_packages_are_imported_is_one_line(monkeypatch, capsys):
    class Slow(ModuleType):
        def __getattr__(self, name):
            raise KeyboardInterrupt

    monkeypatch.setitem(sys.modules, "dialgym.cli.app", Slow("dialgym.cli.app"))
    monkeypatch.setattr(cli, "handle_sigterm", lambda: None)
    with pytest.raises(SystemExit) as end:
        cli.main()
    assert end.value.code == 128 + signal.SIGINT
    assert capsys.readouterr().err == "\nInterrupted.\n"
