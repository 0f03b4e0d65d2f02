"""The natural gradient of ENAC against the normal equations, and its parts against slow ones."""

import numpy as np
import pytest
import torch

from agents import ENAC
from agents.acts.enac import natural_gradient, watched
from tests.support.act_mdps import five_states, vec_env
from tests.support.close import assert_close


@pytest.mark.parametrize("shape", [(30, 4), (5, 40)], ids=["many dialogues", "many weights"])
@pytest.mark.parametrize("damping", [0.05, 1.0])
def test_it_solves_the_normal_equations(shape, damping):
    rng = np.random.default_rng(0)
    phi, returns, weights = rng.normal(size=shape), rng.normal(size=shape[0]), rng.random(shape[0])
    found = natural_gradient(*map(torch.as_tensor, (phi @ phi.T, returns, weights)), damping)
    # Of phi with a column of ones: (X' W X + L) w = X' W R, the constant free of the ridge.
    ones, count = np.ones((shape[0], 1)), shape[1]
    x, w = np.hstack((phi, ones)), np.diag(weights)
    ridge = np.diag([damping * np.mean(weights * (phi**2).sum(1))] * count + [0.0])
    wanted = np.linalg.solve(x.T @ w @ x + ridge, x.T @ w @ returns)
    assert_close(phi.T @ found.u.numpy(), wanted[:-1], 1e-8)
    assert_close(found.slope, phi @ wanted[:-1], 1e-8)
    assert_close(found.mean, wanted[-1], 1e-8)


def test_of_an_exact_model_it_is_the_slope():
    rng = np.random.default_rng(1)
    phi, slope = rng.normal(size=(50, 3)), np.array([1.0, -2.0, 0.5])
    returns = phi @ slope + 7
    found = natural_gradient(*map(torch.as_tensor, (phi @ phi.T, returns, np.ones(50))), 1e-10)
    assert_close(phi.T @ found.u.numpy(), slope)
    assert_close(found.mean, 7.0)


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


def weights(model):
    return [parameter for layer in model.actor for parameter in layer.parameters()]


def rows(model, batch):
    """phi (n, P), one dialogue after the other."""
    found = []
    for steps in dialogues(batch):
        chosen = log_probs(model, batch)
        total = sum(0.8**t * chosen[n] for t, n in enumerate(steps))
        parts = torch.autograd.grad(total, weights(model))
        found.append(torch.cat([part.flatten() for part in parts]))
    return torch.stack(found)


def test_the_gram_matrix_is_that_of_gradients_of_dialogues(played):
    model, batch = played
    with watched(model.actor) as calls:
        chosen = log_probs(model, batch)
    phi = rows(model, batch)
    assert_close(model.gram(batch, chosen * model.discounts(batch), calls), phi @ phi.T)


def test_weights_move_along_the_natural_gradient(played):
    model, batch = played
    phi, before = rows(model, batch), flat(model)
    returns = model.returns(batch, torch.zeros(len(batch.rewards)))[batch.last.roll(1)]
    trusted = model.ratios(batch, log_probs(model, batch).detach()).clamp(max=1.0)
    wanted = natural_gradient(phi @ phi.T, returns, trusted, model.damping)
    step = (2 * model.max_kl / wanted.slope.square().mean()).sqrt().clamp(max=model.step_size)
    model.update(batch)
    assert_close(flat(model) - before, step * phi.T @ wanted.u, 1e-4)
    with torch.no_grad():
        torch.nn.utils.vector_to_parameters(before, weights(model))


def flat(model):
    return torch.cat([parameter.detach().flatten() for parameter in weights(model)])


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
    slope = torch.randn(20, generator=torch.Generator().manual_seed(0))
    assert_close(0.5 * (model.step(slope) * slope).square().mean(), 0.02)
    model.step_size = 1e-4
    assert_close(model.step(slope), 1e-4)
