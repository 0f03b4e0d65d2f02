"""Returns, V-trace and retrace against slow references."""

import numpy as np
import pytest
import torch

from agents.returns import discounted, retrace, values_ahead, vtrace

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
        ahead = rng.normal() if rng.random() < 0.5 else 0.0
        columns["ahead"] = np.where(columns["last"], ahead, 0.0)
        dialogues.append(columns)
    joined = {name: np.concatenate([d[name] for d in dialogues]) for name in dialogues[0]}
    return dialogues, {name: torch.as_tensor(column) for name, column in joined.items()}


def chosen(columns, *names):
    return {name: columns[name] for name in names}


def close(found, dialogues, slow):
    wanted = np.concatenate([slow(**dialogue) for dialogue in dialogues])
    np.testing.assert_allclose(found.numpy(), wanted, rtol=1e-6, atol=1e-9)


def test_returns_are_discounted_sums(played):
    dialogues, columns = played

    def slow(rewards, ahead, **_):
        paid = [*rewards, ahead[-1]]
        return [
            sum(GAMMA**k * r for k, r in enumerate(paid[t:])) for t in range(len(rewards))
        ]  # fmt: skip

    close(discounted(**chosen(columns, "rewards", "last", "ahead"), gamma=GAMMA), dialogues, slow)


def test_retrace_is_a_sum_over_what_followed(played):
    """Q + sum_s gamma^(s-t) (prod of traces) (r_s + gamma V_s+1 - Q_s), Munos et al. eq. 4."""
    dialogues, columns = played

    def slow(rewards, values, q_values, ratios, ahead, **_):
        after = [*values[1:], ahead[-1]]
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

    names = "rewards", "values", "q_values", "ratios", "last", "ahead"
    close(retrace(**chosen(columns, *names), gamma=GAMMA), dialogues, slow)


@pytest.mark.parametrize("gae_lambda", [1.0, 0.7])
def test_vtrace_is_a_sum_over_what_followed(played, gae_lambda):
    """V + sum_s gamma^(s-t) (prod of lambda c) delta_s, Espeholt et al. eq. 1."""
    dialogues, columns = played

    def slow(rewards, values, ratios, ahead, **_):
        errors = rewards + GAMMA * np.array([*values[1:], ahead[-1]]) - values
        traces = np.minimum(1, ratios)
        return [
            values[t]
            + sum(
                (GAMMA * gae_lambda) ** (s - t) * np.prod(traces[t : s + 1]) * errors[s]
                for s in range(t, len(rewards))
            )
            for t in range(len(rewards))
        ]

    names = "rewards", "values", "ratios", "last", "ahead"
    targets, advantages = vtrace(**chosen(columns, *names), gamma=GAMMA, gae_lambda=gae_lambda)
    close(targets, dialogues, slow)

    def slow_advantages(rewards, values, ahead, **more):
        later = [*slow(rewards, values, ahead=ahead, **more)[1:], ahead[-1]]
        return rewards + GAMMA * np.array(later) - values

    close(advantages, dialogues, slow_advantages)


def test_of_what_the_policy_chose_vtrace_is_the_return(played):
    _, columns = played
    columns = columns | {"ratios": torch.ones_like(columns["ratios"])}
    names = "rewards", "values", "ratios", "last", "ahead"
    targets, advantages = vtrace(**chosen(columns, *names), gamma=GAMMA, gae_lambda=1.0)
    returns = discounted(**chosen(columns, "rewards", "last", "ahead"), gamma=GAMMA)
    torch.testing.assert_close(targets, returns)
    torch.testing.assert_close(advantages, returns - columns["values"])


def test_values_ahead_stand_where_a_limit_cut():
    cut = torch.tensor([False, True, False, True])
    assert values_ahead(cut, torch.tensor([2.0, 3.0])).tolist() == [0, 2, 0, 3]
