"""The command line: what it prints, how it leaves, and that it starts quickly."""

import errno
import io
import json
import os
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest
from rich.console import Console

import agents
import dialgym
from dialgym.cli.benchmark import default_policies, newest_run, parse_policies, suites
from dialgym.cli.common import (
    algorithm_names,
    complete_ids,
    complete_policies,
    numbers,
    parse_workers,
    settings,
)
from dialgym.experiments.benchmark import Benchmark
from dialgym.registry import entries, entry_of, list_ids
from tests.support.commands import COMMAND, fail, run, succeed
from tests.support.players import SMALL

ROOT = Path(__file__).parents[3]

# The program


def test_help_names_all_commands():
    text = succeed("--help")
    for name in ("list", "play", "check", "collect", "train", "evaluate", "benchmark", "report"):
        assert f" {name} " in text
        assert "Usage" in succeed(name, "-h")


def test_version():
    assert succeed("--version") == f"dialgym {dialgym.__version__}\n"


def test_debug_shows_where_an_error_comes_from():
    result = run("--debug", "list", "--tag", "nothing")
    assert isinstance(result.exception, ValueError)


# list


def test_list_shows_each_environment():
    text = succeed("list")
    for row in {entry.row.name: entry.row for entry in entries().values()}.values():
        assert row.id(row.views[0]) in text
    assert "dialgym/Wordle-200-utterance-v0" in succeed("list", "--tag", "utterance")
    assert "Wordle-200" not in succeed("list", "--tag", "quick")


def test_list_has_a_line_for_each_and_filters():
    lines = succeed("list", "--task", "Slot_Filling", "--view", "token").splitlines()
    assert len(lines) == 20
    assert lines[0].split() == ["id", "random", "expert", "what"]
    assert all(line.startswith("dialgym/") for line in lines[1:])
    lines = succeed("list", "--tag", "quick", "--columns", "id,policy").splitlines()
    assert [*lines[1].split()] == ["dialgym/Wordle-20-v0", "optimal"]
    assert "'wat'" in fail("list", "--columns", "id,wat")
    assert "got ','" in fail("list", "--columns", ",")
    assert "unknown task 'wordel'. Did you mean 'wordle'?" in fail("list", "--task", "wordel")
    assert "unknown view 'tokens'. Did you mean 'token'?" in fail("list", "--view", "tokens")
    assert "unknown tag 'quik'. Did you mean 'quick'?" in fail("list", "--tag", "quik")


def test_what_stands_in_for_a_corpus_says_so():
    tasks = ("daily-dialog", "comments", "multiwoz", "slot-filling")
    listed = (succeed("list", "--columns", "id,expert", "--task", task) for task in tasks)
    lines = [line for text in listed for line in text.splitlines()[1:]]
    marked = {line.split()[0] for line in lines if "(built-in)" in line}
    assert {f"dialgym/{name}-v0" for name in ("DailyDialog", "Comments", "MultiWOZ-act")} <= marked
    assert "dialgym/SlotFilling-act-v0" not in marked
    assert not any(line.split()[-1] == "-" for line in lines if line.startswith("dialgym/D"))
    table = succeed("evaluate", "random", "MultiWOZ-act-v0", "-n", "2", "--seeds", "0")
    assert "MultiWOZ-act-v0 (built-in)" in " ".join(table.split())
    assert "the original is not here" in " ".join(table.split())


def test_list_needs_no_extra(monkeypatch):
    def missing(entry, settings):
        raise ImportError("DailyDialog needs nltk")

    monkeypatch.setattr("dialgym.registry.make_task", missing)
    lines = succeed("list").splitlines()
    assert "DailyDialog-v0 (needs an extra)" in "".join(lines)
    assert lines[-1] == "Other views of these: --view act or token or utterance."
    assert "Other views of these: --view utterance." in succeed("list", "--task", "wordle")


def test_list_fits_a_terminal(monkeypatch):
    shown = Console(file=io.StringIO(), force_terminal=True, width=80, color_system=None)
    monkeypatch.setattr("dialgym.cli.tasks.console", shown)
    succeed("list")
    lines = shown.file.getvalue().splitlines()
    assert max(map(len, lines)) == 80
    assert any(line.endswith("…") for line in lines)


