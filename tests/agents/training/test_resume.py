"""A killed run goes on as if nothing had happened."""

import os
import shutil
import signal
import subprocess
import sys

import pytest

pytest.importorskip("stable_baselines3")
import agents
import dialgym
from agents.training.checkpoint import FILE
from tests.support.resuming import assert_same_model, assert_same_run, evaluations
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


def start(folder, steps=6000, workers=0, resume=False, **more):
    code = TRAIN.format(steps=steps, workers=workers, small={**SMALL, **more}, resume=resume)
    return subprocess.Popen([sys.executable, "-c", code, str(folder)])


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
    evaluate = [sys.executable, "-m", "dialgym", "evaluate", str(killed), "-n", "4"]
    assert subprocess.run(evaluate).returncode == 0  # in a process that knows only the file
    assert start(killed, workers=workers, resume=True, **more).wait() == 0
    assert evaluations(whole)["timesteps"] == [-(-i * 500 // 8) * 8 for i in range(1, 13)]
    assert_same_run(whole, killed)


def kill(process, folder):
    """Once it has left a checkpoint."""
    wait_until((folder / FILE).exists, process)
    os.kill(process.pid, signal.SIGKILL)
    process.wait()


GPT = {"n_layer": 1, "n_head": 1, "n_embd": 8}
REPLAY = {
    "buffer_size": 500,
    "exploration_initial_eps": 0.1,
    "exploration_final_eps": 0.1,
    "policy_kwargs": {"net_arch": [8]},
}
CONSTANT = {
    "ppo": ("Wordle-20-v0", {**SMALL, "learning_rate": 0.001, "policy_kwargs": GPT}),
    "dqn": ("SlotFilling-act-v0", {**REPLAY, "learning_starts": 60, "learning_rate": 0.001}),
    "a2c": ("SlotFilling-act-v0", REPLAY),
    "ilql": ("Wordle-20-v0", {"batch_size": 8, "learning_rate": 0.001, "policy_kwargs": GPT}),
}


@pytest.mark.parametrize("algorithm", CONSTANT)
def test_a_finished_run_goes_on_as_one_that_was_longer(algorithm, tmp_path):
    """At rates that are constant; the log's intervals lie where the shorter run ends."""
    env_id, hyperparameters = CONSTANT[algorithm]
    arguments = {"env_id": env_id, "algorithm": algorithm, "progress_bar": False}
    arguments |= {"hyperparameters": hyperparameters}
    first, last = (8, 16) if algorithm == "ilql" else (150, 300)
    if algorithm == "ilql":
        arguments["data"] = dialgym.collect(env_id, "random-mixture", 30, seed=0)
        arguments["log_interval"] = 4
    whole = agents.train(total_timesteps=last, log_dir=tmp_path / "whole", **arguments)
    agents.train(total_timesteps=first, log_dir=tmp_path / "longer", **arguments)
    arguments |= {"log_dir": tmp_path / "longer", "resume": True}
    longer = agents.train(total_timesteps=last, **arguments)
    assert_same_model(whole, longer)


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
    agents.train(total_timesteps=200, hyperparameters=SMALL, **arguments)
    with pytest.raises(ValueError, match=r"cannot resume .*\(n_epochs: 2 -> 3\)"):
        agents.train(hyperparameters={**SMALL, "n_epochs": 3}, resume=True, **arguments)
    with pytest.raises(ValueError, match=r"cannot resume .*\(algorithm: 'ppo' -> 'nlpo'\)"):
        agents.train(**{**arguments, "algorithm": "nlpo"}, hyperparameters=SMALL, resume=True)
    with pytest.raises(ValueError, match=r"env_kwargs: \{\} -> \{'turns': 3\}, seed: 0 -> 1"):
        agents.train(
            hyperparameters=SMALL, resume=True, env_kwargs={"turns": 3}, **{**arguments, "seed": 1}
        )
    longer = agents.train(total_timesteps=400, hyperparameters=SMALL, resume=True, **arguments)
    assert longer.num_timesteps >= 400


def test_a_run_goes_on_with_another_number_of_workers(tmp_path):
    arguments = {**ARGUMENTS, "hyperparameters": SMALL, "seed": 3}
    agents.train(total_timesteps=200, log_dir=tmp_path / "begun", **arguments)
    models = []
    for workers in (0, 2):
        folder = tmp_path / f"{workers}"
        shutil.copytree(tmp_path / "begun", folder)
        more = {"workers": workers, "resume": True, "log_dir": folder}
        models.append(agents.train(total_timesteps=400, **more, **arguments))
    assert models[0].num_timesteps == models[1].num_timesteps >= 400
    assert_same_model(*models)
