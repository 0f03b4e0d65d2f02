"""Results come back from files; the benchmark's folder; the registry's references."""

import json

import gymnasium as gym
import numpy as np
import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st
from rich.console import Console

import dialgym
from dialgym.experiments import Result, benchmark, load_results
from dialgym.experiments.curves import read_curve, smooth
from dialgym.experiments.references import reference_scores, rows_of, with_scores, write_references
from dialgym.experiments.result import caption, results_as_table
from dialgym.experiments.tables import markdown_table
from dialgym.registry import entry_of
from tests.support.players import SMALL, WORD, Fixed, FixedTokens, Narrow

# Results


@pytest.fixture(scope="module")
def result():
    return dialgym.evaluate("random-mixture", [SMALL, "Wordle-200-v0"], 20)


def test_json_brings_a_result_back(result, tmp_path):
    result.to_json(tmp_path / "r.json")
    again = Result.from_json(tmp_path / "r.json")
    assert again.to_markdown() == result.to_markdown()
    assert again[SMALL].returns.dtype == np.float64
    assert (again[SMALL].returns == result[SMALL].returns).all()
    assert (again.policy, again.seeds) == (result.policy, result.seeds)
    assert json.loads((tmp_path / "r.json").read_text())["environments"][SMALL]["iqm"] == (
        pytest.approx(result[SMALL].iqm)
    )
    assert [path.name for path in tmp_path.iterdir()] == ["r.json"]


def test_json_keeps_what_a_task_measures(tmp_path):
    name = "dialgym/VisualDialogue-100-v0"
    result = dialgym.evaluate("random", name, 3, (0, 1))
    result.to_json(tmp_path / "r.json")
    again = Result.from_json(tmp_path / "r.json")[name].metrics
    assert {key: rows.tolist() for key, rows in again.items()} == {
        key: rows.tolist() for key, rows in result[name].metrics.items()
    }


def test_json_of_something_else_is_refused(result, tmp_path):
    (tmp_path / "a.json").write_text("{}")
    with pytest.raises(
        ValueError, match="it lacks policy, seeds, env_kwargs, stand_ins, oracle, actions, env"
    ):
        Result.from_json(tmp_path / "a.json")
    (tmp_path / "b.json").write_text("no")
    with pytest.raises(ValueError, match="expected a result as JSON"):
        Result.from_json(tmp_path / "b.json")
    for name, value in (("environments", 5), ("environments", {SMALL: {}}), ("seeds", 0)):
        values = {**result.as_dict(), name: value}
        (tmp_path / "c.json").write_text(json.dumps(values))
        with pytest.raises(ValueError, match=r"c.json': expected what Result.as_dict gives"):
            Result.from_json(tmp_path / "c.json")


def test_unknown_id_of_a_result(result):
    with pytest.raises(ValueError, match="unknown id 'Wordle-v0' in the result of random-mixture"):
        result["Wordle-v0"]


def test_tables_have_a_row_for_each_id_and_one_for_all(result):
    lines = result.to_markdown().splitlines()
    assert [line.split(" | ")[0] for line in lines[2:5]] == [
        f"| {SMALL}",
        "| dialgym/Wordle-200-v0",
        "| all",
    ]
    assert lines[-1] == caption(result)


def test_a_cell_of_a_table_stays_one_whatever_is_in_it():
    assert markdown_table([["said"], ["a | b\nc"]]) == "| said |\n| --- |\n| a \\| b c |\n"


@pytest.mark.parametrize("width", [80, 140])
def test_the_terminals_table_is_never_cut(result, width):
    console = Console(width=width, record=True, file=open("/dev/null", "w", encoding="utf-8"))  # noqa: SIM115
    console.print(results_as_table([result], width))
    text = console.export_text()
    assert "…" not in text
    assert f"{result[SMALL].mean_return:.2f}" in text


# The benchmark's folder


@pytest.fixture
def run(tmp_path):
    rows = "".join(f"{100 * i},{i},10,{-6 + 0.1 * i},0.5\n" for i in range(1, 40))
    folder = tmp_path / "run"
    folder.mkdir()
    header = "timesteps,seconds,episodes,mean_return,success\n"
    (folder / "learning_curve.csv").write_text(header + rows)
    (folder / "config.yml").write_text(f"env_id: {SMALL}\nn_envs: 8\n")
    return folder


def test_benchmark_writes_tables_pictures_and_games(run, tmp_path):
    pytest.importorskip("matplotlib")
    found = benchmark({"random": "random", "fixed": FixedTokens()}, [SMALL], 10, curves=[run])
    files = found.save(tmp_path / "out")
    names = ["results.json", "table.md", "games.txt", "scores.png", "curve.png", "games.png"]
    assert [path.name for path in files] == names
    assert sorted(path.name for path in (tmp_path / "out").iterdir()) == sorted(names)
    for path in files[3:]:
        assert path.read_bytes().startswith(b"\x89PNG")
    again = load_results(files[0])
    assert [r.policy for r in again] == ["random", "fixed"]
    assert (again[1][SMALL].returns == found.results[1][SMALL].returns).all()
    text = files[2].read_text()
    assert all(f"{SMALL}, seed 0, episode {game.job[1]}\n" in text for game in found.games)
    assert f"    system: {WORD}" in text


