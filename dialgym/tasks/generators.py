"""Declarations of sets of dialogues: branches, trees, relays, scripts, and logs of a corpus."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, Protocol, runtime_checkable

import numpy as np

from dialgym.errors import share, whole_number
from dialgym.simulators import Speaker
from dialgym.tasks.acts import ActPolicy


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


@dataclass(frozen=True)
class Leg:
    """Turns of a relay that belong to one policy.

    Attributes:
        policy: the learner's; on act views it chooses acts.
        turns: how many utterances; None for all that are left.
        again: the probability that it says once more what the learner said last, if that may be
            said again, rather than what the policy says.
    """

    policy: Speaker | ActPolicy
    turns: int | None = None
    again: float = 0.0


@dataclass(frozen=True)
class Relay:
    """Dialogues in which one policy takes over from another: each is of one kind, drawn evenly.

    Attributes:
        kinds: the legs of a dialogue, in order, by the name of the kind.
    """

    kinds: Mapping[str, tuple[Leg, ...]]


def by_halves(
    good: Callable[[], Speaker | ActPolicy], poor: Callable[[], Speaker | ActPolicy]
) -> Callable[..., Relay]:
    """Make ``halves`` of a task with a good and a poor scripted policy.

    Args:
        good, poor: make the policies.
    """

    def halves(turns: int = 1, again: float = 0.7) -> Relay:
        """Dialogues well begun and badly ended, or the other way round, in equal number.

        No dialogue is played well on both sides of the change; only by luck does the poor player
        say what the good one would have said. The return of a dialogue hides the worth of its good
        part: who filters by returns learns the luck of the poor one, too.

        Args:
            turns: utterances before the other player takes over.
            again: probability that the poor one repeats what was said last.
        """
        whole_number("turns", turns, "halves")
        share("again of halves", again)
        well, badly = good(), poor()
        return Relay(
            {
                "good-poor": (Leg(well, turns), Leg(badly, None, again)),
                "poor-good": (Leg(badly, turns, again), Leg(well)),
            }
        )

    return halves


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
