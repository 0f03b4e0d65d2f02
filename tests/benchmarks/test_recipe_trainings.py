"""Every method of every recipe is trained and scored, small and brief, and hooks measure it."""

import json
from collections.abc import Mapping
from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest
import torch
import yaml

pytest.importorskip("stable_baselines3")
import agents
import dialgym
from agents.registry import find
from benchmarks.recipes import corpus, grpo, language, multiwoz, pair
from benchmarks.recipes.job import RecipeJob, jobs_of, perform
from benchmarks.recipes.recipe import Method, read_recipe
from benchmarks.recipes.tables import Line, markdown, report
from dialgym.rewards.metrics import ReplyMetrics
from dialgym.tasks.daily_dialog.corpus import ActExamples
from dialgym.tasks.twenty_questions.policies import Truthful
from tests.support.city_logs import convlab2

TINY = {"n_layer": 1, "n_head": 1, "n_embd": 8}
NARROW = {"net_arch": [8]}


def over(values, more):
    """Values with others over them, in inner mappings too."""
    for key, value in more.items():
        inner = isinstance(value, Mapping) and isinstance(values.get(key), Mapping)
        values = {**values, key: over(values[key], value) if inner else value}
    return values


def brief(method: Method, hyperparameters, fields) -> Method:
    """A method of few steps and a small network."""
    if method.algorithm is None:
        return method
    row, acts = find(method.algorithm), "-act-" in method.environment
    small = {"n_timesteps": 64 if row.plays else 2}
    if method.algorithm not in ("feudal-dqn", "feudal-acer", "feudal-gain", "committee"):
        small["policy_kwargs"] = NARROW if acts else TINY
    small |= {"clone_steps": 1} if method.algorithm == "chai" else {}
    small |= {} if row.plays else {"batch_size": 4}
    own = {key: value for key, value in hyperparameters.items() if row.plays}
    return replace(
        method,
        hyperparameters=over(method.hyperparameters, {**small, **own}),
        fields={**method.fields, **{k: v for k, v in fields.items() if k in method.fields}},
    )


def small(name, folder, episodes=4, stored=6, given=None, **more):
    """A recipe whose trainings take a moment."""
    recipe = read_recipe(name, folder, given)
    hyperparameters, fields = more.pop("hyperparameters", {}), more.pop("fields", {})
    return replace(
        recipe,
        episodes=episodes,
        data={key: replace(one, episodes=stored) for key, one in recipe.data.items()},
        methods={n: brief(m, hyperparameters, fields) for n, m in recipe.methods.items()},
        others={key: replace(one, episodes=2) for key, one in recipe.others.items()},
        options=over(recipe.options, more),
    )


def quick(name, *wanted):
    """The methods of a recipe, of which those that are not wanted are slow."""
    recipe = read_recipe(name, None)
    marks = {True: (), False: pytest.mark.slow}
    return [
        pytest.param(n, marks=marks[n in wanted], id=n)
        for n, method in recipe.methods.items()
        if not method.hidden
    ]


def row_of(text, method):
    [row] = [line for line in text.splitlines() if f"| {method} |" in line]
    return row


# Stored games of a seed


@pytest.mark.parametrize("name", ["adversarial", "mixed"])
def test_offline_recipes_train_every_method_on_the_seeds_games(name, tmp_path):
    recipe = small(name, tmp_path, stored=12)
    jobs = jobs_of(recipe, tmp_path, 2)
    table = perform(jobs)
    assert [line.method for line in table] == list(recipe.methods)
    assert all(line.returns.shape == (2, 4) for line in table)
    assert {job.method.actions for job in jobs if "BC" in job.method.name} == {"drawn"}
    first, second = (dialgym.load_dataset(tmp_path / f"seed{seed}/data-games") for seed in (0, 1))
    assert first["seed"].tolist() != second["seed"].tolist()
    trained = yaml.safe_load((jobs[-1].folder / "config.yml").read_text())["hyperparameters"]
    assert trained["expectile"] == 0.9
    assert report(recipe, table).count("\n| dialgym/") == len(table)


def test_a_column_says_how_q_ranks_branches(tmp_path):
    recipe = small("adversarial", tmp_path, stored=4)
    job = RecipeJob(recipe, recipe.methods["ILQL"], 0, tmp_path)
    env = dialgym.sb3_vec_env(job.method.environment, 1, tokenizer="word")
    model = agents.ILQL("GPTPolicy", env, policy_kwargs=TINY, seed=0)
    for head in (*model.policy.q_heads, *model.policy.target_q_heads):
        with torch.no_grad():  # `slant`, with which the expert opens, is the word of greatest Q
            head.outer.bias[env.observation_space.tokenizer.encode("slant")[0]] = 1.0
    model.save(job.model)
    text = markdown(perform([job]), recipe.columns)
    assert text.endswith("| 0.0 % | 100.0 % |\n")  # above other openings, and repeated
    nothing = Line("BC", job.method.environment, np.zeros((1, 2)), np.zeros((1, 2)))
    assert markdown([nothing], recipe.columns).endswith("|  |  |\n")


