"""Q networks, plain and uncertain, and how acts are chosen by them."""

import numpy as np
import pytest
import torch
from stable_baselines3.common.utils import set_random_seed

from agents import QPolicy
from agents.acts.q_network import in_mode
from agents.models.masking import everything
from tests.support.act_mdps import TableEnv, five_states
from tests.support.close import assert_close

ENV = TableEnv(five_states())
KINDS = ("noisy", "dropout", "concrete", "bootstrap", "bayes")
BELIEFS = torch.as_tensor(ENV.beliefs)
MASKS = ENV.table.masks


def made(**settings):
    set_random_seed(0)
    spaces = ENV.observation_space, ENV.action_space
    return QPolicy(*spaces, lambda _: 1e-3, net_arch=[16], **settings)


def test_dueling_networks_have_the_value_as_their_mean():
    network = made(dueling=True).q_net
    q = network(BELIEFS)
    features = network.extract_features(BELIEFS, network.features_extractor)
    assert_close(q.mean(1), network.values(network.q_net(features))[:, 0])
    assert made().q_net.values is None


@pytest.mark.parametrize("kind", KINDS)
def test_draws_differ_and_the_mean_does_not(kind):
    policy = made(uncertainty=kind)
    policy.set_training_mode(False)
    network = policy.q_net
    heads = 10 if kind == "bootstrap" else 1
    assert network.q_values(BELIEFS).shape == (heads, 5, 4)
    assert network(BELIEFS).shape == (5, 4)
    draws = network.draws(BELIEFS, 10)
    assert draws.shape == (10, 5, 4)
    assert draws.std(0).min() > 0
    assert not network.training
    assert torch.equal(network(BELIEFS), network(BELIEFS))
    mean, std = policy.q_distribution(ENV.beliefs, 10)
    assert mean.shape == std.shape == (5, 4)
    assert (std > 0).all()


def test_what_has_no_uncertainty_says_so():
    with pytest.raises(ValueError, match="q_distribution: this network has no uncertainty"):
        made().q_distribution(ENV.beliefs)


@pytest.mark.parametrize("kind", ["none", *KINDS])
@pytest.mark.parametrize("deterministic", [False, True])
def test_no_forbidden_act_is_ever_chosen(kind, deterministic):
    policy = made(uncertainty=kind, test_samples=3)
    rows = np.tile(ENV.beliefs, (100, 1)), np.tile(MASKS, (100, 1))
    acts, _ = policy.predict(rows[0], deterministic=deterministic, action_masks=rows[1], rate=0.5)
    assert rows[1][np.arange(500), acts].all()
    alone, _ = policy.predict(ENV.beliefs[0], action_masks=MASKS[0])
    assert alone.shape == ()


def test_acts_are_random_at_the_rate_asked_for_in_each_row():
    policy = made()
    best = policy.greedy(BELIEFS[:1], everything(1, ENV.action_space))[0]
    acts = policy.explore(BELIEFS[:1].expand(4000, -1), everything(4000, ENV.action_space), 0.4)
    counts = np.bincount(acts, minlength=4) / 4000
    expected = np.where(np.arange(4) == best, 0.7, 0.1)
    assert np.abs(counts - expected).max() < 0.03


def test_a_head_that_is_given_chooses():
    policy = made(uncertainty="bootstrap", uncertainty_kwargs={"n_heads": 4})
    heads = np.array([3, 0, 2, 1, 1])
    acts = policy.explore(BELIEFS, MASKS, 0.0, heads)
    with torch.no_grad():
        q = policy.q_net.q_values(BELIEFS).numpy()
    slow = [np.where(MASKS[i], q[heads[i], i], -np.inf).argmax() for i in range(5)]
    assert acts.tolist() == slow


def test_several_samples_at_test_are_the_same_ones_and_leave_the_generator_alone():
    policy = made(uncertainty="bayes", uncertainty_kwargs={"std": 0.5}, test_samples=5)
    before = torch.get_rng_state()
    first, second = policy._tested(BELIEFS), policy._tested(BELIEFS)
    assert torch.equal(first, second)
    assert torch.equal(before, torch.get_rng_state())
    assert (first - policy.q_net.eval()(BELIEFS)).abs().max() > 0.01
    with torch.no_grad(), in_mode(policy.q_net, training=True):
        many = policy.q_net.q_values(BELIEFS, 20_000)
    policy.test_samples = 20_000
    assert_close(policy._tested(BELIEFS), many.mean(0), rtol=0.1)
