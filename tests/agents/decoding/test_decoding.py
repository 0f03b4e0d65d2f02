"""Choice of tokens by the cloned policy and by advantages."""

import math

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import nn

import dialgym
from agents import ILQL
from agents.decoding.sampling import cut_off
from agents.models.masking import FORBIDDEN
from agents.policies.value import Decoding

ID = "dialgym/Wordle-20-v0"
SMALL = {"n_layer": 2, "n_head": 2, "n_embd": 16}
OWN_TRUNK = {"share_features_extractor": False}


def made(n_envs=4, **policy):
    env = dialgym.sb3_vec_env(ID, n_envs, seed=3)
    model = ILQL("GPTPolicy", env, policy_kwargs={**SMALL, **policy}, seed=0)
    torch.manual_seed(1)
    net = model.policy
    for module in (net.q_heads, net.target_q_heads, net.value_head):
        for weight in module.parameters():
            nn.init.normal_(weight, std=0.4)
    if net.value_backbone is not None:
        net.value_backbone.reset_parameters()
    net.set_training_mode(False)
    return model


def observations(n_envs=4, steps=17):
    """Observations of a rollout of random legal tokens, (steps, n_envs, L)."""
    env, rng = dialgym.sb3_vec_env(ID, n_envs, seed=5), np.random.default_rng(0)
    seen = [env.reset()]
    while len(seen) < steps:
        masks = np.stack(env.env_method("action_masks"))
        actions = np.array([rng.choice(np.flatnonzero(mask)) for mask in masks])
        seen.append(env.step(actions)[0])
    return np.stack(seen)


def log_probs(policy, obs):
    with torch.no_grad():
        return policy.get_distribution(torch.as_tensor(obs)).distribution.logits


def by_hand(policy, obs):
    """Log pi (B, V) and advantages (B, V), each row read by itself from its start."""
    log_pis, advantages = [], []
    automaton, tag = policy.observation_space.automaton, policy.observation_space.learner_tag
    for row in obs:
        prefix = row[: np.flatnonzero(row)[-1] + 1]
        tokens = torch.from_numpy(prefix.astype(np.int64))[None]
        hidden = value_hidden = policy.backbone(tokens)[0, -1]
        heads = policy.target_q_heads
        if policy.value_backbone is not None:
            value_hidden, heads = policy.value_backbone(tokens)[0, -1], policy.q_heads
        said = prefix[np.flatnonzero(prefix == tag)[-1] + 1 :]
        allowed = torch.from_numpy(automaton.allowed[automaton.walk(said)].copy())
        logits = policy.policy_head(hidden)
        log_pis.append(torch.where(allowed, logits - logits[allowed].logsumexp(0), -torch.inf))
        q = torch.minimum(*[head(value_hidden) for head in heads])
        if policy.value_bounds.value_min is not None:
            q = q.clamp(-0.3, 0.2)
        advantages.append(q - policy.value_head(value_hidden))
    return torch.stack(log_pis), torch.stack(advantages)


BOUNDED = {"value_min": -0.3, "value_max": 0.2}


@pytest.mark.parametrize(
    "policy",
    [{}, OWN_TRUNK, BOUNDED, {**OWN_TRUNK, **BOUNDED}],
    ids=["one-trunk", "own-trunk", "bounded", "own-trunk-bounded"],
)
def test_speech_is_the_perturbed_policy(policy):
    net = made(**policy).policy
    for obs in observations()[[0, 2, 6, 16]]:
        with torch.no_grad():
            log_pi, advantage = by_hand(net, obs)
        for how, expected in {
            Hashable(): log_pi,
            Hashable(temperature=0.5): 2 * log_pi,
            Hashable(beta=3.0): log_pi + 3 * advantage,
            Hashable(beta=3.0, advantage_clip=0.1): log_pi + 3 * advantage.clamp(max=0.1),
            Hashable(beta=2.0, temperature=4.0): log_pi / 4 + 2 * advantage,
            Hashable(beta=2.0, policy_weight=0.0): 0 * log_pi.exp() + 2 * advantage,
            Hashable(beta=2.0, policy_weight=0.5): 0.5 * log_pi + 2 * advantage,
            Hashable(beta=0.9, weights="sign"): log_pi
            + torch.where(advantage > 0, math.log(0.9), math.log(0.1)),
        }.items():
            net.decoding = Decoding(**how)
            masked = expected.masked_fill(log_pi == -torch.inf, -torch.inf).log_softmax(-1)
            torch.testing.assert_close(
                log_probs(net, obs).exp(), masked.exp(), atol=1e-5, rtol=1e-4
            )
        assert advantage.std() > 0.1


