"""Sets of dialogues for offline RL, by questioners of graded skill.

`-p` and `policy_kwargs` set the arguments of `GENERATORS`.
"""

from collections.abc import Callable, Mapping
from typing import Any

from dialgym.tasks.generators import Branch, Tree
from dialgym.tasks.visual_dialogue.policies import Greedy, HumanLike, Random, RandomMixture


def graded(human_like: int = 3, mixed: int = 1, random: int = 1, smart: float = 0.5) -> Tree:
    """For each hidden image a dialogue of the best questioner, and so many of lesser ones.

    Args:
        human_like: dialogues of `HumanLike`, mostly questions of yes and no.
        mixed: dialogues of `RandomMixture`, of which a share of `smart` is chosen well.
        random: dialogues of `Random`.
        smart: see `mixed`.
    """
    branches = (
        Branch("human-like", HumanLike(), human_like, after=0),
        Branch("mixed", RandomMixture(smart), mixed, after=0),
        Branch("random", Random(), random, after=0),
    )
    return Tree(Greedy(), tuple(branch for branch in branches if branch.games), kind="greedy")


def branching(games: int = 1) -> Tree:
    """From every open state of a dialogue as people have it, `games` that go on at random."""
    return Tree(HumanLike(), (Branch("random", Random(), games),), kind="human-like")


GENERATORS: Mapping[str, Callable[..., Any]] = {"graded": graded, "branching": branching}
