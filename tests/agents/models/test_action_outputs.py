"""Outputs of what was said and sums over all, in pieces, against all outputs at once."""

import pytest
import torch

pytest.importorskip("stable_baselines3")
from agents.models import action_outputs as pieces
from agents.models.action_outputs import action_and_logsumexp, action_outputs, gather_and_logsumexp
from agents.models.heads import MLPHead, PolicyHead, ResidualHead
from tests.support.close import assert_close

WIDTH, V, N = 6, 11, 23


def made(kind):
    torch.manual_seed(0)
    head = PolicyHead(WIDTH, V, temperature=0.7) if kind is PolicyHead else kind(WIDTH, V)
    for weight in head.parameters():
        torch.nn.init.normal_(weight)
    return head


def problem():
    torch.manual_seed(1)
    hidden = torch.randn(N, WIDTH, requires_grad=True)
    actions, allowed = torch.randint(V, (N,)), torch.rand(N, V) < 0.6
    allowed[torch.arange(N), actions] = True
    allowed[:, 3] = False  # as no mask is complete: what was said may be forbidden
    return hidden, actions, allowed


def gradients(found, hidden, head):
    """Of a loss that reads both, by weights of its own for each decision."""
    torch.manual_seed(2)
    weights = torch.randn(2, N)
    return torch.autograd.grad(
        (weights[0] * found[0]).sum() + (weights[1] * found[1]).sum(), [hidden, *head.parameters()]
    )


@pytest.mark.parametrize("kind", [PolicyHead, MLPHead, ResidualHead])
@pytest.mark.parametrize("masked", [True, False])
@pytest.mark.parametrize(("temperature", "floor"), [(1.0, False), (0.5, True), (2.0, True)])
def test_numbers_and_gradients_are_those_of_all_outputs(
    kind, masked, temperature, floor, monkeypatch
):
    monkeypatch.setattr(pieces, "ROWS", 5)
    head, (hidden, actions, allowed) = made(kind), problem()
    rest = (actions, allowed if masked else None, temperature, torch.randn(N) if floor else None)
    plain, found = (
        gather_and_logsumexp(head(hidden), *rest),
        action_and_logsumexp(head, hidden, *rest),
    )
    for one, other in zip(found, plain, strict=True):
        assert_close(one, other)
    both = [gradients(one, hidden, head) for one in (found, plain)]
    for one, other in zip(*both, strict=True):
        assert_close(one, other)
    assert_close(action_outputs(head, hidden, actions), found[0])


def test_outputs_of_all_are_never_made_at_once(monkeypatch):
    head, (hidden, actions, allowed) = made(MLPHead), problem()
    monkeypatch.setattr(MLPHead, "forward", None)  # which would make them
    _, total = action_and_logsumexp(head, hidden, actions, allowed)
    with torch.no_grad():
        assert_close(action_and_logsumexp(head, hidden, actions, allowed)[1], total)
    action_outputs(head, hidden, actions)


def test_frozen_heads_get_no_gradient():
    head, (hidden, actions, allowed) = made(MLPHead), problem()
    head.requires_grad_(False)
    action_and_logsumexp(head, hidden, actions, allowed)[1].sum().backward()
    assert hidden.grad.abs().sum() > 0
    assert all(weight.grad is None for weight in head.parameters())
