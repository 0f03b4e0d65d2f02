"""A check of rewards by who plays well: random dialogues seldom earn what can be earned."""

from collections.abc import Iterable

from dialgym.debug import BrokenPromise, enforced
from dialgym.rollouts import Player
from dialgym.tasks import Task
from dialgym.testing.scripts import require

LEARNER = 0
"""The party that plays, among the task's."""


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
    named = task.speakers.get(task.parties[LEARNER], {}) if policies is None else policies
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
