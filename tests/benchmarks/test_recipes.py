"""Recipes: each is whole, what is done is not done again, and tables say what the runs scored."""

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("stable_baselines3")
import dialgym
from agents import BC
from agents.experiments.job import with_needs
from agents.registry import find
from benchmarks.recipes import lmrl
from benchmarks.recipes.job import RecipeJob, jobs_of, perform
from benchmarks.recipes.plots import plot
from benchmarks.recipes.recipe import Method, Recipe, names, read_recipe
from benchmarks.recipes.tables import Line, lines, markdown, report

ID = "dialgym/Wordle-20-v0"
GIVEN = {"corpus": "unused", "multiwoz": "unused"}
TRAINED = []


def train(job):
    TRAINED.append((job.method.name, job.seed))
    kwargs = {"n_layer": 1, "n_head": 1, "n_embd": 8}
    BC("GPTPolicy", dialgym.sb3_vec_env(ID, 1), policy_kwargs=kwargs, seed=job.seed).save(job.model)


def fail(job):
    raise ValueError("out of luck")


def made(train="train", episodes=8, **more):
    """A recipe of two methods, the second of which may need the first."""
    b = {"train": f"{__name__}:train", **more}
    methods = {"a": Method("a", ID, train=f"{__name__}:{train}"), "b": Method("b", ID, **b)}
    return Recipe("own", episodes, {}, "", methods, {})


# All recipes


@pytest.fixture
def no_tokenizer(monkeypatch):
    monkeypatch.setattr("benchmarks.recipes.language.prepare", lambda folder, given: {})


@pytest.mark.parametrize("name", names())
def test_every_recipe_is_whole(name, tmp_path, no_tokenizer):
    recipe = read_recipe(name, tmp_path, GIVEN.get(name))
    jobs = jobs_of(recipe, tmp_path, 2)
    planned = with_needs(jobs)
    assert len({job.folder for job in planned}) == len(planned)
    for job in planned:
        method = job.method
        assert (method.policy is None) == bool(method.train or method.algorithm)
        assert method.data is None or method.data in recipe.data
        assert method.algorithm is None or find(method.algorithm)
        json.dumps(job.description())
        assert job.folder not in {need.folder for need in job.needs}
    shown = [line.method for line in lines(jobs, {job: {"measured": {}} for job in jobs})]
    assert shown == [n for n, m in recipe.methods.items() if not m.hidden or m.also]


def test_what_is_no_recipe_is_refused(tmp_path):
    with pytest.raises(ValueError, match=r"unknown recipe 'pop'"):
        read_recipe("pop", tmp_path)
    with pytest.raises(ValueError, match="the recipe 'ppo' makes its own"):
        read_recipe("ppo", tmp_path, "games")
    with pytest.raises(ValueError, match="--data"):
        read_recipe("corpus", tmp_path)


def test_what_is_chosen_has_to_be_there(tmp_path):
    recipe = read_recipe("yesno", tmp_path)
    assert [job.method.name for job in jobs_of(recipe, tmp_path, 1, ["*: BC"])] == [
        *(f"{penalty}: BC" for penalty in ("hard", "none", "conservative")),
        "hard, no expert: BC",
    ]
    with pytest.raises(ValueError, match=r"unknown method .hard: ILQ. in --only\. Did you mean"):
        jobs_of(recipe, tmp_path, 1, ["hard: ILQ"])


# Jobs


def test_a_recipe_trains_and_scores_what_is_missing(tmp_path):
    TRAINED.clear()
    jobs = jobs_of(made(), tmp_path, 2)
    first = perform(jobs)
    assert TRAINED == [("a", 0), ("b", 0), ("a", 1), ("b", 1)]
    jobs[2].result.unlink()
    again = perform(jobs)
    assert len(TRAINED) == 4
    for one, other in zip(first, again, strict=True):
        assert one.returns.tolist() == other.returns.tolist()


def test_runs_with_other_settings_are_refused(tmp_path):
    perform(jobs_of(made(episodes=4), tmp_path, 1, ["a"]))
    with pytest.raises(ValueError, match=r"run with other settings \(episodes: 4 -> 5\)"):
        perform(jobs_of(made(episodes=5), tmp_path, 1, ["a"]))


