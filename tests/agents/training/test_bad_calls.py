"""Wrong calls are one error that says what to do; objects say what they are."""

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


TOKENS, BELIEFS = "dialgym/Wordle-20-v0", "dialgym/SlotFilling-act-v0"
DEVICE = "expected device to be 'auto', 'cpu', 'cuda', .*; got 'gpu'. Did you mean 'cuda'?"
TASK = r"expected an environment, got the task Wordle. Make one of it: dialgym.sb3_vec_env"
POLICY = "unknown policy '{}' in SequencePPO.*Known: .*GPTPolicy.*token views take a GPT policy"


def learner(name, env=TOKENS, policy=None, **settings):
    """A learner of tokens or beliefs, and by default in the environment of either."""
    env = gym.make(env) if isinstance(env, str) and env.startswith("dialgym/") else env
    return getattr(agents, name)(policy or "GPTPolicy", env, **settings)


def over_acts(name, policy="MlpPolicy", **settings):
    return learner(name, BELIEFS, policy, **settings)


def train(**settings):
    return agents.train(SMALL, "ppo", total_timesteps=10, **settings)


WRONG = {
    "no dialogues": (
        lambda: learner("ILQL", **TINY).learn(1),
        r"ILQL: expected stored dialogues to learn from, got dataset=None.*`dialgym collect`",
    ),
    "device": (lambda: learner("SequencePPO", device="gpu"), f"SequencePPO: {DEVICE}"),
    "device of train": (lambda: train(device="gpu"), DEVICE),
    "seed": (lambda: learner("SequencePPO", seed=-1), "expected seed to be a whole number from 0"),
    "seed of train": (lambda: train(seed=-1), "seed of train must be a whole number from 0"),
    "seeds": (
        lambda: dialgym.evaluate("random", SMALL, 1, seeds=3),
        r"expected seeds to be a sequence .* as \(0, 1, 2\); got 3",
    ),
    "policy": (lambda: learner("SequencePPO", policy="MlpPolicy"), POLICY.format("MlpPolicy")),
    "misspelt policy": (
        lambda: learner("SequencePPO", policy="GPTPolcy"), POLICY.format("GPTPolcy"),
    ),
    "task": (lambda: learner("SequencePPO", Wordle(**SMALL_TASK)), TASK),
    "class of a task": (lambda: learner("SequencePPO", Wordle), TASK),
    "task of an offline learner": (lambda: learner("ILQL", Wordle), TASK),
    "id without its namespace": (
        lambda: learner("SequencePPO", "Wordle-20-v0"), "'Wordle-20-v0'. Say 'dialgym/Wordle-20-v0'"
    ),
    "unknown id": (
        lambda: learner("SequencePPO", "Wordle-20"),
        "unknown environment id .* Did you mean 'dialgym/Wordle-20",
    ),
    "n_stps": (lambda: learner("SequencePPO", n_stps=128), "Did you mean 'n_steps'"),
    "expectil": (lambda: learner("ILQL", expectil=0.7), "Did you mean 'expectile'"),
    "clip_rnge": (lambda: over_acts("GDPL", clip_rnge=0.1), "Did you mean 'clip_range'"),
    "gama": (lambda: over_acts("GPSarsa", "GPPolicy", gama=0.9), "Did you mean 'gamma'"),
    "n_stps of DQN": (lambda: over_acts("DQN", n_stps=2), "Did you mean 'n_steps'"),
    "bach_size": (lambda: over_acts("TRACER", bach_size=2), "Did you mean 'batch_size'"),
    "n_layr": (
        lambda: learner("SequencePPO", policy_kwargs={"n_layr": 1}), "Did you mean 'n_layer'"
    ),
    "net_ach": (lambda: over_acts("PG", policy_kwargs={"net_ach": [8]}), "Did you mean 'net_arch'"),
    "total_timestep": (
        lambda: agents.train(TOKENS, "ppo", total_timestep=8), "Did you mean 'total_timesteps'"
    ),
    "hyperparameters": (lambda: train(hyperparameters={"n_stps": 8}), "Did you mean 'n_steps'"),
    "n_envs as a setting": (
        lambda: train(env_kwargs={"n_envs": 64}), "no setting of .*of the run: --n-envs, or n_envs="
    ),
    "wrapper as a setting": (
        lambda: train(env_kwargs={"wrapper": 1}), "'wrapper' is no setting of dialgym/Wordle"
    ),
    "settings": (lambda: train(env_kwargs=3), "env_kwargs to be a mapping of names, got 3"),
    "n_layer": (
        lambda: learner("SequencePPO", policy_kwargs={"n_layer": "x"}),
        "n_layer of GPTConfig must be a whole number from 1; got 'x'",
    ),
    "metrics": (
        lambda: train(hyperparameters={"metrics": 3}), "metrics: expected a list such as .*, got 3"
    ),
    "options that go unused": (
        lambda: dialgym.evaluate("random", SMALL, 1, env_kwargs={"final_reward": 3}),
        "final_reward of Wordle: expected a mapping, .*; got 3",
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", ["policy_kwargs", "kl", "compute", "server"])
def test_a_number_in_the_place_of_settings(name):
    with pytest.raises(ValueError, match=f"{name}.*: expected a mapping.*, got 3"):
        train(hyperparameters={name: 3})


def test_a_row_of_hyperparameters_that_is_a_list(tmp_path):
    (tmp_path / "rows.yml").write_text("default: [1]\n")
    with pytest.raises(
        ValueError, match=r"default of .*rows.yml: expected hyperparameters by name"
    ):
        train(hyperparameters_file=tmp_path / "rows.yml")


@pytest.mark.parametrize("name", WRONG)
def test_a_wrong_call_is_one_clear_error(name):
    call, message = WRONG[name]
    with pytest.raises(ValueError, match=message):
        call()


def test_the_command_line_says_the_same():
    assert "Did you mean 'cuda'?" in fail("train", "ppo", SMALL, "--device", "gpu")


def test_a_model_that_is_not_there(tmp_path):
    for load in (agents.load, agents.SequencePPO.load):
        with pytest.raises(FileNotFoundError, match=r"at 'nofile': .*runs/NAME/model.zip"):
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


@pytest.mark.parametrize(
    ("module", "name", "near"),
    [(dialgym, "sb3_vecenv", "sb3_vec_env"), (agents, "SequencePP0", "SequencePPO")],
)
def test_names_that_are_nearly_right(module, name, near):
    with pytest.raises(AttributeError, match=f"no attribute '{name}'. Did you mean '{near}'?"):
        getattr(module, name)
    assert not hasattr(module, "nothing_like_it")


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


def test_dialogues_in_another_form(tmp_path):
    file = tmp_path / "mine.jsonl"
    file.write_text('{"text": "hello"}\n')
    message = fail("train", "ilql", SMALL, "--data", str(file))
    assert "mine.jsonl' is no file of stored dialogues" in message
    assert f"dialgym import {file} --out FOLDER" in message
    assert "there is no file or folder" in fail("train", "ilql", SMALL, "--data", "nofile.jsonl")


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
