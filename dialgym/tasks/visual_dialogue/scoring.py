"""Rewards of visual dialogue: ILQL's rules and ours."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypedDict

from dialgym.errors import finite_number, one_of
from dialgym.rewards import Components
from dialgym.tasks.visual_dialogue.types import STOP

MODES = ("env_stops", "agent_stops", "10_stop")
CONSERVATIVE = (
    "not", "don't", "can't", "don’t", "can’t", "cannot", "fairly", "could", "think so", "okay",
    "maybe", "yes", "no", "looks", "appears", "tell", "mostly just",
)  # fmt: skip
ANSWER, YES_NO, PROGRESS = "answer", "yes/no", "progress"
"""The components of rewards."""
ROUNDING = 1e-9


def is_hard(answer: str) -> bool:
    """Return True if an answer is just yes or no; case does not matter, a full stop does."""
    return answer.lower() in ("yes", "no")


def is_soft(answer: str) -> bool:
    """Return True if there is a yes or no anywhere in an answer, in ``snow`` too."""
    return any(word in answer.lower() for word in ("yes", "no"))


def is_conservative(answer: str) -> bool:
    """Return True if there is anything in an answer that people say to yes/no questions."""
    return any(words in answer.lower() for words in CONSERVATIVE)


PENALTIES: Mapping[str, Any] = {
    "none": None,
    "soft": is_soft,
    "hard": is_hard,
    "conservative": is_conservative,
}


@dataclass(frozen=True)
class Cutoff:
    """When a dialogue has got far enough.

    Attributes:
        goal: the percentile rank to get to.
        fraction: how much of the way from the first percentile rank to it.
    """

    goal: float = 1.0
    fraction: float = 0.5

    @classmethod
    def of(cls, setting: Any) -> "Cutoff":
        """Of a pair (goal, fraction).

        Raises:
            ValueError: it is none.
        """
        if isinstance(setting, cls):
            return setting
        if not isinstance(setting, Sequence) or isinstance(setting, str) or len(setting) != 2:
            raise ValueError(
                "cutoff of VisualDialogue must be a pair (goal, fraction) such as (1.0, 0.5); "
                f"got {setting!r}."
            )
        return cls(*[finite_number("cutoff of VisualDialogue", number) for number in setting])

    def reached(self, percentiles: Sequence[float]) -> bool:
        """True if the last of the percentile ranks, of which the first is the caption's, is far
        enough; if the caption got there, the first answer is."""
        first, last = percentiles[0], percentiles[-1]
        if len(percentiles) == 1:
            return False
        return bool(self.far_enough(first, last))

    def far_enough(self, first: Any, last: Any) -> Any:
        """The same of a first and a last percentile rank, or of arrays of them."""
        return last - first >= self.fraction * (self.goal - first) - ROUNDING


class ScoringOptions(TypedDict, total=False):
    """Settings of `Scoring` by name; see `VisualDialogue`."""

    mode: str
    penalty: str
    reward: str
    cutoff: Any
    cost: float | None
    yes_no: float


@dataclass(frozen=True)
class Scoring:
    """The reward of each answer; see `VisualDialogue` for the settings."""

    mode: str
    reward: str
    penalty: str
    cutoff: Cutoff
    cost: float
    yes_no: float
    rounds: int

    @classmethod
    def of(
        cls,
        rounds: int,
        half_way: bool,
        mode: str = "env_stops",
        penalty: str = "none",
        reward: str = "standard",
        cutoff: Any = None,
        cost: float | None = None,
        yes_no: float = 2.0,
    ) -> "Scoring":
        """Of the settings of a task, whose cutoff is half way or to be found by default.

        Raises:
            ValueError: one is impossible.
        """
        where = "VisualDialogue"
        one_of("mode", mode, MODES, where)
        one_of("reward", reward, ("standard", "ilql"), where)
        one_of("penalty", penalty, PENALTIES, where)
        if cost is None:
            cost = 1.0 if mode == "env_stops" else 0.0
        cost = finite_number(f"cost of {where}", cost)
        yes_no = finite_number(f"yes_no of {where}", yes_no)
        if cutoff is None:
            cutoff = Cutoff(fraction=0.5 if half_way else 1.0)
        return cls(mode, reward, penalty, Cutoff.of(cutoff), cost, yes_no, rounds)

    def sentences(self) -> Sequence[str]:
        """Sentences on what is gained, and on the end, for who asks."""
        ends = {
            "env_stops": "The dialogue is over when what you have heard tells it from the others.",
            "agent_stops": f"Say {STOP} when you know it; that ends the dialogue.",
            "10_stop": "You have all your turns.",
        }
        progress = "An answer gains by how much nearer it has brought you."
        cost = f"Each answer before the end costs {self.cost:g}."
        yes_no = f"An answer that is no more than yes or no costs {self.yes_no:g}."
        punished = self.penalty != "none" and (self.mode == "env_stops" or self.reward != "ilql")
        return [
            ends[self.mode],
            *([progress] if self.mode != "env_stops" else []),
            *([cost] if self.cost else []),
            *([yes_no] if punished else []),
        ]

    def counts(self, answer: str) -> bool:
        """Return True if an answer is punished as one of yes or no."""
        found = PENALTIES[self.penalty]
        applies = self.mode == "env_stops" or self.reward == "standard"
        return bool(found and applies and found(answer))

    def components(self, answer: str, percentiles: Sequence[float], over: bool) -> Components:
        """The parts of the reward for an answer, after which these are the percentile ranks."""
        parts: dict[str, float] = {}
        if self.mode == "env_stops":
            free = over if self.reward == "ilql" else self.cutoff.reached(percentiles)
        else:
            parts[PROGRESS] = percentiles[-1] - percentiles[-2]
            free = False
        if not free and self.cost:
            parts[ANSWER] = -self.cost
        if self.counts(answer):
            parts[YES_NO] = -self.yes_no
        return parts

    @property
    def names(self) -> tuple[str, ...]:
        """The components that there can be."""
        found = [] if self.mode == "env_stops" else [PROGRESS]
        found += [ANSWER] if self.cost else []
        return (*found, *([YES_NO] if self.penalty != "none" else []))

    @property
    def returns(self) -> tuple[float, float]:
        """Lowest and highest return."""
        charges = [-self.rounds * self.cost, -self.rounds * self.yes_no * (self.penalty != "none")]
        gain = 0.0 if self.mode == "env_stops" else 1.0
        low, high = (sum(pick(charge, 0.0) for charge in charges) for pick in (min, max))
        return low - gain, high + gain
