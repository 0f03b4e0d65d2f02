"""Turns and situations: what each is credited with, against slow references."""

from concurrent.futures import ThreadPoolExecutor
from threading import Barrier

import numpy as np
import pytest
from stable_baselines3.common.env_util import make_vec_env
from stable_baselines3.common.vec_env import VecNormalize

import dialgym
from agents import GRPO
from agents.online.branches import Branches
from agents.online.credit import (
    group_advantages,
    of_steps,
    same_situation,
    same_turn,
    turn_advantages,
    turn_numbers,
    value_rises,
)
from agents.online.truths import turn_starts
from agents.returns import turn_returns
from tests.support.toy_tokens import Echo

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
    found = turn_advantages(returns, turns, said, labels, "mean", "none")
    wanted = slow_advantages(played, gamma, lambda one, other: one[0] == other[0])
    np.testing.assert_allclose(found[said], wanted[said], atol=1e-6)


def test_turns_are_compared_with_those_of_their_situation(played):
    rewards, ends, said, situations = played
    turns = turn_numbers(ends)
    returns = turn_returns(rewards, turns, 0.9)
    labels = same_situation(situations, turns, said, GROUPS)
    found = turn_advantages(returns, turns, said, labels, "mean", "none")
    wanted = slow_advantages(played, 0.9, lambda one, other: one[1] == other[1])
    np.testing.assert_allclose(found[said], wanted[said], atol=1e-6)


def test_a_turn_that_nobody_else_took_has_no_advantage():
    ends = np.ones((3, 2), bool)
    said = np.array([[True, True], [True, True], [False, True]])
    turns = turn_numbers(ends & said)
    returns = turn_returns(np.array([[-1.0, -1], [-1, -1], [0, -5]]), turns, 1.0)
    labels = same_turn(len(returns), np.zeros(2, int))
    found = turn_advantages(returns, turns, said, labels, "mean", "group")
    assert found[2, 1] == 0
    assert found[0].tolist() == pytest.approx([1, -1], abs=1e-5)


# The kin of GRPO that are settings of it, in 64 bits


def test_leave_one_out_is_rloo(played):
    """Ahmadian et al. (2024), equation 8: R_i less the mean of the others."""
    returns = played[0].sum(0)
    found = group_advantages(returns, GROUPS, "leave-one-out", "none")
    for i in range(N):
        others = [returns[j] for j in range(N) if j != i and GROUPS[j] == GROUPS[i]]
        assert found[i] == pytest.approx(returns[i] - sum(others) / len(others), rel=1e-6)


def test_the_batch_as_baseline_and_scale_is_reinforce_plus_plus(played):
    """Hu et al. (2025), equation 9: mean 0 and deviation 1 over all dialogues of the batch."""
    returns = played[0].sum(0)
    found = group_advantages(returns, GROUPS, "batch", "batch")
    deviation = np.sqrt(sum((returns - returns.mean()) ** 2) / N)
    wanted = (returns - sum(returns) / N) / (deviation + 1e-6)
    np.testing.assert_allclose(found, wanted, rtol=1e-6)


def test_groups_may_be_scaled_by_the_deviation_of_the_batch(played):
    returns = played[0].sum(0)
    found = group_advantages(returns, GROUPS, "mean", "batch")
    for i in range(N):
        own = returns[GROUPS[i] == GROUPS]
        wanted = (returns[i] - own.mean()) / (returns.std() + 1e-6)
        assert found[i] == pytest.approx(wanted, rel=1e-6)


def test_returns_from_all_turns_of_the_batch_on_are_rebn(played):
    """Liu et al. (2025), section 3: (G - mean) / deviation over all turns, whatever number."""
    rewards, ends, said, _ = played
    turns = turn_numbers(ends)
    returns = turn_returns(rewards, turns, 0.9)
    labels = same_turn(len(returns), GROUPS)
    found = turn_advantages(returns, turns, said, labels, "batch", "batch")
    slow = slow_turns(played, 0.9)
    values = [value for row in slow for _, value, _ in row]
    mean = sum(values) / len(values)
    deviation = np.sqrt(sum((value - mean) ** 2 for value in values) / len(values)) + 1e-6
    for n, row in enumerate(slow):
        for steps, value, _ in row:
            np.testing.assert_allclose(found[steps, n], (value - mean) / deviation, rtol=1e-6)


def test_turns_are_credited_with_their_reward_and_the_rise_of_the_value(played):
    rewards, ends, said, _ = played
    values = np.random.default_rng(9).normal(size=(T, N))
    turns = turn_numbers(ends)
    found = of_steps(value_rises(rewards, values, turns, said), turns)
    for n, row in enumerate(slow_turns(played, 1.0)):
        for k, (steps, _, _) in enumerate(row):
            after = values[row[k + 1][0][0], n] if k + 1 < len(row) else 0.0
            wanted = sum(rewards[t, n] for t in steps) + after - values[steps[0], n]
            np.testing.assert_allclose(found[steps, n], wanted, rtol=1e-5, atol=1e-6)