class Hashable(dict):
    """Settings as keys of a table."""

    def __hash__(self):
        return hash(tuple(self.items()))


def test_only_the_likeliest_tokens_stay():
    logits = torch.tensor([[0.5, 0.2, 0.3, 0.0], [0.1, 0.4, 0.4, 0.1]]).log()
    logits = logits.clamp(min=FORBIDDEN)

    def kept(top_k, top_p):
        return [
            np.flatnonzero(row > FORBIDDEN / 2).tolist() for row in cut_off(logits, top_k, top_p)
        ]

    assert kept(None, None) == [[0, 1, 2], [0, 1, 2, 3]]
    assert kept(1, None) == [[0], [1, 2]]  # equals stay
    assert kept(2, None) == [[0, 2], [1, 2]]
    assert kept(9, None) == [[0, 1, 2], [0, 1, 2, 3]]
    assert kept(None, 0.49)[0] == [0]
    assert kept(None, 0.6)[0] == [0, 2]
    assert kept(None, 0.85)[0] == [0, 1, 2]
    assert kept(3, 0.6)[0] == [0, 2]
    assert [len(row) for row in kept(None, 1e-9)] == [1, 1]


def test_the_cloned_policy_may_rule_tokens_out_before_advantages_count():
    policy = torch.tensor([[0.6, 0.39, 0.01]]).log()
    advantages = torch.tensor([[0.0, 1.0, 100.0]])
    free = Decoding(beta=1.0).logits(policy, advantages)
    assert free.argmax() == 2
    for how in (Decoding(beta=1.0, policy_top_k=2), Decoding(beta=1.0, policy_top_p=0.9)):
        logits = how.logits(policy, advantages)
        assert logits[0, 2] == FORBIDDEN
        torch.testing.assert_close(logits[0, :2], torch.tensor([math.log(0.6), 1 + math.log(0.39)]))
    after = Decoding(beta=1.0, top_k=1).logits(policy, advantages)
    assert (after > FORBIDDEN / 2).tolist() == [[False, False, True]]


some = st.one_of(st.none(), st.integers(1, 4))
shares = st.one_of(st.none(), st.floats(0.05, 1.0))


def weights(most):
    """None at all, or enough that no two logits become equal by rounding."""
    return st.one_of(st.just(0.0), st.floats(0.1, most))


@settings(max_examples=40)
@given(
    weights(50), st.floats(0.05, 20), weights(2), some, shares, some, shares,
    st.integers(0, 999),
)  # fmt: skip
def test_forbidden_tokens_are_never_said(beta, temperature, weight, k, p, policy_k, policy_p, seed):
    rng = torch.Generator().manual_seed(seed)
    allowed = torch.rand(6, 8, generator=rng) < 0.4
    allowed[torch.arange(6), torch.randint(8, (6,), generator=rng)] = True
    policy = torch.randn(6, 8, generator=rng) * 3
    policy = policy.masked_fill(~allowed, FORBIDDEN)
    how = Decoding(beta, temperature, None, weight, k, p, policy_k, policy_p)
    advantages = 5 * torch.randn(6, 8, generator=rng)
    chances = how.logits(policy, advantages).softmax(-1)
    assert (chances[~allowed] == 0).all()
    torch.testing.assert_close(chances.sum(-1), torch.ones(6))
    if k is not None:
        assert ((chances > 0).sum(1) <= k).all() or weight == beta == 0


