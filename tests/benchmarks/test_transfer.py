"""Models of a tiny panel are scored where they were not trained."""

import json

import numpy as np
import pytest

pytest.importorskip("stable_baselines3")
from agents.experiments.panel_jobs import jobs_of as panel_jobs
from agents.experiments.run import run_jobs
from benchmarks.transfer.__main__ import main
from benchmarks.transfer.axes import AXES, exchanges
from benchmarks.transfer.jobs import jobs_of
from benchmarks.transfer.report import as_markdown, cells_of
from dialgym.experiments import panel as room
from dialgym.experiments.panel import Panel
from dialgym.experiments.row_files import read_rows
from tests.support.tiny_panel import NETWORK, PPO

GREEDY = {**PPO, "policy_kwargs": {**NETWORK, "avoid_repeats": None}}  # repeats take time

PANEL = Panel.of(
    "tiny-slots",
    {
        "version": 1,
        "description": "Slot filling, for tests.",
        "environments": [
            "CamRestaurants-Env1-v0",
            "CamRestaurants-Env3-v0",
            "CamRestaurants-Env5-v0",
            "SFRestaurants-Env3-v0",
        ],
        "budget": {"tokens": 200},
        "algorithms": {"ppo": {"hyperparameters": GREEDY}},
        "evaluation": {"episodes": 6, "seed": 77},
        "seeds": 2,
        "references": ["random", "handcrafted"],
        "metric": "success",
    },
)
EPISODES = 6


@pytest.fixture(autouse=True)
def tiny(monkeypatch):
    monkeypatch.setattr(room, "_panels", lambda: {PANEL.name: PANEL})


@pytest.fixture(scope="module")
def done(tmp_path_factory):
    """The folder of the panel, of which the model of one environment has been trained."""
    out = tmp_path_factory.mktemp("panel")
    places = [PANEL.environment("CamRestaurants-Env3-v0")]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(room, "_panels", lambda: {PANEL.name: PANEL})
        run_jobs(panel_jobs(PANEL, ["ppo", "handcrafted"], places, [0, 1], out), 0)
    return out


@pytest.fixture(scope="module")
def out(tmp_path_factory):
    """The folder of the figures, which no test makes again."""
    return tmp_path_factory.mktemp("transfer")


def jobs(axis, done, out, *names):
    """The jobs of an axis: those of the rows of some names, or of all."""
    rows = [row for row in read_rows([done], PANEL) if not names or row.name in names]
    return jobs_of(axis, PANEL, rows, EPISODES, out)


def performed(*which):
    """The results of jobs."""
    found, failures = run_jobs(jobs(*which), 0)
    assert not failures
    return found


@pytest.mark.slow
def test_the_point_of_training_is_the_leaderboards_row(done, out):
    found = performed("errors", done, out)
    assert len(found) == 2 * 2 * 8
    rows = {(row.name, row.seed): row for row in read_rows([done], PANEL)}
    for job, result in found.items():
        row = rows[job.row.name, job.row.seed]
        assert job.home == (job.target.name == "15 %")
        assert len(result["episodes"]["returns"]) == EPISODES
        if job.home:
            assert result["episodes"] == row.values["episodes"][row.actions]
            assert result["statistics"] == row.values["statistics"][row.actions]
    clean, noisy = (
        [r["statistics"]["success"] for j, r in found.items()
         if j.row.name == "handcrafted" and j.target.name == name]
        for name in ("0 %", "50 %")
    )  # fmt: skip
    assert np.mean(clean) > np.mean(noisy)


@pytest.mark.slow
def test_users_and_environments_where_they_fit(done, out):
    users = performed("users", done, out)
    assert [j.target.name for j in users][:3] == ["standard", "unfriendly", "impatient"]
    assert {j.target.name for j in users if j.home} == {"standard"}
    places = performed("environments", done, out)
    assert {j.target.name for j in places} == {"CamRestaurants-Env3-v0", "CamRestaurants-Env5-v0"}
    assert {j.row.name for j in places} == {"ppo"}
    assert [names for _, names in exchanges(PANEL)] == [
        ["CamRestaurants-Env1-v0"],
        ["CamRestaurants-Env3-v0", "CamRestaurants-Env5-v0"],
        ["SFRestaurants-Env3-v0"],
    ]
    text = as_markdown("environments", PANEL, places)
    assert "| trained in | policy | seeds | CamRestaurants-Env3-v0 |" in text
    assert "windows of 754 tokens, 808 actions: CamRestaurants-Env3-v0, Cam" in text


def test_intervals_are_over_seeds(done, out):
    found = performed("users", done, out, "handcrafted")
    cells = cells_of(found)
    row = cells["CamRestaurants-Env3-v0 (standard)", "handcrafted"]
    means = [r["statistics"]["success"] for j, r in found.items()
             if j.row.name == "handcrafted" and j.target.name == "standard"]  # fmt: skip
    assert row["standard"].success.tolist() == [100 * m for m in means]
    assert row["standard"].home
    assert not row["impatient"].home


@pytest.mark.slow
def test_the_command_writes_tables_and_pictures_and_scores_nothing_twice(
    done, out, tmp_path, monkeypatch, capsys
):
    pytest.importorskip("matplotlib")
    where = ["--panel", "tiny-slots", "--results", str(done), "--out", str(out)]
    where += ["--episodes", str(EPISODES), "--workers", "0", "--docs", str(tmp_path / "docs")]
    main(["errors", "users", "environments", *where])
    for axis in AXES:
        name = f"transfer_{axis}_tiny_slots"
        assert (tmp_path / "docs" / "images" / f"{name}.png").stat().st_size > 5000
        text = (tmp_path / "docs" / "results" / f"{name}.md").read_text("utf-8")
        assert f": {PANEL.name}\n" in text
    assert "| CamRestaurants-Env3-v0 (15 %) | ppo | 2 |" in capsys.readouterr().out
    monkeypatch.setattr("agents.experiments.pools.perform", None)
    main(["errors", *where, "--seeds", "0,1", "--algorithms", "ppo"])


def test_a_result_of_another_model_is_refused(done, out):
    job = jobs("users", done, out, "ppo")[0]
    run_jobs([job], 0)
    values = json.loads(job.result.read_text("utf-8"))
    assert values["model"] == job.row.values["hashes"]["weights"]
    job.row.values["hashes"]["weights"] = "another"
    with pytest.raises(ValueError, match="has been run with other settings"):
        run_jobs([job], 0)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--panel", "none"], "unknown panel 'none'"),
        (["--panel", "tiny-slots", "--algorithms", "pop"], "unknown row 'pop' in --algorithms"),
        (["--panel", "tiny-slots", "--seeds", "7,8"], "got none of those asked for"),
        (["--panel", "tiny-slots", "--envs", "Wordle-v0"], "unknown environment"),
    ],
)
def test_errors_say_what_is_there(done, arguments, message, capsys):
    with pytest.raises(SystemExit):
        main(["users", "--results", str(done), *arguments])
    assert message in capsys.readouterr().err
