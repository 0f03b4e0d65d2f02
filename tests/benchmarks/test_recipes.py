"""Recipes: what is done is not done again, and tables say what the runs scored."""

import json
from dataclasses import replace

import numpy as np
import pytest
import torch
import yaml

import agents
import dialgym
from agents import BC, ILQL
from agents.experiments.job import RESULT
from benchmarks.recipes import adversarial, language, mixed, ppo
from benchmarks.recipes.plots import plot
from benchmarks.recipes.replies import METRICS, SEED, replies
from benchmarks.recipes.runs import Run, Score, perform
from benchmarks.recipes.tables import Line, lines, markdown
from dialgym.experiments.statistics import t_interval
from dialgym.rewards.metrics import ReplyMetrics
from dialgym.tasks.daily_dialog.corpus import ActExamples

ID = "dialgym/Wordle-20-v0"
TRAINED = []


def train(run: Run) -> None:
    TRAINED.append((run.method, run.seed))
    kwargs = {"n_layer": 1, "n_head": 1, "n_embd": 8}
    BC("GPTPolicy", dialgym.sb3_vec_env(ID, 1), policy_kwargs=kwargs, seed=run.seed).save(run.model)


def test_a_recipe_trains_and_scores_what_is_missing(tmp_path):
    TRAINED.clear()
    runs = [Run(m, ID, s, tmp_path / f"{m}{s}", train) for s in (0, 1) for m in ("a", "b")]
    first = perform(runs, episodes=8)
    assert TRAINED == [("a", 0), ("b", 0), ("a", 1), ("b", 1)]
    assert [score.run for score in first] == runs
    (runs[2].folder / RESULT).unlink()
    again = perform(runs, episodes=8)
    assert len(TRAINED) == 4
    for one, other in zip(first, again, strict=True):
        assert one.returns.tolist() == other.returns.tolist()


def test_runs_of_another_recipe_or_with_other_settings_are_refused(tmp_path):
    run = Run("a", ID, 0, tmp_path, train)
    perform([run], episodes=4)
    with pytest.raises(ValueError, match=r"run with other settings \(episodes: 4 -> 5\)"):
        perform([run], episodes=5)
    with pytest.raises(ValueError, match=r"run with other settings \(method: 'a' -> 'b'\)"):
        perform([replace(run, method="b")], episodes=4)


def fail(run: Run) -> None:
    raise ValueError("out of luck")


def test_processes_give_what_one_does_and_what_builds_on_a_failure_says_so(tmp_path):
    runs = [Run(m, ID, 0, tmp_path / m, train) for m in ("a", "b")]
    apart = [replace(run, folder=tmp_path / f"{run.method}2") for run in runs]
    both = zip(perform(runs, 4), perform(apart, 4, workers=2), strict=True)
    assert all(one.returns.tolist() == other.returns.tolist() for one, other in both)
    broken = [replace(runs[0], folder=tmp_path / "c", train=fail), runs[1]]
    with pytest.raises(ValueError, match=r"1 jobs have failed .*out of luck"):
        perform(broken, 4, workers=1)
    after = replace(runs[1], folder=tmp_path / "d")
    with pytest.raises(ValueError, match=r"2 jobs have failed .*it needs a, .*which has failed"):
        perform([broken[0], after], 4, workers=1)


def test_lines_gather_seeds_and_keep_the_order():
    def score(method, seed, returns):
        run = Run(method, ID, seed, ppo.Path("x"), train)
        return Score(run, np.array(returns), np.array(returns) > -2)

    table = lines([score("b", 0, [-1.0, -3.0]), score("a", 0, [-2.0, -2.0]),
                   score("b", 1, [-1.0, -1.0])])  # fmt: skip
    assert [(line.method, line.means.tolist()) for line in table] == [
        ("b", [-2.0, -1.0]),
        ("a", [-2.0]),
    ]
    text = markdown(table[:1], {"more": lambda line: "x"})
    assert f"| {ID} | b | 2 | -1.500 [-7.853, 4.853] |" in text
    assert "| 75.0 % |" in text
    assert f"| {ID} | a | 1 | -2.000 | " in markdown(table[1:])  # no interval of one seed
    assert text.splitlines()[0].endswith("| more |")


def test_an_interval_of_students_t():
    low, high = t_interval(np.array([1.0, 2.0, 3.0, 4.0, 5.0]))
    half = 2.7764451 * np.sqrt(2.5 / 5)  # the 97.5 % quantile with 4 degrees of freedom
    assert (low, high) == pytest.approx((3 - half, 3 + half))
    assert t_interval(np.array([1.0])) == (-np.inf, np.inf)


def test_scores_by_both_normalisations(monkeypatch):
    def line(r):
        return Line("x", ID, np.full((2, 3), r), np.ones((2, 3), bool))

    assert line(-5.045).score == pytest.approx(0)
    assert line(-1.049).score == pytest.approx(100)
    scores = [ppo.their_lmrl_score(line(r)) for r in (-6.0, -4.12, -1.94, -2.63, -7.0)]
    assert scores == ["0.0", "50.0", "100.0", "84.2", "0.0"]
    monkeypatch.setattr(mixed, "mean_of_the_games", lambda: -3.0)
    scores = [mixed.own_lmrl_score(line(r)) for r in (-6.0, -4.5, -3.0, -1.049)]
    assert scores == ["0.0", "25.0", "50.0", "100.0"]


