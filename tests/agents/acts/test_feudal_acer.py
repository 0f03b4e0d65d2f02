"""Feudal ACER: one policy of several factors, learned, within masks, saved, in other domains."""

import io

import numpy as np
import pytest
import torch

import agents
import dialgym
from agents.acts.feudal.acer import FeudalACER
from tests.support.act_mdps import five_states, greedy_return, vec_env
from tests.support.close import assert_close
from tests.support.slot_mdp import slot_vec_env

CR, SFR = "dialgym/SlotFilling-act-v0", "dialgym/SFRestaurants-Env3-act-v0"
QUICK = {"learning_starts": 40, "policy_kwargs": {"net_arch": [32]}, "device": "cpu"}


@pytest.fixture(scope="module")
def model():
    env = dialgym.sb3_vec_env(CR, 2, seed=0)
    return FeudalACER("MlpPolicy", env, seed=0, **QUICK).learn(150)


def test_learns_the_masked_mdp_to_the_optimum():
    env = slot_vec_env(five_states(), rows=4)
    model = FeudalACER(
        "MlpPolicy", env, seed=0, learning_rate=5e-3, exploration_initial_eps=0.2, **QUICK
    ).learn(1500)
    assert greedy_return(model, five_states()) == pytest.approx(five_states().best_return())


def beliefs_and_masks(model, count=100):
    rng = np.random.default_rng(0)
    masks = rng.random((count, model.action_space.n)) < np.linspace(0.05, 1, count)[:, None]
    masks[np.arange(count), rng.integers(model.action_space.n, size=count)] = True
    return rng.random((count, *model.observation_space.shape)).astype(np.float32), masks


@pytest.mark.parametrize("deterministic", [True, False])
def test_masks_are_never_violated(model, deterministic):
    beliefs, masks = beliefs_and_masks(model)
    acts, _ = model.predict(beliefs, deterministic=deterministic, action_masks=masks)
    assert masks[np.arange(len(masks)), acts].all()


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


def test_a_saved_model_acts_and_learns_on_alike(model):
    file = io.BytesIO()
    agents.save(model, file)
    file.seek(0)
    again = agents.load(file, device="cpu", env=dialgym.sb3_vec_env(CR, 2, seed=1))
    beliefs, masks = beliefs_and_masks(model)
    chosen = [m.predict(beliefs, deterministic=True, action_masks=masks)[0] for m in (model, again)]
    assert (chosen[0] == chosen[1]).all()
    again.learn(50)


def test_it_acts_in_another_domain_by_what_it_learned(model):
    env = dialgym.sb3_vec_env(SFR, 2, seed=0)
    other = model.transferred(env)
    weights = zip(model.policy.parameters(), other.policy.parameters())
    assert all(torch.equal(one, two) for one, two in weights)
    acts, _ = other.predict(env.reset(), action_masks=env.env_method("action_masks"))
    assert acts.shape == (2,)
    other.learn(60)
    assert other.replay_buffer.size() > 0


def test_an_env_that_says_nothing_of_its_acts_is_an_error():
    with pytest.raises(ValueError, match="FeudalACER: expected an env that says what its beliefs"):
        FeudalACER("MlpPolicy", vec_env(five_states()))
