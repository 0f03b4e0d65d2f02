"""The natural gradient of ENAC against the normal equations, and its parts against slow ones."""

import numpy as np
import pytest
import torch

from agents import ENAC
from agents.belief.enac import natural_gradient
from tests.support.act_mdps import five_states, vec_env
from tests.support.close import assert_close


@pytest.mark.parametrize("shape", [(30, 4), (5, 40)], ids=["many dialogues", "many weights"])
@pytest.mark.parametrize("damping", [0.05, 1.0])
def test_it_solves_the_normal_equations(shape, damping):
    rng = np.random.default_rng(0)
    phi, returns, weights = rng.normal(size=shape), rng.normal(size=shape[0]), rng.random(shape[0])
    arrays = (torch.as_tensor(array) for array in (phi, returns, weights))
    found, mean = natural_gradient(*arrays, damping)
    # Of phi with a column of ones: (X' W X + L) w = X' W R, the constant free of the ridge.
    ones, count = np.ones((shape[0], 1)), shape[1]
    x, w = np.hstack((phi, ones)), np.diag(weights)
    ridge = np.diag([damping * np.mean(weights * (phi**2).sum(1))] * count + [0.0])
    wanted = np.linalg.solve(x.T @ w @ x + ridge, x.T @ w @ returns)
    assert_close(found, wanted[:-1], 1e-8)
    assert_close(mean, wanted[-1], 1e-8)


def test_of_an_exact_model_it_is_the_slope():
    rng = np.random.default_rng(1)
    phi, slope = rng.normal(size=(50, 3)), np.array([1.0, -2.0, 0.5])
    arrays = (torch.as_tensor(array) for array in (phi, phi @ slope + 7, np.ones(50)))
    found, mean = natural_gradient(*arrays, 1e-10)
    assert_close(found, slope)
    assert_close(mean, 7.0)


@pytest.fixture(scope="module")
def played():
    model = ENAC(
        "MlpPolicy", vec_env(five_states(), 2), seed=0, gamma=0.8, batch_size=8,
        learning_starts=10**6, ent_coef=0.0,
    )  # fmt: skip
    model.learn(300)
    return model, model.replay_buffer.draw(5)


def dialogues(batch):
    ends = np.flatnonzero(batch.last) + 1
    return [range(a, b) for a, b in zip([0, *ends], ends)]


def log_probs(model, batch):
    logits, _ = model.policy.logits_and_values(batch.observations, batch.masks)
    return logits.log_softmax(-1).gather(1, batch.actions[:, None])[:, 0]


def test_rows_are_gradients_of_dialogues(played):
    model, batch = played
    found = model.features(batch, log_probs(model, batch))
    for row, steps in zip(found, dialogues(batch)):
        chosen = log_probs(model, batch)
        total = sum(0.8**t * chosen[n] for t, n in enumerate(steps))
        parts = torch.autograd.grad(total, model.actor)
        assert_close(row, torch.cat([part.flatten() for part in parts]))


def test_returns_are_of_whole_dialogues(played):
    model, batch = played
    found = model.returns(batch, torch.zeros(len(batch.rewards)))[batch.last.roll(1)]
    wanted = []
    for steps in dialogues(batch):
        paid = sum(0.8**t * float(batch.rewards[n]) for t, n in enumerate(steps))
        if batch.cut[steps[-1]]:
            value = model.policy.predict_values(batch.after[steps[-1]][None])
            paid += 0.8 ** len(steps) * float(value)
        wanted.append(paid)
    assert_close(found, wanted)


def test_weights_are_of_whole_dialogues(played):
    model, batch = played
    chosen = log_probs(model, batch).detach()
    found = model.ratios(batch, chosen)
    ratios = chosen.exp() / batch.behaviour
    assert_close(found, [float(ratios[list(steps)].prod()) for steps in dialogues(batch)])


def test_a_step_changes_dialogues_by_no_more_than_it_may():
    model = ENAC("MlpPolicy", vec_env(five_states(), 2), seed=0, step_size=100.0, max_kl=0.02)
    rng = torch.Generator().manual_seed(0)
    features, weights = torch.randn(20, 30, generator=rng), torch.randn(30, generator=rng)
    step = model.step(features, weights)
    assert_close(0.5 * (features @ (step * weights)).square().mean(), 0.02)
    model.step_size = 1e-4
    assert_close(model.step(features, weights), 1e-4)