@pytest.mark.parametrize("method", quick("ppo", "BC of random-mixture"))
def test_ppo_begins_from_a_clone(method, tmp_path):
    small_rollouts = {"n_envs": 2, "n_steps": 16, "batch_size": 16}
    recipe = small("ppo", tmp_path, hyperparameters=small_rollouts)
    assert row_of(report(recipe, perform(jobs_of(recipe, tmp_path, 1, [method]))), method)


# Penalties of yes and no


def test_learners_of_a_penalty_are_trained_and_scored_under_it(tmp_path):
    recipe = small("yesno", tmp_path, 6)
    wanted = ["hard: BC", "hard: ILQL", "hard: ILQL, beta 16"]
    jobs = jobs_of(recipe, tmp_path, 2, wanted)
    shown = report(recipe, perform(jobs)).splitlines()
    assert shown[0] == (
        "| method | seeds | return | found | percentile rank | questions | just yes or no |"
    )
    assert shown[2].startswith("| hard: BC | 2 | -")
    games = dialgym.load_dataset(tmp_path / "seed1" / "data-hard-games")
    assert len(games) == 6 * 10
    for turns in games["turns"]:  # the price of a question, unless it finds, and the penalty
        for said, heard in zip(turns[1::2], turns[2::2]):
            assert said["reward"] in ((-2, -3) if heard["text"] in ("yes", "no") else (0, -1))
    assert jobs[0].method.settings == {"tokenizer": "word", "penalty": "hard"}
    betas = [agents.load(job.model).policy.decoding.beta for job in jobs[1:3]]
    assert betas == [8.0, 16.0]


def test_nobody_asks_well_in_the_data_without_an_expert(tmp_path):
    jobs = jobs_of(small("yesno", tmp_path), tmp_path, 1, ["hard, no expert: ILQL*"])
    table = perform(jobs)
    assert [line.method for line in table] == [job.method.name for job in jobs]
    games = dialgym.load_dataset(tmp_path / "seed0" / "data-hard-no-expert-games")
    assert set(games["kind"]) == {"human-like", "random"}
    assert agents.load(jobs[1].model).policy.decoding.beta == 64.0


def test_scripted_questioners_are_scored_beside_them(tmp_path):
    recipe = small("yesno", tmp_path, 40)
    jobs = jobs_of(recipe, tmp_path, 1, ["hard: human-like", "*: greedy"])
    table = {line.method: line for line in perform(jobs)}
    assert len(table) == 4
    human, greedy = table["hard: human-like"], table["hard: greedy"]
    assert human.figure("yes or no") > 0.5 > 0.1 > greedy.figure("yes or no")
    assert greedy.means > human.means + 2
    turns, said = human.metrics["turns"], human.metrics["yes/no answers"] * human.metrics["turns"]
    assert np.allclose(human.returns, -(turns - human.solved) - 2 * said)  # the rules, as measured
    assert human.figure("yes or no") == pytest.approx(said.mean())
    again = perform(jobs)  # from what was kept
    assert report(recipe, again) == report(recipe, list(table.values()))


@pytest.mark.slow
@pytest.mark.parametrize(
    "method", [n for n in read_recipe("yesno", None).methods if n.startswith("conservative")]
)
def test_each_way_of_asking_runs(method, tmp_path):
    recipe = small("yesno", tmp_path, 3)
    assert row_of(report(recipe, perform(jobs_of(recipe, tmp_path, 1, [method]))), method)


# Credit


@pytest.mark.parametrize("method", quick("credit", "GRPO, situations"))
def test_credit_of_each_method_is_judged(method, tmp_path):
    few = {"n_envs": 16, "n_timesteps": 600}
    recipe = small(
        "credit", tmp_path, stored=20, hyperparameters=few, dialogues=16, continuations=2
    )
    table = perform(jobs_of(recipe, tmp_path, 1, [method]))
    assert table[0].figure("turns") > 0
    assert -1 <= table[0].measured["correlation"] <= 1
    assert row_of(report(recipe, table), method).startswith(f"| {method} | 1 |")


# Options of GRPO

OPTIONS = {"n_envs": 8, "group_size": 4, "n_steps": 20, "batch_size": 64, "n_timesteps": 600}


