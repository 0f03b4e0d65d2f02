"""Tokens are drawn as often as they should be, and forbidden ones never."""

import math

import numpy as np
import pytest
import torch
from gymnasium import spaces
from stable_baselines3.common.distributions import CategoricalDistribution

from agents import GPTPolicy, MaskableGPTPolicy
from agents.decoding.distributions import TokenDistribution
from agents.models.masking import FORBIDDEN
from tests.support.toy_tokens import V, box


def distribution(logits: torch.Tensor) -> TokenDistribution:
    return TokenDistribution(logits.shape[-1]).proba_distribution(logits)


def test_frequencies_are_the_probabilities():
    """Chi-square with 9 degrees of freedom: above 27.9 once in a thousand."""
    torch.manual_seed(0)
    logits, n = torch.randn(3, 10), 20_000
    drawn = distribution(logits).distribution.sample((n,))
    assert drawn.shape == (n, 3)
    for row, probabilities in enumerate(logits.softmax(-1)):
        expected = n * probabilities
        counts = drawn[:, row].bincount(minlength=10)
        assert ((counts - expected).square() / expected).sum() < 27.9


def test_rows_are_drawn_independently():
    torch.manual_seed(0)
    drawn = distribution(torch.zeros(20_000, 2)).sample().view(-1, 2)
    joint = (2 * drawn[:, 0] + drawn[:, 1]).bincount(minlength=4)
    assert ((joint - 2500).square() / 2500).sum() < 16.3  # 3 degrees of freedom, p = 0.001


@pytest.mark.parametrize("uniform", [0.0, 1 - 2**-53])
def test_tokens_without_probability_are_never_drawn(monkeypatch, uniform):
    """Even at the ends of what the generator can give."""
    logits = torch.full((200, 7), FORBIDDEN)
    allowed = torch.randint(0, 7, (200, 2), generator=torch.Generator().manual_seed(0))
    logits.scatter_(1, allowed, torch.randn(200, 2))
    monkeypatch.setattr(torch, "rand", lambda shape, **how: torch.full(shape, uniform, **how))
    drawn = distribution(logits).sample()
    assert torch.equal(drawn, allowed.amax(1) if uniform == 0 else allowed.amin(1))


def test_log_probabilities_entropies_and_modes_are_those_of_sb3():
    logits = torch.randn(5, 8, generator=torch.Generator().manual_seed(0))
    ours, theirs = distribution(logits), CategoricalDistribution(8).proba_distribution(logits)
    actions = ours.get_actions()
    assert torch.equal(ours.log_prob(actions), theirs.log_prob(actions))
    assert torch.equal(ours.entropy(), theirs.entropy())
    assert torch.equal(ours.get_actions(deterministic=True), theirs.mode())


@pytest.mark.parametrize("bad", [math.nan, math.inf])
def test_weights_that_have_overflowed_are_explained(bad):
    with pytest.raises(ValueError, match="probabilities of tokens are not finite"):
        distribution(torch.tensor([[0.0, bad, 1.0]])).sample()


@pytest.mark.parametrize("policy_class", [GPTPolicy, MaskableGPTPolicy])
def test_policies_draw_from_it_in_rollouts_and_predictions(policy_class):
    torch.manual_seed(0)
    policy = policy_class(box(6), spaces.Discrete(V), lambda _: 1e-3, n_embd=8, mask=False)
    observations = torch.ones(4000, 6, dtype=torch.int64)
    assert isinstance(policy.get_distribution(observations[:1]), TokenDistribution)
    probabilities = policy.get_distribution(observations[:1]).distribution.probs[0]
    expected = 4000 * probabilities.detach().numpy()
    for drawn in (
        policy(observations)[0].numpy(),
        policy.predict(observations.numpy(), deterministic=False)[0],
    ):
        counts = np.bincount(drawn, minlength=V)
        assert ((counts - expected) ** 2 / expected).sum() < V + 4 * math.sqrt(2 * V)
