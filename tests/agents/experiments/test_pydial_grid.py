"""A grid gives the same figures whatever happens to it on the way."""

import json
import os
import random
import subprocess
import sys
import time
from dataclasses import replace
from typing import NamedTuple

import pytest

pytest.importorskip("stable_baselines3")
from agents.experiments import pydial_job as performing
from agents.experiments.cells import Cell, Method, Protocol, Task, cells_of, tasks_of
from agents.experiments.job import RESULT
from agents.experiments.pools import Failure
from agents.experiments.pydial_job import PydialJob
from agents.experiments.pydial_results import Results
from agents.experiments.report import write_report
from agents.experiments.run import _State, finished, run_grid
from agents.training.callbacks import StopAfterDialogues
from dialgym.experiments.rules import rules_of
from tests.support.slot_domains import write_bakeries
from tests.support.waiting import end_family

SMALL = {"n_envs": 4, "n_steps": 16, "batch_size": 64, "policy_kwargs": {"net_arch": [16]}}
PPO = Method("small-ppo", "maskable-ppo", SMALL)
HANDCRAFTED = Method("handcrafted", "handcrafted")
CR1 = tasks_of(["CR"], [1])
BRIEF = Protocol((10, 20), 10)


@pytest.fixture(autouse=True)
def built_in(monkeypatch):
    monkeypatch.delenv("DIALGYM_PYDIAL", raising=False)


def figures(results):
    """Without what depends on the machine."""
    timed = {"seconds", "command", "versions"}
    found = [{k: v for k, v in result.items() if k not in timed} for result in results]
    for result in found:
        stages = result["stages"]
        result["stages"] = [{k: v for k, v in s.items() if k != "cpu_seconds"} for s in stages]
    return found


def test_a_cell_is_tested_after_each_number_of_dialogues(tmp_path):
    (cell,) = cells_of([PPO], CR1, [3])
    (result,), failures = run_grid([cell], BRIEF, tmp_path, workers=0)
    assert not failures
    tests = [(stage["dialogues"], stage["drawn"]) for stage in result["stages"]]
    assert tests == [(10, 1), (20, 0), (20, 1)], "PPO draws acts; at last it is tested both ways"
    assert result["stages"][0]["timesteps"] < result["stages"][1]["timesteps"]
    assert {stage["rules"] for stage in result["stages"]} == {str(rules_of(cell.task.env_id))}
    assert result["source"] == "built-in"
    assert {p.name for p in (tmp_path / cell.folder).iterdir()} >= {"model.zip", RESULT}
    assert not (tmp_path / cell.folder / "checkpoints").exists()


@pytest.mark.parametrize("given", ["Hotels", "CamHotels", "path"])
def test_any_domain_that_loads_is_played_and_stands_in_the_tables(tmp_path, given):
    path = write_bakeries(tmp_path, "area")
    domain, source = (path, path) if given == "path" else (given, "built-in")
    name = {"path": "area"}.get(given, given)
    tasks = tasks_of(["CR", domain], [1])
    results, failures = run_grid(cells_of([HANDCRAFTED, PPO], tasks, [0]), BRIEF, tmp_path, 0)
    assert not failures
    found = {(r["method"], r["domain"]): r for r in results}
    assert found["small-ppo", name]["source"] == source
    assert found["handcrafted", name]["stages"] != found["handcrafted", "CR"]["stages"]
    Results.of(results).save(tmp_path / "results")
    pytest.importorskip("matplotlib")
    write_report(tmp_path / "results")
    text = (tmp_path / "results" / "tables.md").read_text("utf-8")
    assert f"{name}-Env1" in text.split("## Beside the paper")[0]
    assert f"{name}-Env1" not in text.split("## Beside the paper")[1].split("## Speed")[0]


def test_a_scripted_policy_is_tested_once_and_stands_at_every_stage(tmp_path):
    results, _ = run_grid(cells_of([HANDCRAFTED, PPO], CR1, [0]), BRIEF, tmp_path, workers=0)
    table = Results.of(results)
    assert [stage["dialogues"] for stage in results[0]["stages"]] == [0]
    (task,) = table.tasks
    assert table.success("handcrafted", task, 10) == table.success("handcrafted", task, 20)


def test_what_has_been_done_is_not_done_again(tmp_path, monkeypatch):
    cells = cells_of([PPO], CR1, [0])
    before, _ = run_grid(cells, BRIEF, tmp_path, workers=0)
    monkeypatch.setattr("agents.experiments.pools.perform", None)
    assert run_grid(cells, BRIEF, tmp_path, workers=0)[0] == before


def test_cells_that_have_ended_are_found_whatever_grid_they_are_of(tmp_path):
    first, _ = run_grid(cells_of([HANDCRAFTED], CR1, [0, 1]), BRIEF, tmp_path, workers=0)
    second, _ = run_grid(cells_of([PPO], CR1, [0]), BRIEF, tmp_path, workers=0)
    (tmp_path / "cut-off" / "CR-Env1" / "seed0").mkdir(parents=True)
    assert finished(tmp_path) == [*first, *second]
    assert finished(tmp_path / "nowhere") == []


def test_other_settings_are_refused(tmp_path):
    (cell,) = cells_of([PPO], CR1, [0])
    run_grid([cell], BRIEF, tmp_path, workers=0)
    other = replace(cell, method=replace(PPO, overrides={**SMALL, "gamma": 0.5}))
    with pytest.raises(ValueError, match=r"run with other settings \(gamma: 0.99 -> 0.5\)"):
        run_grid([other], BRIEF, tmp_path, workers=0)
    with pytest.raises(ValueError, match="episodes: 10 -> 11"):
        run_grid([cell], replace(BRIEF, episodes=11), tmp_path, workers=0)