def test_what_comes_after_a_dialogue_that_was_cut_off_counts(played):
    """V after its last turn; a turn that had not ended is worth its rewards."""
    rewards, ends, said, _ = played
    values, left = np.random.default_rng(9).normal(size=(T, N)), np.zeros(N)
    left[1:4] = 5.0, np.nan, -2.0
    turns = turn_numbers(ends)
    found = of_steps(value_rises(rewards, values, turns, said, left), turns)
    whole = of_steps(value_rises(rewards, values, turns, said), turns)
    for n, row in enumerate(slow_turns(played, 1.0)):
        steps = row[-1][0]
        before = [t for t in range(T) if t not in steps and said[t, n]]
        np.testing.assert_array_equal(found[before, n], whole[before, n])
        after = values[steps[0], n] if n == 2 else left[n]
        np.testing.assert_allclose(found[steps, n], whole[steps, n] + after, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("baseline", ["batch", "mean", "leave-one-out"])
@pytest.mark.parametrize("returns", [[0, 0, 0, 0, 1, 1, 1, 1], [0, 0, 0, 1, 0, 1, 1, 1.0]])
def test_the_batch_is_that_of_all_processes(returns, baseline):
    values, groups = np.array(returns, float), np.arange(8) // 2
    together = group_advantages(values, groups, baseline, "batch")
    meeting, told = Barrier(2), {}

    def half(rank):
        def sums(*numbers):
            told[rank] = numbers
            meeting.wait(60)
            total = [sum(pair) for pair in zip(told[0], told[1], strict=True)]
            meeting.wait(60)
            return total

        own = slice(4 * rank, 4 * rank + 4)
        return group_advantages(values[own], groups[own], baseline, "batch", sums)

    with ThreadPoolExecutor(2) as pool:
        apart = np.concatenate([*pool.map(half, range(2))])
    np.testing.assert_allclose(apart, together, rtol=1e-6)
    assert together.any() or baseline != "batch"


def test_labels_may_be_anything():
    returns = np.random.default_rng(0).normal(size=6)
    some = group_advantages(returns, np.array([7, 0, 7, 0, 7, 0]), "leave-one-out", "group")
    order = np.argsort([7, 0, 7, 0, 7, 0], kind="stable")
    sorted_ = group_advantages(
        returns[order], np.array([0, 0, 0, 1, 1, 1]), "leave-one-out", "group"
    )
    np.testing.assert_allclose(some[order], sorted_)


SMALL = {"n_layer": 2, "n_head": 2, "n_embd": 16}
WORDS = {"answers": ["crane", "slimy", "bough", "fjord"], "guesses": "answers"}


def collected(credit, settings=None, **kwargs):
    settings = {} if settings is None else settings
    env = dialgym.sb3_vec_env(
        "Wordle-v0", 16, seed=0, **WORDS, constraint="words", turns=4, **kwargs
    )
    model = GRPO(
        "GPTPolicy", env, n_steps=40, batch_size=512, policy_kwargs=SMALL, seed=0, group_size=8,
        scale_rewards="none", credit=credit, **settings,
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
    model = collected("anchor", {"credit_kwargs": {"weight": 0.5}}, anchors=True)
    advantages, _ = grid(model)
    returns = model.rollout_buffer.steps("rewards").sum(0)
    groups = np.arange(16) // 8
    whole = group_advantages(returns, groups, "mean", "none")
    # at the first turn all are in the same situation, whose return is that of the episode
    np.testing.assert_allclose(advantages[0], 1.5 * whole, atol=1e-5)
    assert not np.allclose(advantages[6], 1.5 * whole)


def test_situations_need_anchors():
    with pytest.raises(ValueError, match=r'credit="anchor" needs infos with `anchor`'):
        collected("anchor")


# Credit by values


def test_exact_credit_is_the_rise_of_the_value_by_a_turn():
    """Less that of the group's turns of the same number, as it is below 0 on average."""
    model = collected("exact", values=True)
    advantages, said = grid(model)
    values, rewards = (model.rollout_buffer.steps(n) for n in ("state_values", "rewards"))
    assert values[0] == pytest.approx(-0.75)  # `fjord` tells the other three apart
    after = 6  # letters of a guess, and the end of it
    going_on = said[after]
    rise = rewards[:after].sum(0) + np.where(going_on, values[after], 0.0) - values[0]
    assert (rise < -0.2).any()
    assert rise.max() <= 0.75
    wanted = rise - rise.reshape(2, 8).mean(1).repeat(8)
    np.testing.assert_allclose(advantages[0], wanted, atol=1e-5)


def test_prefixes_are_gone_on_from_and_cost_tokens():
    """With the values of many continuations, of which those from one place agree."""
    env = dialgym.sb3_vec_env("Wordle-Alike-v0", 8, seed=0, tokenizer="word", turns=3)
    model = GRPO(
        "GPTPolicy", env, n_steps=20, policy_kwargs=SMALL, seed=0, group_size=8, credit="prefix",
        credit_kwargs={"count": 32},
    )  # fmt: skip
    _, callback = model._setup_learn(1000)
    model.collect_rollouts(model.env, callback, model.rollout_buffer, 20)
    continued = model.num_timesteps - len(model.rollout.sequences)
    turns = sum(turn_starts(model._ends(grid(model)[1]), grid(model)[1]).ravel())
    assert continued >= 32 * turns  # a token each at least
    rewards, advantages = model.rollout_buffer.steps("rewards"), grid(model)[0]
    first = rewards.sum(0) - advantages_by_turn(model, advantages)
    # what all turns gained adds up to the return less the value of the beginning, one for all
    assert np.ptp(first) < 1.0
    assert first.std() < rewards.sum(0).std()


def advantages_by_turn(model, advantages):
    """(n,): the sum over turns, each counted once."""
    said = grid(model)[1]
    return (advantages * turn_starts(model._ends(said), said)).sum(0)


def test_only_turns_that_are_learned_from_are_gone_on_from(monkeypatch):
    """Groups that are played again leave nothing behind."""
    env = dialgym.sb3_vec_env("Wordle-20-v0", 16, seed=0, tokenizer="word")
    model = GRPO(
        "GPTPolicy", env, n_steps=20, policy_kwargs=SMALL, seed=0, group_size=2, credit="prefix",
        credit_kwargs={"count": 1}, resample=3,
    )  # fmt: skip
    continued = []
    values = Branches.values

    def noted(self, *rest):
        continued.extend(self.begun)
        return values(self, *rest)

    monkeypatch.setattr(Branches, "values", noted)
    _, callback = model._setup_learn(1000)
    model.collect_rollouts(model.env, callback, model.rollout_buffer, 20)
    assert len(model.rollout_buffer) > 20  # some were played again
    said = np.zeros((len(model.rollout_buffer), 16), bool)
    said.reshape(-1)[model.rollout.sequences.steps] = True
    begun = turn_starts(model._ends(said), said)
    assert {(t, n) for t, n in continued if t < len(begun)} >= {*zip(*np.nonzero(begun))}
    assert len(continued) <= begun.sum() + 16  # and where dialogues stand that were cut off


@pytest.mark.parametrize("credit", ["exact", "prefix"])
def test_dialogues_that_are_cut_off_are_worth_what_would_come(credit, monkeypatch):
    more = {"values": True} if credit == "exact" else {"turns": 8}
    env = dialgym.sb3_vec_env("Maze-v0", 16, seed=0, tokenizer="word", **more)
    settings = {"credit_kwargs": {"count": 2}} if credit == "prefix" else {}
    model = GRPO(
        "GPTPolicy", env, n_steps=12, policy_kwargs=SMALL, seed=0, group_size=16,
        scale_rewards="none", credit=credit, **settings,
    )  # fmt: skip
    seen, state_values = [], model._state_values

    def kept(said):
        seen.append(state_values(said))
        return seen[-1]

    monkeypatch.setattr(model, "_state_values", kept)
    _, callback = model._setup_learn(1000)
    model.collect_rollouts(model.env, callback, model.rollout_buffer, 12)
    [(values, left)] = seen
    rewards, dones = (model.rollout_buffer.steps(name) for name in ("rewards", "dones"))
    cut = ~dones.any(0)
    assert cut.sum() > 8
    assert np.isfinite(left).all()  # a move is three tokens
    assert (left[~cut] == 0).all()
    said, ends = np.ones(rewards.shape, bool), np.zeros(rewards.shape, bool)
    ends[2::3] = True
    rises = value_rises(rewards, values, turn_numbers(ends), said, left)[:, cut]
    whole = (rewards.sum(0) + left - values[0])[cut]
    np.testing.assert_allclose(rises.sum(0), whole, atol=1e-5)
    if credit == "exact":  # a move costs 1, and at most brings the goal a move further away
        assert rises.min() >= -2
        assert rises.max() <= 0


@pytest.mark.parametrize("credit", ["prefix", "exact"])
def test_values_are_in_the_unit_of_rewards(credit):
    env = VecNormalize(make_vec_env(Echo, 8), norm_obs=False)
    with pytest.raises(ValueError, match="scales rewards; give VecNormalize norm_reward=False"):
        GRPO("GPTPolicy", env, policy_kwargs=SMALL, credit=credit)


def test_prefixes_need_dialogues_that_can_be_saved():
    model = GRPO("GPTPolicy", make_vec_env(Echo, 8), policy_kwargs=SMALL, credit="prefix")
    with pytest.raises(
        ValueError, match=r"expected an env whose dialogues can be saved.*workers=0"
    ):
        model.learn(10)
