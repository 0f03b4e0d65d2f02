"""Sets of games for offline RL, after ILQL's; `-p` and `policy_kwargs` set their arguments.

There a branch was meant to go on from a state of the expert's game, but began a new game instead,
since the state was never loaded. Here it does go on.
"""

from collections.abc import Callable, Mapping
from typing import Any

from dialgym.tasks.generators import Branch, Tree
from dialgym.tasks.wordle.human import HumanGames
from dialgym.tasks.wordle.policies import Expert, RandomMixture, Repeat, Wrong


def branching(games: int = 1) -> Tree:
    """From every open state of an expert's game, `games` games of guesses that cannot be right."""
    return Tree(Expert(), (Branch("wrong", Wrong(), games),))


def adversarial(repeats: int = 5, suboptimal: int = 5, smart: float = 0.5, after: int = 2) -> Tree:
    """Games in which good openings come to nothing.

    An expert's game; from its third state, `repeats` games that say one of its first two words
    again and again; and `suboptimal` games with the same secret of which each guess is consistent
    with probability `smart`. The words of the expert are worth more than the returns that follow
    them in the data: who learns from returns alone prefers the suboptimal games.

    Args:
        repeats: games for each expert's game of more than `after` guesses.
        suboptimal: games for each expert's game.
        smart: see `RandomMixture`.
        after: words of the expert before it is repeated. Games that are over by then have no such
            branches: where they are many, as in a list of a few words, those that have seem
            unlucky, and 1 is truer.
    """
    return Tree(
        Expert(),
        (
            Branch("repeat", Repeat(first_n=2), repeats, after=after),
            Branch("suboptimal", RandomMixture(smart), suboptimal, after=0),
        ),
    )


GENERATORS: Mapping[str, Callable[..., Any]] = {
    "branching": branching,
    "adversarial": adversarial,
    "human": HumanGames,
}
