"""A tiny panel is run, killed and gone on with, shown and compared."""

import json
import os
import shutil
import signal
import subprocess
import sys
import time

import pytest

pytest.importorskip("stable_baselines3")
pytest.importorskip("pyarrow")
import agents
from agents.experiments.job import perform, timed
from agents.experiments.panel_jobs import jobs_asked_for, jobs_of
from agents.experiments.run import run_jobs
from agents.training.callbacks import LearningCurve
from dialgym.experiments.panel import Panel
from dialgym.experiments.row import CPU_SECONDS
from dialgym.experiments.row_files import read_row, read_rows
from dialgym.io.files import read_json, read_yaml
from tests.support.commands import fail, run, succeed
from tests.support.resuming import assert_same_model
from tests.support.tiny_panel import BC, BY_WORD, PPO, QUICK, install
from tests.support.waiting import end_family, wait_until

PLACES = QUICK.environments
ROW = "Wordle-20-v0-seed0.json"
pytestmark = pytest.mark.usefixtures("tiny")


def same(row):
    """Without what depends on the machine; weights do not."""
    curve = [[steps, mean] for steps, _, mean in row["curve"]]
    timed = ("seconds", "cost", "versions", "hardware", "command", "curve")
    return {k: v for k, v in row.items() if k not in timed}, curve


def test_a_row_says_all_that_it_is_of(done):
    row = read_row(done / "tiny" / "ppo" / ROW).values
    assert (row["panel"], row["version"], row["id"]) == ("tiny", 1, "dialgym/Wordle-20-v0")
    assert (row["way"], row["kind"], row["policy"], row["command"]) == (
        *("drawn", "trained", "ppo"),
        "dialgym benchmark tiny --algorithms ppo --envs Wordle-20-v0 --seeds 0-0",
    )
    assert {len(part["returns"]) for part in row["episodes"].values()} == {24}
    assert set(row["episodes"]) == {"drawn", "greedy"}
    assert row["settings"]["n_timesteps"] == 1000
    assert row["cost"]["trained"] >= 1000
    assert row["cost"]["cpu_seconds"] > 0
    assert row["curve"]
    assert {"rules", "protocol", "weights", "source"} <= set(row["hashes"])
    assert [len(goal) for goal in row["trials"]["drawn"]] == [4, 4]
    assert {"processor", "cpu_capability", "cores", "system"} <= set(row["hardware"])


def test_stored_dialogues_are_collected_once_and_their_hash_is_kept(done):
    hashes = [read_row(done / "tiny" / n / ROW).values["hashes"] for n in ("bc", "bc-ppo")]
    assert hashes[0]["data"] == hashes[1]["data"]
    assert len(list((done / "tiny" / "data").glob("*.parquet"))) <= 1
    assert len(list((done / "tiny" / "data").glob("Wordle-20-v0-mixture-*[!g]"))) == 1


def test_a_learner_has_cells_where_it_learns_and_asks_for_no_others(tmp_path):
    learners = {"bc": {"environments": ["dialgym/Wordle-200-v0"]}, "ppo": {}}
    environments = ["Wordle-20-v0", "Wordle-200-v0"]
    panel = Panel.of("x", {**BY_WORD, "algorithms": learners, "environments": environments})
    jobs = jobs_of(panel, ["bc", "ppo"], panel.environments, [0], tmp_path)
    kinds = ["ppo Wordle-20-v0", "bc Wordle-200-v0", "ppo Wordle-200-v0"]
    assert [job.kind for job in jobs] == kinds
    assert jobs_asked_for(panel) == panel.seeds * (3 + 4)
    with pytest.raises(ValueError, match=r"none of bc plays Wordle-20-v0"):
        jobs_of(panel, ["bc"], panel.environments[:1], [0], tmp_path)


def test_what_begins_with_another_learners_model_says_so(done):
    row = read_row(done / "tiny" / "bc-ppo" / ROW).values
    assert row["settings"]["start"]["n_timesteps"] == 20
    assert row["cost"]["trained"] >= 1020
    parts = [row["cost"][name] for name in CPU_SECONDS]
    assert min(parts) >= 0.0
    assert read_row(done / "tiny" / "bc-ppo" / ROW).cpu_seconds == sum(parts)
    assert "start_cpu_seconds" not in read_row(done / "tiny" / "bc" / ROW).values["cost"]
    assert (done / "tiny" / "bc-ppo" / ROW[:-5] / "start" / "model.zip").is_file()


