"""A grid gives the same figures whatever happens to it on the way."""

import json
import os
import random
import shutil
import subprocess
import sys
import time
from typing import NamedTuple

import pytest

pytest.importorskip("stable_baselines3")
from agents.experiments import training_job
from agents.experiments.job import RESULT
from agents.experiments.panel_jobs import jobs_of
from agents.experiments.pools import Failure
from agents.experiments.pydial_panel import Task, pydial_panel, tasks_of
from agents.experiments.pydial_report import write_report
from agents.experiments.pydial_results import Results
from agents.experiments.pydial_tables import markdown
from agents.experiments.run import _State, run_jobs
from agents.training.callbacks import StopAfterDialogues
from dialgym.experiments.panel import PanelLearner
from dialgym.experiments.rules import rules_of
from tests.support.slot_domains import write_bakeries
from tests.support.waiting import end_family

SMALL = {"n_envs": 4, "n_steps": 16, "batch_size": 64, "policy_kwargs": {"net_arch": [16]}}
PPO = {"small-ppo": PanelLearner("small-ppo", "maskable-ppo", SMALL)}
HANDCRAFTED = {"handcrafted": None}
CR1 = tasks_of(["CR"], [1])
BRIEF = (10, 20), 10


def grid(learners, out, seeds=(0,), tasks=CR1, protocol=BRIEF):
    """The jobs of some learners."""
    panel = pydial_panel(learners, tasks, *protocol)
    return jobs_of(panel, [*learners], panel.environments, seeds, out)


def run_grid(learners, out, seeds=(0,), tasks=CR1, protocol=BRIEF, workers=0, **more):
    """The results of all jobs in order, and the failures by name."""
    jobs = grid(learners, out, seeds, tasks, protocol)
    found, failures = run_jobs(jobs, workers, **more)
    return [found[job] for job in jobs if job in found], {
        j.name: why for j, why in failures.items()
    }


@pytest.fixture(autouse=True)
def built_in(monkeypatch):
    monkeypatch.delenv("DIALGYM_PYDIAL", raising=False)


@pytest.fixture(scope="module")
def played(tmp_path_factory):
    """A grid of two learners that has been run, which tests leave as it is: its folder, results."""
    folder = tmp_path_factory.mktemp("grid")
    return folder, run_grid({**HANDCRAFTED, **PPO}, folder)[0]


def figures(results):
    """Without what depends on the machine."""
    timed = {"seconds", "command", "versions"}
    found = [{k: v for k, v in result.items() if k not in timed} for result in results]
    for result in found:
        stages = result["stages"]
        result["stages"] = [{k: v for k, v in s.items() if k != "cpu_seconds"} for s in stages]
    return found


def test_a_cell_is_tested_after_each_number_of_dialogues(tmp_path):
    (result,), failures = run_grid(PPO, tmp_path, [3])
    folder = grid(PPO, tmp_path, [3])[0].folder
    assert not failures
    tests = [(stage["dialogues"], stage["drawn"]) for stage in result["stages"]]
    assert tests == [(10, 1), (20, 0), (20, 1)], "PPO draws acts; at last it is tested both ways"
    assert result["stages"][0]["timesteps"] < result["stages"][1]["timesteps"]
    rules = rules_of(CR1[0].environment.id, {"fidelity": "pydial"})
    assert {stage["rules"] for stage in result["stages"]} == {str(rules)}
    assert result["fidelity"] == "pydial"
    assert result["source"] == "built-in"
    assert {p.name for p in folder.iterdir()} >= {"model.zip", RESULT}
    assert not (folder / "checkpoints").exists()


@pytest.mark.parametrize(
    "given",
    [*(pytest.param(one, marks=pytest.mark.slow) for one in ("Hotels", "CamHotels")), "path"],
)
def test_any_domain_that_loads_is_played_and_stands_in_the_tables(tmp_path, given):
    path = write_bakeries(tmp_path, "area")
    domain, source = (path, path) if given == "path" else (given, "built-in")
    name = {"path": "area"}.get(given, given)
    tasks = tasks_of(["CR", domain], [1])
    results, failures = run_grid({**HANDCRAFTED, **PPO}, tmp_path, tasks=tasks)
    assert not failures
    found = {(r["method"], r["domain"]): r for r in results}
    assert found["small-ppo", name]["source"] == source
    assert found["handcrafted", name]["stages"] != found["handcrafted", "CR"]["stages"]
    Results.of(results).save(tmp_path / "results")
    text = markdown(Results.load(tmp_path / "results"), "")
    first, _, second = text.partition("### Beside the original")
    assert f"{name}-Env1" in first
    assert f"{name}-Env1" not in second.split("### Speed")[0]


