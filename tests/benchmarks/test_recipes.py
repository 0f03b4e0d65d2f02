"""Recipes: each is whole, what is done is not done again, and tables say what the rows have."""

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
from benchmarks.recipes import rows
from benchmarks.recipes.job import RecipeJob, jobs_of, perform
from benchmarks.recipes.plots import plot
from benchmarks.recipes.recipe import Method, Recipe, names, read_recipe
from benchmarks.recipes.tables import PREFIX, START, Line, lines, markdown, report
from dialgym.io.checksums import write_json_checked

ID = "dialgym/Wordle-20-v0"
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


def jobs_in(folder, recipe, seeds, only=None):
    """Jobs whose runs and rows lie in a folder."""
    return jobs_of(recipe, folder / "runs", folder / "rows", seeds, only)


# All recipes


@pytest.mark.parametrize("name", names())
def test_every_recipe_is_whole(name, tmp_path):
    recipe = read_recipe(name)
    jobs = jobs_in(tmp_path, recipe, 2)
    planned = with_needs(jobs)
    assert len({job.folder for job in planned}) == len(planned)
    assert len({job.result for job in planned}) == len(planned)
    for job in planned:
        if not isinstance(job, RecipeJob):  # of a panel
            continue
        method = job.method
        assert (method.policy is None) == bool(method.train or method.algorithm or method.learner)
        assert method.data is None or method.data in recipe.data
        assert method.algorithm is None or find(method.algorithm)
        json.dumps(job.description())
        assert job.folder not in {need.folder for need in job.needs}
    assert [*dict.fromkeys(job.method.name for job in jobs)] == [
        n for n, m in recipe.methods.items() if not m.hidden
    ]


def test_what_is_no_recipe_is_refused():
    with pytest.raises(ValueError, match=r"unknown recipe 'pop'"):
        read_recipe("pop")


def test_what_is_chosen_has_to_be_there(tmp_path):
    recipe = read_recipe("yesno")
    assert [job.method.name for job in jobs_in(tmp_path, recipe, 1, ["*: BC"])] == [
        "hard: BC",
        "hard, no expert: BC",
    ]
    with pytest.raises(ValueError, match=r"unknown method .hard: ILQ. in --only\. Did you mean"):
        jobs_in(tmp_path, recipe, 1, ["hard: ILQ"])


# Jobs


def test_a_recipe_trains_and_scores_what_is_missing(tmp_path):
    TRAINED.clear()
    jobs = jobs_in(tmp_path, made(), 2)
    first = perform(jobs)
    assert TRAINED == [("a", 0), ("b", 0), ("a", 1), ("b", 1)]
    jobs[2].result.unlink()
    again = perform(jobs)
    assert len(TRAINED) == 4
    assert [row["episodes"] for row in first.values()] == [r["episodes"] for r in again.values()]


def test_a_model_is_trained_again_where_its_row_came_without_it(tmp_path):
    a, b = jobs_in(tmp_path, made(needs=("a",)), 1)
    perform([a, b])
    row = a.result.read_bytes()
    for file in (a.model, b.model, b.result):
        file.unlink()
    TRAINED.clear()
    perform([a, b])
    assert TRAINED == [("a", 0), ("b", 0)]
    assert a.model.is_file()
    assert a.result.read_bytes() == row


def test_rows_of_other_settings_are_refused(tmp_path):
    perform(jobs_in(tmp_path, made(episodes=4), 1, ["a"]))
    with pytest.raises(ValueError, match=r"run with other settings \(count: 4 -> 5\)"):
        perform(jobs_in(tmp_path, made(episodes=5), 1, ["a"]))


def test_a_model_of_another_training_is_not_scored_where_its_row_is_missing(tmp_path):
    jobs = jobs_in(tmp_path, made(needs=("a",)), 1)
    perform(jobs)
    for job in jobs:
        job.result.unlink()
    recipe = made(needs=("a",))
    longer = replace(recipe.methods["a"], hyperparameters={"n_timesteps": 9})
    recipe = replace(recipe, methods={**recipe.methods, "a": longer})
    for name in "ab":  # b reads a
        with pytest.raises(ValueError, match=r"seed0/a' .* \(n_timesteps: None -> 9\)"):
            perform(jobs_in(tmp_path, recipe, 1, [name]))
    TRAINED.clear()
    perform(jobs_in(tmp_path, replace(made(needs=("a",)), episodes=4), 1))
    assert not TRAINED