def test_a_learner_has_settings_of_its_own_in_its_training_alone(tmp_path, monkeypatch):
    learner = {"hyperparameters": PPO, "settings": {"host": "opening"}}
    panel = install(monkeypatch, Panel.of("tiny", {**BY_WORD, "algorithms": {"ppo": learner}}))
    [job] = jobs_of(panel, ["ppo"], panel.environments, [0], tmp_path)
    perform(job)
    row = read_row(job.result).values
    assert row["settings"]["env_kwargs"] == learner["settings"]
    assert read_yaml(job.folder / "config.yml")["env_kwargs"]["host"] == "opening"
    assert min(row["episodes"]["drawn"]["returns"]) == -6.0  # of six guesses, all its own


def test_it_begins_with_the_model_of_the_other_learners_row_without_training_it_again(
    done, tmp_path
):
    row = done / "tiny" / "bc" / ROW
    copied = done / "tiny" / "bc-ppo" / ROW[:-5] / "start"
    assert not (copied / "run.json").exists()
    assert (copied / "model.zip").read_bytes() == (row.with_suffix("") / "model.zip").read_bytes()
    assert (copied / "cost.json").read_text() == (row.with_suffix("") / "cost.json").read_text()
    [alone] = jobs_of(QUICK, ["bc-ppo"], QUICK.environments, [0], tmp_path)
    perform(alone)
    start, clone = (
        agents.load(file).policy.state_dict()
        for file in (alone.folder / "start" / "model.zip", row.with_suffix("") / "model.zip")
    )
    for name, weight in start.items():
        assert weight.tolist() == clone[name].tolist(), name


@pytest.mark.slow
def test_a_chain_of_learners_is_trained_whole_by_itself_and_beside_their_rows(
    tmp_path, monkeypatch
):
    more = {"algorithm": "bc", "hyperparameters": BC}
    learners = {"bc": more, "longer": {**more, "start": "bc"}, "last": {**more, "start": "longer"}}
    panel = install(monkeypatch, Panel.of("tiny", {**BY_WORD, "algorithms": learners}))
    jobs = jobs_of(panel, [*learners], panel.environments, [0], tmp_path / "beside")
    [alone] = jobs_of(panel, ["last"], panel.environments, [0], tmp_path / "alone")
    for job in (*jobs, alone):
        perform(job)
    rows = [read_row(job.result).values for job in (jobs[-1], alone)]
    assert same(rows[0]) == same(rows[1])
    for job, row in zip((jobs[-1], alone), rows, strict=True):
        clocks = [read_json(job.folder / at / "cost.json", "") for at in ("start", "start/start")]
        assert row["cost"]["start_cpu_seconds"] == sum(clock["cpu_seconds"] for clock in clocks)
    for job, at in zip(jobs, ("start/start", "start"), strict=False):
        assert_same_model(alone.folder / at / "model.zip", job.folder / "model.zip")


def test_rows_of_a_seed_play_the_same_dialogues(done):
    rows = {(r.name, r.seed): r for r in read_rows([done], QUICK)}
    assert len(rows) == 10
    seeds = [rows["optimal", k].column("return").tolist() for k in (0, 1)]
    assert seeds[0] != seeds[1]


def test_what_is_done_is_not_done_again_and_other_budgets_are_refused(done, monkeypatch):
    monkeypatch.setattr("agents.experiments.pools.perform", None)
    jobs = jobs_of(QUICK, ["ppo"], PLACES, [0], done)
    assert len(run_jobs(jobs, 0)[0]) == 1
    changed = type(PLACES[0])(**{**vars(PLACES[0]), "budget": {"tokens": 2000}})
    with pytest.raises(ValueError, match=r"other settings \(n_timesteps: 1000 -> 2000\)") as raised:
        run_jobs(jobs_of(QUICK, ["ppo"], [changed], [0], done), 0)
    row = done.resolve() / "tiny" / "ppo" / ROW
    assert f"Delete {row} and {row.with_suffix('')} to run it again" in str(raised.value)


def test_a_model_of_another_training_is_not_scored_where_its_row_is_missing(done, tmp_path):
    shutil.copytree(done / "tiny" / "ppo", tmp_path / "tiny" / "ppo")
    (tmp_path / "tiny" / "ppo" / ROW).unlink()
    changed = type(PLACES[0])(**{**vars(PLACES[0]), "budget": {"tokens": 2000}})
    [job] = jobs_of(QUICK, ["ppo"], [changed], [0], tmp_path)
    with pytest.raises(ValueError, match=r"training with other .* \(n_timesteps: 1000 -> 2000\)"):
        perform(job)
    [job] = jobs_of(QUICK, ["ppo"], PLACES, [0], tmp_path)
    before = (job.folder / "model.zip").read_bytes()
    assert same(perform(job)) == same(read_row(done / "tiny" / "ppo" / ROW).values)
    assert (job.folder / "model.zip").read_bytes() == before


