"""Losses of offline learners in numbers and by their defining equations."""

import math

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from agents.models.action_outputs import gather_and_logsumexp
from agents.offline.losses import conservative_loss, expectile_loss


@given(st.lists(st.floats(-5, 5), min_size=1, max_size=8), st.floats(0.05, 0.95))
def test_the_expectile_balances_what_is_above_and_below(values, tau):
    """Its defining equation: tau E[(x - m)+] = (1 - tau) E[(m - x)+] at the minimum."""
    x = torch.tensor(values, dtype=torch.float64)
    low, high = float(x.min()), float(x.max())
    for _ in range(60):
        middle = torch.tensor((low + high) / 2, dtype=torch.float64, requires_grad=True)
        expectile_loss(x - middle, tau).sum().backward()
        low, high = (middle.item(), high) if middle.grad < 0 else (low, middle.item())
    above, below = (x - low).clamp(min=0).sum(), (low - x).clamp(min=0).sum()
    assert tau * above.item() == pytest.approx((1 - tau) * below.item(), abs=1e-6)


def test_expectile_and_regulariser_in_numbers():
    errors = expectile_loss(torch.tensor([2.0, -2.0]), 0.9)
    assert errors.tolist() == pytest.approx([3.6, 0.4])
    q, said = torch.tensor([[0.0, math.log(3.0), 5.0]]), torch.tensor([1])
    assert conservative_loss(*gather_and_logsumexp(q[None], said))[0].item() == pytest.approx(
        math.log(4 + math.exp(5)) - math.log(3)
    )
    allowed = torch.tensor([[True, True, False]])
    assert conservative_loss(*gather_and_logsumexp(q[None], said, allowed))[
        0
    ].item() == pytest.approx(math.log(4 / 3))
    half = conservative_loss(*gather_and_logsumexp(q[None], said, allowed, 0.5), temperature=0.5)
    assert half.item() == pytest.approx(math.log(10 / 9))


def test_nothing_is_pressed_below_the_floor_and_the_loss_is_that_of_numpy_in_double_precision():
    rng = np.random.default_rng(0)
    q, floor = rng.normal(size=(2, 7, 5)), rng.normal(size=7)
    actions, allowed = rng.integers(5, size=7), rng.random((7, 5)) < 0.7
    allowed[np.arange(7), actions] = True
    values = torch.from_numpy(q).requires_grad_()
    tensors = [torch.from_numpy(x) for x in (actions, allowed)]
    outputs = gather_and_logsumexp(values, *tensors, 2.0, torch.from_numpy(floor))
    loss = conservative_loss(*outputs, 2.0)
    for i in range(7):
        raised = np.maximum(q[:, i, allowed[i]], floor[i]) / 2
        expected = np.log(np.exp(raised).sum(1)) - q[:, i, actions[i]] / 2
        np.testing.assert_allclose(loss[:, i].detach(), expected, rtol=1e-6)
    loss.sum().backward()
    below = (q < floor[:, None]) & (np.arange(5) != actions[:, None])
    assert (values.grad.numpy()[below] == 0).all()
    above = (q > floor[:, None]) & (np.arange(5) != actions[:, None]) & allowed
    assert (values.grad.numpy()[above] > 0).all()
