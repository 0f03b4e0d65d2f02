"""Inputs of the viewer: recognised by their content, or one clear line."""

import json
import os
import signal
import socket
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from urllib.request import Request, urlopen

import numpy as np
import pytest

import dialgym
from dialgym.io.locks import locked
from dialgym.viewer.api import open_viewer
from dialgym.viewer.inputs import DIALOGUES, RUN, SCORES, ViewerInputs, newest_runs
from dialgym.viewer.query import Query
from dialgym.viewer.training_runs import MOST_POINTS, RunFolder, read_samples
from tests.support.commands import fail
from tests.support.waiting import HANG_GUARD

SMALL = "dialgym/Wordle-20-v0"
SAMPLES = """# seed 7: return -2, success
system: crane
user: b b y b b

# seed 8: return -6, no success
system: a text
of two lines
user: # seed 9: return 0, success
"""


def make_run(folder: Path) -> Path:
    """A run as training writes it."""
    (folder / "samples").mkdir(parents=True)
    curve = "timesteps,seconds,episodes,mean_return,success\n100,1,5,-4.5,0.2\n200,2,5,-3.5,0.4\n"
    (folder / "learning_curve.csv").write_text(curve, "utf-8")
    (folder / "config.yml").write_text(f"env_id: {SMALL}\nn_envs: 8\n", "utf-8")
    (folder / "samples" / "100.txt").write_text(SAMPLES, "utf-8")
    return folder


def make_results(file: Path, policy: str = "random", ids: Sequence[str] = (SMALL,)) -> Path:
    dialgym.evaluate(policy, ids, 2, (0,)).to_json(file)
    return file


def test_each_kind_is_known_by_what_is_in_it(tmp_path):
    pytest.importorskip("pyarrow")
    make_run(tmp_path / "runs" / "one")
    dialgym.collect(SMALL, "random", 2, path=tmp_path / "data")
    results = make_results(tmp_path / "scores.json")
    names = ["runs/one", "runs/one/learning_curve.csv", "data", "data/none"][:3]
    inputs = ViewerInputs([str(tmp_path / name) for name in names] + [str(results)])
    kinds = [(source.kind, source.name) for source in inputs.sources.values()]
    assert kinds == [(RUN, "one"), (RUN, "runs/one"), (DIALOGUES, "data"), (SCORES, "scores")]
    for source in inputs.sources.values():
        json.dumps(source.about())


def test_a_folder_of_runs_gives_each(tmp_path):
    for name in ("a", "b"):
        make_run(tmp_path / "runs" / name)
    (tmp_path / "runs" / "empty").mkdir()
    inputs = ViewerInputs([str(tmp_path / "runs")])
    assert [source.name for source in inputs.sources.values()] == ["a", "b"]
    assert {Path(run).name for run in newest_runs(tmp_path / "runs")} == {"a", "b"}
    assert newest_runs(tmp_path / "nothing") == []


def test_a_run_is_shown_as_it_stands(tmp_path):
    run = ViewerInputs([str(make_run(tmp_path / "one"))]).sources[0].content
    found = run.shown()
    assert found["env"] == SMALL
    assert not found["live"]
    assert found["curve"]["steps"] == [100, 200]
    assert set(found["curve"]["references"]) == {"random", "optimal"}
    assert found["samples"] == [100]
    assert found["config"] == {"env_id": SMALL, "n_envs": 8}
    with (tmp_path / "one" / "learning_curve.csv").open("a") as file:
        file.write("300,3,5,-2.5,0.6\n")
    with locked(tmp_path / "one"):
        later = run.shown()
    assert later["live"]
    assert later["curve"]["returns"] == [-4.5, -3.5, -2.5]
    with pytest.raises(LookupError, match="no samples at 5 timesteps"):
        run.dialogues(5)


@pytest.mark.skipif(os.name != "posix", reason="who is running is told by POSIX systems alone")
def test_a_run_that_was_killed_is_not_live(tmp_path):
    run = ViewerInputs([str(make_run(tmp_path / "one"))]).sources[0].content
    ended = subprocess.Popen([sys.executable, "-c", ""])
    ended.wait()
    lock = tmp_path / "one" / ".lock"
    lock.write_text(f"process {ended.pid} on {socket.gethostname()}", "utf-8")
    assert not run.about()["live"]
    lock.write_text(f"process {ended.pid} on another.machine", "utf-8")
    assert run.about()["live"]


def test_a_run_that_has_only_begun_is_shown(tmp_path):
    (tmp_path / "new").mkdir()
    (tmp_path / "new" / "config.yml").write_text("env_id: no/such-id-v0\n", "utf-8")
    found = ViewerInputs([str(tmp_path / "new")]).sources[0].content.shown()
    assert (found["env"], found["curve"]["steps"], found["samples"]) == ("", [], [])


