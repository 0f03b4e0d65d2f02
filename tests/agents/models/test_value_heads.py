"""Your own value heads, by name."""

import numpy as np
import pytest
import torch
from stable_baselines3.common.env_util import make_vec_env
from torch import nn

import agents
from agents import ILQL, SequencePPO, ValueGPTPolicy
from agents.models.heads import MLPHead
from agents.training.hyperparameters import read_hyperparameters
from tests.support.by_day import by_day
from tests.support.resuming import assert_comes_back
from tests.support.toy_policies import policy
from tests.support.toy_tokens import Echo

ID = "dialgym/Wordle-20-v0"
HERE = "tests.agents.models.test_value_heads"
SMALL = {"n_layer": 1, "n_embd": 16}


@agents.storable
class Scaled(nn.Module):
    """A linear head times a number."""

    def __init__(self, width: int, by: float = 2.0) -> None:
        super().__init__()
        self.linear, self.by = nn.Linear(width, 1), by

    def forward(self, hidden):
        return self.by * self.linear(hidden)


class Wide(nn.Linear):
    """Two values where there should be one."""

    def __init__(self, width: int) -> None:
        super().__init__(width, 2)


def learner(head, **more):
    kwargs = {**SMALL, "value_head": head, **more}
    env = make_vec_env(Echo, 4, seed=0)
    return SequencePPO("GPTPolicy", env, n_steps=10, policy_kwargs=kwargs, seed=0)


@pytest.mark.parametrize(
    "name",
    [f"{HERE}:Scaled", f"{HERE}.Scaled", Scaled],
)
@pytest.mark.parametrize("shared", by_day([True, False], True))
def test_a_head_by_name_gives_the_values_learns_and_is_saved(name, shared, tmp_path):
    model = learner({"class": name, "by": 3.0}, share_features_extractor=shared)
    assert type(model.policy.value_head).__name__ == "Scaled"
    obs = torch.as_tensor(np.stack([Echo().reset(seed=i)[0] for i in range(4)]))
    before = model.policy.predict_values(obs)
    hidden = model.policy._value_hidden(obs)
    torch.testing.assert_close(before, 3 * model.policy.value_head.linear(hidden))
    model.learn(80)
    after = model.policy.predict_values(obs)
    assert not torch.allclose(before, after)
    loaded = assert_comes_back(model, tmp_path / "model.zip").policy
    torch.testing.assert_close(loaded.predict_values(obs), after)


def test_our_other_head_may_be_named():
    head = policy(value_head={"class": "agents.models.heads.MLPHead", "outputs": 1}).value_head
    assert type(head) is MLPHead


def test_an_unknown_setting_is_one_clear_error():
    with pytest.raises(ValueError, match=r"unknown setting 'cached' in execution\. Did you mean"):
        policy(execution={"cached": False})


def test_offline_learners_take_it_too():
    env = make_vec_env(Echo, 1)
    kwargs = {**SMALL, "value_head": f"{HERE}:Scaled"}
    model = ILQL(ValueGPTPolicy, env, policy_kwargs=kwargs, seed=0)
    assert type(model.policy.value_head).__name__ == "Scaled"


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("nowhere:Head", "value_head: expected a dotted name such as agents.models.heads.MLPHead"),
        ("Scaled", "value_head: expected a dotted name .* got 'Scaled'"),
        (f"{HERE}:Wide", "got Wide with values of shape .2, 3, 2"),
        (f"{HERE}:learner", "takes hidden states .* got AttributeError|got TypeError"),
        ("agents.models.heads.MLPHead", r"got TypeError: .*missing 1 required .* 'outputs'"),
    ],
)
def test_a_head_that_cannot_be_is_one_clear_error(name, message):
    with pytest.raises(ValueError, match=message):
        policy(value_head=name)


def test_its_name_stands_in_a_file_of_hyperparameters():
    given = {"policy_kwargs": {"value_head": f"{HERE}:Scaled"}}
    found = read_hyperparameters("ppo", ID, given)["policy_kwargs"]["value_head"]
    assert found == f"{HERE}:Scaled"
    with pytest.raises(ValueError, match="Did you mean 'value_head'"):
        read_hyperparameters("ppo", ID, {"policy_kwargs": {"value_heads": "x"}})
