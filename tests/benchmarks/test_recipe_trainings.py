"""Every method of every recipe is trained and scored, small and brief, and hooks measure it."""

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch
import yaml

pytest.importorskip("stable_baselines3")
import agents
import dialgym
from agents.experiments.job import finished
from agents.registry import find
from benchmarks.recipes import pair
from benchmarks.recipes.job import RecipeJob, jobs_of, perform
from benchmarks.recipes.recipe import Method, read_recipe
from benchmarks.recipes.tables import Line, lines, markdown, report
from dialgym.tasks.twenty_questions.policies import Truthful
from tests.support.chat_templates import tokenizer_with

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


def small(name, episodes=4, stored=6, **more):
    """A recipe whose trainings take a moment."""
    recipe = read_recipe(name)
    hyperparameters, fields = more.pop("hyperparameters", {}), more.pop("fields", {})
    return replace(
        recipe,
        episodes=episodes,
        data={key: replace(one, episodes=stored) for key, one in recipe.data.items()},
        methods={n: brief(m, hyperparameters, fields) for n, m in recipe.methods.items()},
        options=over(recipe.options, more),
    )


def quick(name, *wanted):
    """The methods of a recipe, of which those that are not wanted are slow."""
    recipe = read_recipe(name)
    marks = {True: (), False: pytest.mark.slow}
    return [
        pytest.param(n, marks=marks[n in wanted], id=n)
        for n, method in recipe.methods.items()
        if not method.hidden
    ]


def jobs_in(folder, recipe, seeds, only=None):
    """Jobs whose runs and rows lie in a folder."""
    return jobs_of(recipe, folder, folder / "rows", seeds, only)


def row_of(text, method):
    [row] = [line for line in text.splitlines() if f"| {method} |" in line]
    return row


# Stored games of a seed


def test_offline_recipes_train_every_method_on_the_seeds_games(tmp_path):
    recipe = small("adversarial", stored=12)
    jobs = jobs_in(tmp_path, recipe, 1)
    table = lines(perform([*jobs, *jobs_in(tmp_path, recipe, [1], ["BC"])]))
    assert [line.method for line in table] == list(recipe.methods)
    assert {line.method: line.returns.shape for line in table} == {
        name: (1 + (name == "BC"), 4) for name in recipe.methods
    }
    drawn = {job.method.name for job in jobs if job.method.actions == "drawn"}
    assert drawn == {"BC", "30 % BC"}
    first, second = (dialgym.load_dataset(tmp_path / f"seed{seed}/data-games") for seed in (0, 1))
    assert first["seed"].tolist() != second["seed"].tolist()
    trained = yaml.safe_load((jobs[-1].folder / "config.yml").read_text())["hyperparameters"]
    assert trained["expectile"] == 0.9
    assert report(recipe, table).count("\n| dialgym/") == len(table)


def test_a_column_says_how_q_ranks_branches(tmp_path):
    recipe = small("adversarial", stored=4)
    job = RecipeJob(recipe, recipe.methods["ILQL"], 0, tmp_path, tmp_path / "rows")
    env = dialgym.sb3_vec_env(job.method.environment, 1, tokenizer="word")
    model = agents.ILQL("GPTPolicy", env, policy_kwargs=TINY, seed=0)
    for head in (*model.policy.q_heads, *model.policy.target_q_heads):
        with torch.no_grad():  # `slant`, with which the expert opens, is the word of greatest Q
            head.outer.bias[env.observation_space.tokenizer.encode("slant")[0]] = 1.0
    model.save(job.model)
    text = markdown(lines(perform([job])), recipe.columns)
    assert text.endswith("| 0.0 % | 100.0 % |\n")  # above other openings, and repeated
    nothing = Line("BC", job.method.environment, np.zeros((1, 2)), np.zeros((1, 2)))
    assert markdown([nothing], recipe.columns).endswith("|  |  |\n")


# Penalties of yes and no


@pytest.mark.slow
def test_learners_of_a_penalty_are_trained_and_scored_under_it(tmp_path):
    recipe = small("yesno", 6)
    wanted = ["hard: BC", "hard: 10 % BC, likeliest", "hard: ILQL"]
    jobs = jobs_in(tmp_path, recipe, 2, wanted)
    shown = report(recipe, lines(perform(jobs))).splitlines()
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
    assert agents.load(jobs[2].model).policy.decoding.beta == 8.0
    assert jobs[1].model.read_bytes() == jobs[1].of("hard: 10 % BC").model.read_bytes()
    assert [job.method.actions for job in jobs[:3]] == ["drawn", "greedy", "greedy"]


def test_nobody_asks_well_in_the_data_without_an_expert(tmp_path):
    jobs = jobs_in(tmp_path, small("yesno"), 1, ["hard, no expert: ILQL*"])
    table = lines(perform(jobs))
    assert [line.method for line in table] == [job.method.name for job in jobs]
    games = dialgym.load_dataset(tmp_path / "seed0" / "data-hard-no-expert-games")
    assert set(games["kind"]) == {"human-like", "random"}
    assert agents.load(jobs[1].model).policy.decoding.beta == 64.0


