"""The table of algorithms, and your own algorithms in it."""

import subprocess
import sys

import pytest
import yaml

pytest.importorskip("stable_baselines3")
from stable_baselines3 import A2C, PPO

import agents
import dialgym
from agents.registry import ALGORITHMS, find, name_of, names
from tests.support.commands import fail, run, succeed

ACTS, WORDS = "dialgym/SlotFilling-act-v0", "dialgym/Wordle-20-v0"
TINY = {"n_steps": 8, "n_envs": 2, "policy_kwargs": {"net_arch": [8]}}
ARGUMENTS = {"total_timesteps": 32, "hyperparameters": TINY, "progress_bar": False, "seed": 1}
OWN = '''
import agents

class Mine(agents.SequencePPO):
    """Your own algorithm."""

class Policy(agents.GPTPolicy):
    """Your own policy."""
'''


class Patient(A2C):
    """Your own algorithm."""


class Unregistered(PPO):
    """Another, which nobody has registered."""


def test_every_row_is_complete():
    for name, row in ALGORITHMS.items():
        assert name_of(row.load()) == name
        assert row.summary
        rows, where = row.rows()
        assert "n_timesteps" in rows["default"], where
        assert find(row.home) is row


def test_public_names_are_those_of_the_table():
    ours = [row.home.rpartition(":")[2] for row in ALGORITHMS.values() if "agents." in row.home]
    assert set(ours) <= set(agents.__all__)
    assert agents.SequencePPO is find("ppo").load()


def test_an_algorithm_of_ones_own_trains_and_loads_by_its_name(tmp_path):
    agents.register("patient", Patient, config={"default": {"n_timesteps": 16}}, kind="acts")
    model = agents.train(ACTS, "patient", log_dir=tmp_path, **ARGUMENTS)
    assert type(model) is Patient
    assert type(agents.load(tmp_path / "model.zip")) is Patient
    again = agents.train(ACTS, "patient", log_dir=tmp_path / "b", resume=True, **ARGUMENTS)
    assert type(again) is Patient
    assert "patient plays acts, got" in fail("train", "patient", WORDS)


def test_what_is_left_out_is_that_of_the_parent():
    row = agents.register("patient", Patient)
    assert (row.config, row.policy, row.kind) == ("stock-a2c.yml", "MlpPolicy", ("tokens", "acts"))
    assert find(f"{__name__}:Patient") is row


def test_a_class_that_is_not_registered_is_no_other_algorithm(tmp_path):
    agents.register("mine", Unregistered)
    agents.train(ACTS, "mine", log_dir=tmp_path, **ARGUMENTS)
    agents.registry._registered.clear()
    agents.registry._classes.clear()
    file = tmp_path / "model.zip"
    with pytest.raises(ValueError, match=r"Unregistered, which is not registered.*agents.register"):
        agents.load(file)
    assert type(agents.load(file, trust=True)) is Unregistered


def test_a_name_or_kind_that_cannot_be_is_one_clear_error():
    with pytest.raises(ValueError, match=r"algorithm 'ppo' is agents.online.* already"):
        agents.register("ppo", Patient)
    with pytest.raises(ValueError, match=r"unknown kind 'act' .* Did you mean 'acts'"):
        agents.register("patient", Patient, kind="act")
    assert "Did you mean 'maskable-ppo'" in fail("train", "maskible-ppo", ACTS)
    assert "expected module:Class" in fail("train", "no_such_module:Mine", ACTS)


def test_installed_distributions_add_rows(monkeypatch):
    monkeypatch.setattr("agents.registry._installed", lambda: {"theirs": f"{__name__}:Patient"})
    assert "theirs" in names()
    assert find("theirs").load().__name__ == "Patient"
    assert find("theirs").config == "stock-a2c.yml"


@pytest.mark.slow
def test_a_module_of_the_current_folder_trains_at_the_command_line(tmp_path):
    (tmp_path / "mine.py").write_text(OWN)
    small = "policy_kwargs={n_layer: 1, n_head: 1, n_embd: 8}"
    options = ["--timesteps", "32", "-p", "n_envs=2", "-p", "n_steps=8", "-p", "batch_size=16"]
    options += ["-p", small, "-p", "policy=mine.Policy", "--out", "run", "--checkpoint-every", "1"]
    command = [sys.executable, "-m", "dialgym", "train", "mine:Mine", WORDS, *options]
    for more in ([], ["--resume", "run"]):
        ended = subprocess.run([*command, *more], cwd=tmp_path, capture_output=True, text=True)
        assert ended.returncode == 0, ended.stderr
    with pytest.raises(ValueError, match=r"mine:Mine, which is not registered"):
        agents.load(tmp_path / "run" / "model.zip")
    settings = yaml.safe_load((tmp_path / "run" / "config.yml").read_text())
    assert settings["hyperparameters"]["policy"] == "mine.Policy"


def test_the_command_line_knows_the_table():
    assert "utterance-ilql" in succeed("train", "--help")
    assert run("train", "--help").exit_code == 0


@pytest.mark.parametrize(
    ("algorithm", "policy"),
    [
        (agents.SequencePPO, "GPTPolicy"),
        (agents.ILQL, "ValueGPTPolicy"),
        (agents.UtteranceILQL, "UtteranceGPTPolicy"),
        (agents.CHAI, "CHAIPolicy"),
        (agents.DecisionTransformer, "ReturnGPTPolicy"),
    ],
)
def test_a_policy_is_given_by_its_name(algorithm, policy):
    env = dialgym.sb3_vec_env(WORDS, 2)
    model = algorithm(policy, env, policy_kwargs={"n_layer": 1, "n_head": 1, "n_embd": 8})
    assert type(model.policy) is getattr(agents, policy)
    with pytest.raises(ValueError, match=f"Did you mean '{policy}'"):
        algorithm(policy.replace("Policy", "Polcy"), env)
