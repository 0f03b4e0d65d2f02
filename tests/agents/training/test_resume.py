"""A killed run goes on as if nothing had happened."""

import os
import shutil
import signal
import subprocess
import sys

import numpy as np
import pytest
import torch

pytest.importorskip("stable_baselines3")
import agents
import dialgym
from agents.training.checkpoint import FILE, CheckpointCallback
from tests.support.resuming import assert_same_model, assert_same_run, curve, evaluations
from tests.support.waiting import wait_until

SMALL = {
    "n_steps": 36,
    "batch_size": 288,
    "n_epochs": 2,
    "policy_kwargs": {"n_layer": 1, "n_embd": 16},
}
TRAIN = """
import sys, agents
agents.train(
    "dialgym/Wordle-20-v0", "ppo", total_timesteps={steps}, n_envs=8,
    workers={workers}, seed=3, log_dir=sys.argv[1],
    hyperparameters={small}, progress_bar=False, eval_freq=500, eval_episodes=8,
    checkpoint_every=2, resume={resume},
)
"""

LEARN = """
import sys, agents
agents.train(
    "dialgym/Wordle-20-v0", "{algo}", total_timesteps=60,
    seed=3, log_dir=sys.argv[1], data=sys.argv[2],
    hyperparameters={small}, progress_bar=False, eval_freq=20, eval_episodes=8, save_freq=30,
    checkpoint_every=2, resume={resume},
)
"""


def start(folder, steps=6000, workers=0, resume=False, **more):
    code = TRAIN.format(steps=steps, workers=workers, small={**SMALL, **more}, resume=resume)
    return subprocess.Popen([sys.executable, "-c", code, str(folder)])


def learn(folder, games, algo, more, resume=False):
    small = {"batch_size": 16, "log_interval": 5, "policy_kwargs": SMALL["policy_kwargs"], **more}
    code = LEARN.format(algo=algo, small=small, resume=resume)
    return subprocess.Popen([sys.executable, "-c", code, str(folder), str(games)])


BOTH = ("model.zip", "best_model.zip")
ARGUMENTS = {"algorithm": "ppo", "env_id": "Wordle-20-v0", "n_envs": 8}
ARGUMENTS |= {"progress_bar": False, "checkpoint_every": 1}
NORMALIZE = {"normalize": {"norm_obs": False, "norm_reward": True}}


