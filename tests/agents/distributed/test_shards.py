"""Sharded training is training; and what `accelerate launch` may ask for."""

import numpy as np
import pytest
import yaml
from stable_baselines3.common.env_util import make_vec_env

import dialgym
from agents import BC, SequencePPO
from agents.distributed.launched import Launched
from tests.support.close import assert_close
from tests.support.torchrun import CONFIGS, SUPPORT, two_processes, whole_and_resumed
from tests.support.toy_tokens import Echo

FSDP = {"ACCELERATE_USE_FSDP": "true", "FSDP_VERSION": "2"}
NAMES = ("ppo", "apart", "lora", "nlpo", "llama")


@pytest.mark.slow
def test_shares_change_nothing_but_memory(tmp_path):
    """PPO, a separate value network, adapters, NLPO: losses, weights and optimizer state."""
    script = [str(SUPPORT / "two_sharded_ranks.py"), str(tmp_path)]
    for kind, environment in (("plain", {}), ("sharded", FSDP)):
        said = two_processes(script, kind, *NAMES, **environment)
        assert {"rank 0 is right", "rank 1 is right"} <= set(said.splitlines())
    for name in NAMES:
        plain, sharded = (np.load(tmp_path / f"{name}-{kind}.npz") for kind in ("plain", "sharded"))
        assert len(plain["losses"]) >= 8
        assert_close(sharded["losses"], plain["losses"], rtol=1e-4)
        assert_close(sharded["weights"], plain["weights"], rtol=1e-3)
        assert_close(sharded["moments"], plain["moments"], rtol=1e-2)


@pytest.mark.slow
def test_weights_that_are_gathered_once_change_nothing_either(tmp_path):
    script = [str(SUPPORT / "two_sharded_ranks.py"), str(tmp_path)]
    two_processes(script, "plain", "ppo")
    two_processes(script, "sharded", "ppo", FSDP_RESHARD_AFTER_FORWARD="false", **FSDP)
    plain, sharded = (np.load(tmp_path / f"ppo-{kind}.npz") for kind in ("plain", "sharded"))
    assert_close(sharded["losses"], plain["losses"], rtol=1e-4)
    assert_close(sharded["weights"], plain["weights"], rtol=1e-3)


@pytest.mark.slow
def test_a_sharded_run_is_saved_evaluated_and_resumed_exactly(tmp_path):
    whole, _ = whole_and_resumed(tmp_path, "-m", "dialgym", **FSDP)
    model = SequencePPO.load(whole / "model.zip")
    best = SequencePPO.load(whole / "best_model.zip")
    assert not best.policy.optimizer.state_dict()["state"]  # of models kept amid a rollout
    assert len(model.policy.optimizer.state_dict()["state"]) == len(list(model.policy.parameters()))
    assert len(list((whole / "checkpoints").iterdir())) == 6


def environment_of(name):
    """The variables that `accelerate launch` sets for a file of ours."""
    pytest.importorskip("accelerate")
    from accelerate.commands.launch import _validate_launch_command, launch_command_parser
    from accelerate.utils.launch import prepare_multi_gpu_env

    given = [f"--config_file={CONFIGS / name}", "-m", "dialgym"]
    arguments, _, _ = _validate_launch_command(launch_command_parser().parse_args(given))
    return prepare_multi_gpu_env(arguments)


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("ddp.yaml", Launched()),
        ("fsdp.yaml", Launched(sharded=True)),
        ("zero2.yaml", Launched(sharded=True, reshard=False)),
    ],
)
def test_our_files_for_accelerate_mean_what_they_say(name, expected, monkeypatch):
    for key, value in environment_of(name).items():
        monkeypatch.setenv(key, value)
    assert Launched.read() == expected


@pytest.mark.parametrize(
    ("environ", "message"),
    [
        (
            {**FSDP, "FSDP_VERSION": "1"},
            "fsdp_version: 1 is not supported here: set fsdp_version: 2",
        ),
        ({**FSDP, "FSDP_OFFLOAD_PARAMS": "true"}, "fsdp_offload_params: true is not supported"),
        (
            {**FSDP, "FSDP_ACTIVATION_CHECKPOINTING": "true"},
            "policy_kwargs=.'execution': .'gradient_checkpointing",
        ),
        ({"ACCELERATE_MIXED_PRECISION": "fp8"}, "mixed_precision: fp8 is not supported here"),
    ],
)
def test_what_our_update_cannot_do_is_refused(environ, message, monkeypatch):
    for name, value in environ.items():
        monkeypatch.setenv(name, value)
    with pytest.raises(ValueError, match=message):
        Launched.read()


def test_two_precisions_are_one_clear_error(monkeypatch):
    monkeypatch.setenv("ACCELERATE_MIXED_PRECISION", "bf16")
    env = make_vec_env(Echo, 2)
    message = r"mixed_precision: bf16 has no effect .*'autocast': 'bf16'"
    with pytest.raises(ValueError, match=message):
        SequencePPO("GPTPolicy", env)
    assert SequencePPO("GPTPolicy", env, compute={"autocast": "bf16"}).compute.autocast == "bf16"


def test_one_process_shares_nothing(monkeypatch):
    for name, value in FSDP.items():
        monkeypatch.setenv(name, value)
    model = SequencePPO("GPTPolicy", make_vec_env(Echo, 2), n_steps=4, batch_size=8)
    model.learn(8)
    assert model.updater.sharding is None


def test_what_cannot_be_shared_is_refused(monkeypatch):
    env = make_vec_env(Echo, 2)
    model = SequencePPO("GPTPolicy", env, compute={"autocast": "fp16"})
    with pytest.raises(ValueError, match="autocast: fp16 is unavailable with sharded weights"):
        model.updater.shard(8, None)
    monkeypatch.setattr("agents.distributed.processes.Processes.sharded", True)
    games = dialgym.collect("Wordle-20-v0", "random", 4, seed=0)
    with pytest.raises(ValueError, match="BC: what learns from stored dialogues cannot share"):
        BC("GPTPolicy", dialgym.sb3_vec_env("Wordle-20-v0", 1), games)


def test_the_files_know_no_key_that_accelerate_does_not():
    config = pytest.importorskip("accelerate.commands.config.config_args")
    for path in CONFIGS.glob("*.yaml"):
        text = yaml.safe_load(path.read_text("utf-8"))
        config.ClusterConfig.from_yaml_file(str(path))
        assert text["num_processes"] == 2
