"""Collecting: seeded, in parallel, resumed after a kill."""

import json
import os
import signal
import subprocess
import sys
import warnings
from pathlib import Path
from typing import Any

import gymnasium as gym
import numpy as np
import pytest

import dialgym
from dialgym.datasets import Dataset
from dialgym.datasets.schema import Recorder
from dialgym.experiments import episode_seed
from dialgym.tasks.wordle import Wordle
from dialgym.tasks.wordle.policies import RandomWord, WordMixture
from tests.support.commands import run, succeed
from tests.support.players import SMALL, Babbler
from tests.support.waiting import end_family, wait_until


class Repeater:
    """Says the same letter for ever; a policy over tokens without weights."""

    def predict(self, observation: np.ndarray, **_: Any) -> tuple[np.ndarray, None]:
        return np.full(len(observation), 7), None


class Failing:
    def reply(self, task: Any, state: Any, rng: np.random.Generator) -> str:
        raise ArithmeticError("no idea what to say")


class Dying:
    def reply(self, task: Any, state: Any, rng: np.random.Generator) -> str:
        os._exit(3)


def same(first: Dataset, second: Dataset) -> bool:
    return bool(first.table.equals(second.table))


def test_a_dialogue_is_that_of_its_seed():
    dataset = dialgym.collect("Wordle-20-v0", "random-mixture", 10, seed=4)
    env = gym.make("dialgym/Wordle-20-utterance-v0")
    for episode, row in enumerate(dataset):
        assert (row["seed"], row["episode"]) == (episode_seed(4, episode), episode)
        observation, _ = env.reset(seed=row["seed"])
        for turn in row["turns"]:
            if turn["party"] == "system":
                observation, reward, terminated, truncated, info = env.step(turn["text"])
                assert reward == turn["reward"]
        text = "".join(f"{turn['party']}: {turn['text']}\n" for turn in row["turns"])
        assert observation == text
        assert (terminated, truncated) == (row["terminated"], row["truncated"])
        assert info["is_success"] == row["success"]


def test_the_episodes_are_those_of_evaluate():
    dataset = dialgym.collect("Wordle-v0", "random-mixture", 50, seed=1)
    result = dialgym.evaluate("random-mixture", "Wordle-v0", 50, seeds=(1,))
    played = result.by_id["dialgym/Wordle-v0"]
    np.testing.assert_array_equal(dataset.returns, played.returns[0])
    np.testing.assert_array_equal(dataset.lengths, played.lengths[0])


@pytest.mark.parametrize(
    "policy", ["random-mixture", pytest.param(Babbler(5), marks=pytest.mark.slow)]
)
def test_any_number_of_workers_gives_the_same(policy: Any, tmp_path: Path, monkeypatch: Any):
    kwargs: dict[str, Any] = {"seed": 2, "shard_size": 8, "num_envs": 4, "name": "p"}
    alone = dialgym.collect("Wordle-20-v0", policy, 21, **kwargs)
    written = dialgym.collect("Wordle-20-v0", policy, 21, workers=2, path=tmp_path, **kwargs)
    assert len(alone) == 21
    assert same(alone, written)
    assert same(alone, dialgym.load_dataset(tmp_path))
    other = dialgym.collect("Wordle-20-v0", policy, 21, **{**kwargs, "seed": 3})
    assert not alone.table["turns"].equals(other.table["turns"])


@pytest.mark.parametrize(
    ("workers", "blow"),
    [
        pytest.param(0, signal.SIGKILL, marks=pytest.mark.slow),
        (2, signal.SIGKILL),
        pytest.param(2, signal.SIGINT, marks=pytest.mark.slow),
        pytest.param(0, signal.SIGTERM, marks=pytest.mark.slow),
        pytest.param(2, signal.SIGTERM, marks=pytest.mark.slow),
    ],
)
def test_a_killed_collector_goes_on_where_it_was(
    workers: int, blow: signal.Signals, tmp_path: Path
):
    out = tmp_path / "data"
    code = (
        # a shell has its background jobs, such as this test's own, ignore interrupts
        "import signal; signal.signal(signal.SIGINT, signal.default_int_handler); "
        "from dialgym.cli import main; main()"
    )
    command = ["collect", "Wordle-v0", "--policy", "random-mixture", "-n", "1000000", "--seed", "5",
               "--out", str(out), "--shard-size", "64", "--workers", str(workers)]  # fmt: skip
    process = subprocess.Popen(
        [sys.executable, "-c", code, *command], stderr=subprocess.PIPE, text=True
    )
    wait_until(lambda: len(list(out.glob("dialogues-*.parquet"))) >= 3, process)
    end_family(process, blow)
    if blow != signal.SIGKILL:
        said = process.stderr.read()
        assert process.returncode == 128 + blow, said
        assert said.splitlines()[-1] == f"Go on with: dialgym {' '.join(command)}"
    (out / ".dialogues-000000064-0a1b2c3d.parquet").write_bytes(b"half a file")
    before = {file: file.stat().st_mtime_ns for file in out.glob("dialogues-*.parquet")}
    asked = max(int(file.stem.split("-")[2]) for file in before) + 100
    reports: list[int] = []
    found = dialgym.collect(
        "Wordle-v0", "random-mixture", asked, 5, path=out, shard_size=64, report=reports.append
    )
    assert reports[0] == len(before) * 64
    assert sum(reports) == asked
    assert not list(out.glob(".dialogues-*"))
    assert all(file.stat().st_mtime_ns == then for file, then in before.items())
    whole = dialgym.collect("Wordle-v0", "random-mixture", asked, 5, shard_size=64)
    assert same(found, whole)