@pytest.mark.parametrize("name", ["Wordle-20", "wordle20", "dialgym/Wordle-20-v3", "Wordle_20"])
def test_a_near_miss_names_the_variant(name):
    assert "Did you mean 'dialgym/Wordle-20-v0'?" in fail("check", name)


def test_ids_policies_and_runs_are_completed(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "runs" / "mine").mkdir(parents=True)
    (tmp_path / "runs" / "mine" / "model.zip").write_bytes(b"")
    assert "Wordle-20-v0" in complete_ids()
    assert "dialgym/Wordle-20-v0" in complete_ids("dialg")
    assert "Maze-v0,Wordle-20-v0" in complete_ids("Maze-v0,Wor")
    for given, rest in (("Wordle-20-v0", []), (None, ["--policy", "Wordle-20-v0"])):
        context = SimpleNamespace(params={"id": given}, args=rest)
        assert {"random", "random-mixture", "optimal", "runs/mine"} <= {*complete_policies(context)}
    nothing = SimpleNamespace(params={"id": None}, args=[])
    assert {"random", "handcrafted"} <= {*complete_policies(nothing)}
    assert {"ppo", "reward-model"} <= {*algorithm_names()}


@pytest.mark.parametrize(
    ("begun", "offered"),
    [("wor", "wordle-large"), ("re", "references"), ("--su", "--suite"), ("sweep", "")],
)
def test_completion_after_benchmark(begun, offered):
    told = completed("benchmark", begun)
    assert offered in told if offered else not told


def test_completion_of_commands_is_of_single_words():
    assert completed("ben") == ["benchmark"]


def completed(*words):
    """What a shell is offered for the last word."""
    line = "\n".join(["dialgym", *words])
    place = {
        "COMP_WORDS": line,
        "COMP_CWORD": str(len(words)),
        "_DIALGYM_COMPLETE": "complete_bash",
    }
    program = "import sys; sys.argv = ['dialgym']; from dialgym.cli import main; main()"
    command = [sys.executable, "-c", program]
    told = subprocess.run(command, env={**os.environ, **place}, capture_output=True, text=True)
    return told.stdout.split()


def test_list_as_json():
    rows = json.loads(succeed("list", "--json"))
    assert [row["id"] for row in rows] == list_ids()
    assert rows[0]["task"] == "dialgym.tasks.wordle:Wordle"


# check

TASK = """
from dialgym.tasks.wordle import Wordle

class Small(Wordle):
    name = "Small"
    def __init__(self):
        super().__init__(words=5, guesses="answers")

class Broken(Small):
    name = "Broken"
    def transcript(self, state, party):
        return super().transcript(state, party)[1:]

def nothing():
    return 3
"""


@pytest.fixture
def module(tmp_path, monkeypatch):
    (tmp_path / "my_own_task.py").write_text(TASK)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", [*sys.path])
    yield
    sys.modules.pop("my_own_task", None)


def test_a_broken_task_is_told_so(module):
    result = run("check", "my_own_task:Broken", "-n", "5")
    assert result.exit_code == 1
    assert result.stderr.startswith("error: Broken: rules agree with facts: ")
    assert len(result.stderr.splitlines()) == 1


@pytest.mark.parametrize(
    ("target", "message"),
    [
        ("my_own_task:Smal", "module 'my_own_task' has no 'Smal'. Did you mean 'Small'?"),
        ("another_task:Small", "there is no module 'another_task' here"),
        ("my_own_task:nothing", "my_own_task:nothing: expected an id, a dialgym.tasks.Task"),
        ("Wordle-20", "unknown environment id 'Wordle-20'"),
    ],
)
def test_what_cannot_be_checked(module, target, message):
    assert message in fail("check", target)


# train, evaluate, benchmark


def test_train_hands_over_its_arguments(monkeypatch, tmp_path):
    given = {}

    monkeypatch.setattr(agents, "run_training", lambda config: given.update(vars(config)))
    more = ["--n-envs", "8", "--workers", "2", "--seed", "3", "--device", "cpu", "-s", "words=7"]
    succeed("train", "ppo", SMALL, "--timesteps", "100", "--out", str(tmp_path), *more)
    assert (given["algorithm"], given["env_id"], given["total_timesteps"]) == ("ppo", SMALL, 100)
    assert (given["n_envs"], given["workers"], given["seed"]) == (8, 2, 3)
    assert (given["device"], given["log_dir"]) == ("cpu", tmp_path)
    assert given["env_kwargs"] == {"words": 7}


