"""Evaluations, sample dialogues, normalised rewards, W&B; and Stable-Baselines3's own callbacks."""

import random
import sys
from types import SimpleNamespace

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

pytest.importorskip("stable_baselines3")
from sb3_contrib import MaskablePPO
from sb3_contrib.common.maskable.callbacks import MaskableEvalCallback
from stable_baselines3 import PPO
from stable_baselines3.common.callbacks import (
    BaseCallback,
    CheckpointCallback,
    EvalCallback,
    StopTrainingOnRewardThreshold,
)
from stable_baselines3.common.logger import configure
from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

import agents
import dialgym
from agents import GPTPolicy, MaskableGPTPolicy, train
from agents.training.callbacks import AtMultiples
from agents.training.evaluation import SampleDialogues, evaluation, play_once
from agents.training.session import normalize_options, normalized
from agents.training.tracking import ID_FILE, wandb_run

ID = "dialgym/Wordle-20-v0"
TINY = {"n_layer": 1, "n_embd": 16}
SHORT = {"n_steps": 36, "batch_size": 288, "n_epochs": 1, "policy_kwargs": TINY}
ARGUMENTS = {"total_timesteps": 300, "n_envs": 8, "hyperparameters": SHORT, "progress_bar": False}
NORMALIZE = {"norm_obs": False, "norm_reward": True}


def untrained(**policy_kwargs):
    env = dialgym.sb3_vec_env(ID, 4, seed=0)
    return PPO(
        GPTPolicy, env, n_steps=36, batch_size=36, seed=0, policy_kwargs={**TINY, **policy_kwargs}
    )


# When


class Calls(BaseCallback):
    def __init__(self):
        super().__init__()
        self.at = []

    def _on_step(self):
        self.at.append(self.num_timesteps)
        return True


@given(n_envs=st.integers(1, 40), freq=st.integers(1, 100), begin=st.integers(0, 50))
def test_events_come_with_the_first_step_at_each_multiple_even_when_resumed(n_envs, freq, begin):
    calls = Calls()
    event = AtMultiples(freq, calls)
    model = SimpleNamespace(num_timesteps=begin * n_envs, logger=None)
    model.get_env = lambda: SimpleNamespace(num_envs=n_envs)
    event.init_callback(model)
    for _ in range(60):
        model.num_timesteps += n_envs
        event.on_step()
    multiples = range(0, model.num_timesteps + 1, freq)
    steps = {-(-multiple // n_envs) * n_envs for multiple in multiples}
    assert calls.at == sorted(step for step in steps if step > begin * n_envs)


def test_evaluations_and_kept_models_come_when_they_are_due(tmp_path):
    more = {"eval_freq": 300, "eval_episodes": 10, "save_freq": 250}
    train(log_dir=tmp_path, **{**ARGUMENTS, **more, "total_timesteps": 600})
    found = np.load(tmp_path / "evaluations.npz")
    assert found["timesteps"].tolist() == [304, 600]
    assert found["results"].shape == found["ep_lengths"].shape == (2, 10)
    assert {path.name for path in (tmp_path / "checkpoints").iterdir()} == {
        "model_256_steps.zip",
        "model_504_steps.zip",
        "model_752_steps.zip",
    }
    assert {path.name for path in (tmp_path / "samples").iterdir()} == {"304.txt", "600.txt"}


# Sample dialogues


def draw(model, folder, n=3, seed=7):
    env = dialgym.sb3_vec_env(ID, n, seed=seed)
    model.set_logger(configure(str(folder), ["tensorboard"]))
    callback = SampleDialogues(env, seed, folder / "samples")
    callback.init_callback(model)
    model.num_timesteps = 123
    assert callback.on_step()
    return (folder / "samples" / "123.txt").read_text("utf-8")


def generators():
    return torch.get_rng_state().tolist(), random.getstate(), np.random.get_state()[1].tolist()  # noqa: NPY002


def test_samples_are_the_same_each_time_and_leave_the_generators_alone(tmp_path):
    model = untrained()
    before = generators()
    first = draw(model, tmp_path / "a")
    assert generators() == before
    torch.manual_seed(99)
    assert draw(model, tmp_path / "b") == first
    assert (
        draw(untrained(execution={"cache": False}), tmp_path / "c") == first
    )  # every prefix read from its start
    assert draw(model, tmp_path / "d", seed=8) != first


def test_samples_tell_what_was_said_and_what_it_earned(tmp_path):
    model = untrained()
    text = draw(model, tmp_path)
    infos = play_once(model, dialgym.sb3_vec_env(ID, 3, seed=7), 7)
    blocks = text.split("\n\n")
    assert len(blocks) == len(infos) == 3
    for row, (block, info) in enumerate(zip(blocks, infos)):
        heading, *lines = block.strip().splitlines()
        guesses = [line for line in lines if line.startswith("system: ")]
        won = lines[-1] == "user: g g g g g"
        earned = f"{-len(guesses) + won:g}"
        outcome = "success" if won else "no success"
        assert heading == f"# seed {7 + row}: return {earned}, {outcome}"
        assert lines == info["transcript"].splitlines()
    events = EventAccumulator(str(tmp_path)).Reload()
    (event,) = events.Tensors("eval/samples/text_summary")
    assert event.step == 123
    code = event.tensor_proto.string_val[0].decode()
    assert code == "".join(f"    {line}\n" for line in text.splitlines())


def test_samples_change_nothing_in_training(tmp_path):
    more = {"eval_freq": 300, "eval_episodes": 8, **ARGUMENTS}
    weights = [
        train(
            log_dir=tmp_path / str(samples), samples=samples, **more
        ).policy.parameters_to_vector()
        for samples in (0, 3)
    ]
    np.testing.assert_array_equal(*weights)
    assert not (tmp_path / "0" / "samples").exists()


def test_learners_with_masks_are_evaluated_and_sampled_with_masks(tmp_path, monkeypatch):
    env = dialgym.sb3_vec_env("dialgym/Wordle-Hard-v0", 4, seed=0)
    model = MaskablePPO(MaskableGPTPolicy, env, n_steps=36, batch_size=36, policy_kwargs=TINY)
    masked, plain = evaluation(model, env, 4, tmp_path), evaluation(untrained(), env, 4, tmp_path)
    assert isinstance(masked, MaskableEvalCallback)
    assert isinstance(plain, EvalCallback)
    assert not isinstance(plain, MaskableEvalCallback)
    shown = []
    predict = model.predict

    def spy(*args, action_masks=None, **kwargs):
        actions, state = predict(*args, action_masks=action_masks, **kwargs)
        shown.append(action_masks[np.arange(len(actions)), actions].all())
        return actions, state

    monkeypatch.setattr(model, "predict", spy)
    infos = play_once(model, dialgym.sb3_vec_env("dialgym/Wordle-Hard-v0", 2, seed=1), 1)
    assert len(infos) == 2
    assert shown
    assert all(shown)


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"eval_freq": -1}, "eval_freq of train must be a whole number from 0; got -1"),
        ({"save_freq": -5}, "save_freq of train must be a whole number from 0; got -5"),
        (
            {"checkpoint_every": -5},
            "checkpoint_every of train must be a whole number from 0; got -5",
        ),
        ({"samples": -2, "eval_freq": 9}, "samples of train must be a whole number from 0; got -2"),
        ({"eval_episodes": 0}, "eval_episodes of train must be a whole number from 1; got 0"),
        ({"samples": 2}, "samples: expected 0 without evaluations.* got 2; set eval_freq too"),
    ],
)
def test_bad_numbers_are_refused_before_anything_is_written(given, message, tmp_path):
    with pytest.raises(ValueError, match=message):
        train(log_dir=tmp_path / "run", **given, **ARGUMENTS)
    assert not (tmp_path / "run").exists()


