"""Low-rank adapters: only they learn, and all that reads a backbone reads them too."""

import numpy as np
import pytest
import torch
import transformers
from gymnasium import spaces
from peft.tuners.lora.layer import Linear
from sb3_contrib import MaskablePPO
from stable_baselines3 import PPO
from stable_baselines3.common.env_util import make_vec_env

from agents import GPTPolicy, MaskableGPTPolicy
from agents.models.adapted_linear import AdaptedLinear
from agents.models.gpt import GPT
from agents.models.gpt_config import GPTConfig
from agents.models.hugging_face import HuggingFaceBackbone
from agents.models.lora import add_lora, linear_maps
from tests.agents.models.test_backbones import CLOSE, config_of
from tests.support.by_day import by_day
from tests.support.close import assert_close
from tests.support.toy_tokens import Echo, V, box

WINDOW = 12
SMALL = {"n_layer": 2, "n_head": 2, "n_embd": 16}
MODELS = ["gpt", "llama", "gpt2"]


def backbone(name: str):
    torch.manual_seed(0)
    if name == "gpt":
        return GPT(GPTConfig(V, WINDOW, **SMALL))
    model = transformers.AutoModel.from_config(config_of(name, vocab_size=V))
    return HuggingFaceBackbone(model, WINDOW)


def adapters(module: torch.nn.Module) -> dict[str, torch.Tensor]:
    return {name: p for name, p in module.named_parameters() if "lora_" in name}


def disturb(module: torch.nn.Module) -> None:
    """Adapters that do something: B is zero at first."""
    with torch.no_grad():
        for weight in adapters(module).values():
            weight += 0.3 * torch.randn_like(weight)


def tokens(b: int = 3, t: int = 8) -> torch.Tensor:
    return torch.randint(1, V, (b, t), generator=torch.Generator().manual_seed(0))


def policy(**kwargs) -> GPTPolicy:
    torch.manual_seed(0)
    kwargs = {**SMALL, "lora": {"r": 2}, **kwargs}
    return GPTPolicy(box(WINDOW), spaces.Discrete(V), lambda _: 1e-3, **kwargs)


@pytest.mark.parametrize("name", MODELS)
def test_adapters_start_as_nothing_and_alone_are_trained(name):
    model = backbone(name)
    before = model(tokens())
    add_lora(model, {"r": 2, "alpha": 4})
    torch.testing.assert_close(model(tokens()), before)
    disturb(model)
    assert not torch.allclose(model(tokens()), before, atol=1e-2)
    trained = {name for name, p in model.named_parameters() if p.requires_grad}
    assert trained == set(adapters(model))


def test_an_adapter_is_a_scaled_product_of_two_matrices():
    model = backbone("gpt")
    linear = model.blocks[0].attn.qkv
    add_lora(model, {"r": 2, "alpha": 6, "target_modules": ["qkv"]})
    disturb(model)
    a, b = (p for name, p in adapters(model.blocks[0]).items())
    x = torch.randn(5, 16)
    expected = linear(x) + 6 / 2 * x @ a.T @ b.T
    torch.testing.assert_close(model.blocks[0].attn.qkv(x), expected, **CLOSE)


def gradients(model: torch.nn.Module, autocast: bool) -> torch.Tensor:
    """Those of the adapters, after a step without gradients, and what the step gave."""
    with torch.autocast("cpu", torch.bfloat16, enabled=autocast):
        with torch.no_grad():
            step = model.extend(tokens()[0], np.array([8]), model.new_cache(1), np.arange(1))
        hidden = model(tokens())
    loss = (hidden * torch.linspace(-1, 1, hidden.shape[-1])).sum()
    found = torch.autograd.grad(loss, [*adapters(model).values()])
    return torch.cat([step.flatten(), *(one.flatten() for one in found)])


@pytest.mark.parametrize("name", ["gpt", "llama"])
def test_under_autocast_it_is_as_exact_as_peft_and_notices_other_weights(name, monkeypatch):
    model = backbone(name)
    add_lora(model, {"r": 2, "alpha": 3})
    errors = []
    for _ in range(5):  # a single rounding may favour either
        with torch.no_grad():
            for weight in model.parameters():
                weight += 0.1 * torch.randn_like(weight)
        exact, ours = (gradients(model, autocast) for autocast in (False, True))
        with monkeypatch.context() as patch:
            patch.setattr(AdaptedLinear, "forward", Linear.forward)
            assert_close(gradients(model, False), exact, rtol=1e-4)
            theirs = gradients(model, True)
        errors.append([float((one - exact).norm() / exact.norm()) for one in (ours, theirs)])
    ours, theirs = np.median(errors, 0)
    assert 0 < ours < 1.5 * theirs