def test_processes_give_what_one_does_and_what_builds_on_a_failure_says_so(tmp_path):
    recipe = replace(read_recipe("yesno"), episodes=4)
    pair = ["hard: random", "hard: greedy"]
    one, other = (
        perform(jobs_in(tmp_path / str(workers), recipe, 1, pair), workers) for workers in (0, 2)
    )
    assert [a["episodes"] for a in one.values()] == [b["episodes"] for b in other.values()]
    broken = made(train="missing", needs=("a",))
    with pytest.raises(ValueError, match=r"2 jobs have failed .*it needs a, .*which has failed"):
        perform(jobs_in(tmp_path / "c", broken, 1, ["b"]), workers=1)
    with pytest.raises(ValueError, match="out of luck"):
        perform(jobs_in(tmp_path / "d", made(train="fail"), 1, ["a"]))


# Rows

SCRIPTED = {name: Method(name, ID, policy=name) for name in ("random", "optimal")}


@pytest.fixture
def scripted(tmp_path):
    """A recipe of two scripted policies, with rows of two seeds each."""
    recipe = Recipe("scripted", 6, {}, "A note.\n", SCRIPTED, {})
    perform(jobs_in(tmp_path, recipe, 2))
    return recipe, tmp_path / "rows"


def test_a_row_has_what_made_it(scripted):
    recipe, home = scripted
    found = rows.read_recipe_rows(recipe, home)
    assert [(job.method.name, job.seed) for job in found] == [
        ("random", 0), ("random", 1), ("optimal", 0), ("optimal", 1)
    ]  # fmt: skip
    job, row = next(iter(found.items()))
    assert job.result == (home / "scripted" / "random" / "Wordle-20-v0-seed0.json").resolve()
    assert {"rules", "source"} == {*row["hashes"]}
    assert row["cost"]["cpu_seconds"] >= 0
    assert row["hardware"]["cores"]
    assert "command" in row


def test_a_trained_row_has_the_hash_of_its_weights(tmp_path):
    """The same of two trainings, whose files hold two times."""
    found = []
    for home in ("once", "twice"):
        perform(jobs_in(tmp_path / home, made(), 1, ["a"]))
        [row] = rows.read_recipe_rows(made(), tmp_path / home / "rows").values()
        found.append(row["hashes"]["weights"])
    assert len(found[0]) == 64
    assert found[0] == found[1]


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda row: row["episodes"]["returns"].pop(), "returns: expected 6 numbers, got 5"),
        (lambda row: row["episodes"]["returns"].__setitem__(0, 9.0), "means of the episodes"),
        (lambda row: row["measured"].update(x=float("inf")), "finite"),
        (lambda row: row.pop("cost"), "expected cost"),
        (lambda row: row.update(count=7), r"other settings \(count: 7 -> 6\)"),
    ],
)
def test_a_row_that_was_changed_is_refused(scripted, change, message):
    recipe, home = scripted
    file = home / "scripted" / "random" / "Wordle-20-v0-seed0.json"
    row = json.loads(file.read_text("utf-8"))
    del row["sha256"]
    change(row)
    write_json_checked(file, row)
    with pytest.raises(ValueError, match=message):
        rows.read_recipe_rows(recipe, home)


def test_a_row_of_no_method_is_refused(scripted):
    recipe, home = scripted
    fewer = replace(recipe, methods={"random": SCRIPTED["random"]})
    with pytest.raises(ValueError, match="no method of it has a row there"):
        rows.read_recipe_rows(fewer, home)


def test_a_table_is_of_its_rows_and_names_what_has_none(scripted):
    recipe, home = scripted
    more = {**SCRIPTED, "better": Method("better", ID, policy="consistent")}
    recipe = replace(recipe, methods=more)
    found = rows.read_recipe_rows(recipe, home)
    text = rows.recipe_table(recipe, found, "the command")
    assert f"| {ID} | random | 2 | -" in text
    assert "\nA note.\n" in text
    assert "4 rows, 0 CPU-minutes. No rows yet: better.\n" in text
    assert "the command" not in text
    summed = rows.recipes_table({"scripted": found}).splitlines()
    assert summed[2:] == ["| scripted | 4 | 0.00 |", "| all | 4 | 0.00 |"]
    nothing = rows.read_recipe_rows(recipe, home / "elsewhere")
    empty = rows.recipe_table(recipe, nothing, "the command")
    assert empty == "Not yet made: no rows are committed. `the command` makes them.\n"


# Tables