# Normalised rewards


def test_normalised_rewards_are_the_rewards_over_the_deviation_of_returns():
    settings = {"normalize": {**NORMALIZE, "epsilon": 1e-4}, "gamma": 1.0}
    env = normalized(dialgym.sb3_vec_env(ID, 5, seed=3), settings, training=True)
    raw = dialgym.sb3_vec_env(ID, 5, seed=3)
    np.testing.assert_array_equal(env.reset(), raw.reset())
    rng, seen, running = np.random.default_rng(0), [], np.zeros(5)
    for _ in range(60):
        masks = np.stack(raw.env_method("action_masks"))
        actions = np.array([rng.choice(np.flatnonzero(mask)) for mask in masks])
        obs, reward, done, infos = env.step(actions)
        raw_obs, raw_reward, raw_done, raw_infos = raw.step(actions)
        running += raw_reward
        seen += running.tolist()
        running[done] = 0
        count = len(seen) + 1e-4  # the weight of the initial mean 0 and variance 1
        variance = (np.sum(np.square(seen)) + 1e-4) / count - (np.sum(seen) / count) ** 2
        np.testing.assert_allclose(reward, raw_reward / np.sqrt(variance + 1e-4), rtol=1e-5)
        assert obs.dtype == np.int32
        np.testing.assert_array_equal(obs, raw_obs)
        np.testing.assert_array_equal(done, raw_done)
        for row in np.flatnonzero(done):
            last = infos[row]["terminal_observation"]
            assert last.dtype == np.int32
            np.testing.assert_array_equal(last, raw_infos[row]["terminal_observation"])
            assert infos[row]["episode"]["r"] == raw_infos[row]["episode"]["r"]


