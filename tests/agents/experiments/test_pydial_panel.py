"""Jobs and settings of PyDial's benchmark, and one clear message for each that is wrong."""

from dataclasses import replace

import pytest

pytest.importorskip("stable_baselines3")
from agents.experiments.panel_jobs import jobs_of
from agents.experiments.pydial_panel import PANELS, Task, learners_of, pydial_panel, tasks_of
from agents.training.config import TrainConfig
from dialgym.cli.common import duration, parse_seeds
from dialgym.experiments.panel import panel_named
from dialgym.experiments.pydial_ranking import fidelity_of
from tests.support.commands import fail


def test_every_seed_covers_all_tasks_before_the_next(tmp_path):
    learners, tasks = learners_of(["dqn", "handcrafted"]), tasks_of(["CR", "Laptops11"], [3, 1])
    panel = pydial_panel(learners, tasks)
    jobs = jobs_of(panel, [*learners], panel.environments, [0, 1], tmp_path)
    assert len(jobs) == len(set(jobs)) == 16
    assert [job.seed for job in jobs] == [0] * 8 + [1] * 8
    assert [str(task) for task in tasks] == ["CR-Env1", "CR-Env3", "LAP-Env1", "LAP-Env3"]
    assert tasks[3].environment.id == "dialgym/Laptops11-Env3-act-v0"
    assert [Task.of(place) for place in panel.environments] == tasks


def test_the_fidelities_are_two_panels_with_folders_of_their_own(tmp_path):
    learners = learners_of(["dqn"])
    folders = []
    for fidelity, name in PANELS.items():
        panel = pydial_panel(learners, tasks_of(["CR"], [1], fidelity))
        assert (panel.name, fidelity_of(panel)) == (name, fidelity)
        assert fidelity_of(panel_named(name)) == fidelity
        (job,) = jobs_of(panel, ["dqn"], panel.environments, [0], tmp_path)
        assert (job.task.fidelity, job.description()["fidelity"]) == (fidelity, fidelity)
        folders.append(job.folder.relative_to(tmp_path.resolve()).as_posix())
    assert folders == ["dqn/pydial/CR-Env1/seed0", "dqn/correct/CR-Env1/seed0"]
    assert Task("CR", 1, fidelity="correct") != Task("CR", 1)
    with pytest.raises(ValueError, match="expected those of one fidelity"):
        pydial_panel(learners, [Task("CR", 1), Task("CR", 1, fidelity="correct")])
    with pytest.raises(ValueError, match="fidelity must be one of 'pydial', 'correct'"):
        tasks_of(["CR"], [1], "exact")


def test_settings_of_a_learner_alone_are_in_its_description(tmp_path):
    (learner,) = learners_of(["dqn"]).values()
    panel = pydial_panel({"dqn": replace(learner, settings={"turns": 9})}, tasks_of(["CR"], [1]))
    (job,) = jobs_of(panel, ["dqn"], panel.environments, [0], tmp_path)
    assert job.description()["settings"]["env_kwargs"] == {"turns": 9}


def test_variants_are_methods_with_hyperparameters_of_their_own(tmp_path):
    file = tmp_path / "variants.yml"
    file.write_text("slow: {algorithm: dqn, learning_rate: 0.0001}\n", "utf-8")
    slow, plain = learners_of(["slow", "dqn"], file).values()
    assert (slow.algorithm, slow.hyperparameters) == ("dqn", {"learning_rate": 0.0001})
    assert (plain.name, plain.hyperparameters) == ("dqn", {})


@pytest.mark.parametrize("text", ["slow: dqn", "[dqn]", "slow: {learning_rate: 0.1}"])
def test_other_variants_are_refused(tmp_path, text):
    file = tmp_path / "variants.yml"
    file.write_text(text, "utf-8")
    with pytest.raises(ValueError, match="expected names with an algorithm and hyperparameters"):
        learners_of(["slow"], file)


@pytest.mark.parametrize(
    ("text", "seeds"),
    [("3", [0, 1, 2]), ("0, 4", [0, 4]), ("7,", [7]), ("100-102", [100, 101, 102])],
)
def test_seeds_are_how_many_or_which(text, seeds):
    assert parse_seeds(text) == seeds


@pytest.mark.parametrize(
    "text", ["-3", "-1,2", "3-", "3--1", "4-2", "0-1-2", "0,2-4", "x-1", "1.5", "0,0", "0", "", ","]
)
def test_seeds_that_are_none_are_refused(text):
    with pytest.raises(ValueError, match=r"--seeds: expected how many seeds, or which, such as 10"):
        parse_seeds(text)


def test_durations():
    assert [duration(s) for s in (40, 200, 7500)] == ["40 s", "3 min", "2 h 05 min"]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (("--algorithms", "dqm"), "unknown algorithm 'dqm' in --algorithms. Did you mean 'dqn'?"),
        (("--algorithms", "ilql"), "got 'ilql', which learns from stored dialogues"),
        (("--algorithms", "dqn,dqn"), "--algorithms: expected distinct names"),
        (("--domains", "SRF"), "unknown domain 'SRF' in --domains. Did you mean 'SFR'?"),
        (("--domains", "no/Bars"), "expected a JSON file at 'no/Bars-rules.json'"),
        (("--envs", "7"), "--envs: expected numbers from 1 to 6, got 7"),
        (("--envs", "one"), "--envs: expected whole numbers separated by commas; got 'one'"),
        (("--seeds", "0,0"), "--seeds: expected how many seeds, or which"),
        (("--tests", "1000,500"), "tests: expected numbers of dialogues, ascending"),
        (("--episodes", "0"), "episodes: expected 1 or more test dialogues, got 0"),
    ],
)
def test_bad_names_are_one_clear_message(tmp_path, options, message):
    text = fail("benchmark", "slot-filling-acts", "--out", str(tmp_path), *options)
    assert message in " ".join(text.split())


def test_tables_of_no_tests_are_refused(tmp_path):
    text = fail("benchmark", "tables", "--out", str(tmp_path))
    assert "results: expected files of methods, such as dqn.csv" in " ".join(text.split())


def test_known_domains_are_listed_once(tmp_path):
    text = fail("benchmark", "slot-filling-acts", "--out", str(tmp_path), "--domains", "Nowhere")
    known = " ".join(text.split()).partition("Known: ")[2].rstrip(".").split(", ")
    assert len(known) == len({*known}) > 10


def test_a_budget_is_of_dialogues():
    assert TrainConfig(dialogues=10, keep_dialogues=(10, 5)).keep_dialogues == (5, 10)
    with pytest.raises(ValueError, match="dialogues of train must be a whole number from 1; got 0"):
        TrainConfig(dialogues=0)
    with pytest.raises(ValueError, match="keep_dialogues: expected numbers from 1 to 5"):
        TrainConfig(dialogues=5, keep_dialogues=(6,))
    with pytest.raises(ValueError, match=r"keep_dialogues: expected dialogues too, got \[5\]"):
        TrainConfig(keep_dialogues=(5,))
    with pytest.raises(ValueError, match="tests: expected numbers"):
        pydial_panel({}, [], (5, 5))