@pytest.mark.parametrize("policy", [{}, OWN_TRUNK], ids=["one-trunk", "own-trunk"])
def test_cached_and_uncached_speech_agree(policy):
    cached, plain = made(**policy).policy, made(execution={"cache": False}, **policy).policy
    plain.load_state_dict(cached.state_dict())
    for obs in observations(steps=30):
        torch.testing.assert_close(
            log_probs(cached, obs), log_probs(plain, obs), atol=1e-4, rtol=1e-5
        )
    assert cached.caches.caches
    assert not plain.caches.caches


@pytest.mark.parametrize(("policy", "most"), [({}, 1), (OWN_TRUNK, 2)])
def test_a_token_costs_a_cached_forward_of_each_trunk(policy, most):
    """Sixty-four dialogues at once; what is computed is the new tokens, once in each trunk."""
    model = made(64, **policy)
    net, forwards = model.policy, []
    trunks = [net.backbone] + ([net.value_backbone] if policy else [])
    for trunk in trunks:
        watch(trunk, forwards)
    seen = observations(64, 7)
    before = np.zeros_like(seen[0])
    for obs in seen:
        forwards.clear()
        model.predict(obs)
        lengths = (obs != 0).sum(1)
        known = np.minimum((obs == before).cumprod(1).sum(1), (before != 0).sum(1))
        new = int((lengths - np.minimum(known, lengths - 1)).sum())
        assert len(forwards) == len(trunks) <= most
        assert forwards == [("extend", new)] * len(trunks)
        before = obs
    assert new > 64, "the user has answered"


def watch(trunk, forwards):
    """Note each use of a trunk, and how many tokens it read."""
    extend, forward = trunk.extend, trunk.forward

    def extended(tokens, *rest):
        forwards.append(("extend", len(tokens)))
        return extend(tokens, *rest)

    def forwarded(tokens, *rest):
        forwards.append(("forward", tokens.numel()))
        return forward(tokens, *rest)

    trunk.extend, trunk.forward = extended, forwarded


@pytest.mark.parametrize("policy", [{}, OWN_TRUNK], ids=["one-trunk", "own-trunk"])
def test_predict_takes_one_observation_or_many(policy):
    model = made(**policy)
    for obs in observations()[[0, 3, 7, 14]]:
        together, _ = model.predict(obs, deterministic=True)
        assert together.shape == (4,)
        alone = [model.predict(row, deterministic=True)[0] for row in obs]
        assert together.tolist() == [int(action) for action in alone]
        assert together.tolist() == log_probs(model.policy, obs).argmax(1).tolist()
        masks = torch.zeros(4, model.action_space.n, dtype=torch.bool)
        masks[:, 9] = True
        given = model.policy._predict(torch.as_tensor(obs), True, masks)
        assert given.tolist() == [9] * 4


def test_samples_follow_the_distribution():
    model = made(1)
    model.policy.decoding.temperature = 3.0
    obs = observations(1)[0].repeat(4000, 0)
    actions, _ = model.predict(obs)
    chances = log_probs(model.policy, obs[:1])[0].exp().numpy()
    found = np.bincount(actions, minlength=len(chances)) / 4000
    assert 0.02 < chances.max() < 0.98
    assert np.abs(found - chances).max() < 0.03
    assert not found[chances == 0].any()


def test_settings_that_cannot_be_are_one_clear_error():
    for name, value in {
        "temperature": 0.0, "top_k": 0, "top_p": 0.0, "policy_top_p": 1.5, "policy_top_k": -1,
    }.items():  # fmt: skip
        with pytest.raises(ValueError, match=rf"{name}( of decoding)? must be"):
            Decoding(**{name: value})
    for beta in (1.0, 8.0, -0.5):
        with pytest.raises(ValueError, match="beta must be from 0 to 1, 1 left out, with weights"):
            Decoding(beta=beta, weights="sign")
    with pytest.raises(ValueError, match=r"unknown setting 'betta' .*did you mean 'beta'|betta"):
        made(decoding={"betta": 1})
