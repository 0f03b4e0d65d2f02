"""The gradient of ACER against one written out act by act."""

import numpy as np
import pytest
import torch

from agents import ACER
from agents.buffers.dialogues import DialogueSample
from tests.support.act_mdps import five_states, vec_env
from tests.support.close import assert_close

ACTS = 4


def made(**settings):
    return ACER("MlpPolicy", vec_env(five_states(), 2), seed=0, **settings)


def batch(seed=0):
    """Six decisions of two dialogues; the behaviour never chooses act 1 of the first state."""
    rng = np.random.default_rng(seed)
    masks = rng.random((6, ACTS)) < 0.7
    masks[:, 0] = True
    probs = rng.random((6, ACTS)) * masks
    masks[0, 1], probs[0, 1] = True, 0.0
    probs /= probs.sum(1, keepdims=True)
    actions = np.array([rng.choice(ACTS, p=row) for row in probs])
    columns = {
        "observations": np.eye(5, dtype=np.float32)[[0, 1, 2, 0, 3, 4]],
        "actions": actions,
        "rewards": rng.normal(size=6).astype(np.float32),
        "masks": masks,
        "probs": probs.astype(np.float32),
        "last": np.array([0, 0, 1, 0, 0, 1], bool),
        "cut": np.zeros(6, bool),
        "after": np.zeros((6, 5), np.float32),
        "masks_after_cut": rng.random((6, ACTS)) < 0.5,
    }
    return DialogueSample(**{name: torch.as_tensor(column) for name, column in columns.items()})


@pytest.mark.parametrize("max_weight", [0.5, 2.0, 1e9])
def test_the_gradient_is_that_of_equation_7(max_weight):
    model, seen = made(max_weight=max_weight), batch()
    rng = torch.Generator().manual_seed(3)
    logits = torch.randn(6, ACTS, generator=rng).masked_fill(~seen.masks, -1e8).requires_grad_()
    q_values = torch.randn(6, ACTS, generator=rng)
    targets = torch.randn(6, generator=rng)
    gain = model.gain(seen, logits.log_softmax(-1), q_values, targets)
    (found,) = torch.autograd.grad(gain.sum(), logits)
    wanted = np.zeros((6, ACTS))
    for n in range(6):
        pi, mu, q = (t[n].detach().double().numpy() for t in (logits.softmax(-1), seen.probs,
                                                              q_values))  # fmt: skip
        value, chosen = pi @ q, int(seen.actions[n])
        for act in range(ACTS):
            score = np.eye(ACTS)[act] - pi  # of log pi(act), by the logits
            rho = pi[act] / mu[act] if mu[act] else np.inf
            if act == chosen:
                wanted[n] += min(max_weight, rho) * score * (float(targets[n]) - value)
            if pi[act]:
                left_out = max(0.0, 1 - max_weight / rho)
                wanted[n] += left_out * pi[act] * score * (q[act] - value)
    assert_close(found, wanted, 1e-5)


def test_truncation_and_correction_together_have_no_bias():
    """With Q^ret = Q the expected gradient is that of V, however small c is."""
    model, seen = made(max_weight=0.3), batch()
    logits = torch.randn(6, ACTS).masked_fill(~seen.masks, -1e8).requires_grad_()
    q_values, log_probs = torch.randn(6, ACTS), logits.log_softmax(-1)
    # Each act in the place of the one that was chosen, by its probability; 0 has no expectation.
    everywhere = seen._replace(probs=seen.masks / seen.masks.sum(-1, keepdim=True))
    total = torch.zeros(())
    for act in range(ACTS):
        taken = everywhere._replace(actions=torch.full((6,), act))
        inside = taken.masks[:, act]
        gain = model.gain(
            DialogueSample(*(column[inside] for column in taken)),
            log_probs[inside], q_values[inside], q_values[inside, act],
        )  # fmt: skip
        total = total + (everywhere.probs[inside, act] * gain).sum()
    (found,) = torch.autograd.grad(total, logits, retain_graph=True)
    (wanted,) = torch.autograd.grad((log_probs.exp() * q_values).sum(), logits)
    assert_close(found, wanted, 1e-5)


def test_values_are_the_mean_of_q_under_the_policy():
    policy = made().policy
    beliefs, masks = torch.eye(5), torch.as_tensor(five_states().masks)
    logits, q_values = policy.logits_and_values(beliefs, masks)
    assert q_values.shape == (5, ACTS)
    wanted = (logits.softmax(-1) * q_values).sum(-1, keepdim=True)
    assert_close(policy.predict_values(beliefs, masks), wanted)


def test_dialogues_that_a_limit_cut_off_are_bootstrapped():
    model, seen = made(gamma=0.5), batch()
    with torch.no_grad():
        model.policy.value_net.weight.normal_(generator=torch.Generator().manual_seed(0))
    after = torch.eye(5)[[0, 0, 2, 0, 0, 4]]
    cut = torch.tensor([0, 0, 1, 0, 0, 0]).bool()
    logits, q_values = model.policy.logits_and_values(seen.observations, seen.masks)
    plain, bootstrapped = (
        model.targets(seen._replace(cut=where, after=after), logits.log_softmax(-1), q_values)
        for where in (torch.zeros(6, dtype=torch.bool), cut)
    )
    chosen = seen.masks_after_cut[2].numpy()
    assert 0 < chosen.sum() < ACTS
    logits, q_values = model.policy.logits_and_values(torch.eye(5)[[2]], None)
    odds = np.exp(logits[0].detach().double().numpy()) * chosen
    value = (odds * q_values[0].detach().double().numpy()).sum() / odds.sum()
    assert_close(bootstrapped[2] - plain[2], 0.5 * value, 1e-4)
    assert torch.equal(bootstrapped[3:], plain[3:])
