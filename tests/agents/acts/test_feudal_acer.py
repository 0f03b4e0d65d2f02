"""Feudal ACER: one policy of several factors."""

import numpy as np
import pytest
import torch

import dialgym
from agents.acts.feudal.acer import FeudalACER
from tests.support.close import assert_close

CR, SFR = "dialgym/SlotFilling-act-v0", "dialgym/SFRestaurants-Env3-act-v0"
QUICK = {"learning_starts": 40, "policy_kwargs": {"net_arch": [32]}, "device": "cpu"}


@pytest.fixture(scope="module")
def model():
    env = dialgym.sb3_vec_env(CR, 2, seed=0)
    return FeudalACER("MlpPolicy", env, seed=0, **QUICK).learn(150)


def beliefs_and_masks(model, count=100):
    rng = np.random.default_rng(0)
    masks = rng.random((count, model.action_space.n)) < np.linspace(0.05, 1, count)[:, None]
    masks[np.arange(count), rng.integers(model.action_space.n, size=count)] = True
    return rng.random((count, *model.observation_space.shape)).astype(np.float32), masks


def test_logits_are_log_probabilities_of_what_is_allowed(model):
    beliefs, masks = map(torch.from_numpy, beliefs_and_masks(model))
    with torch.no_grad():
        logits, q_values = model.policy.logits_and_values(beliefs, masks)
        values = model.policy.predict_values(beliefs, masks)[:, 0]
    probs = logits.exp()
    assert_close(probs.sum(1), torch.ones(len(probs)))
    assert (probs[~masks] == 0).all()
    assert_close(values, (probs * q_values).sum(1))


def test_a_sub_policy_that_is_not_chosen_does_not_move(model):
    beliefs, masks = (torch.from_numpy(part[-1:]) for part in beliefs_and_masks(model))
    tree = model.policy.actor.hierarchy
    for act in (int(tree.branches.argmin()), int(tree.branches.argmax())):
        logits, _ = model.policy.logits_and_values(beliefs, torch.ones_like(masks))
        model.policy.optimizer.zero_grad()
        logits[0, act].backward()
        parts = (model.policy.actor.general, model.policy.actor.slot)
        moved = [sum(float(p.grad.abs().sum()) for p in part.parameters()) > 0 for part in parts]
        is_general = act in model.structure.general.values()
        assert moved == [is_general, not is_general]
        assert any(float(p.grad.abs().sum()) > 0 for p in model.policy.actor.master.parameters())