def test_a_scripted_policy_is_tested_once_and_stands_at_every_stage(played):
    _, results = played
    table = Results.of(results)
    assert [stage["dialogues"] for stage in results[0]["stages"]] == [0]
    (task,) = table.tasks
    assert table.success("handcrafted", task, 10) == table.success("handcrafted", task, 20)


def test_what_has_been_done_is_not_done_again(played, monkeypatch):
    folder, before = played
    monkeypatch.setattr("agents.experiments.pools.perform", None)
    assert run_grid({**HANDCRAFTED, **PPO}, folder)[0] == before


def test_cells_that_have_ended_are_found_whatever_grid_they_are_of(played, tmp_path):
    shutil.copytree(played[0], tmp_path, dirs_exist_ok=True)
    first, _ = run_grid(HANDCRAFTED, tmp_path, [0, 1])
    second, _ = run_grid(PPO, tmp_path)
    (tmp_path / "cut-off" / "CR-Env1" / "seed0").mkdir(parents=True)
    found = Results.ended(tmp_path).methods
    assert found == Results.of([*first, *second]).methods
    assert Results.ended(tmp_path / "nowhere").methods == {}


def test_other_settings_are_refused(played):
    folder, _ = played
    other = {"small-ppo": PanelLearner("small-ppo", "maskable-ppo", {**SMALL, "gamma": 0.5})}
    with pytest.raises(ValueError, match=r"run with other settings \(gamma: 0.99 -> 0.5\)"):
        run_grid(other, folder)
    with pytest.raises(ValueError, match="episodes: 10 -> 11"):
        run_grid(PPO, folder, protocol=((10, 20), 11))


@pytest.mark.parametrize("algorithm", [pytest.param("maskable-ppo", marks=pytest.mark.slow), "dqn"])
def test_a_cell_that_is_cut_off_goes_on_exactly(tmp_path, monkeypatch, interrupt_at, algorithm):
    """The learner is stopped soon after the checkpoint of the first hundred timesteps."""
    monkeypatch.setattr(training_job, "CHECKPOINT_EVERY", 1)
    monkeypatch.setattr("agents.training.prepare.STOCK_INTERVAL", 100)
    small = {"policy_kwargs": {"net_arch": [8]}, "n_envs": 4, "batch_size": 16}
    own = {"dqn": {"learning_starts": 40}, "maskable-ppo": {"n_steps": 16, "n_epochs": 1}}
    given = {"m": PanelLearner("m", algorithm, {**small, **own[algorithm]})}, tmp_path / "cut"
    protocol = {"seeds": [1], "protocol": ((10, 40), 5)}
    whole, _ = run_grid(given[0], tmp_path / "whole", **protocol)
    with interrupt_at(StopAfterDialogues, 140):
        run_grid(*given, **protocol)
    assert (grid(*given, **protocol)[0].folder / "checkpoint.zip").is_file()
    resumed, _ = run_grid(*given, **protocol)
    assert figures(resumed) == figures(whole)


GRID = """
import sys
from pathlib import Path
from tests.agents.experiments.test_pydial_grid import *
if __name__ == "__main__":
    training_job.CHECKPOINT_EVERY = 1
    run_grid(KILLED, Path(sys.argv[1]), [0, 1], protocol=LONG, workers=2)
"""
LONG = (100, 400), 50
DQN = PanelLearner("small-dqn", "dqn", {"policy_kwargs": {"net_arch": [16]}, "n_envs": 4})
KILLED = {**PPO, "small-dqn": DQN, **HANDCRAFTED}


@pytest.mark.slow
def test_a_grid_killed_at_random_moments_gives_the_same_table(tmp_path):
    whole, cut = tmp_path / "whole", tmp_path / "cut"
    assert start(tmp_path, whole).wait() == 0
    moments = random.Random(time.time_ns())
    for _ in range(5):
        process = start(tmp_path, cut)
        wait_for_more(cut, process)
        time.sleep(moments.uniform(0, 4))
        end_family(process)
    assert start(tmp_path, cut).wait() == 0
    tables = []
    for folder in (whole, cut):
        results, failures = run_grid(KILLED, folder, [0, 1], protocol=LONG)
        assert not failures
        Results.of(results).merged_into(folder / "results")
        write_report(folder / "results")
        tables.append((figures(results), untimed(folder / "results" / "tables.md")))
    assert tables[0] == tables[1]


def start(folder, out):
    script = folder / "grid.py"
    script.write_text(GRID, "utf-8")
    path = os.pathsep.join(["", *sys.path])
    return subprocess.Popen([sys.executable, script, out], env={**os.environ, "PYTHONPATH": path})


