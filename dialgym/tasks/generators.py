"""Declarations of sets of related dialogues: branches, trees, scripts, and logs of a corpus."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, Protocol, runtime_checkable

import numpy as np

from dialgym.simulators import Speaker


@dataclass(frozen=True)
class Branch:
    """Dialogues that leave another one and go on by a policy of their own.

    Attributes:
        kind: what they are called.
        policy: the learner's from there on.
        games: how many at each place.
        after: the learner's utterances that are kept; None for every number of them at which the
            dialogue is still open. Where it ends earlier there are no branches.
    """

    kind: str
    policy: Speaker
    games: int = 1
    after: int | None = None


@dataclass(frozen=True)
class Tree:
    """An episode: a dialogue of `source`, called `kind`, and those that leave it.

    A branch begins with the very state of the dialogue that it leaves, hidden parts included.
    """

    source: Speaker
    branches: tuple[Branch, ...]
    kind: str = "expert"


def by_skill(
    best: Callable[[], Speaker],
    human: Callable[[], Speaker],
    chance: Callable[[], Speaker],
    mixture: Callable[[float], Speaker],
) -> tuple[Callable[..., Tree], Callable[..., Tree]]:
    """Make ``graded`` and ``branching`` of a task in which a questioner finds something.

    Args:
        best, human, chance: make its greedy, human-like and random questioners.
        mixture: makes one that asks well with a probability, else at random.
    """

    def graded(human_like: int = 3, mixed: int = 1, random: int = 1, smart: float = 0.5) -> Tree:
        """For each hidden thing a dialogue of the best questioner, and so many of lesser ones.

        Args:
            human_like: dialogues of the human-like one.
            mixed: dialogues of the mixture, of which a share of `smart` is chosen well.
            random: dialogues of the random one.
            smart: see `mixed`.
        """
        branches = (
            Branch("human-like", human(), human_like, after=0),
            Branch("mixed", mixture(smart), mixed, after=0),
            Branch("random", chance(), random, after=0),
        )
        return Tree(best(), tuple(branch for branch in branches if branch.games), kind="greedy")

    def branching(games: int = 1) -> Tree:
        """From every open state of a dialogue as people have it, `games` that go on at random.

        The best turns of the data are thus in dialogues of all returns: who learns from returns
        alone learns the luck that followed them, too.
        """
        return Tree(human(), (Branch("random", chance(), games),), kind="human-like")

    return graded, branching


class ScriptedDialogue(NamedTuple):
    """The utterances of a dialogue, known in advance."""

    options: Mapping[str, Any]  # of reset
    texts: Sequence[str]  # the learner's utterances


@runtime_checkable
class Scripts(Protocol):
    """Writes the learner's part of whole dialogues in advance."""

    def script(self, task: Any, rng: np.random.Generator) -> ScriptedDialogue:
        """One dialogue."""
        ...


class Log(NamedTuple):
    """The utterances of both parties in a dialogue that was held elsewhere."""

    options: Mapping[str, Any]  # of reset
    turns: Sequence[tuple[str, str]]  # party and text, in order
    kind: str = ""  # what the corpus calls it


@runtime_checkable
class Logs(Protocol):
    """Dialogues of a corpus, to be held again under the rules of a task."""

    def count(self, task: Any) -> int:
        """Number of dialogues that there are for a task."""
        ...

    def log(self, task: Any, number: int) -> Log:
        """The dialogue of a number from 0; texts are such as the task understands."""
        ...