def test_a_run_whose_files_are_being_written_or_say_what_json_cannot_is_shown(tmp_path):
    folder = make_run(tmp_path / "one")
    run = ViewerInputs([str(folder)]).sources[0].content
    np.savez(folder / "evaluations.npz", timesteps=[100], results=[[-4.0, -2.0]])
    assert run.shown()["evaluations"] == [(100, -3.0)]
    whole = (folder / "evaluations.npz").read_bytes()
    (folder / "evaluations.npz").write_bytes(whole[: len(whole) // 2])
    (folder / "config.yml").write_text(f"env_id: {SMALL}\nbegun: 2026-01-31\nof: !!set {{a}}\n")
    found = run.shown()
    assert found["evaluations"] == []
    assert found["env"] == SMALL
    assert json.loads(json.dumps(found))["config"]["begun"] == "2026-01-31"


def test_of_a_long_curve_the_ends_are_shown(tmp_path):
    folder = make_run(tmp_path / "one")
    rows = "".join(f"{10 * step},1,5,{-step},0\n" for step in range(1, 2001))
    (folder / "learning_curve.csv").write_text(
        f"timesteps,seconds,episodes,mean_return,success\n{rows}"
    )
    curve = RunFolder(folder).shown()["curve"]
    assert len(curve["steps"]) == MOST_POINTS
    assert (curve["steps"][0], curve["steps"][-1], curve["returns"][-1]) == (10, 20_000, -2000)


def test_samples_of_any_time_are_shown(tmp_path):
    folder = make_run(tmp_path / "one")
    (folder / "samples" / "2000000000.txt").write_text(SAMPLES, "utf-8")
    viewer = open_viewer([str(folder)], tmp_path / "ratings")
    query = {"source": "0", "timesteps": "2000000000"}
    assert len(viewer.samples(Query(query))["dialogues"]) == 2


def test_samples_are_read_with_what_looks_like_a_head_within_them():
    first, second = read_samples(SAMPLES)
    assert (first["seed"], first["return"], first["success"]) == ("7", -2.0, True)
    assert [turn["text"] for turn in first["turns"]] == ["crane", "b b y b b"]
    assert second["success"] is False
    texts = [turn["text"] for turn in second["turns"]]
    assert texts == ["a text\nof two lines", "# seed 9: return 0, success"]


def test_results_are_shown(tmp_path):
    viewer = open_viewer([str(make_results(tmp_path / "r.json"))], tmp_path / "ratings")
    (found,) = viewer.results(Query({"source": "0"}))["results"]
    assert found["name"] == "random"
    assert len(found["environments"][SMALL]["returns"][0]) == 2


def test_bad_arguments_are_one_clear_line(tmp_path, monkeypatch):
    pytest.importorskip("fastapi", reason="the extra 'web' is not installed")
    monkeypatch.chdir(tmp_path)
    make_run(tmp_path / "run")
    (tmp_path / "empty").mkdir()
    (tmp_path / "text.json").write_text("{}", "utf-8")
    (tmp_path / "list.json").write_text('{"results": 5}', "utf-8")
    (tmp_path / "parts.json").write_text('{"results": [{}]}', "utf-8")
    (tmp_path / "bad.parquet").write_bytes(b"nothing of the kind")
    os.mkfifo(tmp_path / "pipe.json")
    for arguments, text in [
        (["runn"], "there is nothing. Did you mean 'run'?"),
        (["empty"], "expected the folder of a run"),
        (["text.json"], "expected a result with policy"),
        (["list.json"], "'list.json': expected a list of results; got 5"),
        (["parts.json"], "'parts.json': expected what Result.as_dict gives (KeyError('policy'))"),
        (["bad.parquet"], "expected a Parquet file"),
        (["pipe.json"], "expected a regular file; it is a pipe"),
        (["run", "--set", "words"], "expected KEY=VALUE"),
        (["run", "--host", "203.0.113.1"], "view cannot listen at 203.0.113.1"),
        (["run", "--model", "nothing"], "nothing"),
    ]:
        assert text in fail("view", "--port", "0", *arguments)


def test_the_command_prints_its_address_and_ends_with_an_interrupt(tmp_path):
    pytest.importorskip("fastapi", reason="the extra 'web' is not installed")
    make_run(tmp_path / "runs" / "one")
    root = str(Path(__file__).parents[3])
    own = "tests.support.signals:Signals"
    command = [sys.executable, "-m", "dialgym", "view", "--port", "0", "--env", own]
    options = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}
    process = subprocess.Popen(command, cwd=tmp_path, env=environment(root), **options)
    try:
        line = process.stdout.readline()
        assert "showing 1 source at http://127.0.0.1:" in line
        assert "/?token=" in line
        address, token = line.split()[-1].split("/?token=")
        query = Request(f"{address}/api/about?env={own}", headers={"X-Dialgym-Token": token})
        with urlopen(query, timeout=HANG_GUARD) as answer:  # named by --env, and no other
            assert json.load(answer)["task"] == "Signals"
        process.send_signal(signal.SIGINT)
        _, errors = process.communicate(timeout=HANG_GUARD)
        assert process.returncode in (0, 130, -signal.SIGINT)
        assert "Traceback" not in errors
    finally:
        process.kill()


def environment(root: str) -> dict[str, str]:
    return {**os.environ, "PYTHONPATH": root}
