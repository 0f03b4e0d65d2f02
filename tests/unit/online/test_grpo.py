"""Group baselines: alike beginnings, one episode each, and the loss by hand."""

from string import ascii_lowercase

import numpy as np
import pytest
import torch
from stable_baselines3.common.env_util import make_vec_env

import dialgym
from agents import GRPO
from agents.online.losses import clipped_surrogate, k3
from dialgym.language import CharTokenizer
from dialgym.language.tokenizers import END
from tests.support.toy_tokens import Echo

SMALL = {"n_layer": 2, "n_head": 2, "n_embd": 16}


def collected(env, **settings):
    model = GRPO(
        "GPTPolicy", env, n_steps=20, batch_size=10_000, policy_kwargs=SMALL, seed=0, **settings
    )
    _, callback = model._setup_learn(10_000)
    model.collect_rollouts(model.env, callback, model.rollout_buffer, 20)
    return model


@pytest.mark.parametrize("task", ["echo", "wordle"])
def test_a_group_begins_alike_and_groups_differ(task):
    """Said the same to, dialogues of a group answer the same; others need not."""
    env = make_vec_env(Echo, 12, seed=0) if task == "echo" else None
    model = collected(env or dialgym.sb3_vec_env("Wordle-20-v0", 12), group_size=4)
    model._begin(model.env)
    said = np.array([CharTokenizer(ascii_lowercase).encode("class")]).T if task == "wordle" else []
    seen = model._last_obs
    for token in [*said, [END]] if task == "wordle" else []:
        seen = model.env.step(np.full(12, token))[0]
    groups = seen.reshape(3, 4, -1)
    assert (groups == groups[:, :1]).all()
    assert len(np.unique(groups[:, 0], axis=0)) > 1


def test_every_dialogue_is_played_once_to_its_end():
    model = collected(make_vec_env(lambda: Echo(turns=2, said=2), 8, seed=0), group_size=4)
    assert len(model.sequences.sizes) == 8
    assert model.sequences.sizes.tolist() == [6] * 8  # two turns of two letters and an end
    returns = model.rollout_buffer.steps("rewards").sum(0)
    advantages = model.sequences.columns["advantages"].reshape(8, 6)
    assert (advantages == advantages[:, :1]).all()
    best = returns.reshape(2, 4).argmax(1)
    assert advantages[:, 0].reshape(2, 4).argmax(1).tolist() == best.tolist()


def test_the_gradient_is_that_of_the_loss_by_hand():
    model = collected(
        make_vec_env(Echo, 8, seed=0), group_size=4, reference_kl=0.3, ent_coef=0.01, scale=False
    )
    with torch.no_grad():  # away from where ratio and divergence are flat
        model.policy.backbone.wpe.weight += torch.randn_like(model.policy.backbone.wpe.weight)
    model._clip_now, model._entropy_weight = 0.2, 0.01
    means = model._minibatch(np.arange(8))
    got = model.policy.backbone.wte.weight.grad.clone()

    model.policy.zero_grad()
    sequences, losses = model.sequences, []
    for part in sequences.parts(np.arange(8), 10_000):
        column = {name: values[part.rows] for name, values in sequences.columns.items()}
        allowed = model.policy.masker.allowed[column["states"]]
        _, log_prob, entropy = model.policy.evaluate_sequences(
            part.tokens, part.at, column["actions"], allowed
        )
        surrogate = clipped_surrogate(log_prob, column["log_probs"], column["advantages"], 0.2)
        distance = k3(column["reference"] - log_prob)
        assert distance.max() > 0
        losses.append(surrogate + 0.3 * distance - 0.01 * entropy)
    loss = torch.cat(losses).mean()
    loss.backward()
    torch.testing.assert_close(got, model.policy.backbone.wte.weight.grad)
    assert abs(means["loss"] - loss.item()) < 1e-6


def test_losses_by_hand():
    log_prob, old = torch.tensor([0.5, 0.5, -0.5]), torch.zeros(3)
    advantages = torch.tensor([1.0, -1.0, -1.0])
    expected = [-1.2, np.exp(0.5), 0.8]  # clipped, not clipped, clipped
    got = clipped_surrogate(log_prob, old, advantages, 0.2)
    np.testing.assert_allclose(got, expected, rtol=1e-6)
    p, q = torch.tensor([0.1, 0.9]), torch.tensor([0.4, 0.6])
    exact = (p * (p / q).log()).sum()
    torch.testing.assert_close((p * k3((q / p).log())).sum(), exact)