def test_a_collection_can_be_made_longer_but_not_shorter(tmp_path: Path):
    kwargs: dict[str, Any] = {"path": tmp_path, "shard_size": 8}
    dialgym.collect("Wordle-20-v0", "random", 12, **kwargs)
    longer = dialgym.collect("Wordle-20-v0", "random", 20, **kwargs)
    assert longer["episode"].tolist() == list(range(20))
    assert len(dialgym.load_dataset(tmp_path)) == 20
    with pytest.raises(ValueError, match="holds 20 episodes already; got episodes=12"):
        dialgym.collect("Wordle-20-v0", "random", 12, **kwargs)


def test_a_collection_says_which_versions_made_it(tmp_path: Path):
    def versions() -> Any:
        return json.loads((tmp_path / "collection.json").read_text("utf-8"))["dialgym"]

    def collect(episodes: int) -> None:
        dialgym.collect("Wordle-20-v0", "random", episodes, path=tmp_path, shard_size=2)

    collect(2)
    assert versions() == [dialgym.__version__]
    facts = json.loads((tmp_path / "collection.json").read_text("utf-8"))
    older = json.dumps({**facts, "dialgym": ["0.0.9"]})
    (tmp_path / "collection.json").write_text(older, "utf-8")
    with warnings.catch_warnings(action="error"):
        collect(2)  # which is complete: nothing goes on
    with pytest.warns(UserWarning, match=r"was begun with dialgym 0\.0\.9 and goes on with"):
        collect(4)
    assert versions() == ["0.0.9", dialgym.__version__]


def test_another_collection_is_not_mixed_in(tmp_path: Path):
    dialgym.collect("Wordle-20-v0", "random", 4, path=tmp_path)
    with pytest.raises(ValueError, match=r"another collection \(seed 0, now 1\)"):
        dialgym.collect("Wordle-20-v0", "random", 4, 1, path=tmp_path)
    (tmp_path / "collection.json").unlink()
    with pytest.raises(ValueError, match="holds Parquet files of something else"):
        dialgym.collect("Wordle-20-v0", "random", 4, path=tmp_path)


def test_a_collection_that_failed_before_its_first_file_can_be_begun_otherwise(tmp_path: Path):
    class Fails:
        def reply(self, task: Any, state: Any, rng: np.random.Generator) -> str:
            raise RuntimeError("it cannot speak")

    with pytest.raises(Exception, match="it cannot speak"):
        dialgym.collect("Wordle-20-v0", Fails(), 2, path=tmp_path)
    assert len(dialgym.collect("Wordle-20-v0", "random", 2, seed=1, path=tmp_path)) == 2


def test_a_collection_does_not_go_on_once_the_files_of_its_env_have_changed(tmp_path: Path):
    user, out = tmp_path / "user.yml", tmp_path / "out"
    user.write_text("greet: 1.0\n", "utf-8")
    arguments: dict[str, Any] = {"path": out, "env_kwargs": {"user": str(user)}}
    dialgym.collect("SlotFilling-act-v0", "random", 2, **arguments)
    assert len(dialgym.collect("SlotFilling-act-v0", "random", 3, **arguments)) == 3
    user.write_text("greet: 0.0\n", "utf-8")
    with pytest.raises(ValueError, match=r"begun with other files than dialgym/SlotFilling-act-v0"):
        dialgym.collect("SlotFilling-act-v0", "random", 4, **arguments)


def test_the_ids_that_a_policy_said_are_logged():
    dataset = dialgym.collect("Wordle-20-v0", Repeater(), 5, num_envs=2)
    turn = dataset[4]["turns"][0]
    assert turn["tokens"] == [7] * 6
    assert turn["text"] == "cccccc"
    assert dataset["policy"].tolist() == ["Repeater"] * 5
    assert (dataset.returns == -6).all()