def test_scripted_questioners_are_scored_beside_them(tmp_path):
    recipe = small("yesno", 40)
    jobs = jobs_in(tmp_path, recipe, 1, ["hard: human-like", "*: greedy"])
    table = {line.method: line for line in lines(perform(jobs))}
    assert len(table) == 2
    human, greedy = table["hard: human-like"], table["hard: greedy"]
    assert human.figure("yes or no") > 0.5 > 0.1 > greedy.figure("yes or no")
    assert greedy.means > human.means + 2
    turns, said = human.metrics["turns"], human.metrics["yes/no answers"] * human.metrics["turns"]
    assert np.allclose(human.returns, -(turns - human.solved) - 2 * said)  # the rules, as measured
    assert human.figure("yes or no") == pytest.approx(said.mean())
    again = lines(perform(jobs))  # from what was kept
    assert report(recipe, again) == report(recipe, list(table.values()))


# Credit


def credited(name, method, folder, n_envs):
    """The line of a method that was judged after a few updates, and its row of the table."""
    few = {"n_envs": n_envs, "n_timesteps": 600}
    recipe = small(name, stored=20, hyperparameters=few, dialogues=n_envs, continuations=2)
    (line,) = lines(perform(jobs_in(folder, recipe, 1, [method])))
    return line, row_of(report(recipe, [line]), method)


@pytest.mark.parametrize("method", quick("credit", "six words: anchor"))
def test_credit_of_each_method_is_judged(method, tmp_path, monkeypatch):
    monkeypatch.chdir(Path(__file__).parents[2])  # of the table of numbers
    line, row = credited("credit", method, tmp_path, 16)
    assert line.figure("turns") > 0
    assert ("correlation" in line.measured) == (line.figure("spread") > 0)
    assert -1 <= line.measured.get("correlation", 0.0) <= 1
    assert -1 <= line.measured["rank 1"] <= 1
    assert line.measured["best"] > line.figure("return")
    assert row.startswith(f"| {method} | 1 |")


@pytest.mark.slow
@pytest.mark.parametrize("method", quick("credit_scaling"))
def test_credit_is_judged_by_length_size_and_noise(method, tmp_path):
    line, _ = credited("credit_scaling", method, tmp_path, 64)
    assert line.figure("turns") > 0
    assert ("best" in line.measured) == ("wrong" not in method)


# Learners of turns


@pytest.mark.slow
@pytest.mark.parametrize("method", quick("turn_learners"))
def test_each_learner_of_turns_is_scored_both_ways(method, tmp_path):
    few = {"n_envs": 16, "n_steps": 64, "batch_size": 64}
    recipe = small("turn_learners", 8, 40, hyperparameters=few)
    (line,) = lines(perform(jobs_in(tmp_path, recipe, 1, [method])))
    assert ("greedy" in line.measured) == (recipe.methods[method].policy is None)


# Two learners


@pytest.mark.slow
def test_each_pair_is_judged(tmp_path):
    options = {"tokens": 300, "rows": 8, "policy_kwargs": {"n_layer": 1, "n_head": 2, "n_embd": 16}}
    recipe = small("pair", 8, 20, **options)
    for name in ("questioner", "answerer"):
        recipe.methods[name].hyperparameters["policy_kwargs"].update(options["policy_kwargs"])
    jobs = jobs_in(tmp_path, recipe, 1, ["BC pair", "pair near BC"])
    table = lines(perform(jobs))
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
    assert report(recipe, lines(perform(jobs))) == text  # nothing is done twice


def test_answers_of_the_truthful_one_are_true():
    settings = read_recipe("pair").methods["pair"].settings
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


# Two domains


@pytest.mark.slow
@pytest.mark.parametrize("method", ["FeudalDQN", "FeudalACER", "FeudalGain", "Committee"])
def test_each_method_is_carried_over(method, tmp_path):
    recipe = small("transfer", fields={"dialogues": 6})
    jobs = jobs_in(tmp_path, recipe, 1, [f"{method}, *"])
    domains = [job.method.environment.removeprefix("dialgym/")[:3] for job in jobs]
    assert domains == ["Cam", "SFR", "SFR", "SFR"]
    text = report(recipe, lines(perform(jobs)))
    assert f"| {method}, from the first domain, 500 dialogues | 1 |" in text
    assert text.count(" % |") == 4


# A language model of transformers


@pytest.fixture
def model(tmp_path, monkeypatch):
    """The folder that the recipe names, of a random Llama of one layer that spells letters."""
    transformers = pytest.importorskip("transformers")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "")
    tokenizer = tokenizer_with("chatml", merges=True)
    shape = {"hidden_size": 16, "intermediate_size": 16, "num_hidden_layers": 1}
    heads = {"num_attention_heads": 2, "num_key_value_heads": 1, "tie_word_embeddings": True}
    ends = {"bos_token_id": None, "eos_token_id": tokenizer.eos_token_id}
    config = transformers.LlamaConfig(vocab_size=len(tokenizer), **shape, **heads, **ends)
    transformers.LlamaForCausalLM(config).save_pretrained("runs/smollm2")
    tokenizer.save_pretrained("runs/smollm2")