def test_shown_games_have_different_secrets():
    found = benchmark({"optimal": "optimal"}, ["Wordle-20-v0"], 30, (0,), games=5)
    assert len({game.text.splitlines()[-2] for game in found.games}) == 5
    assert len(found.games) == 5


def test_shown_games_are_scored_ones():
    found = benchmark({"a": FixedTokens(), "b": Fixed()}, [SMALL], 3, seeds=(5,))
    for game in found.games:
        result = {r.policy: r for r in found.results}[game.policy]
        assert game.episode_return == result[SMALL].returns[0, game.job[1]]
        assert game.turns == result[SMALL].lengths[0, game.job[1]]


def test_a_policy_is_left_out_where_it_does_not_fit():
    class Fits(FixedTokens):
        observation_space = gym.spaces.Box(0, 31, (108,), np.int32)

    ids = [SMALL, "Wordle-Adversarial-v0"]
    found = benchmark({"fits": Fits(), "random": "random"}, ids, 2, games=0)
    assert list(found.results[0].by_id) == [SMALL]
    assert len(found.results[1].by_id) == 2
    assert "fits is left out on dialgym/Wordle-Adversarial-v0" in found.notes[0]
    with pytest.raises(ValueError, match="narrow is left out"):
        benchmark({"narrow": Narrow()}, [SMALL], 2)


def test_curves_of_dialgym_and_of_stable_baselines3(run, tmp_path):
    curve = read_curve(run)
    assert curve.steps[:2].tolist() == [100, 200]
    assert curve.references["random"] == entry_of(SMALL).row.scores["random"]
    (tmp_path / "progress.csv").write_text(
        "rollout/ep_rew_mean,time/total_timesteps\n-3,10\n,20\n-2,30\n"
    )
    assert read_curve(tmp_path).steps.tolist() == [10, 30]
    (tmp_path / "m.csv").write_text('#{"t_start": 0}\nr,l,t\n-3,6,0.1\n-1,2,0.2\n')
    curve = read_curve(tmp_path / "m.csv")
    assert (curve.steps.tolist(), curve.returns.tolist()) == ([6, 8], [-3, -1])
    assert curve.references == {}


def test_what_is_no_curve(tmp_path):
    with pytest.raises(FileNotFoundError, match=r"learning_curve.csv, progress.csv, monitor.csv"):
        read_curve(tmp_path)
    (tmp_path / "x.csv").write_text("a,b\n1,2\n")
    with pytest.raises(ValueError, match=r"expected columns timesteps and mean_return.*got a, b"):
        read_curve(tmp_path / "x.csv")


@given(st.lists(st.floats(-10, 10), min_size=1, max_size=80))
@settings(max_examples=30)
def test_smoothing_keeps_the_range_and_constants(values):
    smoothed = smooth(np.array(values))
    assert smoothed.shape == (len(values),)
    assert smoothed.min() >= min(values) - 1e-9
    assert smoothed.max() <= max(values) + 1e-9
    assert smooth(np.full(50, 3.0)) == pytest.approx(3.0)


# References


def test_long_scores_go_on_a_line_of_their_own():
    scores = {"random": -1.0, "expert": 2.0, "expert_policy": "x" * 30, "episodes": 4000}
    text = with_scores(REGISTRY, "B", scores, "builtin_scores")
    assert max(map(len, text.splitlines())) <= 100
    assert yaml.safe_load(text)["environments"]["B"]["builtin_scores"] == scores
    assert with_scores(text, "B", scores, "builtin_scores") == text


def test_references_are_what_the_policies_get():
    row = entry_of(SMALL).row
    assert reference_scores(row, 200)["expert"] == pytest.approx(row.scores["expert"], abs=0.1)
    assert rows_of([SMALL, "Wordle-20-utterance-v0"]) == [row]


REGISTRY = """# a comment
environments:
  A:
    task: a:A
    scores: {random: 0}  # old
    tags: [x]

  # about B
  B:
    task: b:B

removed: {}
"""


def test_scores_are_written_and_nothing_else(tmp_path):
    path = tmp_path / "envs.yaml"
    path.write_text(REGISTRY)
    new = {"A": {"random": -1, "expert": 2}, "B": {"random": 0, "expert": 1}}
    write_references(path, {(name, "scores"): scores for name, scores in new.items()})
    text = path.read_text()
    assert text == REGISTRY.replace("    scores: {random: 0}  # old\n", "").replace(
        "    tags: [x]\n", "    tags: [x]\n    scores: {random: -1, expert: 2}\n"
    ).replace("    task: b:B\n", "    task: b:B\n    scores: {random: 0, expert: 1}\n")
    assert with_scores(text, "B", {"random": 0, "expert": 1}) == text
    more = with_scores(text, "B", {"random": 3}, "builtin_scores")
    own = "    scores: {random: 0, expert: 1}\n"
    assert more == text.replace(own, own + "    builtin_scores: {random: 3}\n")
    assert with_scores(more, "B", {"random": 0, "expert": 1}) == text.replace(
        own, "    builtin_scores: {random: 3}\n" + own
    )
    with pytest.raises(ValueError, match="expected a row 'C'"):
        with_scores(text, "C", {})