def test_training_without_agents_is_one_clear_error(monkeypatch):
    monkeypatch.setitem(sys.modules, "agents", None)
    assert 'pip install "dialgym[agents]"' in fail("train", "ppo", SMALL)


def test_evaluate_prints_and_writes(tmp_path):
    text = succeed(
        "evaluate", "optimal", SMALL, "Wordle-200-v0", "-n", "10", "--seeds", "1,2",
        "--json", str(tmp_path / "r.json"),
    )  # fmt: skip
    result = dialgym.Result.from_json(tmp_path / "r.json")
    assert result.seeds == (1, 2)
    assert f"{result.mean_return:.2f}" in text
    assert "unknown policy for the system 'x'" in fail("evaluate", "x", SMALL)


def test_benchmark_of_a_suite():
    assert {"wordle", "slot-filling", "language", "all"} == {*suites()}
    for ids in suites().values():
        assert all(entry_of(env_id).view in ("token", "act") for env_id in ids)
    assert default_policies(["Wordle-20-v0", "SlotFilling-act-v0"]) == [
        "random",
        "random-mixture",
        "optimal",
        "handcrafted",
    ]
    assert "--suite must be one of" in fail("benchmark", "--suite", "wordel")
    assert "either --ids or --suite" in fail("benchmark", "--suite", "all", "--ids", SMALL)


def test_a_policy_is_left_out_where_there_is_none_of_its_name(tmp_path, monkeypatch):
    monkeypatch.setattr(Benchmark, "_draw", lambda *_: [])  # pictures: test_results.py
    both = ("--ids", f"{SMALL},SlotFilling-act-v0", "-n", "2", "--seeds", "0")
    named = succeed("benchmark", *both, "--policies", "random,optimal", "--out", str(tmp_path))
    assert "optimal is left out on dialgym/SlotFilling-act-v0: no such policy" in named
    text = succeed("benchmark", *both, "--out", str(tmp_path))
    assert "optimal" in text
    assert "handcrafted" in text
    assert "left out" not in text
    games = (tmp_path / "games.txt").read_text()
    assert games.count("seed 0, episode 0") == 2


