"""Saved models of every algorithm come back as what they were."""

import json
import re
import warnings
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
import torch
from stable_baselines3 import PPO
from stable_baselines3.common.vec_env import VecNormalize

import dialgym
from dialgym import trust
from dialgym.datasets import Dataset
from dialgym.experiments import IncompatiblePolicyError
from dialgym.io import hub
from tests.support.by_day import by_day
from tests.support.commands import fail, succeed
from tests.support.pretend_hub import COMMIT
from tests.support.resuming import assert_comes_back
from tests.support.slot_domains import write_bakeries

sb3 = pytest.importorskip("stable_baselines3")
contrib = pytest.importorskip("sb3_contrib")
import agents  # noqa: E402

ID = "dialgym/Wordle-20-v0"
ACTS = "dialgym/SlotFilling-act-v0"

ALGORITHMS = [
    (sb3.PPO, "MlpPolicy", {"n_steps": 8}),
    (sb3.A2C, "MlpPolicy", {}),
    (sb3.DQN, "MlpPolicy", {"buffer_size": 100}),
    (contrib.MaskablePPO, "MlpPolicy", {"n_steps": 8}),
    (contrib.RecurrentPPO, "MlpLstmPolicy", {"n_steps": 8}),
    (contrib.TRPO, "MlpPolicy", {"n_steps": 8}),
    (contrib.QRDQN, "MlpPolicy", {"buffer_size": 100}),
    (sb3.PPO, agents.GPTPolicy, {"n_steps": 8}),
    (contrib.MaskablePPO, agents.MaskableGPTPolicy, {"n_steps": 8}),
]


@pytest.mark.parametrize(("algorithm", "policy", "settings"), ALGORITHMS[-2:])
def test_a_model_comes_back(algorithm, policy, settings, tmp_path):
    """Of the table's algorithms see `test_train`."""
    pool = dialgym.sb3_vec_env("dialgym/Wordle-20-v0", 2, seed=0)
    model = algorithm(policy, pool, seed=0, **settings)
    loaded = assert_comes_back(model, tmp_path / "model.zip")
    assert loaded.observation_space.tokenizer == pool.observation_space.tokenizer


@pytest.mark.parametrize(("algorithm", "policy", "settings"), ALGORITHMS)
def test_what_stable_baselines_wrote_is_read_only_if_it_is_trusted(
    algorithm, policy, settings, tmp_path
):
    pool = dialgym.sb3_vec_env("dialgym/Wordle-20-v0", 2, seed=0)
    path = tmp_path / "model.zip"
    algorithm(policy, pool, seed=0, **settings).save(path)
    with pytest.raises(ValueError, match=r"is a pickle .* trust=True \(--trust"):
        agents.load(path)
    assert type(agents.load(path, trust=True)) is algorithm


@pytest.fixture(scope="module")
def pickled(tmp_path_factory):
    """A file that Stable-Baselines3 itself has written."""
    path = tmp_path_factory.mktemp("theirs") / "theirs.zip"
    sb3.A2C("MlpPolicy", dialgym.sb3_vec_env(ID, 2, seed=0), seed=0).save(path)
    return path


PICKLE = r"theirs\.zip' is a pickle that Stable-Baselines3 .* trust=True \(--trust"


COMMANDS = [
    ["evaluate", "FILE", ID, "-n", "2"],
    ["benchmark", "--policies", "theirs=FILE", "--ids", ID, "-n", "2", "--out", "OUT/scores"],
    ["collect", ID, "--policy", "FILE", "--out", "OUT/games", "-n", "4", "--workers", "1"],
    ["play", ID, "--policy", "FILE", "--seed", "0"],
]


@pytest.mark.parametrize(
    "command", by_day(COMMANDS, COMMANDS[0], COMMANDS[3]), ids=lambda command: command[0]
)
def test_commands_read_pickles_only_if_they_are_told_to(command, pickled, tmp_path):
    arguments = [
        part.replace("FILE", str(pickled)).replace("OUT", str(tmp_path)) for part in command
    ]
    assert re.search(PICKLE, fail(*arguments))
    assert succeed(*arguments, "--trust")


def test_a_trusted_collection_is_the_same_collection(pickled, tmp_path):
    safe = tmp_path / "theirs.zip"
    agents.save(agents.load(pickled, trust=True), safe)
    ours, theirs = dialgym.collect(ID, safe, 3), dialgym.collect(ID, pickled, 3, trust=True)
    assert list(ours) == list(theirs)


def first_seen(model):
    """The first observations (4, B) of a model that is evaluated."""
    seen, predict = [], model.predict

    def noting(observation, *args, **kwargs):
        seen.append(np.copy(observation))
        return predict(observation, *args, **kwargs)

    model.predict = noting
    dialgym.evaluate(model, ACTS, 4, num_envs=4)
    return seen[0]


