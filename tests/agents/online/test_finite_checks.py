"""Faults amid training: one clear error, and saved files stay as they were."""

import numpy as np
import pytest
import torch
from stable_baselines3.common.env_util import make_vec_env
from torch.amp import GradScaler

import agents
import dialgym
from agents import BC, GRPO, NLPO, SequencePPO, train
from agents.training.checkpoint import FILE
from dialgym.views.sb3 import DialogueVecEnv
from tests.agents.online.test_sequence_ppo import SMALL, STEPS, collected, gradient
from tests.support.by_day import at_night
from tests.support.commands import run as command
from tests.support.resuming import assert_same_model
from tests.support.toy_tokens import Echo

ID = "dialgym/Wordle-20-v0"
TINY = {"n_layer": 1, "n_embd": 16}
SHORT = {"n_steps": 12, "batch_size": 96, "n_epochs": 2, "policy_kwargs": TINY}
SHORT["learning_rate"] = 0.001
ROLLOUT = 12 * 8


def run(folder, rollouts, resume=False, **more):
    given = {"n_envs": 8, "log_dir": folder, "progress_bar": False, "checkpoint_every": 1}
    given |= {"hyperparameters": {**SHORT, **more}, "resume": resume}
    return train(ID, "ppo", total_timesteps=ROLLOUT * rollouts, **given)


def broken(monkeypatch, after, fault):
    """Steps of our pools come with `fault(reward)` after so many of them."""
    step, calls = DialogueVecEnv.step_wait, []

    def step_wait(self):
        observation, reward, done, infos = step(self)
        calls.append(1)
        return observation, fault(reward) if len(calls) > after else reward, done, infos

    monkeypatch.setattr(DialogueVecEnv, "step_wait", step_wait)


def nan_in_row_3(reward):
    return np.where(np.arange(len(reward)) == 3, np.nan, reward).astype(np.float32)


def gone(reward):
    raise RuntimeError("the service of rewards is gone")


@pytest.mark.parametrize(
    ("fault", "error", "message"),
    [
        (nan_in_row_3, FloatingPointError, r"SequencePPO at timestep 584: expected finite rewards"),
        at_night((gone, RuntimeError, "the service of rewards is gone")),
    ],
)
def test_a_fault_amid_a_run_leaves_what_was_saved_and_can_be_resumed(
    fault, error, message, monkeypatch, tmp_path
):
    whole = run(tmp_path / "whole", 8)
    folder = tmp_path / "broken"
    run(folder, 4)
    model = (folder / "model.zip").read_bytes()
    with monkeypatch.context() as patched:
        # It goes on from the checkpoint at the end of the fourth rollout: this is in the seventh.
        broken(patched, 25, fault)
        with pytest.raises(error, match=message):
            run(folder, 8, resume=True)
    assert (folder / "model.zip").read_bytes() == model
    assert not [path for path in folder.iterdir() if path.name.startswith(".")]
    assert (folder / FILE).is_file()
    resumed = run(folder, 8, resume=True)
    assert_same_model(whole, resumed)


def test_weights_that_overflow_end_training_before_anything_is_saved(tmp_path):
    message = r"SequencePPO at timestep \d+: expected (a finite loss|finite weights).*learning rate"
    with pytest.raises(FloatingPointError, match=message):
        run(tmp_path, 3, learning_rate=1e30)
    assert not {"model.zip", FILE} & {path.name for path in tmp_path.iterdir()}


def test_the_command_line_says_it_in_one_line(monkeypatch, tmp_path):
    broken(monkeypatch, 5, nan_in_row_3)
    result = command("train", "ppo", ID, "--n-envs", "8", "--out", str(tmp_path / "run"))
    assert result.exit_code == 2
    [said] = result.stderr.splitlines()  # the bar so far stands on the other stream
    assert "expected finite rewards, got nan in dialogue 3" in said
    assert not (tmp_path / "run" / "model.zip").exists()


@pytest.mark.parametrize("algorithm", [SequencePPO, NLPO, GRPO])
def test_a_gradient_that_is_none_leaves_the_weights_alone(algorithm):
    more = {"group_size": 2} if algorithm is GRPO else {}
    env = make_vec_env(Echo, 4, seed=0)
    model = algorithm("GPTPolicy", env, n_steps=10, policy_kwargs=SMALL, seed=0, **more)
    model.policy.backbone.ln_f.weight.register_hook(lambda gradient: gradient * torch.nan)
    before = model.policy.parameters_to_vector()
    with pytest.raises(
        FloatingPointError, match="expected a finite gradient, got nan; the weights"
    ):
        model.learn(40)
    np.testing.assert_array_equal(model.policy.parameters_to_vector(), before)