def test_benchmark_without_matplotlib_writes_the_rest(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib.figure", None)
    folder = tmp_path / "b[/v2] :x:"
    text = succeed("benchmark", "--policies", "random", "--ids", SMALL, "-n", "2",
                   "--out", str(folder))  # fmt: skip
    assert "without pictures: drawing pictures needs matplotlib" in text
    assert f"in {folder}: results.json, table.md" in text
    assert sorted(path.name for path in folder.iterdir()) == [
        "games.txt",
        "results.json",
        "table.md",
    ]


def test_settings_of_saved_models_need_one():
    given = ("--policies", "random,optimal", "--ids", SMALL, "-p", "beta=4")
    assert "expected some among the policies, got random, optimal" in fail("benchmark", *given)


@pytest.mark.parametrize("command", ["evaluate --json", "benchmark --html", "benchmark --out"])
def test_what_cannot_be_written_is_said_before_anything_is_played(command, tmp_path, monkeypatch):
    (tmp_path / "file").write_text("")
    name, option = command.split()
    monkeypatch.setattr(f"dialgym.experiments.{name}", None)
    policy = ("random", SMALL) if name == "evaluate" else ("--policies", "random", "--ids", SMALL)
    out = ("--out", str(tmp_path / "scores")) if option == "--html" else ()
    assert "file" in fail(name, *policy, *out, option, str(tmp_path / "file" / "there"))


def test_benchmark_finds_the_newest_run(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert newest_run(Path("runs")) is None
    for age, name in enumerate(["new", "old"]):
        model = tmp_path / "runs" / name / "model.zip"
        model.parent.mkdir(parents=True)
        model.write_bytes(b"")
        os.utime(model, (100 - age, 100 - age))
    assert newest_run(Path("runs")) == Path("runs/new")


def test_references_are_printed_and_written(tmp_path, monkeypatch):
    monkeypatch.setattr("dialgym.experiments.references.episodes_of", lambda row: 20)
    path = tmp_path / "envs.yaml"
    path.write_text("environments:\n  Wordle-20:\n    task: x\n")
    result = run("benchmark", "references", "--write", str(path.with_name("none.yaml")))
    assert (result.exit_code, result.stdout) == (2, "")  # before anything is played
    text = succeed("benchmark", "references", "--ids", SMALL, "--write", str(path))
    assert "expert_policy: optimal, episodes: 20, secrets: all, seed: 0}" in text
    assert text.strip().splitlines()[-1] == path.read_text().splitlines()[-1]


def test_workers_are_processes_or_a_cluster():
    assert parse_workers("4") == (4, None)
    for address in ("auto", "10.0.0.1:6379", "ray://head:10001"):
        assert parse_workers(address) == (1, address)
    for wrong in ("-1", "four", ""):
        told = fail("benchmark", "wordle", "--workers", wrong)
        assert "--workers: expected a number of processes from 0, or a Ray cluster" in told


def test_policies_settings_and_numbers_are_read():
    assert parse_policies("random,ppo=runs/x/model.zip") == {
        "random": "random",
        "ppo": "runs/x/model.zip",
    }
    assert parse_policies("runs/x/model.zip") == {"x": "runs/x/model.zip"}
    assert settings(["words=50", "hard_mode=true", "secret=fixed", "a=b=c"]) == {
        "words": 50,
        "hard_mode": True,
        "secret": "fixed",
        "a": "b=c",
    }
    powers = {"a": 1e-4, "b": -2500.0, "c": "1e-4x", "d": "lin_1e-3", "e": 3}
    assert settings(["a=1e-4", "b=-2.5E3", "c=1e-4x", "d=lin_1e-3", "e=3"]) == powers
    assert settings(["budget={tokens: 2e6, of: [1e-4, x]}"]) == {
        "budget": {"tokens": 2e6, "of": [1e-4, "x"]}
    }
    assert numbers("0, 2,") == [0, 2]
    with pytest.raises(ValueError, match=r"--policies: expected distinct names .* got 'a,a'"):
        parse_policies("a,a")
    with pytest.raises(ValueError, match=r"--seeds: expected whole numbers .* got '1.5'"):
        numbers("1.5")


LATER = ("pyarrow", "rich", "typer", "torch", "agents")
AT_ONCE = ("json", "signal", "numpy", "gymnasium")
PROGRAM = ("-P", "-c", "from dialgym.cli import main; main()")  # as the installed script


@pytest.mark.parametrize(
    ("program", "names", "workers"),
    [
        (PROGRAM, (*LATER, *AT_ONCE), 1),
        pytest.param(PROGRAM, (*LATER, *AT_ONCE), 0, marks=pytest.mark.slow),
        # Python imports the package itself before it is asked
        pytest.param(("-m", "dialgym"), LATER, 0, marks=pytest.mark.slow),
    ],
)
def test_files_of_the_current_folder_hide_nothing(program, names, workers, tmp_path):
    """A downloaded folder of data may hold modules, which nobody has asked for."""
    for name in names:
        (tmp_path / f"{name}.py").write_text("raise SystemExit('imported')\n", "utf-8")
    (tmp_path / "my_own_task.py").write_text(TASK, "utf-8")
    command = ["collect", "my_own_task:Small", "--policy", "random", "--out", "data", "-n", "2"]
    lines = [[*command, "--workers", str(workers)], ["data", "describe", "data"]]
    for line in lines[: 1 if workers else 2]:  # the second too where it is nightly
        ran = subprocess.run(
            [sys.executable, *program, *line],
            cwd=tmp_path, env={**os.environ, "PYTHONPATH": str(ROOT)},
            capture_output=True, text=True, check=False,
        )  # fmt: skip
        assert ran.returncode == 0, ran.stderr
        assert "imported" not in ran.stderr


def test_a_reader_that_is_gone_is_told_nothing(monkeypatch):
    def gone():
        raise BrokenPipeError(errno.EPIPE, "Broken pipe")

    monkeypatch.setattr(COMMAND.commands["zoo"], "callback", gone)
    result = run("zoo")
    assert (result.exit_code, result.output) == (1, "")