def test_settings_of_env_policy_and_reset():
    word = Wordle(words=50).answers[7]
    kwargs: dict[str, Any] = {"env_kwargs": {"words": 50, "turns": 8}, "options": {"word": word}}
    smart = {"policy_kwargs": {"smart": 1.0}}
    dataset = dialgym.collect("Wordle-v0", "random-mixture", 6, **kwargs, **smart)
    assert json.loads(dataset["settings"][0]) == {"words": 50, "turns": 8}
    assert all(row["turns"][-2]["text"] == word for row in dataset)
    equal = dialgym.collect("Wordle-v0", WordMixture(1.0), 6, name="random-mixture", **kwargs)
    assert same(dataset, equal)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"policy": "randon"}, r"unknown policy for the system 'randon'.* Did you mean 'random'"),
        ({"id": "Wordl-v0"}, "unknown environment id"),
        ({"episodes": 0}, "episodes of collect must be a whole number from 1; got 0"),
        ({"workers": -1}, "workers of collect must be a whole number from 0; got -1"),
        ({"seed": "x"}, "seed of collect must be a whole number from 0; got 'x'"),
        ({"policy_kwargs": {"smart": 1}}, r"unknown setting .smart. in the policy .random."),
        ({"policy": WordMixture(), "policy_kwargs": {"smart": 1}}, "are for registered names"),
        ({"env_kwargs": {"simulator": WordMixture()}}, "simulator is stored with the dialogues"),
        ({"policy": "human"}, "the policy 'human' needs the setting 'tweets'"),
        ({"options": {"wurd": "about"}}, "unknown option 'wurd'"),
        ({"policy": Repeater(), "id": "Wordle-utterance-v0"}, "plays token and act views"),
    ],
)
def test_impossible_arguments(change: dict[str, Any], message: str, tmp_path: Path):
    good = {"id": "Wordle-20-v0", "policy": "random", "episodes": 2, "path": tmp_path / "data"}
    with pytest.raises(ValueError, match=message):
        dialgym.collect(**{**good, **change})
    assert not [*tmp_path.rglob("*.parquet")]


