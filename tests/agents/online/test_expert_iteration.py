"""Expert iteration: the best dialogues of each group are kept, and their likelihood is raised."""

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from stable_baselines3.common.env_util import make_vec_env

from agents import ExpertIteration
from agents.online.expert_iteration import best_of_groups
from tests.support.toy_tokens import Echo

SMALL = {"n_layer": 2, "n_head": 2, "n_embd": 16}


def collected(**settings):
    model = ExpertIteration(
        "GPTPolicy",
        make_vec_env(lambda: Echo(turns=2, said=2), 8, seed=0),
        n_steps=20,
        batch_size=10_000,
        policy_kwargs=SMALL,
        seed=0,
        **{"group_size": 4, **settings},
    )
    _, callback = model._setup_learn(10_000)
    model.collect_rollouts(model.env, callback, model.rollout_buffer, 20)
    return model


def test_best_of_groups_by_hand():
    returns, groups = np.array([1.0, 3, 2, 5, 5, 4]), np.array([0, 0, 0, 1, 1, 1])
    assert best_of_groups(returns, groups, 0.1).tolist() == [False, True, False, True, False, False]
    assert best_of_groups(returns, groups, 0.67).tolist() == [False, True, True, True, True, False]
    assert best_of_groups(returns, groups, 1.0).all()


@given(st.lists(st.integers(-3, 3), min_size=1, max_size=12), st.floats(0.01, 1), st.data())
def test_none_of_those_left_out_is_better_than_one_kept(returns, top, data):
    groups = np.array([data.draw(st.integers(0, 2)) for _ in returns])
    values = np.array(returns, float)
    kept = best_of_groups(values, groups, top)
    for group in set(groups.tolist()):
        of_it = groups == group
        assert (kept & of_it).sum() == max(1, round(top * of_it.sum()))
        out = values[of_it & ~kept]
        assert not len(out) or out.max() <= values[of_it & kept].min()


def test_the_sequences_are_those_of_the_best_dialogues():
    model = collected(top=0.25)
    returns = model.rollout_buffer.steps("rewards").sum(0)
    best = returns.reshape(2, 4).argmax(1) + np.array([0, 4])
    actions = model.rollout_buffer.steps("actions")[:, best]
    assert model.rollout.sequences.sizes.tolist() == [6, 6]
    assert model.rollout.actions.tolist() == actions[:6].T.flatten().tolist()
    assert model.logger.name_to_value["rollout/kept_return"] == pytest.approx(returns[best].mean())


def test_groups_of_equal_returns_can_be_left_out():
    model = collected(top=0.25)
    said = np.ones((6, 8), bool)
    model.equal_groups = False
    model._returns = lambda said: np.array([1.0, 1, 1, 1, 1, 2, 1, 1])
    assert model._rollout(said).sequences.sizes.tolist() == [6]
    model._returns = lambda said: np.ones(8)  # nothing to choose from: everything counts again
    assert model._rollout(said).sequences.sizes.tolist() == [6, 6]


def test_the_gradient_is_that_of_the_loss_by_hand():
    model = collected(top=0.5, kl={"coef": 0.3}, ent_coef=0.01)
    with torch.no_grad():  # away from where the divergence is flat
        model.policy.backbone.wpe.weight += torch.randn_like(model.policy.backbone.wpe.weight)
    kept = np.arange(4)
    model.updater.backward(model.loss, model.batches(kept), len(model.rollout.sequences))
    got = model.policy.backbone.wte.weight.grad.clone()
    model.policy.zero_grad()
    losses = []
    for batch in model.batches(kept):
        _, log_prob, entropy = model.policy.evaluate_sequences(
            batch.tokens, batch.at, batch.actions, batch.allowed
        )
        ahead = batch.reference_log_probs - log_prob
        losses.append(-log_prob + 0.3 * (ahead.exp() - 1 - ahead) - 0.01 * entropy)
    torch.cat(losses).mean().backward()
    torch.testing.assert_close(got, model.policy.backbone.wte.weight.grad)


@pytest.mark.slow
def test_it_learns_to_repeat_what_paid():
    """Echo pays for what was said before; chance alone does not rise."""
    model = ExpertIteration(
        "GPTPolicy",
        make_vec_env(lambda: Echo(turns=2, said=2), 64, seed=0),
        n_steps=20,
        batch_size=200,
        n_epochs=2,
        group_size=8,
        top=0.25,
        learning_rate=0.01,
        policy_kwargs=SMALL,
        seed=0,
    )
    model.learn(1)
    begun = np.mean([episode["r"] for episode in model.ep_info_buffer])
    model.learn(20_000)
    assert np.mean([episode["r"] for episode in model.ep_info_buffer]) > begun + 0.5