def test_a_panel_trains_on_the_device_that_is_named(tmp_path, monkeypatch):
    asked = []

    def train(env_id, algorithm, **fields):
        asked.append(fields["device"])
        raise RuntimeError("not trained here")

    monkeypatch.setattr("agents.train", train)
    for device in ("cpu", "cuda"):
        with pytest.raises(RuntimeError, match="not trained here"):
            run_jobs(jobs_of(QUICK, ["ppo"], PLACES, [0], tmp_path / device, device=device), 0)
    assert asked == ["cpu", "cuda"]
    with pytest.raises(ValueError, match=r"--device: expected device .* Did you mean 'cuda'"):
        jobs_of(QUICK, ["ppo"], PLACES, [0], tmp_path, device="gpu")


def test_hours_of_a_gpu_are_not_those_of_a_cpu(done):
    row = read_row(done / "tiny" / "ppo" / ROW)
    assert row.cpu_seconds > 0
    row.values["hardware"]["accelerator"] = "NVIDIA H200"
    assert row.cpu_seconds is None


def test_a_training_that_is_cut_off_goes_on_exactly(done, tmp_path, monkeypatch, interrupt_at):
    monkeypatch.setattr("agents.experiments.training_job.CHECKPOINT_EVERY", 1)
    jobs = jobs_of(QUICK, ["ppo"], PLACES, [0], tmp_path)
    with interrupt_at(LearningCurve, 600):
        run_jobs(jobs, 0)
    assert (jobs[0].folder / "checkpoint.zip").is_file()
    assert 0 < jobs[0].done() < jobs[0].length()
    (row,) = run_jobs(jobs, 0)[0].values()
    assert same(row) == same(read_row(done / "tiny" / "ppo" / ROW).values)
    assert not (jobs[0].folder / "checkpoint.zip").exists()


SCRIPT = """
import signal
from dialgym.cli import main
from tests.support.tiny_panel import QUICK, install
if __name__ == "__main__":
    install(panel=QUICK)
    # a shell has its background jobs, such as this test's own, ignore interrupts
    signal.signal(signal.SIGINT, signal.default_int_handler)
    main()
"""


@pytest.mark.slow
@pytest.mark.parametrize("blow", [signal.SIGKILL, signal.SIGTERM, signal.SIGINT])
def test_a_panel_that_is_killed_gives_the_same_rows(blow, done, tmp_path):
    script, out = tmp_path / "run.py", tmp_path / "out"
    script.write_text(SCRIPT, "utf-8")
    env = {**os.environ, "PYTHONPATH": os.pathsep.join(["", *sys.path])}
    words = ["benchmark", "tiny", "--algorithms", "random,ppo,bc", "--seeds", "0-1",
             "--workers", "2", "--out", str(out)]  # fmt: skip
    command = [sys.executable, str(script), *words]
    process = subprocess.Popen(
        command, env=env, stderr=subprocess.PIPE, text=True, start_new_session=True
    )
    began = "*/*/*seed*.json" if blow == signal.SIGKILL else "*/ppo/*/learning_curve.csv"
    wait_until(lambda: list(out.glob(began)), process)
    end_family(process, blow)
    said = process.communicate()[1].splitlines()
    if blow != signal.SIGKILL:
        assert list(out.glob("*/ppo/*/checkpoint.zip"))
        assert process.returncode == 128 + blow
        assert said[-1] == f"Go on with: dialgym {' '.join(words)}"
        assert not [line for line in said if "Traceback" in line]
        assert not [*out.rglob(".*.json"), *out.rglob(".*.zip")]  # halves of files
    assert subprocess.run(command, env=env, check=False).returncode == 0
    rows = read_rows([out], QUICK)
    assert len(rows) == 6
    for row in rows:
        whole = read_row(done / "tiny" / row.name / row.file.name)
        assert row.values["episodes"] == whole.values["episodes"]


def test_the_clock_goes_on(tmp_path):
    file = tmp_path / "cost.json"
    with timed(file):
        time.sleep(0.2)
    first = json.loads(file.read_text("utf-8"))
    with timed(file):
        time.sleep(0.2)
    assert json.loads(file.read_text("utf-8"))["wall_seconds"] >= first["wall_seconds"] + 0.1


def test_names_that_nobody_knows_are_said(tmp_path):
    with pytest.raises(ValueError, match=r"unknown algorithm 'pppo' in --algorithms.*'ppo'"):
        jobs_of(QUICK, ["pppo"], PLACES, [0], tmp_path)
    with pytest.raises(ValueError, match=r"--algorithms, name of the row: expected up to 64 let"):
        jobs_of(QUICK, ["_mine:Own"], PLACES, [0], tmp_path)
    with pytest.raises(ValueError, match=r"--algorithms: none of pg plays Wordle-20-v0"):
        jobs_of(QUICK, ["pg"], PLACES, [0], tmp_path)


