"""What a first user gets wrong is one error that says what to do; and things say what they are."""

import dataclasses
import os

import gymnasium as gym
import pytest

pytest.importorskip("stable_baselines3")
import agents
import dialgym
from dialgym.tasks.wordle import Wordle
from tests.support.commands import fail
from tests.support.players import SMALL

TINY = {"policy_kwargs": {"n_layer": 1, "n_embd": 16}, "device": "cpu"}
SMALL_TASK = {"words": 7, "guesses": "answers", "constraint": "words"}


@pytest.fixture(scope="module")
def env():
    return dialgym.sb3_vec_env(SMALL, 2, words=7, seed=0)


@pytest.fixture(scope="module")
def games():
    return dialgym.collect(SMALL, "random", 4, env_kwargs={"words": 7})


@pytest.fixture(scope="module")
def model(env):
    return agents.SequencePPO("GPTPolicy", env, n_steps=8, **TINY)


def test_an_offline_learner_without_dialogues(env):
    message = r"ILQL: expected stored dialogues to learn from, got dataset=None.*`dialgym collect`"
    with pytest.raises(ValueError, match=message):
        agents.ILQL("GPTPolicy", env, **TINY).learn(1)


def test_a_device_that_is_none(env):
    message = "expected device to be 'auto', 'cpu', 'cuda', .*; got 'gpu'. Did you mean 'cuda'?"
    with pytest.raises(ValueError, match=f"SequencePPO: {message}"):
        agents.SequencePPO("GPTPolicy", env, device="gpu")
    with pytest.raises(ValueError, match=message):
        agents.train(SMALL, "ppo", total_timesteps=10, device="gpu")
    assert "Did you mean 'cuda'?" in fail("train", "ppo", SMALL, "--device", "gpu")


def test_a_model_that_is_not_there(tmp_path):
    for load in (agents.load, agents.SequencePPO.load):
        with pytest.raises(
            FileNotFoundError, match=r"no saved model at 'nofile': .*runs/NAME/model.zip"
        ):
            load("nofile")
    with pytest.raises(FileNotFoundError, match=r"no saved model at"):
        agents.load(tmp_path)  # a folder without one


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="no pipes")
def test_a_pipe_in_the_place_of_a_file_keeps_nobody_waiting(tmp_path):
    os.mkfifo(tmp_path / "p.yml")
    message = "p.yml': expected a regular file; it is a pipe"
    with pytest.raises(ValueError, match=message):
        agents.train(SMALL, "ppo", total_timesteps=10, hyperparameters_file=tmp_path / "p.yml")
    with pytest.raises(ValueError, match=message):
        agents.GPSarsa("GPPolicy", "dialgym/SlotFilling-act-v0", prior=tmp_path / "p.yml")


def test_a_run_is_a_model(model, tmp_path):
    model.save(tmp_path / "model.zip")
    assert agents.load(tmp_path).trained_in["settings"] == {"words": 7}


@pytest.mark.parametrize("kind", [KeyError, ValueError])
def test_a_column_that_is_not_there(games, kind):
    with pytest.raises(kind, match=r"^unknown column 'returnz' in dataset.*Known: action_masks"):
        games["returnz"]


@pytest.mark.parametrize("name", ["MlpPolicy", "GPTPolcy"])
def test_a_policy_that_is_not_known(env, name):
    message = (
        f"unknown policy '{name}' in SequencePPO.*Known: .*GPTPolicy.*token views take a GPT policy"
    )
    with pytest.raises(ValueError, match=message):
        agents.SequencePPO(name, env)


def test_names_that_are_nearly_right():
    with pytest.raises(
        AttributeError, match=r"no attribute 'sb3_vecenv'. Did you mean 'sb3_vec_env'?"
    ):
        dialgym.sb3_vecenv  # noqa: B018
    with pytest.raises(
        AttributeError, match=r"no attribute 'SequencePP0'. Did you mean 'SequencePPO'?"
    ):
        agents.SequencePP0  # noqa: B018
    assert not hasattr(dialgym, "nothing_like_it")


@pytest.mark.parametrize("seed", [-1, 1.5, "1"])
@pytest.mark.parametrize("kind", [gym.error.Error, ValueError])
def test_seeds_that_are_none(seed, kind):
    message = f"seed of Wordle: expected .*whole number.*; got {seed!r}"
    with pytest.raises(kind, match=message):
        gym.make(SMALL).reset(seed=seed)
    with pytest.raises(kind, match=message):
        dialgym.aec_env(SMALL).reset(seed=seed)
    if seed == -1:
        with pytest.raises(kind, match=message):
            gym.make_vec(SMALL, 2).reset(seed=seed)
        with pytest.raises(kind, match=message):
            gym.make_vec(SMALL, 2).reset(seed=[0, seed])


def test_seeds_of_learners_and_evaluations(env):
    with pytest.raises(ValueError, match=r"expected seed to be a whole number from 0"):
        agents.SequencePPO("GPTPolicy", env, seed=-1)
    with pytest.raises(ValueError, match=r"seed of train must be a whole number from 0"):
        agents.train(SMALL, "ppo", total_timesteps=10, seed=-1)
    with pytest.raises(
        ValueError, match=r"expected seeds to be a sequence .* as \(0, 1, 2\); got 3"
    ):
        dialgym.evaluate("random", SMALL, 1, seeds=3)