def scored(method, seed, returns, metrics=()):
    job = RecipeJob(made(), Method(method, ID, policy="random"), seed, Path("runs"), Path("rows"))
    episodes = {"returns": returns, "solved": [r > -2 for r in returns], "lengths": [1, 2]}
    rest = {"metrics": dict(metrics), "measured": {}, "hashes": {"source": "as named"}}
    return job, {"episodes": episodes, **rest}


def test_lines_gather_seeds_and_keep_the_order():
    found = [("b", 0, [-1.0, -3.0]), ("a", 0, [-2.0, -2.0]), ("b", 1, [-1.0, -1.0])]
    table = lines(dict(scored(*one) for one in found))
    assert [(line.method, line.means.tolist()) for line in table] == [
        ("b", [-2.0, -1.0]),
        ("a", [-2.0]),
    ]
    assert table[0].figure("turns").tolist() == [1.5, 1.5]
    text = markdown(table[:1])
    assert f"| {ID} | b | 2 | -1.500 [-7.853, 4.853] |" in text
    assert "| 75.0 % |" in text
    assert f"| {ID} | a | 1 | -2.000 | " in markdown(table[1:])  # no interval of one seed


def test_columns_are_figures_in_digits_or_in_per_cent():
    line = Line("x", ID, np.array([[-1.0, -3.0]]), np.array([[True, False]]), measured={
        "f1": np.array([0.5])})  # fmt: skip
    columns = {"a": "return", "b": ["f1", 1], "c": "success %", "d": ["success %", 1], "e": "none"}
    assert markdown([line], columns).splitlines() == [
        "| a | b | c | d | e |",
        "| --- | --- | --- | --- | --- |",
        "| -2.000 | 0.5 | 50.0 % | 50.0 % |  |",
    ]


def line_of(method, returns, seeds, start=None):
    """A line of trainings of one dialogue each."""
    column = np.array(returns)[:, None]
    return Line(method, ID, column, column > -2, seeds=seeds, start=start)


def test_gains_are_differences_seed_by_seed_to_a_method_of_the_group():
    table = [
        line_of("words: BC", [-3.0, -9.0, -5.0], (0, 1, 2)),
        line_of("words: PPO", [-8.0, -3.0, -7.0], (1, 2, 3), start="words: BC"),
        line_of("things: BC", [-1.0], (0,)),
        line_of("things: PPO", [-0.5], (1,), start="words: BC"),
    ]
    columns = {"method": None, "over": ["return", 1, "BC"], "begun": ["return", 1, "start"]}
    rows = [line.split(" | ") for line in markdown(table, columns).splitlines()[2:]]
    gain = "1.5 [-4.9, 7.9]"  # of seeds 1 and 2: -8 + 9, -3 + 5
    assert rows == [
        ["| words: BC", "", " |"],
        ["| words: PPO", gain, f"{gain} |"],
        ["| things: BC", "", " |"],
        ["| things: PPO", "", "8.5 |"],
    ]


@pytest.mark.parametrize("name", names())
def test_gains_are_over_methods_that_each_group_has(name):
    recipe = read_recipe(name)
    groups = {method.rpartition(PREFIX)[:2] for method in recipe.methods}
    for column in recipe.columns.values():
        for other in column[2:] if isinstance(column, list) else ():
            assert other == START or all("".join((*g, other)) in recipe.methods for g in groups)


def test_a_table_has_the_metrics_that_all_seeds_have():
    both = {"asked": [1, 2]}
    found = [("a", 0, [0.0, 0.0], {**both, "other": [3, 3]}.items()),
             ("a", 1, [0.0, 0.0], both.items())]  # fmt: skip
    [line] = lines(dict(scored(*one) for one in found))
    assert {*line.metrics} == {"turns", "asked"}


def test_what_was_not_measured_is_left_out_of_a_mean():
    shares = {"front": [1.0, -1.0]}, {"front": [-1.0, -1.0]}
    found = [scored("a", seed, [0.0, 0.0], part) for seed, part in enumerate(shares)]
    [line] = lines(dict(found))
    np.testing.assert_equal(line.figure("front"), [1.0, np.nan])


def test_a_picture_has_a_row_for_each_line(tmp_path):
    table = [Line(name, ID, np.zeros((2, 3)), np.ones((2, 3), bool)) for name in "ab"]
    plot(table, tmp_path / "table.png")
    assert (tmp_path / "table.png").stat().st_size > 5_000


def test_a_note_stands_below_the_table():
    line = Line("x", ID, np.zeros((1, 2)), np.ones((1, 2), bool))
    assert report(replace(made(), note="End.\n"), [line]).endswith(" |\n\nEnd.\n")