def test_without_pyarrow_the_error_says_what_to_install(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    with pytest.raises(ImportError, match=r'needs pyarrow.*pip install "dialgym\[data\]"'):
        dialgym.collect("Wordle-20-v0", Failing(), 1)


def test_what_goes_wrong_in_a_worker_is_one_clear_error(monkeypatch: Any):
    kwargs: dict[str, Any] = {"episodes": 8, "shard_size": 2, "workers": 1}
    with pytest.raises(ArithmeticError, match="no idea what to say"):
        dialgym.collect("Wordle-20-v0", Failing(), **kwargs)
    with pytest.raises(RuntimeError, match="a worker ended with code 3 at episodes"):
        dialgym.collect("Wordle-20-v0", Dying(), **kwargs)

    class Local(Repeater):
        pass

    with pytest.raises(ValueError, match="'Local' cannot be sent to worker processes"):
        dialgym.collect("Wordle-20-v0", Local(), **kwargs)


# The command


def test_the_command(tmp_path: Path):
    arguments = ("collect", "Wordle-20-v0", "--policy", "random-mixture", "--out", str(tmp_path))
    options = ("-p", "smart=1.0", "--seed", "3", "--shard-size", "16")
    text = succeed(*arguments, *options, "-n", "40", "--workers", "1")
    assert "40 episodes in" in text
    assert "policy      random-mixture 40" in text
    assert text.endswith(" a second\n")
    text = succeed(*arguments, *options, "-n", "50")
    assert "18 episodes in" in text  # the last shard was not full
    assert "32 were there already" in text
    wanted = dialgym.collect(
        "Wordle-20-v0", "random-mixture", 50, 3, policy_kwargs={"smart": 1.0}, shard_size=16
    )
    assert same(dialgym.load_dataset(tmp_path), wanted)


# Agents


@pytest.fixture(scope="module")
def checkpoint(tmp_path_factory: pytest.TempPathFactory) -> Path:
    sb3 = pytest.importorskip("stable_baselines3")
    from agents import GPTPolicy, save

    pool = dialgym.sb3_vec_env("Wordle-20-v0", 4, seed=0)
    model = sb3.PPO(GPTPolicy, pool, n_steps=16, batch_size=64, seed=0)
    path = tmp_path_factory.mktemp("run") / "model.zip"
    save(model, path)
    return path


@pytest.mark.slow
def test_a_trained_agent_collects_in_workers(checkpoint: Path):
    kwargs: dict[str, Any] = {"seed": 1, "num_envs": 4, "shard_size": 8}
    alone = dialgym.collect("Wordle-20-v0", checkpoint, 20, **kwargs)
    shared = dialgym.collect("Wordle-20-v0", str(checkpoint.parent), 20, workers=1, **kwargs)
    assert alone.table.drop_columns(["policy"]).equals(shared.table.drop_columns(["policy"]))


def test_a_trained_agent_collects(checkpoint: Path, tmp_path: Path):
    kwargs: dict[str, Any] = {"seed": 1, "num_envs": 4, "shard_size": 8}
    alone = dialgym.collect("Wordle-20-v0", checkpoint, 20, **kwargs)
    logged = [t["tokens"] for row in alone for t in row["turns"] if t["party"] == "system"]
    assert all(logged)
    assert len({tuple(ids) for ids in logged}) > 10  # it samples
    best = dialgym.collect("Wordle-20-v0", checkpoint, 4, deterministic=True, **kwargs)
    result = dialgym.evaluate(checkpoint, "Wordle-20-v0", 4, seeds=(1,))
    played = result.by_id["dialgym/Wordle-20-v0"]
    np.testing.assert_array_equal(best.returns, played.returns[0])


def test_collecting_leaves_the_randomness_of_others_alone(checkpoint: Path):
    import torch

    import agents

    model = agents.load(checkpoint)
    model.set_env(dialgym.sb3_vec_env("Wordle-20-v0", 4))
    torch.manual_seed(3)
    expected = torch.rand(2)
    torch.manual_seed(3)
    dialgym.collect("Wordle-20-v0", model, 5, num_envs=4)
    assert torch.equal(torch.rand(2), expected)
    assert model.env is not None
    assert set(model.env._seeds) == {None}


def test_another_checkpoint_in_its_place_is_noticed(checkpoint: Path, tmp_path: Path):
    model = tmp_path / "model.zip"
    model.write_bytes(checkpoint.read_bytes())
    dialgym.collect("Wordle-20-v0", model, 2, path=tmp_path / "data", num_envs=2)
    model.write_bytes(checkpoint.read_bytes() + b" ")
    with pytest.raises(ValueError, match=r"another collection \(checkpoint"):
        dialgym.collect("Wordle-20-v0", model, 4, path=tmp_path / "data", num_envs=2)


# Many utterances at once


class OneByOne:
    """A policy without its vectorised form."""

    def __init__(self, policy: Any) -> None:
        self.policy = policy

    def reply(self, task: Any, state: Any, rng: np.random.Generator) -> str:
        return str(self.policy.reply(task, state, rng))


@pytest.mark.parametrize(
    "settings",
    [
        {},
        {"words": 30, "guesses": "answers"},
        {"feedback": "ilql", "guesses": "any", "turns": 3},
        {"invalid": "reject"},
        {"secret": "resample"},  # has no vectorised form
    ],
)
@pytest.mark.parametrize("policy", [RandomWord(), WordMixture(0.6)])
def test_many_at_once_are_the_dialogues_one_by_one(
    policy: Any, settings: dict[str, Any], monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr("dialgym.rollouts.waves.SIZE", 16)
    monkeypatch.setattr("dialgym.rollouts.player.SIZE", 16)
    kwargs: dict[str, Any] = {"env_kwargs": settings, "name": "p", "seed": 6}
    many = dialgym.collect("Wordle-v0", policy, 50, **kwargs)
    single = dialgym.collect("Wordle-v0", OneByOne(policy), 50, **kwargs)
    assert same(many, single)


def test_ctrl_c_keeps_what_is_whole_and_the_same_command_goes_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    whole = dialgym.collect(SMALL, "random-mixture", 700, path=tmp_path / "whole")
    arguments = ["collect", SMALL, "--policy", "random-mixture", "-n", "700", "--out",
                 str(tmp_path / "cut")]  # fmt: skip
    monkeypatch.setattr("sys.argv", ["dialgym", *arguments])
    with monkeypatch.context() as patch:
        plain, seen = Recorder.add, list[Any]()

        def add(self: Recorder, played: Any) -> None:
            if seen:
                raise KeyboardInterrupt
            seen.append(played)
            plain(self, played)

        patch.setattr(Recorder, "add", add)
        result = run(*arguments)
    assert result.exit_code == 130
    assert result.stderr.splitlines()[-1] == f"Go on with: dialgym {' '.join(arguments)}"
    (kept,) = (tmp_path / "cut").glob("*.parquet")
    count = len(dialgym.load_dataset(tmp_path / "cut"))
    assert 0 < count < 700
    assert kept.name == f"dialogues-000000000-{count:09d}.parquet"
    text = succeed(*arguments)
    assert f"700 dialogues stored in {tmp_path / 'cut'}: {700 - count} episodes in" in text
    assert f", {count} were there already\n" in text
    assert text.startswith("dialogues   700, ")
    complete = succeed(*arguments)
    assert complete.endswith(
        f"700 dialogues stored in {tmp_path / 'cut'}: 700 were there already\n"
    )
    assert dialgym.load_dataset(tmp_path / "cut").table.equals(whole.table)