@pytest.fixture
def normalized(tmp_path):
    """The folder of a model that learned from normalised observations, and what it learned from."""
    env = VecNormalize(dialgym.sb3_vec_env(ACTS, 2, seed=0))
    model = sb3.A2C("MlpPolicy", env, seed=0).learn(40)
    model.save(tmp_path / "pickled.zip")
    agents.save(model, tmp_path / "model.zip")
    env.save(tmp_path / "vecnormalize.pkl")
    expected = env.normalize_obs(first_seen(sb3.A2C("MlpPolicy", env.venv, seed=0)))
    return tmp_path, model, expected


def test_normalised_observations_are_those_that_a_model_plays_by(normalized):
    folder, model, expected = normalized
    assert np.array_equal(first_seen(model), expected)
    for file in ("pickled.zip", "model.zip"):
        assert np.array_equal(first_seen(agents.load(folder / file, trust=True)), expected)


def test_statistics_that_lie_beside_a_model_without_any_are_none_of_its(normalized):
    folder, model, _ = normalized
    plain = sb3.A2C("MlpPolicy", model.env.venv, seed=0)
    agents.save(plain, folder / "plain.zip")
    seen = first_seen(agents.load(folder / "plain.zip", trust=True))
    assert np.array_equal(seen, first_seen(plain))


def test_statistics_are_published_beside_the_model_that_needs_them(normalized):
    folder, model, expected = normalized
    for source in (model, folder / "model.zip"):
        out = Path(agents.push_to_hub(source, str(folder / f"out-{type(source).__name__}")))
        assert np.array_equal(first_seen(agents.load(out, trust=True)), expected)
        card = (out / "README.md").read_text("utf-8")
        assert "dialgym evaluate . --trust" in card
        assert 'agents.load(".", trust=True)' in card


def test_a_model_does_not_play_without_the_statistics_that_it_learned_with(normalized):
    folder, *_ = normalized
    message = "A2C learned from normalised observations .* Lay its vecnormalize.pkl beside it"
    with pytest.raises(ValueError, match=message):
        dialgym.evaluate(folder / "model.zip", ACTS, 2)
    again = folder / "again.zip"
    agents.save(agents.load(folder / "model.zip"), again)
    with pytest.raises(ValueError, match=message):
        dialgym.evaluate(again, ACTS, 2)


def test_a_model_does_not_play_where_acts_have_other_names(tmp_path):
    env = dialgym.sb3_vec_env(ACTS, 2, domain=write_bakeries(tmp_path, "area"))
    model = sb3.A2C("MlpPolicy", env, seed=0)
    agents.save(model, tmp_path / "model.zip")
    side = write_bakeries(tmp_path, "side")
    for policy in (model, tmp_path / "model.zip"):
        assert dialgym.evaluate(policy, episodes=2, seeds=(0,)).mean_return < 0
        with pytest.raises(IncompatiblePolicyError, match="'request_area' for 'request_kin"):
            dialgym.evaluate(policy, ACTS, 2, env_kwargs={"domain": side})


def test_what_is_no_model_is_one_clear_error(tmp_path):
    (tmp_path / "text.zip").write_text("not a zip")
    with pytest.raises(ValueError, match="is no saved model: expected a zip file"):
        agents.load(tmp_path / "text.zip")


SMALL = {"n_layer": 1, "n_head": 1, "n_embd": 8}


def gpt(algorithm=None, **kwargs):
    pool = dialgym.sb3_vec_env("dialgym/Wordle-20-v0", 2, seed=0)
    return (algorithm or agents.SequencePPO)("GPTPolicy", pool, policy_kwargs={**SMALL, **kwargs})


def test_a_model_is_saved_and_found_in_the_home(tmp_path, monkeypatch):
    monkeypatch.setenv("HOME", str(tmp_path))
    model = gpt()
    model.save("~/runs/mine")
    assert (tmp_path / "runs" / "mine.zip").is_file()
    for load in (agents.load, type(model).load):
        assert load("~/runs/mine").num_timesteps == 0


def test_a_policy_begins_as_another_one_ended(tmp_path):
    cloned = gpt(agents.BC)
    cloned.save(tmp_path / "cloned.zip")
    obs = torch.as_tensor(cloned.env.reset())
    with torch.no_grad():
        expected = cloned.policy.get_distribution(obs).distribution.logits
        for source in (cloned, cloned.policy, tmp_path / "cloned.zip"):
            for kwargs in ({}, {"lora": {"r": 2}}, {"share_features_extractor": False}):
                model = gpt(**kwargs)
                agents.start_from(model.policy, source)
                logits = model.policy.get_distribution(obs).distribution.logits
                torch.testing.assert_close(logits, expected)


