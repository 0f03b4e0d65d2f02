"""Credit assignment: by episode, by turn, by turns in the same situation, or by values.

Arrays by step are (T, n): T steps of n dialogues, those of a group side by side.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from agents.returns import discounted_returns, turn_returns

BASELINES = ("mean", "leave-one-out", "batch")
SCALES = ("group", "batch", "none")
CREDITS = ("episode", "turn", "anchor", "prefix", "privileged", "exact")
VALUES = ("prefix", "privileged", "exact")
"""Credits that are differences of values."""


Sums = Callable[..., list[float]]
"""The sums of a few numbers over all processes (`agents.distributed.processes.Processes.sums`)."""


def alone(*numbers: float) -> list[float]:
    """The sums of numbers where there is one process."""
    return [*numbers]


class Credit(NamedTuple):
    """The credit of a turn, by the names of `agents.GRPO`, and its settings."""

    name: str
    baseline: str = "mean"
    scale: str = "group"
    gamma: float = 1.0  # from one turn to the next, of "turn" and "anchor"
    weight: float = 1.0  # of "anchor"
    trace: float = 0.0  # of "privileged"


def credited(
    credit: Credit,
    rewards: np.ndarray,
    said: np.ndarray,
    ends: np.ndarray,
    groups: np.ndarray,
    known: np.ndarray | None = None,
    left: np.ndarray | None = None,
    sums: Sums = alone,
) -> np.ndarray:
    """Advantages (T, n) float32 of what was said.

    Args:
        credit: which, and its settings.
        rewards: (T, n), 0 where nothing was said.
        said: (T, n) bool.
        ends: (T, n) bool, what closes a turn; not looked at for the credit "episode".
        groups: (n,) int.
        known: (T, n): where turns begin, the names of situations (uint64) of "anchor", or the
            values of the credits in `VALUES`.
        left: (n,) of those credits, see `value_rises`.
        sums: for what is compared within the batch.
    """
    how = credit.baseline, credit.scale, sums
    if credit.name in VALUES:
        assert known is not None
        turns = turn_numbers(ends)
        rises = value_rises(rewards, known, turns, said, left)
        if credit.name == "privileged":
            rises = discounted_returns(rises, credit.trace)
        if credit.name != "exact":
            return of_steps(rises, turns)
        return turn_advantages(rises, turns, said, same_turn(len(rises), groups), *how)
    whole = group_advantages(rewards.sum(0, np.float64), groups, *how)
    whole = np.broadcast_to(whole, said.shape)
    if credit.name == "episode":
        return whole
    turns = turn_numbers(ends)
    returns = turn_returns(rewards, turns, credit.gamma)
    if credit.name == "turn":
        return turn_advantages(returns, turns, said, same_turn(len(returns), groups), *how)
    assert known is not None
    labels = same_situation(known, turns, said, groups)
    among = turn_advantages(returns, turns, said, labels, *how)
    return whole + np.float32(credit.weight) * among


def group_advantages(
    returns: np.ndarray, groups: np.ndarray, baseline: str, scale: str, sums: Sums = alone
) -> np.ndarray:
    """Returns (m,) less the baseline of their group, (m,) float32.

    They are exactly 0 in groups whose returns are all equal: what rounding leaves of a mean of
    equal numbers is no deviation to divide by.

    Args:
        returns: (m,).
        groups: (m,), what each is compared within; any labels.
        baseline: "mean" of the group, of the group's other members ("leave-one-out"), or of all
            ("batch"), as if these were one group.
        scale: divide by the deviation within the "group", by that of all returns ("batch"), or by
            "none".
        sums: for the mean and the deviation of all returns, those of all processes.
    """
    values = returns.astype(np.float64)
    of_all = batch_moments(values, sums) if "batch" in (baseline, scale) else (0.0, 0.0)
    if baseline == "batch":
        advantages = values - of_all[0]
        deviation = np.full(len(values), of_all[1])
        equal = deviation <= 1e-6 * abs(of_all[0])
    else:
        _, number, counts = np.unique(groups, return_inverse=True, return_counts=True)
        advantages = values - (np.bincount(number, values) / counts)[number]
        deviation = np.sqrt(np.bincount(number, advantages**2) / counts)[number]
        equal = all_equal(values, groups)
        if baseline == "leave-one-out":
            advantages = advantages * (counts / np.maximum(counts - 1, 1))[number]
    if scale == "group":
        advantages = advantages / (deviation + 1e-6)
    elif scale == "batch":
        advantages = advantages / (of_all[1] + 1e-6)
    advantages[equal] = 0
    return advantages.astype(np.float32)


def batch_moments(values: np.ndarray, sums: Sums) -> tuple[float, float]:
    """Mean and deviation of the values (m,) of all processes together."""
    count, total = sums(float(len(values)), float(values.sum()))
    mean = total / max(count, 1)
    [squares] = sums(float(np.square(values - mean).sum()))
    return mean, float(np.sqrt(squares / max(count, 1)))


def all_equal(returns: np.ndarray, groups: np.ndarray) -> np.ndarray:
    """(m,) bool: whether the returns (m,) of its group are all the same, but for rounding.

    Args:
        returns: (m,).
        groups: (m,), any labels.
    """
    _, number, counts = np.unique(groups, return_inverse=True, return_counts=True)
    low, high = np.full(len(counts), np.inf), np.full(len(counts), -np.inf)
    np.minimum.at(low, number, returns)
    np.maximum.at(high, number, returns)
    equal = high - low <= 1e-6 * np.maximum(np.abs(low), np.abs(high))  # equal in float32
    found: np.ndarray = equal[number]
    return found


def turn_numbers(ends: np.ndarray) -> np.ndarray:
    """(T, n) int: the turn that each step is of, from 0; `ends` (T, n) bool closes one."""
    return ends.cumsum(0) - ends


def turn_advantages(
    returns: np.ndarray,
    turns: np.ndarray,
    said: np.ndarray,
    labels: np.ndarray,
    baseline: str,
    scale: str,
    sums: Sums = alone,
) -> np.ndarray:
    """(T, n) float32: the return from each turn on, less that of turns with the same label.

    Args:
        returns: (K, n), of `turn_returns`.
        turns: (T, n), of `turn_numbers`.
        said: (T, n) bool, where a token was said.
        labels: (K, n) int, which turns are compared.
        baseline, scale, sums: as of `group_advantages`.
    """
    columns = np.broadcast_to(np.arange(returns.shape[1]), turns.shape)
    reached = np.zeros(returns.shape, bool)
    reached[turns[said], columns[said]] = True
    advantages = np.zeros(returns.shape, np.float32)
    own, among = returns[reached], labels[reached]
    advantages[reached] = group_advantages(own, among, baseline, scale, sums)
    return of_steps(advantages, turns)


def of_steps(values: np.ndarray, turns: np.ndarray) -> np.ndarray:
    """(T, n) float32: of each step the value of its turn, of values (K, n) of turns."""
    columns = np.broadcast_to(np.arange(values.shape[1]), turns.shape)
    return values[turns, columns].astype(np.float32)


def same_turn(count: int, groups: np.ndarray) -> np.ndarray:
    """(K, n) labels: the k-th turns of a group (Zeng et al. 2025, arXiv 2505.11821)."""
    return np.arange(count)[:, None] * (groups.max() + 1) + groups


def same_situation(
    situations: np.ndarray, turns: np.ndarray, said: np.ndarray, groups: np.ndarray
) -> np.ndarray:
    """(K, n) labels: turns of a group that begin in the same situation.

    Source: Feng et al. (2025), arXiv 2505.10978, section 4.2.

    Args:
        situations: (T, n) uint64, the name of what the learner knew at each step.
        turns, said: (T, n), as of `turn_advantages`.
        groups: (n,) int.
    """
    begun = at_beginnings(situations, turns, said)
    pairs = np.stack([begun, np.broadcast_to(groups, begun.shape).astype(np.uint64)], -1)
    _, labels = np.unique(pairs.reshape(-1, 2), axis=0, return_inverse=True)
    return labels.reshape(begun.shape)


def at_beginnings(values: np.ndarray, turns: np.ndarray, said: np.ndarray) -> np.ndarray:
    """(K, n): of values (T, n) that where each turn begins; 0 for turns that nobody took.

    Args:
        values: (T, n) of any dtype.
        turns, said: (T, n), as of `turn_advantages`.
    """
    begun = np.zeros((int(turns.max(initial=0)) + 1, turns.shape[1]), values.dtype)
    columns = np.broadcast_to(np.arange(turns.shape[1]), turns.shape)
    # the first step of a turn is written last
    steps = np.flatnonzero(said)[::-1]
    begun[turns.flat[steps], columns.flat[steps]] = values.flat[steps]
    return begun


def fitted_values(
    features: np.ndarray, returns: np.ndarray, folds: np.ndarray, ridge: float
) -> np.ndarray:
    """Predict the returns (m,) of each fold by ridge regression on all other folds, float64.

    No prediction has seen the return that it is compared with, so that as a baseline it adds no
    bias. The intercept is not penalised.

    Args:
        features: (m, F).
        returns: (m,).
        folds: (m,) int, of at least two.
        ridge: penalty on squared weights, relative to the mean square of the features.
    """
    x, y = features.astype(np.float64), returns.astype(np.float64)
    found = np.zeros(len(y))
    for fold in np.unique(folds):
        rest, own = folds != fold, folds == fold
        centre, mean = x[rest].mean(0), y[rest].mean()
        known = x[rest] - centre
        square = known.T @ known
        penalty = max(ridge * np.trace(square) / len(square), 1e-12)
        weights = np.linalg.solve(
            square + penalty * np.eye(len(square)), known.T @ (y[rest] - mean)
        )
        found[own] = mean + (x[own] - centre) @ weights
    return found


def value_rises(
    rewards: np.ndarray,
    values: np.ndarray,
    turns: np.ndarray,
    said: np.ndarray,
    left: np.ndarray | None = None,
) -> np.ndarray:
    """(K, n): r_k + V(s_k+1) - V(s_k) of each turn k; V is 0 after the last turn of a dialogue.

    Source: Kazemnejad et al. (2025), arXiv 2410.01679, equations 5 and 6, there of steps of
    reasoning.

    Args:
        rewards: (T, n), 0 where nothing was said.
        values: (T, n), of the situation where a turn begins; the other steps are not looked at.
        turns, said: (T, n), as of `turn_advantages`.
        left: (n,) V after the last turn of a dialogue that was cut off there; NaN where that turn
            had not ended, which is then worth its rewards alone. None: none was cut off.
    """
    begun = at_beginnings(values, turns, said)
    after = np.concatenate([begun[1:], np.zeros_like(begun[:1])])
    if left is not None:
        last = np.where(said, turns, 0).max(0), np.arange(turns.shape[1])
        after[last] = np.where(np.isnan(left), begun[last], left)
    rises: np.ndarray = turn_returns(rewards, turns, 0.0) + after - begun
    return rises
