"""The distribution of several acts at once against sb3-contrib's, and against closed forms."""

import math

import numpy as np
import pytest
import torch
from sb3_contrib.common.maskable.distributions import MaskableBernoulliDistribution

from agents.models.bernoulli import MaskedBernoulli, entry_log_probs, logit
from tests.support.close import assert_close


def both(logits, masks):
    """Ours, and sb3-contrib's with the same probabilities."""
    ours = MaskedBernoulli(logits.shape[1]).proba_distribution(logits)
    pairs = torch.stack([torch.zeros_like(logits), logits], -1).flatten(1)
    theirs = MaskableBernoulliDistribution(logits.shape[1]).proba_distribution(pairs)
    for one in (ours, theirs):
        one.apply_masking(masks)
    return ours, theirs


@pytest.mark.parametrize("masked", [False, True])
def test_it_is_sb3_contribs_distribution(masked):
    generator = torch.Generator().manual_seed(0)
    logits = torch.randn((6, 5), generator=generator)
    masks = None
    if masked:
        pairs = torch.rand((6, 5, 2), generator=generator) < 0.6
        pairs[..., 0] |= ~pairs[..., 1]  # one of the two at least
        masks = pairs.flatten(1)
    ours, theirs = both(logits, masks)
    actions = theirs.sample().float()
    assert_close(ours.log_prob(actions), theirs.log_prob(actions))
    assert_close(ours.entropy(), theirs.entropy())
    assert torch.equal(ours.mode(), theirs.mode().float())


def test_entries_that_cannot_be_one_never_are():
    masks = np.array([[True, False, True], [False, False, True]])
    ours, _ = both(torch.zeros(2, 3), np.stack([np.ones_like(masks), masks], -1).reshape(2, 6))
    again = MaskedBernoulli(3).proba_distribution(torch.zeros(2, 3))
    again.apply_masking(masks)  # the short form
    assert torch.equal(ours.logits, again.logits)
    drawn = torch.stack([ours.sample() for _ in range(200)])
    assert not drawn[:, ~torch.from_numpy(masks)].any()
    assert 0.4 < drawn[:, torch.from_numpy(masks)].mean() < 0.6
    assert_close(ours.entropy(), torch.tensor([2.0, 1.0]) * math.log(2))
    ours.entropy().sum()
    assert_close(
        ours.log_prob(torch.tensor([[1.0, 0, 1], [0, 0, 1]])), -torch.tensor([2.0, 1]) * math.log(2)
    )


def test_log_probabilities_and_gradients_are_finite_at_the_mask():
    logits = torch.zeros((1, 2), requires_grad=True)
    ours = MaskedBernoulli(2).proba_distribution(logits)
    ours.apply_masking(np.array([[True, False]]))
    (ours.entropy() + ours.log_prob(torch.tensor([[1.0, 0.0]]))).sum().backward()
    assert logits.grad.tolist() == [[0.5, 0.0]]


def test_the_probability_of_an_entry():
    logits = torch.tensor([[logit(0.2), logit(0.9)]])
    found = entry_log_probs(logits, torch.tensor([[1.0, 0.0]])).exp()
    assert found.tolist() == [pytest.approx([0.2, 0.1])]
