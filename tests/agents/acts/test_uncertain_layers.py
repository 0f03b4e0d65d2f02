"""Layers with uncertain weights, against closed forms and slow versions."""

import math

import pytest
import torch
from torch.distributions import Normal, kl_divergence
from torch.nn.functional import softplus

from agents.acts.uncertain_layers import (
    LAYERS,
    BayesLinear,
    ConcreteDropoutLinear,
    NoisyLinear,
    gaussian_kl,
    make_linear,
)
from tests.support.close import assert_close

DRAWS = 40_000


@pytest.fixture(autouse=True)
def seed():
    torch.manual_seed(0)


def moments(layer, x):
    with torch.no_grad():
        drawn = layer(x.expand(DRAWS, -1))
        return drawn.mean(0), drawn.var(0), layer.eval()(x)


def test_noise_is_that_of_the_factorised_gaussian():
    layer, x = NoisyLinear(3, 2), torch.tensor([0.5, -1.0, 2.0])
    mean, variance, certain = moments(layer, x)
    size = math.sqrt(2 / math.pi)  # of f(e)^2, which is |e|
    inner = layer.bias_std.square() + size * layer.weight_std.square() @ x.square()
    assert_close(certain, layer.weight @ x + layer.bias)
    assert_close(mean, certain, rtol=0.03)
    assert_close(variance, size * inner, rtol=0.06)
    assert_close(layer.weight_std, torch.full((2, 3), 0.5 / math.sqrt(3)))


def test_outputs_are_those_of_gaussian_weights():
    layer, x = BayesLinear(3, 2, std=0.3), torch.tensor([0.5, -1.0, 2.0])
    mean, variance, certain = moments(layer, x)
    stds = softplus(layer.weight_rho), softplus(layer.bias_rho)
    assert_close(stds[0], torch.full((2, 3), 0.3))
    weights = layer.weight + stds[0] * torch.randn(DRAWS, 2, 3)
    slow = weights @ x + layer.bias + stds[1] * torch.randn(DRAWS, 2)
    assert_close(mean, certain, rtol=0.03)
    assert_close(variance, slow.var(0), rtol=0.05)


def test_the_divergence_is_the_analytic_one_and_that_of_samples():
    mean, std = torch.randn(50), torch.rand(50) + 0.1
    own, prior = Normal(mean, std), Normal(torch.zeros(50), torch.full((50,), 0.7))
    analytic = kl_divergence(own, prior).sum()
    assert_close(gaussian_kl(mean, std, 0.7), analytic)
    drawn = own.sample((20_000,))
    assert_close((own.log_prob(drawn) - prior.log_prob(drawn)).sum(1).mean(), analytic, rtol=0.01)
    layer = BayesLinear(4, 3, prior_std=0.7, std=0.2)
    parts = [(layer.weight, layer.weight_rho), (layer.bias, layer.bias_rho)]
    slow = sum(kl_divergence(Normal(m, softplus(r)), Normal(0.0, 0.7)).sum() for m, r in parts)
    assert_close(layer.divergence(), slow)


def test_a_relaxed_mask_drops_at_its_rate_and_keeps_the_mean():
    layer = ConcreteDropoutLinear(1, 1, rate=0.3, temperature=0.01)
    torch.nn.init.ones_(layer.weight)
    torch.nn.init.zeros_(layer.bias)
    with torch.no_grad():
        drawn = layer(torch.ones(DRAWS, 1))
    assert_close((drawn < 0.5).float().mean(), 0.3, rtol=0.03)
    assert_close(drawn.mean(), 1.0, rtol=0.02)
    assert layer.eval()(torch.ones(1, 1)).item() == 1


def test_the_rate_of_dropout_has_the_gradient_of_its_objective():
    layer = ConcreteDropoutLinear(3, 2, rate=0.2, length_scale=0.5)
    layer.divergence().backward()

    def slow(logit):
        rate = torch.sigmoid(logit)
        entropy = -(rate * rate.log() + (1 - rate) * (1 - rate).log())
        kept = (layer.weight.detach() / (1 - rate)).square().sum() * (1 - rate)
        return 0.5**2 / 2 * kept - 3 * entropy

    at, step = layer.rate_logit.detach().double(), 1e-5
    slope = (slow(at + step) - slow(at - step)) / (2 * step)
    assert_close(layer.divergence(), slow(at))
    assert_close(layer.rate_logit.grad, slope, rtol=1e-3)


@pytest.mark.parametrize("kind", LAYERS)
def test_each_row_has_noise_of_its_own_and_none_in_evaluation(kind):
    layer = make_linear(kind, {})(6, 2)
    x = torch.ones(8, 6)
    assert len(layer(x).unique(dim=0)) > 1
    assert not torch.equal(layer(x), layer(x))
    assert len(layer.eval()(x).unique(dim=0)) == 1