def test_a_temperature_that_is_left_behind_is_said():
    cold = gpt(temperature=0.5)
    with pytest.warns(UserWarning, match=r"learned at a temperature of 0.5, and goes on at 1 here"):
        agents.start_from(gpt().policy, cold)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        agents.start_from(gpt(temperature=0.5).policy, cold)
        agents.start_from(cold.policy, gpt(agents.BC))


def test_a_stock_policy_begins_as_another_one_ended():
    pool = dialgym.sb3_vec_env("dialgym/Wordle-20-v0", 2, seed=0)
    ours, theirs = (PPO("MlpPolicy", pool, seed=seed).policy for seed in (0, 1))
    agents.start_from(ours, theirs)
    for name, weight in theirs.state_dict().items():
        torch.testing.assert_close(ours.state_dict()[name], weight)


def test_a_policy_of_another_shape_is_one_clear_error():
    with pytest.raises(ValueError, match=r"start from this BC: expected backbone.wte.weight of"):
        agents.start_from(gpt(n_embd=16).policy, gpt(agents.BC))
    with pytest.raises(ValueError, match=r"expected backbone.blocks.1.ln_1.weight .* got none"):
        agents.start_from(gpt(n_layer=2).policy, gpt())


@pytest.mark.parametrize(
    ("own", "other", "message"),
    [
        ({"n_head": 2}, {}, "expected n_head=2, got 1, by which the same weights say something el"),
        (
            {"n_head": 2, "n_layer": 1, "positions": "rotary"},
            {"n_head": 2},
            "positions='rotary', g",
        ),
        ({"lora": {"r": 2}}, {"lora": {"r": 2, "alpha": 4}}, "expected lora alpha=16, got 4"),
        ({"lora": {}}, {"lora": {"r": 2}}, "expected lora r=8, got 2"),
        ({}, {"tie": False}, "expected tie=True, got False"),
        ({}, {"n_layer": 2}, r"expected backbone.blocks.1.ln_1.weight of shape none, got \(8,\)"),
    ],
)
def test_weights_that_would_say_something_else_are_refused(own, other, message):
    model = gpt(**own)
    before = model.policy.backbone.embedding.clone()
    with pytest.raises(ValueError, match=message):
        agents.start_from(model.policy, gpt(agents.BC, **other))
    assert torch.equal(before, model.policy.backbone.embedding)


def test_what_a_policy_speaks_by_besides_is_not_left_behind():
    conditioned = gpt(agents.DecisionTransformer)
    with pytest.raises(ValueError, match=r"expected return_embedding.* of shape none, got"):
        agents.start_from(gpt().policy, conditioned)
    agents.start_from(conditioned.policy, gpt())


BRIEF = {"policy_kwargs": {"n_layer": 1, "n_head": 1, "n_embd": 8}, "batch_size": 2}


def test_a_run_says_what_it_took_from_the_hub(tmp_path, pretend_hub):
    dialgym.collect(ID, "random", 6).save(tmp_path / "games")
    pretend_hub.add("who/games", tmp_path / "games")
    made = {"hyperparameters": {**BRIEF, "log_interval": 1}, "log_dir": tmp_path / "run"}
    made |= {"progress_bar": False, "checkpoint_every": 1}
    agents.train(ID, "bc", total_timesteps=2, data="hf:who/games", **made)
    assert json.loads((tmp_path / "run" / "hub.json").read_text()) == {"hf:who/games": COMMIT}
    agents.train(ID, "bc", total_timesteps=2, data="hf:who/games", resume=True, **made)
    pretend_hub.add("who/games", tmp_path / "games", commit="f" * 40)
    hub._folders.clear()
    with pytest.raises(ValueError, match=r"run': 'hf:who/games' was at 0123.* and is at ffff"):
        agents.train(ID, "bc", total_timesteps=2, data="hf:who/games", resume=True, **made)


def test_stored_dialogues_name_code_only_if_the_caller_does_or_trusts_them(tmp_path):
    games = dialgym.collect(ID, "random", 6).table
    place = games.column_names.index("settings")
    held = pa.array([json.dumps({"simulator": "evil:Thing"})] * 6)
    Dataset(games.set_column(place, "settings", held)).save(tmp_path)
    with pytest.raises(ValueError, match="the dataset: it names 'evil:Thing'"):
        agents.train(ID, "bc", total_timesteps=2, data=str(tmp_path), log_dir=tmp_path / "run")
    given = {"data": str(tmp_path), "log_dir": tmp_path / "run"}
    for more in ({"env_kwargs": {"simulator": "evil:Thing"}}, {"trust": True}):
        with pytest.raises(ValueError, match="there is no module 'evil' here"):  # it was looked for
            agents.train(ID, "bc", total_timesteps=2, **given, **more)
        trust._allowed.clear()
