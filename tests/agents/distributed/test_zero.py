"""Learning through DeepSpeed's engine is learning; and what DeepSpeed may be asked for."""

import json
from importlib.util import find_spec

import numpy as np
import pytest
from stable_baselines3.common.env_util import make_vec_env

from agents import SequencePPO
from agents.distributed.launched import Launched, ZeroConfig
from agents.distributed.processes import Processes
from tests.support.torchrun import CONFIGS, SUPPORT, two_processes, whole_and_resumed
from tests.support.toy_tokens import Echo

NAMES = ("ppo", "apart", "lora", "nlpo", "llama", "stop", "bf16")
ON = {"ACCELERATE_USE_DEEPSPEED": "true"}
PREFIX = "ACCELERATE_DEEPSPEED_"
SCRIPT = str(SUPPORT / "two_sharded_ranks.py")
engine = pytest.mark.skipif(find_spec("deepspeed") is None, reason="needs deepspeed")
ALL = {
    "steps_per_print": 100,
    "wall_clock_breakdown": False,
    "zero_optimization": {
        "stage": 1,
        "offload_optimizer": {"device": "none", "pin_memory": False},
        "offload_param": {"device": "none"},
        "allgather_partitions": True,
        "allgather_bucket_size": 1000,
        "contiguous_gradients": True,
        "overlap_comm": False,
        "reduce_bucket_size": 1000,
        "reduce_scatter": True,
        "round_robin_gradients": False,
    },
}
LEARNER = {"batch_size": 32, "processes": 2, "max_grad_norm": 0.5, "target_kl": None}


@engine
@pytest.mark.slow
def test_the_engine_changes_nothing(tmp_path):
    """Both stages, offloading, a schedule, clipping, an early stop, bfloat16, a second `learn`."""
    said = two_processes([SCRIPT, str(tmp_path), "plain", *NAMES])
    for stage, device, names in (
        ("1", "none", ["ppo", "lora", "stop"]),
        ("2", "none", NAMES),
        ("2", "cpu", ["ppo"]),
    ):
        asked = {f"{PREFIX}ZERO_STAGE": stage, f"{PREFIX}OFFLOAD_OPTIMIZER_DEVICE": device}
        said = two_processes([SCRIPT, str(tmp_path), "zero", *names], **ON, **asked)
        assert {"rank 0 is right", "rank 1 is right"} <= set(said.splitlines())
        for name in names:
            plain, zero = (np.load(tmp_path / f"{name}-{kind}.npz") for kind in ("plain", "zero"))
            exact = 1e-2 if name == "bf16" else 1e-5
            assert len(plain["losses"]) >= 8
            np.testing.assert_allclose(zero["losses"], plain["losses"], atol=exact)
            np.testing.assert_allclose(zero["weights"], plain["weights"], atol=exact)
            scale = plain["moments"].max() / exact
            np.testing.assert_allclose(zero["moments"] / scale, plain["moments"] / scale, atol=1)


@engine
@pytest.mark.slow
def test_a_run_is_saved_evaluated_and_resumed_exactly(tmp_path):
    folders = whole_and_resumed(tmp_path, SCRIPT, **ON)
    models = [SequencePPO.load(folder / "model.zip") for folder in folders]
    state = [model.policy.optimizer.state_dict() for model in models]
    assert state[0]["param_groups"] == state[1]["param_groups"]
    for number, moments in state[0]["state"].items():
        for name, value in moments.items():
            assert value.equal(state[1]["state"][number][name])
    assert len(state[0]["state"]) == len(list(models[0].policy.parameters()))


@engine
def test_deepspeed_reads_what_we_give_it():
    from deepspeed.runtime.config import DeepSpeedConfig

    read = DeepSpeedConfig(ZeroConfig(ALL).for_engine(32, 0.5))
    assert read.zero_config.stage == 1
    assert read.zero_config.reduce_bucket_size == 1000
    assert (read.gradient_clipping, read.gradient_accumulation_steps) == (0.5, 1)
    assert read.train_micro_batch_size_per_gpu == 32


def set_all(monkeypatch, environ):
    for name, value in environ.items():
        monkeypatch.setenv(name, value)


def test_our_file_for_accelerate_means_what_it_says(monkeypatch):
    """By what `accelerate launch` sets, which passes on the keys of `deepspeed_config`."""
    pytest.importorskip("accelerate")
    from accelerate.commands.launch import _validate_launch_command, launch_command_parser
    from accelerate.utils.launch import prepare_deepspeed_cmd_env

    given = [f"--config_file={CONFIGS / 'deepspeed_zero2.yaml'}", "-m", "dialgym"]
    asked, defaults, _ = _validate_launch_command(launch_command_parser().parse_args(given))
    asked.deepspeed_fields_from_accelerate_config = ",".join(defaults.deepspeed_config)
    _, environment = prepare_deepspeed_cmd_env(asked)
    set_all(monkeypatch, environment)
    zero = Launched.read().zero
    assert zero.zero["stage"] == 2
    assert zero.optimizer_device == "none"
    zero.check_learner(**LEARNER)
    asked = environment["ACCELERATE_CONFIG_DS_FIELDS"] + ",zero_stages"
    monkeypatch.setenv("ACCELERATE_CONFIG_DS_FIELDS", asked)
    with pytest.raises(ValueError, match=r"unknown key 'zero_stages' .*Did you mean 'zero_stage'"):
        Launched.read()


