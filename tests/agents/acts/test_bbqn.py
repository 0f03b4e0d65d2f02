"""BBQN: losses of both divergences, learning, and an uncertainty that falls with what is seen."""

import numpy as np
import pytest
import torch
from stable_baselines3.common.logger import Logger

from agents import BBQN
from tests.agents.acts.test_dqn import SMALL
from tests.support.act_mdps import (
    TableEnv,
    five_states,
    greedy_return,
    long_chain,
    noisy_bandit,
    vec_env,
)
from tests.support.by_day import by_day
from tests.support.close import assert_close

ERRORS = torch.randn(7, 5, generator=torch.Generator().manual_seed(3))
HEADS = torch.ones(1, 5)


def made(table=None, **settings):
    given = {**SMALL, **settings}
    given["policy_kwargs"] = {"net_arch": [32], **settings.get("policy_kwargs", {})}
    model = BBQN("MlpPolicy", vec_env(table or five_states(), 4), **given)
    model.set_logger(Logger(None, []))
    return model


def test_kl_is_the_expected_square():
    found = made(divergence="kl").misfit(ERRORS, HEADS)
    assert_close(found, (ERRORS**2 / 2).mean(0))


def test_alpha_is_that_of_a_slow_version_and_between_its_limits():
    model = made(divergence="alpha", alpha=0.3, kl_coef=0.2)
    slow = -np.log(np.exp(-0.3 * ERRORS.double().numpy() ** 2 / 0.4).mean(0)) * 0.2 / 0.3
    assert_close(model.misfit(ERRORS, HEADS), slow)
    model.alpha = 1e-4
    assert_close(model.misfit(ERRORS, HEADS), (ERRORS**2 / 2).mean(0), rtol=2e-3)
    model.alpha = 1.0
    likelihood = torch.exp(-(ERRORS**2) / 0.4).mean(0)
    assert_close(model.misfit(ERRORS, HEADS), -0.2 * likelihood.log())


@pytest.mark.parametrize(("divergence", "samples"), [("kl", 1), ("kl", 3), ("alpha", 4)])
def test_the_loss_adds_the_share_of_a_batch_in_the_divergence(divergence, samples):
    model = made(divergence=divergence, n_samples=samples, kl_coef=0.05).learn(100)
    batch = model.replay_buffer.sample(8)
    torch.manual_seed(1)
    loss, _ = model.loss(batch)
    torch.manual_seed(1)
    q = model.estimates(batch.observations)
    assert q.shape == (samples, 8, 4)
    chosen = torch.stack([q[:, i, act] for i, act in enumerate(batch.actions)], 1)
    fit = model.misfit(model.targets(batch) - chosen, HEADS).mean()
    assert_close(loss, fit + 0.05 * model.policy.q_net.divergence() / 100)


@pytest.mark.parametrize("divergence", by_day(["kl", "alpha"], "kl"))
def test_it_learns_the_masked_states_to_the_optimum(divergence):
    model = made(divergence=divergence, n_samples=2).learn(700)
    assert greedy_return(model, five_states()) == pytest.approx(0.7)


@pytest.mark.slow
def test_it_finds_the_better_arm_through_noise_and_knows_most_of_what_it_does_most():
    model = made(noisy_bandit(), kl_coef=1.0).learn(4000)
    assert greedy_return(model, noisy_bandit()) == pytest.approx(0.85)
    mean, std = model.q_distribution(TableEnv(noisy_bandit()).beliefs, 200)
    best = mean[[0, 1], [2, 0]]
    assert np.abs(best - [0.8, 0.9]).max() < 0.35
    assert (std[[0, 1], [2, 0]] < std[[0, 1], [4, 3]]).all()  # those are forbidden, never tried


@pytest.mark.slow
def test_drawing_weights_goes_down_a_long_chain():
    model = made(long_chain(10)).learn(16_000)
    assert greedy_return(model, long_chain(10)) == pytest.approx(1.0)