@pytest.mark.parametrize("recipe", [adversarial, mixed])
def test_offline_recipes_train_every_method_on_the_seeds_games(recipe, tmp_path, monkeypatch):
    few = replace(recipe.GAMES, episodes=12)
    tiny = {"n_timesteps": 2, "batch_size": 8, "policy_kwargs": {"n_layer": 1, "n_embd": 16}}
    methods = [replace(m, overrides={**m.overrides, **tiny}) for m in recipe.METHODS]
    monkeypatch.setattr(recipe, "GAMES", few)
    monkeypatch.setattr(recipe, "METHODS", methods)
    runs = recipe.runs(tmp_path, 2)
    table = lines(perform(runs, episodes=4))
    assert [line.method for line in table] == [method.name for method in recipe.METHODS]
    assert all(line.returns.shape == (2, 4) for line in table)
    assert {run.deterministic for run in runs if "BC" in run.method} == {False}
    first, second = (dialgym.load_dataset(tmp_path / f"games-seed{seed}") for seed in (0, 1))
    assert first["seed"].tolist() != second["seed"].tolist()
    trained = yaml.safe_load((runs[-1].folder / "config.yml").read_text())["hyperparameters"]
    assert trained["expectile"] == recipe.METHODS[-1].overrides["expectile"]
    plot(table, tmp_path / "table.png")
    assert (tmp_path / "table.png").stat().st_size > 5_000


def test_a_column_says_how_q_ranks_branches(tmp_path, monkeypatch):
    monkeypatch.setattr(adversarial, "PAIRS", replace(adversarial.PAIRS, episodes=4))
    kwargs = {"n_layer": 1, "n_head": 1, "n_embd": 8}
    env = dialgym.sb3_vec_env(adversarial.GAMES.env_id, 1, tokenizer="word")
    model = ILQL("GPTPolicy", env, policy_kwargs=kwargs, seed=0)
    for head in (*model.policy.q_heads, *model.policy.target_q_heads):
        with torch.no_grad():  # `slant`, with which the expert opens, is the word of greatest Q
            head.outer.bias[env.observation_space.tokenizer.encode("slant")[0]] = 1.0
    model.save(tmp_path / "model.zip")
    nothing = np.zeros((1, 2))
    run = Run("ILQL", adversarial.GAMES.env_id, 0, tmp_path, train)
    line = Line(run.method, run.env_id, nothing, nothing, (run,))
    cells = [column(line) for column in adversarial.COLUMNS.values()]
    assert cells == ["0.0 %", "100.0 %"]  # above other openings, and repeated rather than left
    clone = replace(line, method="30 % BC")
    assert [column(clone) for column in adversarial.COLUMNS.values()] == ["", ""]


def test_the_recipe_plans_every_method_with_every_seed(tmp_path):
    runs = ppo.runs(tmp_path, 3)
    assert len({run.folder for run in runs}) == len(runs) == 9
    for before, run in enumerate(runs):
        if run.settings and "init_from" in run.settings:
            assert run.settings["init_from"] in [other.model for other in runs[:before]]


def test_everyday_talk_is_learned_from_people_and_then_by_reward(tmp_path, monkeypatch):
    for extra in ("nltk", "sklearn", "tokenizers", "sacrebleu"):
        pytest.importorskip(extra)
    small = {"preset": "nano", "n_layer": 1, "n_head": 1, "n_embd": 8}
    monkeypatch.setattr(language, "VOCABULARY", 130)
    monkeypatch.setattr(language, "EXAMPLES", 32)
    monkeypatch.setattr(language, "EPISODES", 6)
    supervised = {"n_timesteps": 2, "batch_size": 8, "both_parties": True, "policy_kwargs": small}
    reinforced = {"n_timesteps": 80, "n_envs": 4, "n_steps": 10, "policy_kwargs": small}
    monkeypatch.setattr(language, "SUPERVISED", supervised)
    monkeypatch.setattr(language, "REINFORCED", reinforced)
    planned = language.runs(tmp_path, 1)
    assert [run.method for run in planned] == ["supervised", "PPO"]
    assert "split" not in planned[0].settings  # of training
    table = lines(perform(planned, episodes=4))
    shown = markdown(table, language.COLUMNS, language.BASE)
    assert shown.splitlines()[0].startswith("| method | seeds | mean return | ROUGE-1 |")
    assert len(shown.splitlines()) == 4
    own = [json.loads((run.folder / METRICS).read_text("utf-8"))["meteor"] for run in planned]
    assert f"METEOR {own[1] - own[0]:.3f}, " in language.gains(table)
    begun, ended = (agents.load(run.model).policy.state_dict() for run in planned)
    assert any(not torch.equal(begun[name], ended[name]) for name in begun)
    kept = json.loads((planned[1].folder / METRICS).read_text("utf-8"))
    said = replies(str(planned[1].model), language.ID, planned[1].env_kwargs, 6, SEED)
    assert kept == {"episodes": 6, **ReplyMetrics(examples=ActExamples(None, 1)).values(said)}


def test_what_was_replied_is_compared_with_what_the_person_said_there():
    """A policy that says what people said is found to have said just that."""
    pytest.importorskip("tokenizers")
    said = replies("reference", language.ID, {"split": "test"}, 5, 0)
    assert [reply.text for reply in said] == [reply.references[0] for reply in said]
    assert len({reply.context for reply in said}) == 5