def test_processes_give_what_one_does_and_what_builds_on_a_failure_says_so(tmp_path):
    recipe = read_recipe("yesno", tmp_path)
    recipe = replace(recipe, episodes=4)
    pair = ["hard: random", "none: greedy"]
    one, other = (
        perform(jobs_of(recipe, tmp_path / str(workers), 1, pair), workers) for workers in (0, 2)
    )
    assert [a.returns.tolist() for a in one] == [b.returns.tolist() for b in other]
    broken = made(train="missing", needs=("a",))
    with pytest.raises(ValueError, match=r"2 jobs have failed .*it needs a, .*which has failed"):
        perform(jobs_of(broken, tmp_path / "c", 1, ["b"]), workers=1)
    with pytest.raises(ValueError, match="out of luck"):
        perform(jobs_of(made(train="fail"), tmp_path / "d", 1, ["a"]))


# Tables


def scored(method, seed, returns, metrics=()):
    job = RecipeJob(made(), Method(method, ID, policy="random"), seed, Path("x"))
    result = {"returns": returns, "solved": [r > -2 for r in returns]}
    return job, {**result, "metrics": dict(metrics)}


def test_lines_gather_seeds_and_keep_the_order():
    results = dict([scored("b", 0, [-1.0, -3.0]), scored("a", 0, [-2.0, -2.0]),
                    scored("b", 1, [-1.0, -1.0])])  # fmt: skip
    table = lines([*results], results)
    assert [(line.method, line.means.tolist()) for line in table] == [
        ("b", [-2.0, -1.0]),
        ("a", [-2.0]),
    ]
    text = markdown(table[:1])
    assert f"| {ID} | b | 2 | -1.500 [-7.853, 4.853] |" in text
    assert "| 75.0 % |" in text
    assert f"| {ID} | a | 1 | -2.000 | " in markdown(table[1:])  # no interval of one seed


def test_columns_are_figures_in_digits_in_per_cent_or_of_a_hook():
    line = Line("x", ID, np.array([[-1.0, -3.0]]), np.array([[True, False]]), measured={
        "f1": np.array([0.5])})  # fmt: skip
    columns = {"a": "return", "b": ["f1", 1], "c": "success %", "d": ["success %", 1], "e": "none"}
    hook = {"f": "benchmarks.recipes.multiwoz:system"}
    text = markdown([line], {**columns, **hook}).splitlines()
    assert text == [
        "| a | b | c | d | e | f |",
        "| --- | --- | --- | --- | --- | --- |",
        "| -2.000 | 0.5 | 50.0 % | 50.0 % |  | x |",
    ]


def test_a_table_has_the_metrics_that_all_seeds_have():
    both = {"turns": [1, 2]}
    results = dict([scored("a", 0, [0.0, 0.0], {**both, "other": [3, 3]}.items()),
                    scored("a", 1, [0.0, 0.0], both.items())])  # fmt: skip
    [line] = lines([*results], results)
    assert {name: of.tolist() for name, of in line.metrics.items()} == {"turns": [[1, 2], [1, 2]]}


def test_a_gain_is_that_of_each_seed():
    first, last = (Line("x", ID, np.array([[r], [r - 1]]), np.ones((2, 1))) for r in (-3.0, -1.0))
    recipe = replace(made(), columns={"mean": ["return", 1]}, gain="More: {return}.", note="End.\n")
    assert report(recipe, [first, last]).endswith("\n\nMore: 2.0 [2.0, 2.0].\n\nEnd.\n")


def test_scores_by_both_normalisations(monkeypatch):
    def line(r):
        games = type("Games", (), {"returns": np.array([-3.0])})
        job = type("Job", (), {"dialogues": lambda self, name: games})()
        return Line("x", ID, np.full((2, 3), r), np.ones((2, 3), bool), (job,))

    assert line(-5.045).score == pytest.approx(0)
    assert line(-1.049).score == pytest.approx(100)
    scores = [lmrl.their_score(line(r)) for r in (-6.0, -4.12, -1.94, -2.63, -7.0)]
    assert scores == ["0.0", "50.0", "100.0", "84.2", "0.0"]
    scores = [lmrl.own_score(line(r)) for r in (-6.0, -4.5, -3.0, -1.049)]
    assert scores == ["0.0", "25.0", "50.0", "100.0"]


def test_a_picture_has_a_row_for_each_line(tmp_path):
    table = [Line(name, ID, np.zeros((2, 3)), np.ones((2, 3), bool)) for name in "ab"]
    plot(table, tmp_path / "table.png")
    assert (tmp_path / "table.png").stat().st_size > 5_000