def test_a_model_with_weights_that_are_none_is_not_saved(tmp_path):
    model = SequencePPO("GPTPolicy", make_vec_env(Echo, 2), policy_kwargs=SMALL, seed=0)
    model.save(tmp_path / "model.zip")
    before = (tmp_path / "model.zip").read_bytes()
    with torch.no_grad():
        model.policy.backbone.wpe.weight[0, 0] = torch.inf
    with pytest.raises(FloatingPointError, match=r"backbone.wpe.weight has overflowed, so nothing"):
        model.save(tmp_path / "model.zip")
    assert (tmp_path / "model.zip").read_bytes() == before


def test_a_model_without_an_environment_does_not_learn(tmp_path):
    model = SequencePPO("GPTPolicy", make_vec_env(Echo, 2), policy_kwargs=SMALL, seed=0)
    model.save(tmp_path / "model.zip")
    with pytest.raises(ValueError, match=r"SequencePPO\.learn: expected an environment"):
        SequencePPO.load(tmp_path / "model.zip").learn(10)


def test_learning_from_stored_dialogues_ends_in_the_same_way():
    games = dialgym.collect(ID, "random", 8, seed=0)
    model = BC("GPTPolicy", dialgym.sb3_vec_env(ID, 1), games, policy_kwargs=TINY, seed=0)
    model.policy.backbone.ln_f.weight.data[0] = torch.nan
    with pytest.raises(FloatingPointError, match="BC at timestep 0: expected a finite loss"):
        model.learn(2)


# Half precision


def test_float16_comes_near_float32_and_ratios_start_at_one():
    exact = collected(SequencePPO, make_vec_env(Echo, 6, seed=0), batch_size=60)
    rough = collected(
        SequencePPO, make_vec_env(Echo, 6, seed=0), batch_size=60, compute={"autocast": "fp16"}
    )
    rough.updater.scaler = GradScaler("cpu", init_scale=1024.0)
    got, expected = gradient(rough), gradient(exact)
    logged = rough.logger.name_to_value
    assert logged["train/clip_fraction"] == logged["train/skipped_steps"] == 0
    assert logged["train/loss_scale"] == 1024
    assert logged["train/approx_kl"] < 1e-5
    assert np.corrcoef(got, expected)[0, 1] > 0.99


def overflowing(model, steps):
    """Its first `steps` gradients are infinite."""
    seen = []

    def hook(gradient):
        seen.append(1)
        return gradient * (torch.inf if len(seen) <= steps else 1)

    model.policy.backbone.ln_f.weight.register_hook(hook)
    return model


def half(**more):
    env = make_vec_env(Echo, 6, seed=0)
    return SequencePPO(
        "GPTPolicy", env, **{**STEPS, "compute": {"autocast": "fp16"}, "batch_size": 60, **more}
    )


def test_a_step_that_overflows_is_skipped_logged_and_halves_the_scale(tmp_path):
    model = overflowing(half(n_epochs=4), 3)
    before = model.policy.parameters_to_vector()
    model.learn(60)
    assert model.logger.name_to_value["train/skipped_steps"] == 0.75
    assert model.updater.scaler.get_scale() == 65536 / 8
    assert np.isfinite(model.logger.name_to_value["train/grad_norm"])
    assert not np.array_equal(model.policy.parameters_to_vector(), before)
    model.save(tmp_path / "model")
    loaded = agents.load(tmp_path / "model.zip")
    assert loaded.updater.scaler.state_dict() == model.updater.scaler.state_dict()
    assert loaded.updater.scaler.is_enabled()


def test_overflow_at_every_scale_is_an_error():
    model = overflowing(half(n_epochs=30), 30)
    with pytest.raises(FloatingPointError, match="expected a finite gradient"):
        model.learn(60)
    assert model.updater.scaler.get_scale() == 1.0


def test_a_float16_run_is_resumed_exactly(tmp_path):
    whole = run(tmp_path / "whole", 5, compute={"autocast": "fp16"})
    run(tmp_path / "two", 3, compute={"autocast": "fp16"})
    resumed = run(tmp_path / "two", 5, resume=True, compute={"autocast": "fp16"})
    assert_same_model(whole, resumed)
    assert resumed.updater.scaler.state_dict() == whole.updater.scaler.state_dict()
    assert whole.updater.scaler.state_dict()["_growth_tracker"] > 0


def test_stored_dialogues_are_learned_from_in_float16():
    games = dialgym.collect(ID, "random", 16, seed=0)
    settings = {"policy_kwargs": TINY, "seed": 0, "batch_size": 16, "log_interval": 100}
    env = dialgym.sb3_vec_env(ID, 1)
    losses = []
    for autocast in (None, "fp16"):
        model = BC("GPTPolicy", env, games, compute={"autocast": autocast}, **settings).learn(20)
        losses.append(model.logger.name_to_value["train/loss"])
    assert losses[1] == pytest.approx(losses[0], rel=0.01)
