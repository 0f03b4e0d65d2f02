"""Logits of the tokens that may be said are all that a masked policy needs."""

import pytest
import torch

from agents.models.heads import PolicyHead, log_probs_of, masked_logits
from agents.models.masking import FORBIDDEN, packed_bits
from tests.support.close import assert_close

N, D, V = 50, 8, 200


def head() -> PolicyHead:
    return PolicyHead(D, V, initial=torch.randn(V, D))


def masks(share: float) -> torch.Tensor:
    """A `share` of the tokens is allowed somewhere; the first one always."""
    allowed = (torch.rand(N, V) < 0.5) & (torch.rand(V) < share)
    allowed[:, 0] = True
    return allowed


def plain(head, hidden, actions, allowed):
    log_probs = head(hidden).masked_fill(~allowed, FORBIDDEN).log_softmax(-1)
    entropy = -(log_probs.exp() * log_probs).sum(-1)
    return log_probs.gather(-1, actions[:, None])[:, 0], entropy


@pytest.mark.parametrize("share", [0.05, 0.9])
def test_log_probabilities_entropies_and_gradients_are_those_of_all_logits(share):
    torch.manual_seed(0)
    policy, allowed = head(), masks(share)
    actions = allowed.double().multinomial(1)[:, 0]
    results = []
    for compute, given in ((plain, allowed), (log_probs_of, packed_bits(allowed))):
        hidden = torch.randn(N, D, generator=torch.Generator().manual_seed(1), requires_grad=True)
        log_probs, entropies = compute(policy, hidden, actions, given)
        loss = (log_probs * torch.linspace(-1, 1, N)).sum() + 0.3 * entropies.sum()
        gradients = torch.autograd.grad(loss, [hidden, policy.weight])
        results.append((log_probs.detach(), entropies.detach(), *gradients))
    for expected, ours in zip(*results, strict=True):
        assert_close(ours, expected)


def test_only_tokens_that_are_allowed_somewhere_are_computed():
    torch.manual_seed(0)
    policy, hidden, allowed = head(), torch.randn(N, D), masks(0.05)
    logits, used = masked_logits(policy, hidden, allowed)
    assert used.tolist() == allowed.any(0).nonzero()[:, 0].tolist()
    assert logits.shape == (N, len(used))
    everything, all_of_them = masked_logits(policy, hidden, masks(0.9))
    assert all_of_them is None
    assert everything.shape == (N, V)


def test_an_action_that_was_forbidden_keeps_its_place():
    torch.manual_seed(0)
    policy, hidden, allowed = head(), torch.randn(N, D), masks(0.05)
    actions = torch.full((N,), int((~allowed.any(0)).nonzero()[3]))
    expected, _ = plain(policy, hidden, actions, allowed)
    assert_close(log_probs_of(policy, hidden, actions, allowed)[0], expected)
