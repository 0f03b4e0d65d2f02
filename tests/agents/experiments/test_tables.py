"""Tables and pictures of a grid's results."""

import numpy as np
import pytest

pytest.importorskip("stable_baselines3")
from agents.experiments import published
from agents.experiments.calibration import BINS, LEVELS, calibration
from agents.experiments.pydial_comparisons import (
    beside_handcrafted,
    beside_logs,
    beside_original,
    comparisons,
    verdicts,
)
from agents.experiments.pydial_panel import Task, tasks_of
from agents.experiments.pydial_plots import plot_calibration
from agents.experiments.pydial_report import older_in, write_report
from agents.experiments.pydial_results import Results
from agents.experiments.pydial_tables import groups, markdown
from dialgym.experiments.row_files import CORRECT, PYDIAL
from dialgym.experiments.rules import rules_of
from dialgym.registry import entry_of

RUN = {"command": "", "versions": {}, "source": "PyDial", "episodes": 500, "settings": {}}


def results(success, tasks, seeds=3):
    """Of each method a success in each task, less half of it after 2,000 dialogues."""
    found = []
    for name, share in success.items():
        for task in tasks:
            for seed in range(seeds):
                stages = [
                    {"dialogues": n, "drawn": 0, "success": share * part,
                     "reward": 20 * share * part - 8, "turns": 8.0,
                     "timesteps": 8 * n, "cpu_seconds": n / 40}
                    for n, part in ((2000, 0.5), (4000, 1.0))
                ]  # fmt: skip
                place = {"method": name, "algorithm": name, "domain": task.domain, "env": task.env}
                place |= {"fidelity": task.fidelity, "seed": seed}
                found.append({**RUN, **place, "stages": stages})
    return Results.of(found)


ALL = tasks_of(["CR", "SFR", "LAP"], range(1, 7))


def with_spread(share, tasks, seeds=5, step=0.002):
    """Of each method a success in each task, which rises by a step from seed to seed."""
    found = results(share, tasks, seeds)
    for figures in found.methods.values():
        figures.rows = [row._replace(success=row.success + row.seed * step) for row in figures.rows]
    return found


def test_each_learner_is_compared_with_the_handcrafted_policy_and_ties_are_ties():
    shares = {"handcrafted": 0.80, "acer": 0.801, "dqn": 0.9, "enac": 0.7, "a2c": 0.90}
    table = with_spread(shares, ALL)
    odd = table.methods["a2c"]
    odd.rows = [r._replace(success=1 - r.success) if r.env == 6 else r for r in odd.rows]
    lines = {line.split(" | ")[0]: line for line in beside_handcrafted(table).splitlines()}
    assert lines["| acer"].startswith("| acer | 18 | 5 | 0 (0) | 18 (18) | 0 (0) | +0.1 [")
    assert lines["| dqn"].startswith("| dqn | 18 | 5 | 18 (18) | 0 (0) | 0 (0) | +10.0 [")
    assert lines["| enac"].startswith("| enac | 18 | 5 | 0 (0) | 0 (0) | 18 (18) | -10.0 [")
    assert lines["| a2c"].startswith("| a2c | 18 | 5 | 15 (15) | 0 (0) | 3 (3) |")
    assert lines["| a2c"].endswith("| CR-Env6, SFR-Env6, LAP-Env6 |")
    assert "| handcrafted" not in lines


def test_a_difference_is_corrected_for_the_tasks_of_its_learner():
    shares = {"handcrafted": 0.80, "dqn": 0.805}
    alone, among = with_spread(shares, ALL[:1]), with_spread(shares, ALL)
    p_value = comparisons(alone, "dqn")[0].p_value
    assert 0.05 / 18 < p_value < 0.05
    assert verdicts(comparisons(alone, "dqn")) == [1]
    assert verdicts(comparisons(among, "dqn")) == [0] * 18


def test_one_training_is_above_nothing():
    table = with_spread({"handcrafted": 0.80, "dqn": 0.95}, ALL[:2], seeds=1)
    assert verdicts(comparisons(table, "dqn")) == [0, 0]


def test_fidelities_are_never_mixed():
    pydial, correct = tasks_of(["CR"], [1, 3]), tasks_of(["CR"], [1, 3], CORRECT)
    both = results({"dqn": 0.8}, pydial)
    both.methods["dqn"].rows += results({"dqn": 0.6}, correct).methods["dqn"].rows
    assert both.success("dqn", Task("CR", 1), 4000).tolist() == [80.0] * 3
    assert both.success("dqn", Task("CR", 1, fidelity=CORRECT), 4000).tolist() == [60.0] * 3
    assert both.fidelities == [PYDIAL, CORRECT]
    assert [[*group.tasks] for group in groups(both.of_fidelity(CORRECT))] == [correct]
    text = markdown(both)
    assert "| dqn | 2 | 80.0 | 60.0 |" in text
    first, second = text.split("## Fidelity correct")
    assert "### Beside published logs" in first
    assert "### Beside published logs" not in second


