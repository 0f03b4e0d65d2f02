"""Rules of one dialogue on acts, without any text."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple, TypedDict

import numpy as np

from dialgym.errors import one_of
from dialgym.tasks.multiwoz.agenda import AgendaRules, leave
from dialgym.tasks.multiwoz.data import World
from dialgym.tasks.multiwoz.dialogue_state import MultiWOZState
from dialgym.tasks.multiwoz.evaluator import DialogueMetrics, Evaluator, Record
from dialgym.tasks.multiwoz.fidelity import Fidelity
from dialgym.tasks.multiwoz.reactions import hear
from dialgym.tasks.multiwoz.rewards import REWARDS
from dialgym.tasks.multiwoz.system import NAMED, RuleSystem
from dialgym.tasks.multiwoz.tracker import Tracker
from dialgym.tasks.multiwoz.types import Acts, MultiWOZBelief, MultiWOZGoal
from dialgym.tasks.multiwoz.user import MultiWOZUser
from dialgym.tasks.multiwoz.values import UNHEARD, Vocabulary

Generator = np.random.Generator


@dataclass(frozen=True)
class Settings:
    """Settings of dialogues.

    Attributes:
        turns: most utterances of the system.
        reward: a name of `rewards.REWARDS`.
        strict: success asks for the right people, day, stay and time of bookings too.
        fidelity: ``"correct"``, ``"convlab2"`` with the faults of the original, or names of
            some of its `FAULTS`, joined by ``+``.
    """

    turns: int = 20
    reward: str = "default"
    strict: bool = False
    fidelity: str = "correct"


class RuleOptions(TypedDict, total=False):
    """The same by name."""

    turns: int
    reward: str
    strict: bool
    fidelity: str


DEFAULT = Settings()


class Turn(NamedTuple):
    """The result of an utterance, for the system.

    Attributes:
        components: its reward in parts by name, which add up to it.
        terminated: the user has said goodbye.
        truncated: the turn limit has cut the dialogue short.
        success: whether the goal was met; None while the dialogue goes on.
    """

    components: Mapping[str, float] = {}
    terminated: bool = False
    truncated: bool = False
    success: bool | None = None


class Rules:
    """The rules of dialogues in one world. Immutable, shared by all dialogues.

    Args:
        world: database, values and goals.
        settings: see `Settings`.
        tracker: your own; None for the rule tracker.

    Attributes:
        fidelity: the faults that are kept.
        tracker, agenda, evaluator: what changes belief, user and record.
        user, system: those who choose acts by rules, `user.acts(state, rng)` and
            `system.acts(state.belief, rng)`.
    """

    def __init__(
        self, world: World, settings: Settings = DEFAULT, tracker: Tracker | None = None
    ) -> None:
        one_of("reward", settings.reward, REWARDS, "MultiWOZ")
        self.world, self.settings = world, settings
        self.fidelity = Fidelity.named(settings.fidelity)
        vocabulary = Vocabulary(
            world, self.fidelity.loose_values, UNHEARD if self.fidelity.unheard else ()
        )
        self.tracker = tracker or Tracker(vocabulary, _rows_by_name(world), self.fidelity)
        self.agenda = AgendaRules(vocabulary, self.fidelity)
        self.evaluator = Evaluator(world, self.fidelity)
        self.user, self.system = MultiWOZUser(self.agenda), RuleSystem(world, self.fidelity)
        self._reward = REWARDS[settings.reward]

    def begin(self, goal: MultiWOZGoal, rng: Generator) -> MultiWOZState:
        """A new dialogue, in which the user speaks first."""
        return MultiWOZState(goal, self.agenda.begin(goal, rng), MultiWOZBelief(), Record())

    def user_turn(
        self, state: MultiWOZState, acts: Acts, rng: Generator, heard: Acts | None = None
    ) -> Turn:
        """The user says `acts`: the system tracks them, and its last turn is rewarded.

        What the system takes them for is `heard`; None where it understands them.
        """
        self.agenda.say(state.user, state.goal, acts)
        self.evaluator.user(state.record, acts)
        self.tracker.update(state.belief, acts if heard is None else heard)
        state.user_speaks = False
        bye = any(act.intent == "bye" for act in acts)
        state.ended = bye or state.turns >= self.settings.turns
        if not state.turns and not state.ended:
            return Turn()  # there is nothing to reward the system for
        parts = self._reward(
            self.evaluator,
            state.goal,
            state.user,
            state.record,
            state.ended,
            self.settings.strict,
        )
        success = self.success(state) if state.ended else None
        return Turn(parts, bye, state.ended and not bye, success)

    def system_turn(self, state: MultiWOZState, acts: Acts, rng: Generator) -> Turn:
        """The system says `acts`: they are judged, and the agenda changes by them."""
        state.turns += 1
        state.user_speaks = True
        last = state.turns >= self.settings.turns
        self.evaluator.system(state.record, acts, state.belief)
        self.tracker.heard(state.belief, acts)
        if not (last and self.fidelity.last_unheard):
            hear(self.agenda, state.user, state.goal, acts, rng)
        if last:
            leave(state.user)
        return Turn()

    def success(self, state: MultiWOZState) -> bool:
        """Return True if the goal is met as the settings ask for."""
        strict = self.settings.strict
        return self.evaluator.success(state.goal, state.user, state.record, strict)

    def successes(self, state: MultiWOZState) -> Mapping[str, bool]:
        """Return for each domain of the goal whether it is met as the settings ask for."""
        strict = self.settings.strict
        return self.evaluator.successes(state.goal, state.user, state.record, strict)

    def failures(self, state: MultiWOZState) -> Sequence[str]:
        """Name what keeps each domain of the goal from success."""
        strict = self.settings.strict
        return self.evaluator.failures(state.goal, state.user, state.record, strict)

    def metrics(self, state: MultiWOZState, domain: str | None = None) -> DialogueMetrics:
        """Measures of how well the goal is met so far, or what is wanted of one domain."""
        if domain is not None:
            return self.evaluator.of_domain(state.goal, state.user, state.record, domain)
        return self.evaluator.metrics(state.goal, state.user, state.record)


def _rows_by_name(world: World) -> dict[str, dict[str, int]]:
    """Domain -> name in small letters -> row; the first of that name."""
    return {
        domain: {
            row["name"].lower(): place
            for place, row in reversed(list(enumerate(world.database.rows(domain))))
            if "name" in row
        }
        for domain in NAMED
    }