def wait_for_more(folder, process):
    """Until some file is new, so that each grid gets further than the one before."""
    before = set(folder.rglob("[!.]*.*"))  # locks and unfinished files are no progress
    while process.poll() is None and set(folder.rglob("[!.]*.*")) <= before:
        time.sleep(0.05)


def untimed(file):
    return file.read_text("utf-8").partition("## Speed")[0]


def test_processes_give_what_one_does_and_one_failure_stops_no_other(played, tmp_path):
    both, seen = {**HANDCRAFTED, **PPO}, []
    broken = {"broken": PanelLearner("broken", "maskable-ppo", {**SMALL, "n_steps": -3})}
    apart, failures = run_grid({**broken, **both}, tmp_path / "a", workers=2, report=seen.append)
    assert figures(apart) == figures(played[1])
    assert list(failures) == ["broken"]
    assert any(p.ended and isinstance(p.ended[1], Failure) for p in seen)
    assert (seen[-1].jobs, seen[-1].jobs_done) == (3, 2)
    assert seen[-1].seconds_left is not None


def test_results_of_several_grids_are_kept_together(tmp_path):
    run = {
        "algorithm": "a",
        "command": "c",
        "versions": {},
        "source": "PyDial",
        "episodes": 1,
        "settings": {},
    }
    stage = {
        "dialogues": 10,
        "drawn": 0,
        "success": 0.5,
        "reward": 1.0,
        "turns": 5.0,
        "timesteps": 50,
        "cpu_seconds": 1.0,
    }

    def result(method, seed, success, command):
        place = {"method": method, "domain": "CR", "env": 1, "fidelity": "pydial", "seed": seed}
        return {**run, **place, "command": command, "stages": [{**stage, "success": success}]}

    Results.of([result("a", 0, 0.1, "old"), result("a", 1, 0.2, "old")]).merged_into(tmp_path)
    Results.of([result("a", 1, 0.4, "new"), result("b", 0, 0.3, "new")]).merged_into(tmp_path)
    found = Results.load(tmp_path)
    assert found.success("a", Task("CR", 1), 10).tolist() == [10, 40]
    assert [run["command"] for run in found.methods["a"].runs] == ["old", "new"]
    assert found.success("b", Task("CR", 1), 10).tolist() == [30]
    assert json.loads((tmp_path / "a.json").read_text("utf-8"))[0]["command"] == "old"


def test_ray_gives_the_same_table_on_two_nodes(tmp_path):
    pytest.importorskip("ray")
    from ray.cluster_utils import Cluster

    both = {**HANDCRAFTED, **PPO}
    here, _ = run_grid(both, tmp_path / "here", [0, 1])
    os.environ["PYTHONPATH"] = os.pathsep.join(sys.path)
    cluster = Cluster(True, head_node_args={"num_cpus": 1, "include_dashboard": False})
    try:
        cluster.add_node(num_cpus=1)
        cluster.wait_for_nodes()
        there, failures = run_grid(both, tmp_path / "there", [0, 1], ray=cluster.address)
    finally:
        cluster.shutdown()
    assert not failures
    assert figures(there) == figures(here)


def test_without_ray_the_message_says_what_to_install(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "ray", None)
    with pytest.raises(ImportError, match=r'needs ray.*pip install "dialgym\[ray\]"'):
        run_grid(HANDCRAFTED, tmp_path, ray="auto")


def test_models_are_kept_at_the_dialogues_that_were_asked_for(tmp_path):
    (job,) = grid(PPO, tmp_path)
    job.train()
    names = {path.name for path in (job.folder / "checkpoints").iterdir()}
    assert names == {"model_10_dialogues.zip", "model_20_dialogues.zip"}
    rows = (job.folder / "dialogues.csv").read_text("utf-8").splitlines()
    assert rows[0] == "dialogues,timesteps,cpu_seconds"
    assert [row.split(",")[0] for row in rows[1:]] == ["10", "20"]


class Timed(NamedTuple):
    """A job that has run so far."""

    kind: str
    units: int
    played: int = 0
    seconds: float = 0.0

    def length(self):
        return self.units

    def done(self):
        return self.played

    def seconds_so_far(self):
        return self.seconds


def test_the_time_left_heeds_that_kinds_count_different_units():
    steps = Timed("clone", 300, 300, 60.0)
    state = _State([steps, Timed("tokens", 300_000)], {steps: {"seconds": 60.0}}, workers=1)
    assert state.progress().seconds_left == 60  # as long as the other job, not 1,000 times as long
    half = Timed("tokens", 300_000, 150_000, 30.0)
    state = _State([steps, half, Timed("tokens", 100_000)], {steps: {"seconds": 60.0}}, workers=2)
    assert state.progress().seconds_left == (30 + 20) / 2
