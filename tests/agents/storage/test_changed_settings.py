"""Settings that `load` gives a saved model mean what they mean to its constructor."""

from functools import cache

import pytest
import torch

import agents
import dialgym
from agents import GRPO, ILQL, ActGRPO, DecisionTransformer, SequencePPO

ID, ACTS = "Wordle-20-v0", "SlotFilling-act-v0"
SMALL = {"n_layer": 1, "n_embd": 16, "n_head": 2}


@cache
def env(env_id=ID, count=8):
    return dialgym.sb3_vec_env(env_id, count, seed=0)


@cache
def games():
    return dialgym.collect(ID, "random", 8, seed=0)


@pytest.fixture(scope="module")
def saved(tmp_path_factory):
    """Paths of models before they have learned, by algorithm."""
    folder = tmp_path_factory.mktemp("saved")
    made = {
        "grpo": GRPO("GPTPolicy", env(), n_steps=12, group_size=4, policy_kwargs=SMALL, seed=0),
        "ppo": SequencePPO("GPTPolicy", env(), n_steps=12, policy_kwargs=SMALL, seed=0),
        "acts": ActGRPO("MlpPolicy", env(ACTS), group_size=4, seed=0),
        "ilql": ILQL("GPTPolicy", env(), games(), policy_kwargs=SMALL, seed=0),
        "dt": DecisionTransformer("GPTPolicy", env(), games(), policy_kwargs=SMALL, seed=0),
    }
    for name, model in made.items():
        model.save(folder / name)
    return {name: folder / f"{name}.zip" for name in made}


@pytest.mark.parametrize("name", ["grpo", "ppo", "acts"])
def test_the_coefficient_of_a_divergence_is_that_which_is_given(saved, name):
    given = agents.load(saved[name], env=env(ACTS if name == "acts" else ID), kl={"coef": 3.0})
    assert (given.kl.coef, given.kl_coef) == (3.0, 3.0)
    assert given.reference is not None


def test_a_coefficient_that_was_steered_goes_on_where_nothing_is_given(saved, tmp_path):
    model = agents.load(saved["ppo"], env=env(), kl={"coef": 1.0, "target": 0.1})
    model.kl_coef = 0.3
    model.save(tmp_path / "steered")
    assert agents.load(tmp_path / "steered", batch_size=64).kl_coef == 0.3


def test_another_reference_takes_the_place_of_the_old_one(saved, tmp_path):
    others = []
    for seed in (1, 2):
        SequencePPO("GPTPolicy", env(), policy_kwargs=SMALL, seed=seed).save(tmp_path / str(seed))
        others.append({"coef": 0.1, "reference": str(tmp_path / f"{seed}.zip")})
    agents.load(saved["ppo"], env=env(), kl=others[0]).save(tmp_path / "first")
    found = agents.load(tmp_path / "first", env=env(), kl=others[1])
    expected = agents.load(saved["ppo"], env=env(), kl=others[1])
    assert all(map(torch.equal, found.reference.own, expected.reference.own))
    assert not all(
        map(torch.equal, found.reference.own, agents.load(tmp_path / "first").reference.own)
    )


def test_settings_of_its_own_are_made_of_mappings(saved):
    assert agents.load(saved["ppo"], compute={"autocast": "bf16"}).compute.autocast == "bf16"
    assert agents.load(saved["ilql"], losses={"dm_weight": 0.5}).losses.dm_weight == 0.5
    assert agents.load(saved["ppo"], clip_range=0.3).clip_range(1.0) == 0.3


def test_the_credit_of_groups_is_understood(saved):
    found = agents.load(saved["grpo"], gamma=0.5, credit="anchor", scale_rewards=True)
    assert (found.gamma, found.credit_kwargs) == (0.5, {"weight": 1.0})
    assert found.scale_rewards == "group"
    found = agents.load(saved["acts"], gamma=0.5, credit="turn", scale_rewards=False)
    assert (found.gamma, found.scale_rewards) == (0.5, "none")


def test_a_return_to_earn_is_that_which_is_given(saved):
    assert agents.load(saved["dt"]).policy.target_return == 0.0
    assert agents.load(saved["dt"], target_return=-2.5).policy.target_return == -2.5


@pytest.mark.parametrize(
    ("name", "settings", "message"),
    [
        ("grpo", {"credit": "nonsense"}, "credit of GRPO must be one of"),
        ("grpo", {"credit": "exact", "gamma": 0.5}, "undiscounted values"),
        ("ppo", {"truncation": "terminla"}, "Did you mean 'terminal'"),
        ("ppo", {"kl": {"coeff": 1.0}}, "coeff"),
        ("ilql", {"losses": {"nothing": 1.0}}, "nothing"),
    ],
)
def test_what_cannot_be_is_named(saved, name, settings, message):
    with pytest.raises(ValueError, match=message):
        agents.load(saved[name], **settings)