@pytest.mark.parametrize("method", quick("grpo", "turns, belief gain, one group"))
def test_each_option_is_scored_on_its_way(method, tmp_path):
    recipe = small("grpo", tmp_path, 8, 10, hyperparameters=OPTIONS, fields={"save_freq": 200})
    [line] = perform(jobs_of(recipe, tmp_path, 1, [method]))
    steps, values = grpo.returns(line)
    assert steps.tolist() == [0, 200, 400, 600]
    assert ((values >= -8) & (values <= 0)).all()  # no bit of belief is among them
    clone = line.jobs[0].of("clone")
    assert clone.model == tmp_path / "seed0" / "clone" / "model.zip"
    assert values[0, 0] == grpo.mean_return(line.jobs[0], clone.model)
    grpo.plot_curves([line], tmp_path / "curves.png")
    assert (tmp_path / "curves.png").stat().st_size > 10_000


@pytest.fixture
def line(tmp_path):
    """Of two seeds, -5 -4 -3 and -3 -4 -2 after 0, 20,000 and 40,000 of 60,000 tokens."""
    recipe = small("grpo", tmp_path, hyperparameters={"n_timesteps": 60_000})
    jobs = tuple(jobs_of(recipe, tmp_path, 2, ["episodes"]))
    points = {"after 0": [-5, -3], "after 20000": [-4, -4], "after 40000": [-3, -2]}
    measured = {name: np.array(values, float) for name, values in points.items()}
    ends = np.array([[-3.0, -2.0], [-3.0, -2.0]])
    return Line("episodes", jobs[0].method.environment, ends, ends > -9, jobs, {}, measured)


def test_columns_are_means_over_seeds_at_their_time(line):
    row = row_of(markdown([line], line.jobs[0].recipe.columns), "episodes").split(" | ")
    assert row[2] == "-4.00 [-4.00, -4.00]"
    assert row[3].startswith("-2.50 [")
    assert row[5].startswith("-2.50 [")
    assert row[6] == "40 |"


@pytest.mark.parametrize(("goal", "shown"), [(-4.5, "0"), (-3.0, "40"), (-1.0, "-")])
def test_the_goal_is_reached_when_no_later_mean_is_below(line, monkeypatch, goal, shown):
    monkeypatch.setattr(grpo, "GOAL", goal)
    assert grpo.until_goal(line) == shown


# Two learners


def test_each_pair_is_judged(tmp_path):
    options = {"tokens": 300, "rows": 8, "policy_kwargs": {"n_layer": 1, "n_head": 2, "n_embd": 16}}
    recipe = small("pair", tmp_path, 8, 20, **options)
    for name in ("questioner", "answerer"):
        recipe.methods[name].hyperparameters["policy_kwargs"].update(options["policy_kwargs"])
    jobs = jobs_of(recipe, tmp_path, 1, ["BC pair", "pair near BC"])
    table = perform(jobs)
    clones, learned = (line.measured for line in table)
    assert clones["kl system"] == pytest.approx(0, abs=1e-5)
    assert clones["kl user"] == pytest.approx(0, abs=1e-5)
    assert learned["kl user"] != 0
    for each in (clones, learned):
        assert -6 <= each["own"] <= 0
        assert 0 <= each["true"] <= 1
    text = report(recipe, table)
    assert "| BC pair | 1 | -" in text
    assert "| pair near BC | 1 | -" in text
    assert report(recipe, perform(jobs)) == text  # nothing is done twice


def test_answers_of_the_truthful_one_are_true():
    settings = read_recipe("pair", None).methods["pair"].settings
    game = agents.SelfPlay("dialgym/TwentyQuestions-8-v0", 4, seed=0, **settings)
    task, rng = game.dialogues.games[0].task, np.random.default_rng(0)
    game.dialogues.begin(range(4))
    for one, swap in zip(game.dialogues.games, (False, False, False, True)):
        state = one.dialogue_state
        for _ in range(5):
            task.speak(state, task.said[0], rng)
            answer = Truthful().reply(task, state, rng)
            task.speak(state, "I can't tell" if swap else answer, rng)
    assert pair.true_answers(game) == 0.75


# People's dialogues


def test_everyday_talk_is_learned_from_people_and_then_by_reward(tmp_path, monkeypatch):
    for extra in ("nltk", "sklearn", "tokenizers", "sacrebleu"):
        pytest.importorskip(extra)
    monkeypatch.setattr(language, "VOCABULARY", 130)
    short = {"n_timesteps": 80, "n_envs": 4, "n_steps": 10}
    recipe = small("language", tmp_path, 4, 32, hyperparameters=short, replies=6)
    jobs = jobs_of(recipe, tmp_path, 1)
    assert "split" not in jobs[0].method.settings  # of training
    table = perform(jobs)
    text = report(recipe, table)
    assert text.splitlines()[0].startswith("| method | seeds | mean return | ROUGE-1 |")
    own = [line.measured["meteor"][0] for line in table]
    assert f"METEOR {own[1] - own[0]:.3f}, " in text
    begun, ended = (agents.load(job.model).policy.state_dict() for job in jobs)
    assert any(not torch.equal(begun[name], ended[name]) for name in begun)
    settings = {**jobs[1].method.settings, "split": "test"}
    said = language.replies(str(jobs[1].model), jobs[1].method.environment, settings, 6, 8_000)
    expected = ReplyMetrics(examples=ActExamples(None, 1)).values(said)
    assert {name: of[0] for name, of in table[1].measured.items()} == pytest.approx(expected)