def test_the_original_stands_beside_rows_of_its_fidelity_alone():
    rows = beside_original(results({"handcrafted": 0.9}, tasks_of(["CR"], [3]))).splitlines()
    assert rows[2] == "| CR-Env3 | 90.0 / 10.0 | 96.5 / 10.66 |"
    assert "original's handcrafted" not in markdown(
        results({"handcrafted": 0.9}, tasks_of(["CR"], [3], CORRECT))
    )


def test_logs_stand_beside_their_namesakes():
    rows = beside_logs(results({"dqn": 0.8}, tasks_of(["LAP"], [1]))).splitlines()
    place = next(i for i, row in enumerate(rows) if row.startswith("| LAP-Env1 | DQN (log) | 10"))
    assert rows[place + 1] == "| LAP-Env1 | dqn | 3 |  | 40.0 / 0.0 |  | 80.0 / 8.0 |"


def test_methods_are_compared_over_the_tasks_that_they_share():
    all_, some = results({"a": 0.5}, ALL), results({"b": 0.6}, ALL[:4])
    found = groups(Results({**all_.methods, **some.methods}))
    assert [(len(g.tasks), sorted(g.methods)) for g in found] == [(18, ["a"]), (4, ["a", "b"])]


def test_what_draws_acts_is_scored_by_drawing_and_shown_both_ways():
    table, tasks = results({"ppo": 0.5, "dqn": 0.6}, ALL[:2]), ALL[:2]
    figures = table.methods["ppo"]
    drawn = [r._replace(drawn=1, success=0.9) for r in figures.rows if r.dialogues == 4000]
    figures.rows += drawn
    assert table.success("ppo", tasks[0], 4000).tolist() == [90, 90, 90]
    assert table.of_task("ppo", tasks[0], 4000, False)[:, 0].tolist() == [0.5, 0.5, 0.5]
    (row,) = [line for line in markdown(table).splitlines() if "+40.0" in line]
    assert row.startswith("| ppo | 90.0 / 2.0 | 50.0 / 2.0 |")  # seeds that are all alike


def test_a_report_has_tables_and_pictures(tmp_path):
    pytest.importorskip("matplotlib")
    results({"dqn": 0.8, "random": 0.1}, ALL[:4]).save(tmp_path)
    names = {path.name for path in write_report(tmp_path)}
    assert names == {"tables.md", "curves-pydial.png", "ranking-pydial.png"}
    assert all((tmp_path / name).stat().st_size > 1000 for name in names)


def test_rows_name_their_rules_in_files_and_earlier_files_have_none(tmp_path):
    (task,) = tasks_of(["CR"], [1])
    table, rules = (
        results({"dqn": 0.8}, [task], seeds=2),
        str(rules_of(task.environment.id, task.environment.settings)),
    )
    figures = table.methods["dqn"]
    source = entry_of(task.environment.id).stand_in or "PyDial"
    figures.runs = [{**run, "source": source} for run in figures.runs]
    figures.rows = [row._replace(rules=rules) for row in figures.rows]
    table.save(tmp_path)
    assert {row.rules for row in Results.load(tmp_path).methods["dqn"].rows} == {rules}
    assert older_in(tmp_path) == ""
    file = tmp_path / "dqn.csv"
    lines = [line.rpartition(",")[0] for line in file.read_text().splitlines()]
    file.write_text("\n".join(lines))
    assert {row.rules for row in Results.load(tmp_path).methods["dqn"].rows} == {""}
    line = "4 of 4 rows were played by older rules (or name none): dqn (4)."
    assert older_in(tmp_path) == line
    assert line in markdown(Results.load(tmp_path), older_in(tmp_path))


class Sure:
    """Chooses the first act that is allowed, and knows what that returns: about nothing."""

    gamma = 1.0

    def predict(self, observation, state=None, episode_start=None, deterministic=False):
        return np.zeros(len(observation), np.int64), None

    def q_distribution(self, observation):
        shape = len(observation), 16
        return np.full(shape, -10.0), np.full(shape, 10.0)


def test_calibration_compares_what_is_expected_with_what_comes(tmp_path):
    found = calibration(Sure(), Task("CR", 1).environment, 0, dialogues=16)
    assert found["levels"] == list(LEVELS)
    assert found["coverage"] == sorted(found["coverage"])
    assert found["coverage"][-1] == 1.0  # returns lie within -25 and 0
    assert found["expected"] == pytest.approx([-10.0] * BINS)
    assert found["unsure"] == pytest.approx([10.0] * BINS)
    assert max(found["returned"]) <= 0
    pytest.importorskip("matplotlib")
    plot_calibration({"sure": [found]}, tmp_path / "c.png")
    assert (tmp_path / "c.png").stat().st_size > 1000


def test_published_figures_are_those_of_all_tasks_and_each_curve_has_its_source():
    for task in map(str, ALL):
        mean, half = published.handcrafted(task)
        assert 0 < mean.success <= 100
        assert 0 < half.success < mean.success
    for log in published.log_curves():
        assert log.repository in published.log_commits()
        assert log.files.endswith(".train.log")
        assert published.covers(log.task)
    assert Task("CR", 1) == ALL[0]
