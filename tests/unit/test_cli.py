"""The command line: what it prints, how it leaves, and that it starts quickly."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from players import SMALL, FixedTokens
from typer.testing import CliRunner

import dialgym
from dialgym.cli import app
from dialgym.cli.benchmark import newest_run, parse_policies
from dialgym.cli.common import numbers, settings
from dialgym.registry import list_ids
from dialgym.simulators import Speaker
from dialgym.simulators.human import HumanSpeaker, allows
from dialgym.tasks.wordle import Wordle


def run(*arguments, keys=""):
    return CliRunner().invoke(app, list(arguments), input=keys, env={"COLUMNS": "200"})


def succeed(*arguments, keys=""):
    result = run(*arguments, keys=keys)
    assert result.exit_code == 0, result.output
    return result.output


def fail(*arguments):
    """The error: one line on the error stream, exit code 2, no traceback."""
    result = run(*arguments)
    assert result.exit_code == 2
    assert result.stdout == ""
    lines = result.stderr.splitlines()
    assert len(lines) == 1
    assert lines[0].startswith("error: ")
    return lines[0]


# The program


def test_help_names_all_commands():
    text = succeed("--help")
    for name in ("list", "play", "check", "train", "evaluate", "benchmark"):
        assert f" {name} " in text
        assert "Usage" in succeed(name, "-h")


def test_version():
    assert succeed("--version") == f"dialgym {dialgym.__version__}\n"


def test_debug_shows_where_an_error_comes_from():
    result = run("--debug", "list", "--tag", "nothing")
    assert isinstance(result.exception, ValueError)


def test_listing_loads_nothing_heavy():
    code = (
        "import sys; from dialgym.cli import main; sys.argv = ['dialgym', 'list']\n"
        "try: main()\n"
        "except SystemExit: print('LOADED', *{n.partition('.')[0] for n in sys.modules})"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    loaded = set(done.stdout.partition("LOADED")[2].split())
    assert loaded
    assert not loaded & {"torch", "matplotlib", "transformers", "stable_baselines3", "agents"}


# list


def test_list_shows_each_environment():
    text = succeed("list")
    for env_id in list_ids("token"):
        assert env_id in text
    assert "dialgym/Wordle-200-utterance-v0" in succeed("list", "--tag", "utterance")
    assert "Wordle-200" not in succeed("list", "--tag", "quick")


def test_list_as_json():
    rows = json.loads(succeed("list", "--json"))
    assert [row["id"] for row in rows] == list_ids()
    assert rows[0]["task"] == "dialgym.tasks.wordle:Wordle"


def test_list_of_an_unknown_tag():
    assert "unknown tag 'quik'. Did you mean 'quick'?" in fail("list", "--tag", "quik")


# play


def test_a_person_solves_a_game():
    text = succeed("play", SMALL, "-o", "word=sleep", "--seed", "1", keys="WHITE\nsleep\n")
    assert "user: b b b b y" in text
    assert "user: g g g g g" in text
    assert "(user, in private: sleep)" in text
    assert "Solved in 2 turns, return -1. seed 1" in text


def test_the_same_seed_gives_the_same_game():
    keys = "white\ncrisp\nstock\nlevel\nangry\nphase\n"
    first, second = (succeed("play", SMALL, "--seed", "5", keys=keys) for _ in range(2))
    assert first == second


def test_hints_tell_what_is_left():
    text = succeed("play", SMALL, "-o", "word=sleep", "--hints", keys="white\nsleep\n")
    assert "20 possible, hint: " in text
    assert "2 possible, hint: " in text


def test_what_the_rules_do_not_foresee_is_asked_again():
    text = succeed("play", SMALL, "-o", "word=sleep", keys="zzzzz\nsleep\n")
    assert "'zzzzz' is not what the rules foresee here" in text
    assert "Solved in 1 turn, return 0." in text
    assert "user: invalid" in succeed(
        "play", SMALL, "-o", "word=sleep", keys="zzzzz\nzzzzz\nsleep\n"
    )


@pytest.mark.parametrize("keys", ["", "white\n"])
def test_the_end_of_the_input_is_a_goodbye(keys):
    assert succeed("play", SMALL, "--seed", "0", keys=keys).endswith("Goodbye.\n")


def test_interruption_is_a_goodbye(monkeypatch):
    def interrupt(self, task, state, rng):
        raise KeyboardInterrupt

    monkeypatch.setattr(HumanSpeaker, "reply", interrupt)
    assert succeed("play", SMALL).endswith("Goodbye.\n")


def test_playing_the_host():
    text = succeed("play", "Wordle-v0", "--as", "user", keys="crane\n")
    assert "system: crane" in text
    assert "Solved in 1 turn" in text


def test_watching_a_policy():
    text = succeed("play", SMALL, "--policy", "optimal", "--seed", "3")
    assert "system: " in text
    assert "Solved in" in text


def test_watching_a_checkpoint(tmp_path, monkeypatch):
    class Agents:
        @staticmethod
        def load(path):
            return FixedTokens()

    monkeypatch.setattr("dialgym.benchmark.policies.require_agents", lambda: Agents)
    (tmp_path / "model.zip").write_bytes(b"")
    utterances = "dialgym/Wordle-20-utterance-v0"
    text = succeed("play", utterances, "--policy", str(tmp_path), "-o", "word=sleep")
    assert "Solved in 1 turn, return 0." in text


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["Wordle-21-v0"], "unknown environment id 'Wordle-21-v0'. Did you mean"),
        ([SMALL, "--as", "me"], "learner of Wordle must be one of 'system', 'user'; got 'me'"),
        ([SMALL, "--as", "user", "--hints"], "the user of Wordle has no policy 'optimal' to ask"),
        ([SMALL, "--policy", "optimla"], "Did you mean 'optimal'?"),
        ([SMALL, "--against", "nobody"], "unknown speaker for the user 'nobody' in Wordle"),
        ([SMALL, "-o", "word=zzzzz"], "option 'word' of Wordle: expected one of its 20 answers"),
        ([SMALL, "-s", "word"], "--set: expected KEY=VALUE, such as words=50; got 'word'"),
        ([SMALL, "-s", "wods=3"], "unknown argument 'wods'"),
    ],
)
def test_play_with_bad_arguments(arguments, message):
    assert message in fail("play", *arguments)


def test_a_person_is_a_speaker():
    said = iter(["slee", "sleep"])
    person = HumanSpeaker(ask=lambda prompt: next(said))
    assert isinstance(person, Speaker)
    result = dialgym.evaluate(person, SMALL, 1, seeds=(0,), env_kwargs={"turns": 1})
    assert result[SMALL].lengths.item() == 1
    assert next(said, None) is None


def test_what_a_constraint_admits():
    constraint = Wordle(words=20, guesses="answers", constraint="words").static_constraint("system")
    assert allows(constraint, "sleep")
    assert not allows(constraint, "slee")
    assert not allows(constraint, "sleeps")
    assert not allows(constraint, "zzzzz")


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


def test_a_registered_task_is_checked():
    text = succeed("check", SMALL, "-n", "5")
    assert text.count("✓ Wordle: ") == 3


def test_your_own_task_is_checked(module):
    assert "✓ Small: views agree" in succeed("check", "my_own_task:Small", "-n", "5")


def test_a_broken_task_is_told_so(module):
    result = run("check", "my_own_task:Broken", "-n", "5")
    assert result.exit_code == 1
    assert result.stderr.startswith("error: Broken: rules keep their word: ")
    assert len(result.stderr.splitlines()) == 1


@pytest.mark.parametrize(
    ("target", "message"),
    [
        ("my_own_task:Smal", "module 'my_own_task' has no 'Smal'. Did you mean 'Small'?"),
        ("another_task:Small", "there is no module 'another_task' here"),
        ("my_own_task:nothing", "expected a dialgym.tasks.Task at my_own_task:nothing; got 3"),
        ("Wordle-20", "unknown environment id 'Wordle-20'"),
    ],
)
def test_what_cannot_be_checked(module, target, message):
    assert message in fail("check", target)


# train, evaluate, benchmark


def test_train_hands_over_its_arguments(monkeypatch, tmp_path):
    given = {}

    class Agents:
        @staticmethod
        def train(*args, **kwargs):
            given.update(kwargs, args=args)

    monkeypatch.setattr("dialgym.cli.train.require_agents", lambda: Agents)
    more = ["--n-envs", "8", "--workers", "2", "--seed", "3", "--device", "cpu", "-s", "words=7"]
    succeed("train", "ppo", SMALL, "--timesteps", "100", "--out", str(tmp_path), *more)
    assert given["args"] == ("ppo", SMALL, 100)
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


def test_benchmark_writes_its_folder(tmp_path):
    out = tmp_path / "out"
    succeed("benchmark", "--policies", "random,best=optimal", "--ids", SMALL, "-n", "10",
            "--out", str(out))  # fmt: skip
    results = json.loads((out / "results.json").read_text())["results"]
    assert [result["policy"] for result in results] == ["random", "best"]
    assert (out / "scores.png").is_file()


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
    monkeypatch.setattr("dialgym.cli.benchmark.REFERENCE_EPISODES", 20)
    path = tmp_path / "envs.yaml"
    path.write_text("environments:\n  Wordle-20:\n    task: x\n")
    text = succeed("benchmark", "--references", "--ids", SMALL, "--write", str(path))
    assert "expert_policy: optimal, episodes: 20, seed: 0}" in text
    assert text.strip().splitlines()[-1] == path.read_text().splitlines()[-1]


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
    assert numbers("0, 2,") == [0, 2]
    with pytest.raises(ValueError, match=r"--policies: expected distinct names .* got 'a,a'"):
        parse_policies("a,a")
    with pytest.raises(ValueError, match=r"--seeds: expected whole numbers .* got '1.5'"):
        numbers("1.5")