def of_moments(method):
    """A method of few steps, whose network stays what it is."""
    own = {"n_timesteps": 64, "n_envs": 8, "batch_size": 64, "compute": {"autocast": None}}
    if method.algorithm == "bc":
        own = {"n_timesteps": 2, "batch_size": 2, "compute": {"autocast": None}}
    hyperparameters = {**method.hyperparameters, **(own if method.algorithm else {})}
    return replace(method, hyperparameters=hyperparameters)


@pytest.mark.parametrize("method", quick("smollm2", "BC, LoRA"), ids=str)
def test_a_language_model_learns_within_the_constraint(method, model, tmp_path):
    recipe = small("smollm2", stored=6)
    whole = read_recipe("smollm2").methods
    recipe = replace(recipe, methods={name: of_moments(one) for name, one in whole.items()})
    jobs = jobs_in(tmp_path, recipe, 1, [method])
    [line] = lines(perform(jobs))
    said = line.metrics["understood"].mean()
    if whole[method].policy is None:
        assert said == 1  # whatever it knows, it says what the constraint allows
        policy = agents.load(jobs[0].model, device="cpu").policy
        adapted = any(".lora_A." in name for name, _ in policy.named_parameters())
        assert adapted == method.endswith("LoRA")
    if whole[method].start:
        [before] = [row["statistics"]["return"] for row in map(finished, jobs[0].needs)]
        assert line.measured["gain"] == pytest.approx(line.means - before, abs=1e-5)
    assert row_of(report(recipe, [line]), method).startswith(f"| {method} | 1 | -")


# Negotiators and clones of people

PEOPLE = (
    "<input> 1 4 4 1 1 2 </input> <dialogue> YOU: i would like 4 hats and you can have the rest . "
    "<eos> THEM: hm <eos> YOU: i need hats <eos> THEM: deal <eos> YOU: <selection> </dialogue> "
    "<output> item0=0 item1=4 item2=0 item0=1 item1=0 item2=1 </output> "
    "<partner_input> 1 0 4 2 1 2 </partner_input>"
)


@pytest.fixture
def people(tmp_path, monkeypatch):
    """Three dialogues of people in each split."""
    for split in ("train", "test"):
        (tmp_path / f"{split}.txt").write_text("\n".join(
            PEOPLE.replace("i need hats", words) for words in ("i need hats", "hello", "no")
        ))  # fmt: skip
    monkeypatch.setenv("DIALGYM_BARGAIN", str(tmp_path))


def test_negotiators_play_a_clone_of_people(people, tmp_path):
    recipe = small("bargain_people", 6, 3, hyperparameters={"n_envs": 4, "n_steps": 8})
    for name in ("rollouts", "RL with rollouts"):
        few = {**recipe.methods[name].hyperparameters, "candidates": 3, "rollouts": 2}
        recipe.methods[name] = replace(recipe.methods[name], hyperparameters=few)
    jobs = jobs_in(tmp_path, recipe, 1)
    rows = perform(jobs)
    shown = report(recipe, lines(rows)).splitlines()
    assert [line.split(" | ")[0] for line in shown[2:6]] == [
        "| likelihood", "| RL", "| rollouts", "| RL with rollouts"
    ]  # fmt: skip
    for job, row in rows.items():
        own, deals = row["episodes"]["returns"], row["episodes"]["solved"]
        agreed = [points for points, deal in zip(own, deals) if deal]
        assert row["measured"]["where agreed"] == pytest.approx(np.mean(agreed or [0]))
        assert row["hashes"]["rules"] == next(iter(rows.values()))["hashes"]["rules"]
        assert {*row["hashes"].get("models", {})} == (
            {*job.method.needs} if job.method.policy else set()
        )
    partner, learned = jobs[0].of("partner"), jobs[1]
    assert agents.load(partner.model).trained_in["settings"]["learner"] == "user"
    assert agents.load(learned.model).trained_in["settings"] == {
        "contexts": "train", "simulator": str(partner.model)
    }  # fmt: skip


@pytest.mark.slow
def test_those_who_learn_with_themselves_meet_others(people, tmp_path, monkeypatch):
    monkeypatch.setattr("agents.training.prepare.STOCK_INTERVAL", 1)
    recipe = small("bargain_self_play", 4, 3, hyperparameters={"n_envs": 4})
    wanted = ["clones of people", "from clones, half with earlier selves", "with a clone"]
    jobs = jobs_in(tmp_path, recipe, 1, wanted)
    clones, pair, alone = (row["measured"] for row in perform(jobs).values())
    partners = {"a clone", "another clone", "conceding", "fair", "stubborn", "tit-for-tat"}
    for found in (clones, pair, alone):
        assert partners <= {*found}
        scripted = [found[name] for name in recipe.options["scripted"]]
        assert found["scripted"] == pytest.approx(np.mean(scripted))
    assert ("itself" in clones, "itself" in pair, "itself" in alone) == (False, True, False)
    assert "first" not in clones
    assert 0 <= pair["first"] <= 1
    learned = agents.load(jobs[1].model)
    assert len(learned.past.kept) == 8
    assert jobs[1].of("partner").model != jobs[1].of("partner+1").model
