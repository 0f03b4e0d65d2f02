"""Returns, V-trace and retrace against slow references."""

import numpy as np
import pytest
import torch

from agents.returns import bootstrap_values, discounted_returns, retrace, vtrace

GAMMA = 0.9


@pytest.fixture(params=range(3))
def played(request):
    """Dialogues, each a dict of arrays, and the same one after the other."""
    rng = np.random.default_rng(request.param)
    dialogues = []
    for length in (1, 4, 7):
        columns = {name: rng.normal(size=length) for name in ("rewards", "values", "q_values")}
        columns["ratios"] = rng.exponential(size=length)
        columns["last"] = np.arange(length) == length - 1
        following = rng.normal() if rng.random() < 0.5 else 0.0
        columns["following"] = np.where(columns["last"], following, 0.0)
        dialogues.append(columns)
    joined = {name: np.concatenate([d[name] for d in dialogues]) for name in dialogues[0]}
    return dialogues, {name: torch.as_tensor(column) for name, column in joined.items()}


def chosen(columns, *names):
    return {name: columns[name] for name in names}


def returns(columns):
    rewards, ends, following = (columns[name].numpy() for name in ("rewards", "last", "following"))
    return torch.as_tensor(discounted_returns(rewards, GAMMA, ends, following))


def close(found, dialogues, slow):
    wanted = np.concatenate([slow(**dialogue) for dialogue in dialogues])
    np.testing.assert_allclose(found.numpy(), wanted, rtol=1e-6, atol=1e-9)


def test_returns_are_discounted_sums(played):
    dialogues, columns = played

    def slow(rewards, following, **_):
        paid = [*rewards, following[-1]]
        return [
            sum(GAMMA**k * r for k, r in enumerate(paid[t:])) for t in range(len(rewards))
        ]  # fmt: skip

    close(returns(columns), dialogues, slow)


def test_returns_of_dialogues_side_by_side():
    rewards = np.array([[1.0, 2], [0, 4], [8, 0]], np.float32)
    assert discounted_returns(rewards, 0.5).tolist() == [[3, 4], [4, 4], [8, 0]]
    assert discounted_returns(rewards, 0.5, following=np.array([8.0, 0]))[0].tolist() == [4, 4]


def test_retrace_is_a_sum_over_what_followed(played):
    """Q + sum_s gamma^(s-t) (prod of traces) (r_s + gamma V_s+1 - Q_s), Munos et al. eq. 4."""
    dialogues, columns = played

    def slow(rewards, values, q_values, ratios, following, **_):
        after = [*values[1:], following[-1]]
        errors = rewards + GAMMA * np.array(after) - q_values
        traces = np.minimum(1, ratios)
        return [
            q_values[t]
            + sum(
                GAMMA ** (s - t) * np.prod(traces[t + 1 : s + 1]) * errors[s]
                for s in range(t, len(rewards))
            )
            for t in range(len(rewards))
        ]

    names = "rewards", "values", "q_values", "ratios", "last", "following"
    close(retrace(**chosen(columns, *names), gamma=GAMMA), dialogues, slow)


@pytest.mark.parametrize("gae_lambda", [1.0, 0.7])
def test_vtrace_is_a_sum_over_what_followed(played, gae_lambda):
    """V + sum_s gamma^(s-t) (prod of lambda c) delta_s, Espeholt et al. eq. 1."""
    dialogues, columns = played

    def slow(rewards, values, ratios, following, **_):
        errors = rewards + GAMMA * np.array([*values[1:], following[-1]]) - values
        traces = np.minimum(1, ratios)
        return [
            values[t]
            + sum(
                (GAMMA * gae_lambda) ** (s - t) * np.prod(traces[t : s + 1]) * errors[s]
                for s in range(t, len(rewards))
            )
            for t in range(len(rewards))
        ]

    names = "rewards", "values", "ratios", "last", "following"
    targets, advantages = vtrace(**chosen(columns, *names), gamma=GAMMA, gae_lambda=gae_lambda)
    close(targets, dialogues, slow)

    def slow_advantages(rewards, values, following, **more):
        later = [*slow(rewards, values, following=following, **more)[1:], following[-1]]
        return rewards + GAMMA * np.array(later) - values

    close(advantages, dialogues, slow_advantages)


def test_of_what_the_policy_chose_vtrace_is_the_return(played):
    _, columns = played
    columns = columns | {"ratios": torch.ones_like(columns["ratios"])}
    names = "rewards", "values", "ratios", "last", "following"
    targets, advantages = vtrace(**chosen(columns, *names), gamma=GAMMA, gae_lambda=1.0)
    torch.testing.assert_close(targets, returns(columns))
    torch.testing.assert_close(advantages, returns(columns) - columns["values"])


def test_bootstrap_values_stand_where_a_limit_cut():
    cut = torch.tensor([False, True, False, True])
    assert bootstrap_values(cut, torch.tensor([2.0, 3.0])).tolist() == [0, 2, 0, 3]