@pytest.mark.parametrize("algorithm", ["maskable-ppo", "dqn"])
def test_a_cell_that_is_cut_off_goes_on_exactly(tmp_path, monkeypatch, algorithm):
    """The learner is stopped soon after the checkpoint of the first thousand timesteps."""
    monkeypatch.setattr(performing, "CHECKPOINT_EVERY", 1)
    small = {"policy_kwargs": {"net_arch": [16]}, "n_envs": 4, "batch_size": 16}
    own = {"dqn": {"learning_starts": 100}, "maskable-ppo": {"n_steps": 16, "n_epochs": 1}}
    method = Method("m", algorithm, {**small, **own[algorithm]})
    cells, protocol = cells_of([method], CR1, [1]), Protocol((60, 300), 10)
    whole, _ = run_grid(cells, protocol, tmp_path / "whole", workers=0)
    step = StopAfterDialogues._on_step

    def stop(self):
        if self.num_timesteps > 1100:
            raise KeyboardInterrupt
        return step(self)

    monkeypatch.setattr(StopAfterDialogues, "_on_step", stop)
    with pytest.raises(KeyboardInterrupt):
        run_grid(cells, protocol, tmp_path / "cut", workers=0)
    monkeypatch.setattr(StopAfterDialogues, "_on_step", step)
    assert (tmp_path / "cut" / cells[0].folder / "checkpoint.zip").is_file()
    resumed, _ = run_grid(cells, protocol, tmp_path / "cut", workers=0)
    assert figures(resumed) == figures(whole)


GRID = """
import sys
from tests.agents.experiments.test_pydial_grid import *
if __name__ == "__main__":
    performing.CHECKPOINT_EVERY = 1
    run_grid(killed_cells(), KILLED, sys.argv[1], workers=2)
"""
KILLED = Protocol((100, 400), 50)


def killed_cells():
    dqn = Method("small-dqn", "dqn", {"policy_kwargs": {"net_arch": [16]}, "n_envs": 4})
    return cells_of([PPO, dqn, HANDCRAFTED], CR1, [0, 1])


@pytest.mark.slow
def test_a_grid_killed_at_random_moments_gives_the_same_table(tmp_path):
    whole, cut = tmp_path / "whole", tmp_path / "cut"
    cells = killed_cells()
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
        results, failures = run_grid(cells, KILLED, folder)
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


def test_processes_give_what_one_does_and_one_failure_stops_no_other(tmp_path):
    cells = cells_of([HANDCRAFTED, PPO], CR1, [0])
    broken = Cell(Method("broken", "maskable-ppo", {**SMALL, "n_steps": -3}), CR1[0], 0)
    seen = []
    apart, failures = run_grid([broken, *cells], BRIEF, tmp_path / "a", 2, report=seen.append)
    here, _ = run_grid(cells, BRIEF, tmp_path / "b", workers=0)
    assert figures(apart) == figures(here)
    assert list(failures) == [broken]
    assert any(p.ended and isinstance(p.ended[1], Failure) for p in seen)
    assert (seen[-1].cells, seen[-1].cells_done) == (3, 2)
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
        place = {"method": method, "domain": "CR", "env": 1, "seed": seed}
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

    cells = cells_of([HANDCRAFTED, PPO], CR1, [0, 1])
    here, _ = run_grid(cells, BRIEF, tmp_path / "here", workers=0)
    os.environ["PYTHONPATH"] = os.pathsep.join(sys.path)
    cluster = Cluster(True, head_node_args={"num_cpus": 1, "include_dashboard": False})
    try:
        cluster.add_node(num_cpus=1)
        cluster.wait_for_nodes()
        there, failures = run_grid(cells, BRIEF, tmp_path / "there", ray=cluster.address)
    finally:
        cluster.shutdown()
    assert not failures
    assert figures(there) == figures(here)


def test_without_ray_the_message_says_what_to_install(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "ray", None)
    cells = cells_of([HANDCRAFTED], CR1, [0])
    with pytest.raises(ImportError, match=r'needs ray.*pip install "dialgym\[ray\]"'):
        run_grid(cells, BRIEF, tmp_path, ray="auto")


def test_models_are_kept_at_the_dialogues_that_were_asked_for(tmp_path):
    job = PydialJob(Cell(PPO, CR1[0], 0), BRIEF, tmp_path)
    performing._train(job)
    names = {path.name for path in (tmp_path / "checkpoints").iterdir()}
    assert names == {"model_10_dialogues.zip", "model_20_dialogues.zip"}
    rows = (tmp_path / "dialogues.csv").read_text("utf-8").splitlines()
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

    def spent(self):
        return self.seconds


def test_the_time_left_heeds_that_kinds_count_different_units():
    steps = Timed("clone", 300, 300, 60.0)
    state = _State([steps, Timed("tokens", 300_000)], {steps: {"seconds": 60.0}}, workers=1)
    assert state.progress().seconds_left == 60  # as long as the other job, not 1,000 times as long
    half = Timed("tokens", 300_000, 150_000, 30.0)
    state = _State([steps, half, Timed("tokens", 100_000)], {steps: {"seconds": 60.0}}, workers=2)
    assert state.progress().seconds_left == (30 + 20) / 2