# The command line


def test_run_show_compare_and_html(done, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    where = ["--results", str(done)]
    text = succeed("benchmark", "tiny", "--workers", "0", "--out", str(done))
    assert "leaderboard show tiny" in text
    text = succeed("leaderboard", "show", "tiny", *where, "--markdown", str(tmp_path / "t.md"))
    for name in ("optimal", "random", "ppo (drawn)", "bc (greedy)", "pass^4", "are tied"):
        assert name in text
    assert (tmp_path / "t.md").read_text("utf-8").startswith("## tiny")
    text = succeed("leaderboard", "compare", "tiny", "optimal", "random", *where)
    assert "optimal is better" in text
    text = succeed("leaderboard", "show", "tiny", "--actions", "greedy", *where)
    assert "ppo (greedy)" in text
    assert "(drawn)" not in text
    text = succeed("leaderboard", "compare", "tiny", "ppo", "bc", "--actions", "drawn", *where)
    assert "| environment | ppo (drawn) | bc (drawn) | difference |" in text
    assert "--actions must be one of 'drawn', 'greedy'; got 'best'" in fail(
        "leaderboard", "show", "tiny", "--actions", "best", *where
    )
    assert "unknown row 'opt'" in fail("leaderboard", "compare", "tiny", "opt", "random", *where)
    succeed("leaderboard", "html", "tiny", "--out", str(tmp_path / "p.html"), *where)
    assert "Learning" in (tmp_path / "p.html").read_text("utf-8")


def test_rows_of_a_share_of_the_budgets_stand_apart(done, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    half = ["benchmark", "tiny@0.5", "--algorithms", "bc,random", "--workers", "0"]
    succeed(*half, "--seeds", "1", "--out", str(done))
    row = read_row(done / "tiny@0.5" / "bc" / ROW).values
    assert (row["panel"], row["settings"]["n_timesteps"]) == ("tiny@0.5", 10)
    assert len(read_rows([done], QUICK)) == 10
    text = succeed("leaderboard", "show", "tiny@0.5", "--results", str(done))
    assert text.startswith("## tiny@0.5")
    assert "With 50 % of the budgets." in text
    (moved := tmp_path / "tiny" / "bc").mkdir(parents=True)
    (moved / ROW).write_text((done / "tiny@0.5" / "bc" / ROW).read_text("utf-8"), "utf-8")
    for command in (["show", "tiny", "--results", str(tmp_path)], ["check", str(moved)]):
        result = run("leaderboard", *command)
        assert result.exit_code == 2
        assert f"expected tiny@0.5/bc/{ROW} at the end" in result.stderr
    succeed("leaderboard", "check", str(done / "tiny@0.5"), "--replay")


def test_all_panels_are_shown_with_what_they_have_cost(done, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    text = succeed("leaderboard", "show", "--all", "--results", str(done), "--markdown", "t.md")
    rows = read_rows([done], QUICK)
    spent = [row.values["cost"].get(name, 0.0) for row in rows for name in CPU_SECONDS[:2]]
    data = {row.values["cost"].get("data_cpu_seconds") for row in rows}
    assert len(data) == 2  # of one collection, and none
    hours = (sum(spent) + sum(filter(None, data))) / 3600
    assert f"| tiny | 10 of 10 | 0 | 2 of 2 | {hours:.2f} |" in text
    assert f"| all | 10 | 0 |  | {hours:.2f} |" in text
    assert "## What is there" in (tmp_path / "t.md").read_text("utf-8")
    assert "| tiny | 0 of 10 | 0 | 0 of 2 | - |" in succeed("leaderboard", "show", "--all")
    assert "What is there" not in succeed("leaderboard", "show", "tiny", "--results", str(done))


def test_errors_of_the_command_line(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert "expected rows such as ppo/ID-seed0.json" in fail("leaderboard", "show", "tiny")
    assert "either a panel or --all" in fail("leaderboard", "show")
    assert "unknown panel 'tin'" in fail("benchmark", "tin")
    assert "No rows of version 1" in succeed("leaderboard", "show", "--all")
    run = ["benchmark", "tiny", "--envs"]
    assert "unknown environment 'Wordle-v0'" in fail(*run, "Wordle-v0")
    assert "unknown environment ''" in fail(*run, "")
    assert "expected how many seeds" in fail("benchmark", "tiny", "--seeds", "-3")


def test_the_tiny_learners_are_those_of_the_panel():
    assert QUICK.algorithms["bc"].hyperparameters == BC
