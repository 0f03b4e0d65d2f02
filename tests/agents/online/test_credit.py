"""Turns and situations: what each is credited with, against slow references."""

import numpy as np
import pytest

import dialgym
from agents import GRPO
from agents.online.credit import (
    group_advantages,
    same_situation,
    same_turn,
    turn_advantages,
    turn_numbers,
)
from agents.returns import turn_returns

T, N = 14, 8
GROUPS = np.arange(N) // 4


@pytest.fixture(params=range(3))
def played(request):
    """Rewards, ends of turns, where something was said, and situations: (T, N) each."""
    rng = np.random.default_rng(request.param)
    lengths = rng.integers(3, T + 1, N)
    said = np.arange(T)[:, None] < lengths
    ends = (rng.random((T, N)) < 0.4) & said
    ends[lengths - 1, np.arange(N)] = True
    rewards = rng.normal(size=(T, N)) * said
    return rewards, ends, said, rng.integers(1, 4, (T, N)).astype(np.uint64)


def slow_turns(played, gamma):
    """By dialogue: of each turn its steps, the return from it on, and how it began."""
    rewards, ends, said, situations = played
    found = []
    for n in range(N):
        turns = [[]]
        for t in range(int(said[:, n].sum())):
            turns[-1].append(t)
            if ends[t, n]:
                turns.append([])
        turns = [steps for steps in turns if steps]
        paid = [sum(rewards[t, n] for t in steps) for steps in turns]
        found.append(
            [
                (steps, sum(gamma**i * r for i, r in enumerate(paid[k:])), situations[steps[0], n])
                for k, steps in enumerate(turns)
            ]
        )
    return found


def slow_advantages(played, gamma, alike):
    """Each turn's return less the mean over those of its group that are `alike` to it."""
    turns, wanted = slow_turns(played, gamma), np.zeros((T, N))
    for n in range(N):
        for k, (steps, value, begun) in enumerate(turns[n]):
            others = [
                other
                for m in range(N)
                if GROUPS[m] == GROUPS[n]
                for j, (_, other, begun_so) in enumerate(turns[m])
                if alike((k, begun), (j, begun_so))
            ]
            wanted[steps, n] = value - np.mean(others)
    return wanted


@pytest.mark.parametrize("gamma", [1.0, 0.7])
def test_turns_are_compared_with_those_of_their_number(played, gamma):
    rewards, ends, said, _ = played
    turns = turn_numbers(ends)
    returns = turn_returns(rewards, turns, gamma)
    labels = same_turn(len(returns), GROUPS)
    found = turn_advantages(returns, turns, said, labels, "mean", False)
    wanted = slow_advantages(played, gamma, lambda one, other: one[0] == other[0])
    np.testing.assert_allclose(found[said], wanted[said], atol=1e-6)


def test_turns_are_compared_with_those_of_their_situation(played):
    rewards, ends, said, situations = played
    turns = turn_numbers(ends)
    returns = turn_returns(rewards, turns, 0.9)
    labels = same_situation(situations, turns, said, GROUPS)
    found = turn_advantages(returns, turns, said, labels, "mean", False)
    wanted = slow_advantages(played, 0.9, lambda one, other: one[1] == other[1])
    np.testing.assert_allclose(found[said], wanted[said], atol=1e-6)


def test_a_turn_that_nobody_else_took_has_no_advantage():
    ends = np.ones((3, 2), bool)
    said = np.array([[True, True], [True, True], [False, True]])
    turns = turn_numbers(ends & said)
    returns = turn_returns(np.array([[-1.0, -1], [-1, -1], [0, -5]]), turns, 1.0)
    labels = same_turn(len(returns), np.zeros(2, int))
    found = turn_advantages(returns, turns, said, labels, "mean", True)
    assert found[2, 1] == 0
    assert found[0].tolist() == pytest.approx([1, -1], abs=1e-5)


def test_labels_may_be_anything():
    returns = np.random.default_rng(0).normal(size=6)
    some = group_advantages(returns, np.array([7, 0, 7, 0, 7, 0]), "leave-one-out", True)
    order = np.argsort([7, 0, 7, 0, 7, 0], kind="stable")
    sorted_ = group_advantages(returns[order], np.array([0, 0, 0, 1, 1, 1]), "leave-one-out", True)
    np.testing.assert_allclose(some[order], sorted_)


SMALL = {"n_layer": 2, "n_head": 2, "n_embd": 16}
WORDS = {"answers": ["crane", "slimy", "bough", "fjord"], "guesses": "answers"}


def collected(credit, **kwargs):
    env = dialgym.sb3_vec_env(
        "Wordle-v0", 16, seed=0, **WORDS, constraint="words", turns=4, **kwargs
    )
    model = GRPO(
        "GPTPolicy", env, n_steps=40, batch_size=512, policy_kwargs=SMALL, seed=0, scale=False,
        group_size=8, credit=credit, situation_weight=0.5,
    )  # fmt: skip
    _, callback = model._setup_learn(1000)
    model.collect_rollouts(model.env, callback, model.rollout_buffer, 40)
    return model


def grid(model):
    rollout, said = model.rollout, model.rollout_buffer.steps("log_probs") != 0
    return rollout.sequences.grid(rollout.advantages, said.shape), said


def test_advantages_by_turn_are_the_same_within_a_turn_and_right_at_the_last():
    """In Wordle a turn costs 1 unless it wins: the last turns of a group differ by that alone."""
    model = collected("turn")
    advantages, said = grid(model)
    rewards = model.rollout_buffer.steps("rewards")
    for n in range(16):
        length = int(said[:, n].sum())
        ends = np.flatnonzero(rewards[:length, n] != 0)
        starts = np.concatenate([[0], ends[:-1] + 1]) if len(ends) else np.array([0])
        for a, b in zip(starts, [*starts[1:], length]):
            assert np.ptp(advantages[a:b, n]) == 0
    assert len(np.unique(advantages[0])) > 1


def test_situations_of_a_beginning_are_those_of_the_whole_group():
    model = collected("situation", anchors=True)
    advantages, _ = grid(model)
    returns = model.rollout_buffer.steps("rewards").sum(0)
    groups = np.arange(16) // 8
    whole = group_advantages(returns, groups, "mean", False)
    # at the first turn all are in the same situation, whose return is that of the episode
    np.testing.assert_allclose(advantages[0], 1.5 * whole, atol=1e-5)
    assert not np.allclose(advantages[6], 1.5 * whole)


def test_situations_need_anchors():
    with pytest.raises(ValueError, match=r'credit="situation" needs infos with `anchor`'):
        collected("situation")
