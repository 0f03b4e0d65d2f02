"""A check of registered reference scores against dialogues that are played again."""

from collections.abc import Iterator
from statistics import NormalDist

import numpy as np

from dialgym.registry import Environment, RegistryEntry, entry_of
from dialgym.rollouts import Player
from dialgym.testing.scripts import require

LEVEL = 0.999
"""Confidence with which the check calls a score false."""
LEAST = 50
"""Dialogues of each policy, at least: of fewer the interval would not hold its level."""


def check_references(target: Environment, episodes: int = LEAST, seed: int = 0) -> None:
    """Let the policies of the registered scores play, and compare their mean returns with them.

    A score is false where it lies outside the interval of `mean_interval`.

    Args:
        target: an id, or what stands for one.
        episodes: of each policy; at least 50 are played.
        seed: of the episodes.

    Raises:
        AssertionError: a score is false.
    """
    entry = _first_view(entry_of(target))
    for what, policy, score in _scores(entry):
        try:
            player = Player(entry, policy, num_envs=8)
        except ImportError:
            continue  # it needs what is not installed
        jobs = [(seed, episode) for episode in range(max(episodes, LEAST))]
        returns = np.concatenate([played.returns for played in player.play(jobs)])
        learner = player.task.parties[0]
        low, high = mean_interval(returns, player.task.facts.returns[learner])
        player.close()
        require(
            low <= score <= high,
            player.task,
            f"{entry.row.name} is registered with {score:g} as the mean return of {what} "
            f"({policy!r}), but {len(returns)} dialogues have {returns.mean():.3f} ({LEVEL:.1%} "
            f"interval {low:.3f} to {high:.3f}). Mend its scores: `dialgym benchmark references` "
            "measures them",
        )


def mean_interval(returns: np.ndarray, bounds: tuple[float, float]) -> tuple[float, float]:
    """The interval of the mean of (N,) returns, by Student's t at `LEVEL`.

    The variance is that of N + 2 returns, the lowest and the highest possible among them, so that
    rare ones which did not come up are reckoned with.
    """
    count = len(returns)
    possible = np.append(returns, [bound for bound in bounds if np.isfinite(bound)])
    z = NormalDist().inv_cdf((1 + LEVEL) / 2)
    quantile = z + (z**3 + z) / (4 * (count - 1))  # of t, Abramowitz and Stegun 26.7.5
    half = quantile * possible.std(ddof=1) / np.sqrt(count)
    return float(returns.mean() - half), float(returns.mean() + half)


def _first_view(entry: RegistryEntry) -> RegistryEntry:
    """That in which scores are measured."""
    return entry.in_view(entry.row.views[0])


def _scores(entry: RegistryEntry) -> Iterator[tuple[str, str, float]]:
    """Whose score, the policy, and the score."""
    scores = entry.row.references(entry.stand_in)
    named = {"random": "random", "expert": scores.get("expert_policy", entry.row.expert_name)}
    for what, policy in named.items():
        if scores.get(what) is not None:
            yield f"the {what}", policy, float(scores[what])
