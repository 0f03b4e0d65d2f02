"""Policies over beliefs in stock algorithms: several acts within masks, greedy rollouts, clones."""

import numpy as np
import pytest
import torch
from sb3_contrib import MaskablePPO
from stable_baselines3 import A2C, PPO

import agents
import dialgym
from agents import BeliefPolicy
from agents.models.bernoulli import MaskedBernoulli
from tests.support.toy_acts import THINGS

ID = "tests.support.toy_acts:Wishes-act"


def env(rows=4, **kwargs):
    return dialgym.sb3_vec_env(ID, rows, seed=0, **kwargs)


def test_stock_maskable_ppo_takes_it_and_keeps_to_the_masks():
    model = MaskablePPO(BeliefPolicy, env(), n_steps=16, batch_size=32, seed=0)
    assert isinstance(model.policy.action_dist, MaskedBernoulli)
    assert model.policy.action_net.out_features == THINGS
    model.learn(128)
    buffer = model.rollout_buffer
    can_be_1 = buffer.action_masks.reshape(-1, THINGS, 2)[..., 1] > 0
    actions = buffer.actions.reshape(-1, THINGS) > 0
    assert not (actions & ~can_be_1).any()
    assert 0 < (~can_be_1).mean() < 1


def test_on_a_rollout_loss_and_gradient_are_those_of_the_stock_distribution():
    """With the same weights; sb3-contrib has two logits for each entry."""
    ours = MaskablePPO(BeliefPolicy, env(), n_steps=16, batch_size=64, n_epochs=1, seed=0)
    stock = MaskablePPO("MlpPolicy", env(), n_steps=16, batch_size=64, n_epochs=1, seed=0)
    pairs = {name: w.clone() for name, w in ours.policy.state_dict().items()}
    for part in ("action_net.weight", "action_net.bias"):
        own = pairs[part]
        pairs[part] = torch.stack([torch.zeros_like(own), own], 1).flatten(0, 1)
    stock.policy.load_state_dict(pairs)
    seen = torch.rand((8, 2 * THINGS + 1))
    masks = torch.rand((8, THINGS, 2)) < 0.7
    masks[..., 0] |= ~masks[..., 1]
    actions = (masks[..., 1]).float()
    found = [
        model.policy.evaluate_actions(seen, actions, masks.flatten(1)) for model in (ours, stock)
    ]
    for a, b in zip(*found):
        torch.testing.assert_close(a, b)


def test_rollouts_are_greedy_where_asked_for():
    seen = torch.rand((50, 2 * THINGS + 1))
    for greedy in (False, True):
        kwargs = {"greedy_rollouts": greedy}
        model = MaskablePPO(BeliefPolicy, env(), policy_kwargs=kwargs, seed=0)
        with torch.no_grad():
            actions, _, log_probs = model.policy(seen)
            likeliest = model.policy.get_distribution(seen).mode()
        assert (actions == likeliest).all().item() is greedy
        expected = model.policy.get_distribution(seen).log_prob(actions)
        torch.testing.assert_close(log_probs, expected)


@pytest.mark.parametrize("rate", [0.5, 0.02])
def test_an_untrained_policy_chooses_each_act_at_the_initial_rate(rate):
    model = MaskablePPO(BeliefPolicy, env(), policy_kwargs={"initial_rate": rate}, seed=0)
    torch.manual_seed(0)
    drawn, _ = model.policy.predict(np.zeros((4000, 2 * THINGS + 1), np.float32))
    assert drawn.mean() == pytest.approx(rate, rel=0.15)
    with pytest.raises(ValueError, match="initial_rate: expected a number from 0 to 1"):
        MaskablePPO(BeliefPolicy, env(), policy_kwargs={"initial_rate": 1.0})


@pytest.mark.parametrize("algorithm", [PPO, A2C])
def test_stock_algorithms_without_masks_play_several_acts(algorithm):
    model = algorithm("MlpPolicy", env(), n_steps=8, seed=0)
    model.learn(64)
    assert np.isfinite(dialgym.evaluate(model, ID, 4).mean_return)


def test_maskable_ppo_begins_from_a_clone(tmp_path):
    expert = dialgym.collect(ID, "ask-all", 60, seed=0)
    clone = agents.MLE("MlpPolicy", env(), expert, learning_rate=0.01, seed=0).learn(60)
    clone.save(tmp_path / "clone")
    overrides = {"policy": "agents.BeliefPolicy", "policy_kwargs": {"net_arch": [64, 64]}}
    arguments = {"hyperparameters": {**overrides, "learning_rate": 1e-8}, "progress_bar": False}
    model = agents.train(
        ID,
        "maskable-ppo",
        total_timesteps=64,
        log_dir=tmp_path,
        init_from=tmp_path / "clone.zip",
        **arguments,
    )
    seen = np.random.default_rng(0).random((20, 2 * THINGS + 1)).astype(np.float32)
    chosen = [m.predict(seen, deterministic=True)[0].tolist() for m in (model, clone)]
    assert chosen[0] == chosen[1]
    other = dialgym.sb3_vec_env(ID, 2, learner="user")
    with pytest.raises(ValueError, match=r"expected beliefs of shape \(12,\) and actions"):
        agents.start_from(MaskablePPO(BeliefPolicy, other).policy, clone)
    wide = MaskablePPO(BeliefPolicy, env(), policy_kwargs={"net_arch": [32]})
    with pytest.raises(ValueError, match=r"cannot start from this MLE: expected .* of shape"):
        agents.start_from(wide.policy, clone)
    rectified = MaskablePPO(BeliefPolicy, env(), policy_kwargs={"activation_fn": torch.nn.ReLU})
    with pytest.raises(ValueError, match="expected a network of ReLU, got one of Tanh; give activ"):
        agents.start_from(rectified.policy, clone)


def test_it_is_saved_with_its_own_arguments(tmp_path):
    kwargs = {"greedy_rollouts": True, "initial_rate": 0.1}
    model = MaskablePPO(BeliefPolicy, env(), policy_kwargs=kwargs, seed=0)
    agents.save(model, tmp_path / "model")
    found = agents.load(tmp_path / "model").policy
    assert (found.greedy_rollouts, found.initial_rate) == (True, 0.1)
    assert found._get_constructor_parameters().items() >= kwargs.items()
