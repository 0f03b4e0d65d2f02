"""One configuration of a training: from Python, YAML, a folder and the command line."""

from dataclasses import fields
from pathlib import Path
from typing import get_type_hints

import pytest

pytest.importorskip("stable_baselines3")
import agents
import dialgym
from agents.training import config as module
from agents.training.config import TrainConfig, TrainFields
from agents.training.prepare import prepare
from tests.support.commands import fail, succeed
from tests.support.players import SMALL

TINY = {"n_steps": 8, "batch_size": 32, "n_epochs": 1, "policy_kwargs": {"n_layer": 1, "n_embd": 8}}
BRIEF = {"total_timesteps": 64, "n_envs": 4, "hyperparameters": TINY, "progress_bar": False}


def test_keyword_arguments_of_train_are_the_fields():
    ours = {one.name: one.type for one in fields(TrainConfig)}
    theirs = {name: hint.__forward_arg__ for name, hint in TrainFields.__annotations__.items()}
    assert {"env_id": ours["env_id"], "algorithm": ours["algorithm"], **theirs} == ours


def test_every_field_says_what_it_is():
    assert all(one.metadata["help"].endswith(".") for one in fields(TrainConfig))
    assert get_type_hints(TrainConfig, vars(module))["seed"] is int


def test_yaml_has_the_fields(tmp_path):
    file = tmp_path / "run.yml"
    file.write_text(
        "algorithm: grpo\nseed: 3\nhyperparameters: {n_steps: 8, gamma: 0.9}\n", "utf-8"
    )
    found = TrainConfig.from_yaml(file, seed=4, hyperparameters={"gamma": 0.5})
    assert (found.algorithm, found.seed) == ("grpo", 4)
    assert found.hyperparameters == {"n_steps": 8, "gamma": 0.5}


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("sed: 3", "unknown field 'sed' in .*Did you mean 'seed'"),
        ("trust: true", "trust is for whoever starts the run to say"),
        ("resume: true", "resume is for whoever starts the run to say"),
        ("[seed]", "expected fields such as seed: 0"),
        ("seed: 1\nseed: 2", "the key 'seed' twice in the mapping that begins at line 1"),
        ("env_kwargs: 3", "expected env_kwargs to be a mapping of names, got 3"),
        ("env_kwargs: {1: 2}", r"expected env_kwargs to be a mapping of names, got \{1: 2\}"),
        ("hyperparameters: [1]", r"hyperparameters to be a mapping of names, got \[1\]"),
        ("algorithm: 5", "expected algorithm to be a text, got 5"),
        ("init_from: 5", "expected init_from to be a path, got 5"),
        ("keep_dialogues: 5", "expected keep_dialogues to be a list of whole numbers, got 5"),
        ("keep_dialogues: [a]", "keep_dialogues of train must be a whole number from 1; got 'a'"),
        ("progress_bar: 'no'", "expected progress_bar to be true or false, got 'no'"),
        ("wandb: 'no'", "expected wandb to be true or false, got 'no'"),
        ("workers: null", "workers of train must be a whole number from 0; got None"),
        ("seed: -1", "seed of train must be a whole number from 0"),
        ("env_id: evil:Task", "it names 'evil:Task', which could run code"),
        ("algorithm: evil:PPO", "it names 'evil:PPO', which could run code"),
        ("metrics: ['evil:Metric']", "it names 'evil:Metric', which could run code"),
        ("hyperparameters: {policy: evil.Policy}", "it names 'evil.Policy', which could run code"),
        ("env_kwargs: {simulator: 'evil:User'}", "it names 'evil:User', which could run code"),
    ],
)
def test_files_that_are_refused(tmp_path, text, message):
    file = tmp_path / "run.yml"
    file.write_text(text + "\n", "utf-8")
    with pytest.raises(ValueError, match=message):
        TrainConfig.from_yaml(file)


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"algorithm": "bc", "data": 5}, "data: expected a path, a data set or a list of them"),
        ({"hyperparameters": {"policy": 5}}, "policy: expected a name such as agents.GPTPolicy"),
    ],
)
def test_wrong_types_are_said_before_anything_is_made(fields, message):
    with pytest.raises(ValueError, match=message):
        prepare(TrainConfig(**fields))


def test_a_run_is_resumed_by_its_folder_alone(tmp_path):
    agents.train(SMALL, "ppo", log_dir=tmp_path / "a", seed=5, checkpoint_every=1, **BRIEF)
    (tmp_path / "a").rename(tmp_path / "b")
    known = TrainConfig.from_run(tmp_path / "b")
    assert (known.seed, known.n_envs, known.hyperparameters) == (5, 4, TINY)
    longer = ["--timesteps", "128", "--final-episodes", "2"]
    assert "from 64 timesteps" in succeed("train", "--resume", str(tmp_path / "b"), *longer)
    assert agents.load(tmp_path / "b" / "model.zip").num_timesteps == 128
    text = fail("train", "--resume", str(tmp_path / "b"), "--seed", "6")
    assert "with other settings (seed: 5 -> 6)" in text
    assert "there is no run in" in fail("train", "--resume", str(tmp_path))
    for more, message in (("--out", "goes on in that folder"), ("--config", "expected no --conf")):
        assert message in fail("train", "--resume", str(tmp_path / "b"), more, str(tmp_path / "c"))


def test_objects_are_given_again(tmp_path):
    games = dialgym.collect(SMALL, "random-mixture", 8, seed=0)
    brief = {"total_timesteps": 2, "progress_bar": False, "hyperparameters": {"batch_size": 4}}
    agents.train(SMALL, "bc", data=games, log_dir=tmp_path, **brief)
    with pytest.raises(ValueError, match=r"data was .*which a file does not hold; give it again"):
        TrainConfig.from_run(tmp_path)
    assert TrainConfig.from_run(tmp_path, data=games).data is games


def test_a_file_of_fields_at_the_command_line(tmp_path, monkeypatch):
    file = tmp_path / "run.yml"
    file.write_text(
        f"env_id: {SMALL}\ntotal_timesteps: 64\nn_envs: 4\nlog_dir: {tmp_path / 'run'}\n"
        "hyperparameters: {n_steps: 8, policy_kwargs: {n_layer: 1, n_embd: 8}}\n",
        "utf-8",
    )
    asked = []
    monkeypatch.setattr(agents, "run_training", asked.append)
    succeed("train", "--config", str(file), "--seed", "7")
    with file.open("a", encoding="utf-8") as more:
        more.write("final_episodes: 0\n")
    succeed("train", "--config", str(file))
    succeed("train", "--config", str(file), "--final-episodes", "3")
    assert [one.final_episodes for one in asked] == [100, 0, 3]
    assert asked[0].seed == 7
    assert asked[0].n_envs == 4
    assert TrainConfig.from_yaml(file).as_yaml().endswith("final_episodes: 0\n")


def test_the_folder_of_a_run_has_a_name_that_every_system_takes():
    config = TrainConfig(env_id="dialgym.tasks.wordle.task:Wordle", algorithm="ppo", seed=3)
    assert str(config.folder) == str(Path("runs", "ppo-dialgym.tasks.wordle.task.Wordle-seed3"))