@pytest.mark.parametrize("name", MODELS)
def test_cached_equals_uncached(name):
    model = backbone(name)
    add_lora(model, {"r": 2})
    disturb(model)
    cache = model.new_cache(3)
    start = torch.cat([row[:n] for row, n in zip(tokens(), (5, 3, 1))])
    model.extend(start, np.array([5, 3, 1]), cache, np.arange(3))
    cache.lengths[:] = [4, 3, 0]
    hidden = model.extend(tokens()[1, 3:], np.array([5]), cache, np.array([1]))
    torch.testing.assert_close(hidden[0], model(tokens())[1, -1], **CLOSE)


def test_all_linear_maps_are_the_default():
    assert linear_maps(backbone("gpt")) == {"qkv", "proj", "up"}
    assert linear_maps(backbone("gpt2")) == {"c_attn", "c_proj", "c_fc"}
    model = backbone("gpt")
    add_lora(model, {})
    assert len(adapters(model)) == 2 * 2 * 4  # A and B of four maps in each of two layers
    model = backbone("gpt")
    add_lora(model, {"target_modules": ["qkv"]})
    assert {name.split(".")[-4] for name in adapters(model)} == {"qkv"}


@pytest.mark.parametrize(
    ("lora", "message"),
    [
        ({"rank": 2}, r"unknown setting 'rank' in lora.* Known: alpha, dropout, r, target_modules"),
        ({"dropout": 0.1}, "lora: expected dropout 0, got 0.1"),
        ({"r": 0}, "r of lora must be a whole number from 1; got 0"),
        ({"alpha": 0}, "lora: expected an alpha above 0, got 0"),
        ({"target_modules": "qkv"}, "lora: expected target_modules as a list of names, got 'qkv'"),
        (True, "lora: expected a mapping such as {'r': 8}, got True"),
        ({"target_modules": ["qvk"]}, "unknown target module 'qvk' in lora. Did you mean 'qkv'"),
    ],
)
def test_bad_settings_are_explained(lora, message):
    with pytest.raises(ValueError, match=message):
        policy(lora=lora)


def test_what_trains_in_a_policy():
    p = policy(execution={"gradient_checkpointing": True}, share_features_extractor=False)
    trained = {id(q) for group in p.optimizer.param_groups for q in group["params"]}
    heads = [p.value_head.linear.weight, p.value_head.linear.bias]
    expected = [*adapters(p.backbone).values(), *adapters(p.value_backbone).values(), *heads]
    assert trained == {id(q) for q in expected}
    own = policy(tie=False)
    trained = {id(q) for group in own.optimizer.param_groups for q in group["params"]}
    assert id(own.policy_head.weight) in trained


ALGORITHMS = [(PPO, GPTPolicy), (MaskablePPO, MaskableGPTPolicy)]


@pytest.mark.parametrize(("algorithm", "policy_class"), ALGORITHMS)
@pytest.mark.parametrize("checkpointing", by_day([False, True], True))
def test_training_leaves_the_base_alone_and_is_saved(
    algorithm, policy_class, checkpointing, tmp_path
):
    kwargs = {**SMALL, "lora": {"r": 2}, "execution": {"gradient_checkpointing": checkpointing}}
    model = algorithm(
        policy_class,
        make_vec_env(Echo, 4, seed=0),
        n_steps=8,
        batch_size=16,
        n_epochs=2,
        policy_kwargs=kwargs,
        seed=0,
    )
    before = {name: p.clone() for name, p in model.policy.named_parameters()}
    model.learn(64)
    for name, p in model.policy.named_parameters():
        learns = "lora_" in name or name.startswith("value_head")
        assert torch.equal(p, before[name]) != learns, name
    model.save(tmp_path / "model")
    loaded = algorithm.load(tmp_path / "model")
    obs = np.stack([Echo().reset(seed=i)[0] for i in range(6)])
    expected, got = (
        m.policy.get_distribution(torch.tensor(obs)).distribution.probs for m in (model, loaded)
    )
    assert torch.equal(expected, got)
    loaded.set_env(make_vec_env(Echo, 4, seed=0))
    loaded.learn(32)
