"""Checks of what policies earn: against declared bounds and registered scores, and at random."""

from collections.abc import Iterable, Iterator
from statistics import NormalDist

import numpy as np

from dialgym.debug import BrokenPromise, enforced
from dialgym.language import AnyText
from dialgym.registry import Environment, RegistryEntry, entry_of
from dialgym.rollouts import Player
from dialgym.rollouts.policies import RandomText
from dialgym.tasks import Task
from dialgym.testing.scripts import require

LEVEL = 0.999
"""Confidence with which the check calls a score false."""
LEAST = 50
"""Dialogues of each policy, at least: of fewer the interval would not hold its level."""
REMEDY = (
    "An agent learns from differences alone: let it begin with the weights of a clone of a policy "
    "(dialgym collect, dialgym train bc, then --init-from) or of a language model, or reward "
    "smaller steps."
)


def check_returns(
    task: Task, policies: Iterable[str] | None = None, episodes: int = 20, seed: int = 0
) -> None:
    """Let scripted policies play, and hold what they earn to what is declared of it.

    Args:
        task: the rules.
        policies: names of the first party's; None for all that the task has.
        episodes: of each.
        seed: of the episodes.

    Raises:
        AssertionError: a reward is not finite or leaves its `bounds`, components do not add up or
            are not declared, or a return is not within `facts.returns`.
    """
    named = task.speakers.get(task.parties[0], {}) if policies is None else policies
    jobs = [(seed, episode) for episode in range(episodes)]
    for name in named:
        try:
            with enforced():
                for _ in Player(task, name, num_envs=min(episodes, 8)).play(jobs):
                    pass
        except BrokenPromise as error:
            require(False, task, f"with the policy {name!r}: {error}")
        except (ImportError, ValueError):
            continue  # the policy does not fit these settings, or needs what is not installed


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
    entry = entry_of(target)
    entry = entry.in_view(entry.row.views[0])  # that in which scores are measured
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


def _scores(entry: RegistryEntry) -> Iterator[tuple[str, str, float]]:
    """Whose score, the policy, and the score."""
    scores = entry.row.references(entry.stand_in)
    named = {"random": "random", "expert": scores.get("expert_policy", entry.row.expert_name)}
    for what, policy in named.items():
        if scores.get(what) is not None:
            yield f"the {what}", policy, float(scores[what])


def start_remark(task: Task, episodes: int = 50, seed: int = 0) -> str | None:
    """Remark on how an agent that begins at random would fare; None where it could learn.

    The first party plays, says whatever it may, and should earn more at one time than at another.
    """
    jobs = [(seed, episode) for episode in range(episodes)]
    player = Player(task, RandomText(), num_envs=min(episodes, 8))
    earned = np.concatenate([played.returns for played in player.play(jobs)])
    if len({*earned.round(9).tolist()}) > 1:
        return None
    party = task.parties[0]
    same = (
        f"{episodes} dialogues in which the {party} said anything at random all earned "
        f"{earned[0]:g}"
    )
    if isinstance(task.static_constraint(party), AnyText):
        return (
            f"there is no constraint on what the {party} says, and no learnable start: {same}. Say "
            f"what it may say (static_constraint), which makes action masks of it. {REMEDY}"
        )
    return f"there is no learnable start: {same}. {REMEDY}"