def test_dialogues_in_another_form(tmp_path):
    file = tmp_path / "mine.jsonl"
    file.write_text('{"text": "hello"}\n')
    message = fail("train", "ilql", SMALL, "--data", str(file))
    assert "mine.jsonl' is no file of stored dialogues" in message
    assert f"dialgym import {file} --out FOLDER" in message
    assert "there is no file or folder" in fail("train", "ilql", SMALL, "--data", "nofile.jsonl")


@pytest.mark.parametrize("task", [Wordle(**SMALL_TASK), Wordle])
def test_a_task_where_an_environment_goes(task):
    message = r"expected an environment, got the task Wordle. Make one of it: dialgym.sb3_vec_env"
    with pytest.raises(ValueError, match=message):
        agents.SequencePPO("GPTPolicy", task)
    with pytest.raises(ValueError, match=message):
        agents.ILQL("GPTPolicy", env=task)


def test_an_id_without_its_namespace_where_an_environment_goes():
    with pytest.raises(ValueError, match=r"got 'Wordle-20-v0'. Say 'dialgym/Wordle-20-v0'"):
        agents.SequencePPO("GPTPolicy", "Wordle-20-v0")
    with pytest.raises(
        ValueError, match=r"unknown environment id .* Did you mean 'dialgym/Wordle-20"
    ):
        agents.SequencePPO("GPTPolicy", "Wordle-20")


# What things are


def test_things_say_what_they_are(env, model, games):
    told = "Wordle(words=7, guesses='answers', constraint='words')"
    assert repr(Wordle(**SMALL_TASK)) == told
    assert repr(gym.make(SMALL, words=7).unwrapped) == f"TokenEnv({SMALL}, words=7)"
    assert repr(env) == f"DialogueVecEnv(TokenVectorEnv({SMALL}, words=7, num_envs=2))"
    assert repr(dialgym.aec_env(SMALL, words=7)) == f"TokenTwoPartyEnv({SMALL}: {told})"
    both = dialgym.parallel_env(SMALL, words=7)
    assert repr(both) == f"Parallel(TokenTwoPartyEnv({SMALL}: {told}))"
    count = sum(parameter.numel() for parameter in model.policy.parameters())
    assert repr(model) == (
        f"SequencePPO(GPTPolicy of {count:,} parameters, {SMALL}, cpu, 0 timesteps learned)"
    )
    gained = games.returns.mean()
    assert repr(games) == f"Dataset(4 dialogues of random in {SMALL}, mean return {gained:.2f})"
    shown = games._repr_html_()
    assert shown.count("<tr>") == 1 + 4
    assert games[3]["turns"][0]["text"] in shown
    result = dialgym.evaluate("optimal", SMALL, 5, seeds=(0,))
    part = result[SMALL]
    assert repr(part).startswith(f"Episodes(mean return {part.mean_return:.2f} [")
    assert repr(part).endswith("success 1.00, 5 episodes)")
    assert repr(result) == f"Result(optimal in {SMALL}: {part!r})"
    assert result._repr_html_().count("<tr>") == 1 + 1
    hostile = dataclasses.replace(result, policy="<script>")
    assert "<script>" not in hostile._repr_html_()
    assert "(built-in)" in repr(dialgym.make("CamRestaurants-Env1-act-v0").unwrapped.task)


TOKENS, BELIEFS = "dialgym/Wordle-20-v0", "dialgym/SlotFilling-act-v0"


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: agents.SequencePPO("GPTPolicy", gym.make(TOKENS), n_stps=128), "'n_steps'"),
        (lambda: agents.ILQL("GPTPolicy", gym.make(TOKENS), expectil=0.7), "'expectile'"),
        (lambda: agents.GDPL("MlpPolicy", gym.make(BELIEFS), clip_rnge=0.1), "'clip_range'"),
        (lambda: agents.GPSarsa("GPPolicy", gym.make(BELIEFS), gama=0.9), "'gamma'"),
        (lambda: agents.DQN("MlpPolicy", gym.make(BELIEFS), n_stps=2), "'n_steps'"),
        (lambda: agents.TRACER("MlpPolicy", gym.make(BELIEFS), bach_size=2), "'batch_size'"),
        (
            lambda: agents.SequencePPO("GPTPolicy", gym.make(TOKENS), policy_kwargs={"n_layr": 1}),
            "'n_layer'",
        ),
        (
            lambda: agents.PG("MlpPolicy", gym.make(BELIEFS), policy_kwargs={"net_ach": [8]}),
            "'net_arch'",
        ),
        (lambda: agents.train(TOKENS, "ppo", total_timestep=8), "'total_timesteps'"),
        (lambda: agents.train(TOKENS, "ppo", hyperparameters={"n_stps": 8}), "'n_steps'"),
    ],
)
def test_an_argument_that_nobody_takes_is_answered_by_the_nearest(call, message):
    with pytest.raises(ValueError, match=f"Did you mean {message}"):
        call()
