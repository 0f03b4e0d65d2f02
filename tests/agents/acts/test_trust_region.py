"""The projected gradient against a solver, and the trust region against the KL divergence."""

import numpy as np
import pytest
import torch
from scipy.optimize import minimize

import agents
from agents.acts.actor_critic import ActorCritic
from agents.acts.tracer import TRACER
from agents.acts.trust_region import projected
from agents.storage.archive import MODEL, Archive, copy_archive
from tests.support.act_mdps import five_states, vec_env
from tests.support.close import assert_close


@pytest.mark.parametrize("delta", [0.0, 0.1, 1.0])
def test_the_projection_solves_its_quadratic_program(delta):
    rng = np.random.default_rng(0)
    gradients, kl_gradients = rng.normal(size=(2, 12, 4))
    found = projected(torch.tensor(gradients), torch.tensor(kl_gradients), delta).numpy()
    for g, k, z in zip(gradients, kl_gradients, found):
        bound = {"type": "ineq", "fun": lambda x, k=k: delta - k @ x, "jac": lambda x, k=k: -k}
        solved = minimize(
            lambda x, g=g: 0.5 * ((x - g) ** 2).sum(),
            np.zeros(4),
            jac=lambda x, g=g: x - g,
            constraints=[bound],
            method="SLSQP",
            options={"ftol": 1e-14},
        )
        np.testing.assert_allclose(z, solved.x, atol=1e-6)
        assert k @ z <= delta + 1e-9


def test_a_gradient_within_the_region_stays_as_it_is():
    gradient, kl_gradient = torch.tensor([[1.0, -1.0]]), torch.tensor([[-0.5, 0.5]])
    assert torch.equal(projected(gradient, kl_gradient, 0.01), gradient)
    assert torch.equal(projected(gradient, torch.zeros(1, 2), 0.01), gradient)


def region(delta):
    """A learner that has gone away from its average, a batch, its logits, and what to raise."""
    model = TRACER(
        "MlpPolicy", vec_env(five_states(), 2), seed=0, trust_delta=delta, average_tau=0.001,
        learning_rate=1e-2, exploration_final_eps=0.5, exploration_initial_eps=0.5,
    )  # fmt: skip
    model.learn(600)
    batch = model.replay_buffer.draw(20)
    logits, _ = model.policy.logits_and_values(batch.observations, batch.masks)
    log_probs = logits.log_softmax(-1)
    gain = log_probs.gather(1, batch.actions[:, None])[:, 0] * torch.linspace(-3, 3, len(logits))
    return model.trust_region, batch, logits, gain


def test_without_a_bound_the_gradient_is_the_plain_one():
    trust_region, batch, logits, gain = region(float("inf"))
    (wanted,) = torch.autograd.grad(-gain.mean(), logits, retain_graph=True)
    (found,) = torch.autograd.grad(trust_region.loss(batch, logits, gain), logits)
    assert_close(found, wanted)


def test_a_step_along_the_gradient_raises_the_divergence_by_no_more_than_delta():
    """To first order, at each decision; the plain gradient raises some by more."""
    delta = 0.01
    trust_region, batch, logits, gain = region(delta)
    average, _ = trust_region.average.logits_and_values(batch.observations, batch.masks)
    kl = torch.nn.functional.kl_div(
        logits.log_softmax(-1), average.log_softmax(-1), log_target=True, reduction="none"
    ).sum(-1)
    (slope,) = torch.autograd.grad(kl.sum(), logits, retain_graph=True)
    (descent,) = torch.autograd.grad(trust_region.loss(batch, logits, gain), logits,
                                     retain_graph=True)  # fmt: skip
    (plain,) = torch.autograd.grad(gain.sum(), logits)
    rises = -(slope * descent).sum(-1) * len(logits)
    assert (rises <= delta + 1e-6).all()
    assert ((slope * plain).sum(-1) > 2 * delta).any()


def test_the_average_follows_the_policy():
    trust_region, *_ = region(1.0)
    policy = ActorCritic("MlpPolicy", vec_env(five_states(), 2), seed=1).policy
    before = [p.clone() for p in trust_region.average.parameters()]
    trust_region.tau = 0.25
    trust_region.follow(policy)
    for old, now, own in zip(before, trust_region.average.parameters(), policy.parameters()):
        assert_close(now, 0.75 * old + 0.25 * own)
    trust_region.begin(policy)
    assert torch.equal(next(trust_region.average.parameters()), next(policy.parameters()))


def test_a_file_without_an_average_begins_with_the_policy(tmp_path):
    model = TRACER("MlpPolicy", vec_env(five_states(), 2), seed=0, learning_starts=10)
    model.learn(200)
    model.save(tmp_path / "whole.zip")
    algorithm = Archive(tmp_path / "whole.zip", MODEL).read("algorithm")
    changes = {"trust_region": None, "algorithm": {**algorithm, "networks": ["policy"]}}
    copy_archive(tmp_path / "whole.zip", tmp_path / "copy.zip", MODEL, changes)
    found = agents.load(tmp_path / "copy.zip", device="cpu")
    pairs = zip(found.trust_region.average.parameters(), model.policy.parameters())
    assert all(torch.equal(a, b) for a, b in pairs)
    kept = zip(found.trust_region.average.parameters(), model.trust_region.average.parameters())
    assert not all(torch.equal(a, b) for a, b in kept)
