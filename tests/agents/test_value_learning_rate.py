"""The learning rate of what makes values alone."""

import pytest
import torch

import dialgym
from agents import GDPL, NLPO, PG, GPTPolicy, SequencePPO, load
from tests.support.close import assert_close

RATE = 0.1
SGD = {"optimizer_class": torch.optim.SGD}
WORDS = {"n_layer": 1, "n_head": 1, "n_embd": 16, "share_features_extractor": False, **SGD}
ACTS = {"net_arch": [16], **SGD}
OF_TOKENS = {"n_steps": 12, "n_epochs": 1, "batch_size": 10_000, "policy_kwargs": WORDS}
SLOTS = "dialgym/SlotFilling-act-v0"


def gdpl(**settings):
    data = dialgym.collect(SLOTS, "handcrafted", 4, seed=0)
    more = {"n_steps": 16, "batch_size": 32, "n_epochs": 1}
    env = dialgym.sb3_vec_env(SLOTS, 2, seed=0)
    return GDPL("MlpPolicy", env, dataset=data, policy_kwargs=ACTS, **more, **settings)


MAKERS = {
    "ppo": lambda **more: SequencePPO(
        GPTPolicy, dialgym.sb3_vec_env("Wordle-20-v0", 4, seed=0), **OF_TOKENS, **more
    ),
    "nlpo": lambda **more: NLPO(
        GPTPolicy, dialgym.sb3_vec_env("Wordle-20-v0", 4, seed=0), **OF_TOKENS, **more
    ),
    "pg": lambda **more: PG(
        "MlpPolicy",
        dialgym.sb3_vec_env(SLOTS, 4, seed=0),
        baseline="value",
        n_epochs=1,
        batch_size=None,
        policy_kwargs=ACTS,
        **more,
    ),
    "gdpl": gdpl,
}


def moved(make, **settings):
    """How far one update moves each weight, by name."""
    model = make(learning_rate=RATE, max_grad_norm=1e9, seed=0, **settings)
    before = {name: weight.detach().clone() for name, weight in model.policy.named_parameters()}
    model.learn(1)
    return {
        name: weight.detach() - before[name] for name, weight in model.policy.named_parameters()
    }


@pytest.mark.parametrize("algorithm", MAKERS)
def test_values_move_at_their_own_rate_and_nothing_else_does(algorithm):
    """One step of plain gradient descent: half the rate is half the way."""
    together, apart = (
        moved(MAKERS[algorithm], value_learning_rate=rate) for rate in (None, RATE / 2)
    )
    of_values = [name for name in together if "value" in name]
    assert of_values
    assert any(together[name].abs().max() > 0 for name in of_values)
    for name, step in together.items():
        share = 0.5 if name in of_values else 1.0
        assert_close(apart[name].numpy(), share * step.numpy(), 2e-3)


def test_the_rate_is_saved_and_goes_on(tmp_path):
    model = MAKERS["ppo"](value_learning_rate=0.02, seed=0)
    model.learn(1)
    model.save(tmp_path / "model.zip")
    again = load(tmp_path / "model.zip", env=model.get_env())
    assert again.value_learning_rate(1.0) == 0.02
    again.learn(1)
    assert [group["lr"] for group in again.policy.optimizer.param_groups] == [3e-4, 0.02]