def test_what_was_replied_is_compared_with_what_the_person_said_there():
    """A policy that says what people said is found to have said just that."""
    pytest.importorskip("tokenizers")
    said = language.replies("reference", "dialgym/DailyDialog-v0", {"split": "test"}, 5, 0)
    assert [reply.text for reply in said] == [reply.references[0] for reply in said]
    assert len({reply.context for reply in said}) == 5


class Always:
    """Chooses the first two of four acts."""

    def predict(self, observations, deterministic, action_masks):
        assert deterministic
        assert action_masks.tolist() == [[True, True, True, True], [True, False, True, True]]
        return np.array([[1, 1, 0, 0]] * 2), None


def test_agreement_counts_acts_over_all_turns():
    wanted = np.array([[1, 0, 0, 1], [0, 0, 1, 0]])
    masks = np.array([[True, True, True, False], [True, False, True, True]])
    decisions = SimpleNamespace(actions=wanted, action_masks=masks, observations=np.zeros((2, 3)))
    found = corpus.agreement(Always(), SimpleNamespace(decisions=decisions))
    assert found == pytest.approx({"precision": 1 / 4, "recall": 1 / 3, "f1": 2 / 7})


def test_a_corpus_is_imitated_and_its_acts_predicted(tmp_path):
    data = tmp_path / "data"
    data.mkdir()
    for split in ("val", "test"):
        (data / f"{split}.json").write_text(json.dumps(convlab2()))
    recipe = small("corpus", tmp_path, given=str(data))
    table = perform(jobs_of(recipe, tmp_path / "runs", 1, ["BC"]))
    assert len(markdown(table, recipe.columns).splitlines()) == 3
    assert table[0].measured.keys() == {"precision", "recall", "f1"}


# The city, and two domains


@pytest.mark.slow
def test_every_method_is_trained_and_scored_and_meets_every_user(tmp_path):
    recipe = small("multiwoz", tmp_path, hyperparameters={})
    jobs = jobs_of(recipe, tmp_path, 1)
    table = perform(jobs)
    shown = report(recipe, table)
    assert shown.count("\n| MLE, ") == 4
    crossed = multiwoz.users_table(table).splitlines()
    assert crossed[0] == f"| system | {' | '.join(multiwoz.USERS)} |"
    assert crossed[2].startswith("| rule system | ")
    assert len(crossed) == 2 + 1 + 9
    assert np.isfinite([line.figure(user) for line in table for user in multiwoz.USERS]).all()
    multiwoz.plot_users(table, tmp_path / "users.png")
    assert (tmp_path / "users.png").read_bytes()[:4] == b"\x89PNG"
    kinds = {type(agents.load(line.jobs[0].model)).__name__ for line in table[1:]}
    assert kinds == {"MLE", "MaskablePPO", "PG", "GDPL", "DQN", "MADPL"}


@pytest.mark.slow
def test_gpts_are_cloned_and_learn_in_words(tmp_path):
    recipe = small("multiwoz_words", tmp_path, hyperparameters={"n_envs": 2, "n_steps": 8})
    assert "PPO less the clone of the same seed" in report(
        recipe, perform(jobs_of(recipe, tmp_path, 2))
    )


@pytest.mark.slow
def test_offline_learners_see_what_the_logging_system_played(tmp_path):
    recipe = small("multiwoz_offline", tmp_path)
    table = perform(jobs_of(recipe, tmp_path, 1))
    assert [line.method for line in table] == list(recipe.methods)
    logged = dialgym.load_dataset(tmp_path / "seed0" / "data-logged")
    assert len(logged) == 6
    assert logged[0]["turns"]


@pytest.mark.slow
@pytest.mark.parametrize("method", ["FeudalDQN", "FeudalACER", "FeudalGain", "Committee"])
def test_each_method_is_carried_over(method, tmp_path):
    recipe = small("transfer", tmp_path, fields={"dialogues": 6})
    jobs = jobs_of(recipe, tmp_path, 1, [f"{method}, *"])
    domains = [job.method.environment.removeprefix("dialgym/")[:3] for job in jobs]
    assert domains == ["Cam", "SFR", "SFR", "SFR"]
    text = report(recipe, perform(jobs))
    assert f"| {method}, from the first domain, 500 dialogues | 1 |" in text
    assert text.count(" % |") == 4