@pytest.mark.parametrize(
    ("environ", "message"),
    [
        ({"ZERO_STAGE": "3"}, r"zero_stage: 3 is not supported here: choose 1 or 2; stage 3 is"),
        ({"ZERO_STAGE": "two"}, "deepspeed_config cannot be read: .*'two'"),
        ({"OFFLOAD_OPTIMIZER_DEVICE": "nvme"}, "offload_optimizer_device: nvme .*none or cpu"),
        ({"OFFLOAD_PARAM_DEVICE": "cpu"}, "offload_param_device: cpu .*it needs stage 3"),
        ({"CONFIG_FILE": "no.json"}, "deepspeed_config cannot be read: .*no.json"),
    ],
)
def test_fields_that_cannot_be_are_refused(environ, message, monkeypatch):
    set_all(monkeypatch, {**ON, **{f"{PREFIX}{name}": value for name, value in environ.items()}})
    with pytest.raises(ValueError, match=message):
        Launched.read()


def test_float16_is_refused(monkeypatch):
    set_all(monkeypatch, {**ON, "ACCELERATE_MIXED_PRECISION": "fp16"})
    with pytest.raises(ValueError, match=r"mixed_precision: fp16 with DeepSpeed .*bf16 or no"):
        Launched.read()


def test_offloading_in_one_process_is_refused(monkeypatch):
    for name, value in {**ON, f"{PREFIX}OFFLOAD_OPTIMIZER_DEVICE": "cpu"}.items():
        monkeypatch.setenv(name, value)
    with pytest.raises(ValueError, match="offload_optimizer_device: cpu is for several processes"):
        Processes()


def test_one_process_learns_as_always(monkeypatch):
    monkeypatch.setenv("ACCELERATE_USE_DEEPSPEED", "true")
    model = SequencePPO("GPTPolicy", make_vec_env(Echo, 2), n_steps=4, batch_size=8)
    model.learn(8)
    assert model.updater.sharding is None


@pytest.mark.skipif(find_spec("deepspeed") is not None, reason="deepspeed is here")
def test_without_deepspeed_one_error_says_how_to_get_it(monkeypatch):
    for name, value in {**ON, "WORLD_SIZE": "2", "RANK": "0"}.items():
        monkeypatch.setenv(name, value)
    with pytest.raises(ImportError, match=r"pip install .dialgym\[deepspeed\]"):
        Processes()


@pytest.mark.parametrize(
    ("config", "message"),
    [
        ({"zero_optimisation": {}}, "unknown key 'zero_optimisation' in DeepSpeed.* Did you mean"),
        ({"zero_optimization": {"stage": 0}}, "zero_stage: 0 is not supported here"),
        ({"optimizer": {"type": "Adam"}}, "optimizer is not supported here: .*optimizer_class"),
        ({"scheduler": {}}, "scheduler is not supported here: learning_rate"),
        ({"fp16": {"enabled": True}}, r"fp16 is not supported here: .*'autocast': 'bf16'"),
    ],
)
def test_what_deepspeed_may_not_be_asked_for(config, message):
    with pytest.raises(ValueError, match=message):
        ZeroConfig(config)


@pytest.mark.parametrize("content", ["[]", '{"zero_optimization": 2}', "{}", "nothing"])
def test_a_file_that_is_no_configuration_is_one_clear_error(content, tmp_path, monkeypatch):
    path = tmp_path / "f.json"
    path.write_text(content)
    set_all(monkeypatch, {**ON, f"{PREFIX}CONFIG_FILE": str(path)})
    with pytest.raises(ValueError, match="accelerate: deepspeed_config cannot be read: "):
        Launched.read()


def test_a_file_of_deepspeed_is_read(tmp_path, monkeypatch):
    path = tmp_path / "f.json"
    auto = {"train_batch_size": "auto", "bf16": {"enabled": "auto"}, "gradient_clipping": 0.5}
    path.write_text(json.dumps({**ALL, **auto}))
    set_all(monkeypatch, {**ON, f"{PREFIX}CONFIG_FILE": str(path)})
    found = Launched.read().zero
    assert found.zero == ALL["zero_optimization"]
    found.check_learner(**LEARNER)
    given = found.for_engine(32, 0.5)
    assert given["zero_optimization"] == ALL["zero_optimization"]
    assert given["wall_clock_breakdown"] is False


@pytest.mark.parametrize(
    ("config", "message"),
    [
        ({"train_batch_size": 32}, r"expected train_batch_size to be 64, .*\(batch_size times"),
        ({"train_micro_batch_size_per_gpu": 16}, "train_micro_batch_size_per_gpu to be 32"),
        ({"gradient_accumulation_steps": 2}, "gradient_accumulation_steps to be 1, .*micro_batch"),
        ({"gradient_clipping": 1.0}, "gradient_clipping to be 0.5, .*max_grad_norm.*got 1.0"),
    ],
)
def test_what_contradicts_the_learner_is_refused(config, message):
    with pytest.raises(ValueError, match=message):
        ZeroConfig(config).check_learner(**LEARNER)


def test_an_early_stop_cannot_be_had_with_offloading():
    zero = ZeroConfig({"zero_optimization": {"offload_optimizer": {"device": "cpu"}}})
    zero.check_learner(**LEARNER)
    with pytest.raises(ValueError, match="a gradient cannot be given up, as target_kl may want"):
        zero.check_learner(**{**LEARNER, "target_kl": 0.1})