@pytest.mark.slow
@pytest.mark.parametrize(("workers", "more"), [(0, NORMALIZE), (2, {})])
def test_a_run_killed_and_resumed_equals_one_that_was_not(workers, more, tmp_path):
    whole, killed = tmp_path / "whole", tmp_path / "killed"
    assert start(whole, workers=workers, **more).wait() == 0
    kill(start(killed, workers=workers, **more), killed)
    assert not (killed / "model.zip").exists()
    assert start(killed, workers=workers, resume=True, **more).wait() == 0
    assert evaluations(whole)["timesteps"] == [-(-i * 500 // 8) * 8 for i in range(1, 13)]
    assert_same_run(whole, killed, BOTH)


def kill(process, folder):
    """Once it has left a checkpoint."""
    wait_until((folder / FILE).exists, process)
    os.kill(process.pid, signal.SIGKILL)
    process.wait()


@pytest.mark.slow
@pytest.mark.parametrize(
    ("algo", "more"), [("ilql", {"learning_rate": "lin_0.01"}), ("chai", {"clone_steps": 14})]
)
def test_learning_from_stored_dialogues_goes_on_exactly(algo, more, tmp_path):
    whole, killed, games = tmp_path / "whole", tmp_path / "killed", tmp_path / "games"
    dialgym.collect("Wordle-20-v0", "random-mixture", 50, seed=0, path=games)
    assert learn(whole, games, algo, more).wait() == 0
    kill(learn(killed, games, algo, more), killed)
    assert not (killed / "model.zip").exists()
    assert learn(killed, games, algo, more, resume=True).wait() == 0
    assert [row["timesteps"] for row in curve(whole)] == [str(5 * i) for i in range(1, 13)]
    assert evaluations(whole)["timesteps"] == [20, 40, 60]
    assert_same_run(whole, killed, BOTH)


# The same in this process, which goes on from a checkpoint as from a kill


class Cut(Exception):
    """The end of a run, right after a checkpoint."""


def cut_after(monkeypatch, checkpoints):
    """Ends a run as a kill does: nothing that it would have done at its end is done."""
    write, seen = CheckpointCallback._write, []

    def cut(self, states):
        write(self, states)
        seen.append(0)
        if len(seen) == checkpoints:
            raise Cut

    monkeypatch.setattr(CheckpointCallback, "_write", cut)


NARROW = {**SMALL, "n_steps": 18, "policy_kwargs": {"n_layer": 1, "n_head": 1, "n_embd": 8}}
CASES = {
    "ppo": {**NARROW, **NORMALIZE},
    "ilql": {"batch_size": 8, "log_interval": 5, "learning_rate": "lin_0.01"},
    "chai": {"batch_size": 4, "log_interval": 5, "clone_steps": 14, "samples": 2},
}


@pytest.mark.parametrize("algorithm", CASES)
def test_a_run_cut_after_a_checkpoint_goes_on_exactly(algorithm, tmp_path, monkeypatch):
    plays = algorithm == "ppo"
    hyperparameters = {"policy_kwargs": NARROW["policy_kwargs"], **CASES[algorithm]}
    arguments = {"hyperparameters": hyperparameters, "progress_bar": False, "checkpoint_every": 2}
    arguments |= {"total_timesteps": 1200 if plays else 30, "eval_freq": 500 if plays else 10}
    arguments |= {"eval_episodes": 4, "samples": 2, "seed": 3}
    if plays:
        arguments["n_envs"] = 8
    else:
        arguments["data"] = dialgym.collect("Wordle-20-v0", "random-mixture", 30, seed=0)

    def train(name, **more):
        agents.train("Wordle-20-v0", algorithm, log_dir=tmp_path / name, **arguments, **more)

    train("whole")
    with monkeypatch.context() as patch:
        cut_after(patch, 2)
        with pytest.raises(Cut):
            train("cut")
    assert not (tmp_path / "cut" / "model.zip").exists()
    torch.manual_seed(99)  # another process would have other random numbers
    np.random.seed(99)  # noqa: NPY002
    train("cut", resume=True)
    assert len(evaluations(tmp_path / "whole")["timesteps"]) >= 2
    assert_same_run(tmp_path / "whole", tmp_path / "cut", BOTH)


def test_a_finished_run_goes_on_as_one_that_was_longer(tmp_path):
    arguments = {"algorithm": "ppo", "env_id": "Wordle-20-v0", "n_envs": 8, "progress_bar": False}
    arguments |= {"hyperparameters": {**NARROW, "learning_rate": 0.001}}
    agents.train(total_timesteps=900, log_dir=tmp_path / "whole", **arguments)
    agents.train(total_timesteps=500, log_dir=tmp_path / "longer", **arguments)
    agents.train(total_timesteps=900, log_dir=tmp_path / "longer", resume=True, **arguments)
    assert curve(tmp_path / "longer") == curve(tmp_path / "whole")
    models = [agents.load(tmp_path / name / "model.zip") for name in ("whole", "longer")]
    first, second = (model.policy.state_dict().values() for model in models)
    assert all(torch.equal(a, b) for a, b in zip(first, second, strict=True))


def test_a_resumed_run_may_evaluate_and_keep_models_at_other_times(tmp_path):
    arguments = {**ARGUMENTS, "hyperparameters": SMALL, "log_dir": tmp_path}
    arguments |= {"eval_episodes": 8, "samples": 0}
    agents.train(total_timesteps=800, eval_freq=300, **arguments)
    before = evaluations(tmp_path)
    assert before["timesteps"] == [304, 600]
    agents.train(total_timesteps=1300, save_freq=400, resume=True, **arguments)
    assert evaluations(tmp_path) == before
    kept = {path.name for path in (tmp_path / "checkpoints").iterdir()}
    assert kept == {"model_1200_steps.zip"}


def test_resuming_with_other_hyperparameters_is_one_clear_error(tmp_path):
    arguments = {**ARGUMENTS, "log_dir": tmp_path}
    agents.train(total_timesteps=600, hyperparameters=SMALL, **arguments)
    with pytest.raises(ValueError, match=r"cannot resume .*\(n_epochs: 2 -> 3\)"):
        agents.train(hyperparameters={**SMALL, "n_epochs": 3}, resume=True, **arguments)
    with pytest.raises(ValueError, match=r"cannot resume .*\(algorithm: 'ppo' -> 'nlpo'\)"):
        agents.train(**{**arguments, "algorithm": "nlpo"}, hyperparameters=SMALL, resume=True)
    with pytest.raises(ValueError, match=r"env_kwargs: \{\} -> \{'turns': 3\}, seed: 0 -> 1"):
        agents.train(
            hyperparameters=SMALL, resume=True, env_kwargs={"turns": 3}, **{**arguments, "seed": 1}
        )
    longer = agents.train(total_timesteps=900, hyperparameters=SMALL, resume=True, **arguments)
    assert longer.num_timesteps >= 900


def test_a_run_goes_on_with_another_number_of_workers(tmp_path):
    arguments = {**ARGUMENTS, "hyperparameters": SMALL, "seed": 3}
    agents.train(total_timesteps=600, log_dir=tmp_path / "begun", **arguments)
    models = []
    for workers in (0, 2):
        folder = tmp_path / f"{workers}"
        shutil.copytree(tmp_path / "begun", folder)
        more = {"workers": workers, "resume": True, "log_dir": folder}
        models.append(agents.train(total_timesteps=900, **more, **arguments))
    assert models[0].num_timesteps == models[1].num_timesteps >= 900
    assert_same_model(*models)