def test_training_with_normalised_rewards_reports_raw_returns(tmp_path):
    overrides = {**SHORT, "normalize": NORMALIZE}
    arguments = {**ARGUMENTS, "hyperparameters": overrides, "eval_freq": 300, "eval_episodes": 8}
    model = train(log_dir=tmp_path, **arguments)
    assert model.get_vec_normalize_env().gamma == model.gamma == 1.0
    assert abs(model.rollout_buffer.steps("rewards")).max() < 0.9  # a wrong guess costs 1
    returns = np.load(tmp_path / "evaluations.npz")["results"]
    assert returns.tolist() == returns.round().tolist()
    assert returns.min() >= -6
    assert {info["r"] for info in model.ep_info_buffer} <= set(range(-6, 1))
    plain = train(log_dir=tmp_path / "plain", **{**ARGUMENTS, "total_timesteps": 200})
    assert abs(plain.rollout_buffer.steps("rewards")).max() == 1


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"norm_obs": True}, "observations are tokens"),
        ({"norm_reward": True}, "expected norm_obs: false"),
        (True, "expected a mapping such as .* got True"),
        ({**NORMALIZE, "clip_rewards": 5}, "unknown key 'clip_rewards' in normalize. Did you"),
        ({**NORMALIZE, "gamma": 0.9}, "expected the algorithm's gamma 1.0, got 0.9"),
    ],
)
def test_bad_normalisation_is_one_clear_error(given, message):
    with pytest.raises(ValueError, match=message):
        normalize_options({"normalize": given, "gamma": 1.0})


def test_without_normalisation_the_env_is_left_alone():
    env = dialgym.sb3_vec_env(ID, 2, seed=0)
    for settings in ({}, {"normalize": False}, {"normalize": None}):
        assert normalized(env, settings, training=True) is env


# Weights & Biases


class StandIn:
    """The part of wandb that training uses."""

    def __init__(self):
        self.runs, self.ends = [], []
        self.tensorboard = SimpleNamespace(unpatch=lambda: None)

    def init(self, **arguments):
        self.runs.append(arguments)
        return SimpleNamespace(finish=self.ends.append)


@pytest.fixture
def stand_in(monkeypatch):
    module = StandIn()
    monkeypatch.setitem(sys.modules, "wandb", module)
    return module


def test_wandb_gets_the_run_and_its_hyperparameters(stand_in, tmp_path):
    folder = tmp_path / "my-run"
    more = {**ARGUMENTS, "checkpoint_every": 1, "log_dir": folder, "total_timesteps": 200}
    train(wandb=True, **more)
    train(wandb={"project": "other"}, resume=True, **more)
    train(wandb=True, force=True, **more)
    first, second, third = stand_in.runs
    assert first | {"id": "", "config": {}} == {
        "project": "dialgym",
        "name": "my-run",
        "config": {},
        "sync_tensorboard": True,
        "dir": str(folder),
        "resume": "allow",
        "id": "",
    }
    assert first["config"]["env_id"] == ID
    assert first["config"]["n_steps"] == 36
    assert (second["project"], second["id"]) == ("other", first["id"])
    assert third["id"] == (folder / ID_FILE).read_text() != first["id"]
    assert stand_in.ends == [0, 0, 0]


def test_wandb_is_ended_when_training_fails(stand_in, tmp_path):
    with pytest.raises(KeyboardInterrupt), wandb_run(True, tmp_path, {}):
        raise KeyboardInterrupt
    assert stand_in.ends == [1]


def test_without_tensorboard_it_says_how_to_get_it(monkeypatch, tmp_path):
    monkeypatch.setitem(sys.modules, "tensorboard", None)
    with pytest.raises(ImportError, match=r"log of a training needs tensorboard.*\[agents\]"):
        train(log_dir=tmp_path, **ARGUMENTS)


def test_without_wandb_it_says_how_to_get_it(monkeypatch, tmp_path):
    monkeypatch.setitem(sys.modules, "wandb", None)
    with pytest.raises(ImportError, match=r"Weights & Biases.*\"dialgym\[wandb\]\""):
        train(log_dir=tmp_path, wandb=True, **ARGUMENTS)


# Stable-Baselines3's own


def test_callbacks_of_stable_baselines3_work_with_a_trained_model(tmp_path):
    model = train(log_dir=tmp_path / "run", **ARGUMENTS)
    model.set_env(dialgym.sb3_vec_env(ID, 8, seed=5))
    stop = StopTrainingOnRewardThreshold(reward_threshold=-6.0)
    evaluate = EvalCallback(
        dialgym.sb3_vec_env(ID, 4, seed=9),
        callback_on_new_best=stop,
        n_eval_episodes=4,
        eval_freq=20,
        best_model_save_path=str(tmp_path / "best"),
        log_path=str(tmp_path / "best"),
        verbose=0,
    )
    keep = CheckpointCallback(10, str(tmp_path / "kept"))
    model.learn(10_000, callback=[keep, evaluate], progress_bar=True)
    assert model.num_timesteps == 8 * 20  # -6 is the least there is: the first evaluation stops
    assert {p.name for p in (tmp_path / "kept").iterdir()} == {
        "rl_model_80_steps.zip",
        "rl_model_160_steps.zip",
    }
    assert np.load(tmp_path / "best" / "evaluations.npz")["timesteps"].tolist() == [160]
    assert agents.load(tmp_path / "best" / "best_model.zip").num_timesteps == 160
