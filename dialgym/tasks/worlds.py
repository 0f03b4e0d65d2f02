"""Base of tasks in which one finds one's way by commands: a deterministic world in tables."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np

from dialgym.errors import one_of, whole_number
from dialgym.language import AnyText, Constraint, Utterance, WordTrie
from dialgym.tasks.base import SYSTEM, USER, Facts, Outcome, Task
from dialgym.tasks.belief_values import BeliefValues
from dialgym.tasks.briefs import choice_sentence, turns_sentence

NOTHING = -1
"""Code of an utterance that is no command; commands have those from 0 on."""
OBSERVATIONS = ("full", "partial")
POLICIES = "dialgym.tasks.world_policies"


@dataclass(frozen=True, eq=False)
class CommandWorld:
    """A deterministic world of S places and A commands.

    A place is all that there is at a time: where one stands, and where things are. In places of
    which the same is told the same commands do something; those at which all ends are told apart
    from the others.

    Attributes:
        commands: (A,) texts.
        after: (S, A) int64, the place after each command.
        allowed: (S, A) bool, the commands that can be given; any other leaves the place as it is.
        ends: (S,) bool, whether the goal is reached.
        signals: (S,) int64, which of the `texts` tells of a place.
        texts: what can be told.
        starts: (H,) int64, the places that a dialogue can begin in, all as likely.
        names: (H,) their names.
        step, goal, unknown: rewards of a command, of one that reaches the goal, of no command.
    """

    commands: tuple[str, ...]
    after: np.ndarray
    allowed: np.ndarray
    ends: np.ndarray
    signals: np.ndarray
    texts: tuple[str, ...]
    starts: np.ndarray
    names: tuple[str, ...]
    step: float
    goal: float
    unknown: float

    def follow(self, tracks: np.ndarray, codes: Any, signals: Any) -> np.ndarray:
        """Places of all beginnings after a command, as far as they agree with what is told then.

        Args:
            tracks: (..., H) the places before, -1 of a beginning that is refuted.
            codes: of commands, (..., 1), or one for all.
            signals: what is told after them, in the same form.
        """
        moved = np.where(np.equal(codes, NOTHING), tracks, self.after[tracks, codes])
        return np.where((tracks >= 0) & (self.signals[moved] == signals), moved, -1)

    def begun(self, signals: Any) -> np.ndarray:
        """(..., H) the places that dialogues may have begun in, by what is told first."""
        return np.where(self.signals[self.starts] == signals, self.starts, -1)


@dataclass(slots=True)
class WorldState:
    """A dialogue with a world. `seen` is what was told at first and after each of the `codes`."""

    start: int  # the beginning, among H
    place: int  # now, among S
    settled: bool = False  # the host has chosen the beginning
    opening: list[Utterance] = field(default_factory=list)  # the host's private choice
    lines: list[Utterance] = field(default_factory=list)  # what both have heard
    codes: list[int] = field(default_factory=list)  # commands, or NOTHING
    seen: list[int] = field(default_factory=list)  # signals
    over: bool = False
    tracks: np.ndarray | None = None  # (H,) see `CommandWorld.follow`; None before the first line

    def copy(self) -> "WorldState":
        """An independent copy; arrays are shared because nothing writes into them."""
        return WorldState(
            self.start,
            self.place,
            self.settled,
            self.opening.copy(),
            self.lines.copy(),
            self.codes.copy(),
            self.seen.copy(),
            self.over,
            self.tracks,
        )


class WorldTask(Task):
    """A task in which the system gives commands to a world, and the rules tell what there is.

    The user is the host of the world: it first chooses the beginning, in private, and the rules
    then answer in its name. Its rewards are the opposite of the system's.

    Args:
        world: its tables.
        turns: commands in a dialogue.
        observation: ``"full"`` or ``"partial"``.
        constraint: what action masks allow: ``"commands"``, or None (any text).
    """

    options = ("start",)
    tokenizer = "word"
    verbs = {"system": "command(text)", "user": "choose(text)"}  # noqa: RUF012
    speakers = {  # noqa: RUF012
        USER: {"host": f"{POLICIES}:WorldHost"},
        SYSTEM: {
            "random": f"{POLICIES}:RandomCommand",
            "optimal": f"{POLICIES}:OptimalCommand",
            "informed": f"{POLICIES}:InformedCommand",
            "random-mixture": f"{POLICIES}:CommandMixture",
        },
    }
    act_classes = {  # noqa: RUF012
        SYSTEM: "dialgym.tasks.world_acts:CommandActs",
        USER: "dialgym.tasks.world_acts:BeginningActs",
    }
    batches = {SYSTEM: (f"{POLICIES}:WorldHost", "dialgym.tasks.world_batch:WorldBatch")}  # noqa: RUF012

    def __init__(
        self, world: CommandWorld, turns: int, observation: str, constraint: str | None
    ) -> None:
        one_of("observation", observation, OBSERVATIONS, self.name)
        one_of("constraint", constraint, ("commands", None), self.name)
        self.world, self.observation, self.mask = world, observation, constraint
        self.turns = whole_number("turns", turns, self.name)
        self.code = {text: code for code, text in enumerate(world.commands)}
        self.beginning = {name: start for start, name in enumerate(world.names)}
        self.amounts = {"step": world.step, "goal": world.goal, "unknown": world.unknown}
        self.facts = self._facts()

    def _facts(self) -> Facts:
        world, turns = self.world, self.turns
        said = {SYSTEM: world.commands, USER: (*world.texts, *world.names)}
        words = {p: max(len(text.split()) for text in texts) for p, texts in said.items()}
        least = turns * min(world.step, world.unknown, 0.0)
        most = max(world.goal, 0.0)
        heard = {SYSTEM: turns, USER: turns + 1}
        names = tuple(name for name, amount in self.amounts.items() if amount)
        characters = {char for texts in said.values() for text in texts for char in text}
        hidden = ("start", "place", "opening") if self.observation == "partial" else ()
        return Facts(
            turn_limit=turns,
            longest={p: max(map(len, texts)) for p, texts in said.items()},
            heard={SYSTEM: heard, USER: {**heard, USER: turns + 2}},
            returns={SYSTEM: (least, most), USER: (-most, -least)},
            charset="".join(sorted(characters)),
            hidden={SYSTEM: hidden},
            words={SYSTEM: words, USER: words},
            components={SYSTEM: names, USER: names},
        )

    def conditions(self, party: str) -> Sequence[str]:
        """Those on turns and commands; for the host the beginnings."""
        if party == USER:
            named = choice_sentence("It", self.world.names, "beginnings")
            other = "In the place of any other text a beginning that was drawn stands."
            return ["You speak once: name the beginning, and nothing else.", named, other]
        commands = choice_sentence("A command", self.world.commands, "texts")
        return [turns_sentence(self, party), commands]

    def initial(
        self, rng: np.random.Generator, options: Mapping[str, Any] | None = None
    ) -> WorldState:
        start = self.draw_start(rng, options)
        return WorldState(start, int(self.world.starts[start]))

    def draw_start(self, rng: np.random.Generator, options: Mapping[str, Any] | None) -> int:
        """The number of the beginning that `options` names, or of a random one."""
        name = self.check_options(options).get("start")
        if name is None:
            return int(rng.integers(len(self.world.names)))
        if not isinstance(name, str) or name not in self.beginning:
            known = ", ".join(self.world.names[:3])
            raise ValueError(
                f"option 'start' of {self.name}: expected one of its {len(self.beginning)} "
                f"beginnings, such as {known}; got {name!r}. Choose one of secrets()."
            )
        return self.beginning[name]

    def secrets(self) -> Sequence[Mapping[str, Any]]:
        """The beginnings."""
        return [{"start": name} for name in self.world.names]

    def speaker(self, state: WorldState) -> str:
        return SYSTEM if state.settled else USER

    def transcript(self, state: WorldState, party: str) -> Sequence[Utterance]:
        return state.lines if party == SYSTEM else state.opening + state.lines

    def notes(self, state: WorldState, party: str) -> int:
        """None: the host has said the beginning itself."""
        return 0

    def situation(self, state: WorldState, party: str) -> Any:
        """Belief about the place, whatever the turn; for the host all that was said."""
        if party == USER:
            return self.transcript(state, party)
        places, counts = np.unique(self.tracks(state), return_counts=True)
        return [pair for pair in zip(places.tolist(), counts.tolist()) if pair[0] >= 0]

    def speak(self, state: WorldState, text: str, rng: np.random.Generator) -> Outcome:
        if not state.settled:
            return self._choose(state, text)
        code = self.read(text)
        state.lines.append(Utterance(SYSTEM, text))
        state.codes.append(code)
        if code != NOTHING:
            state.place = int(self.world.after[state.place, code])
        self._tell(state)
        goal = bool(self.world.ends[state.place])
        state.over = goal or len(state.codes) == self.turns
        kind = "goal" if goal else "unknown" if code == NOTHING else "step"
        return self._outcomes[kind, state.over]

    def _choose(self, state: WorldState, text: str) -> Outcome:
        """The host's first utterance; if it names no beginning, the one drawn before stands."""
        state.start = self.beginning.get(text, state.start)
        state.place, state.settled = int(self.world.starts[state.start]), True
        state.opening.append(Utterance(USER, text, private=True))
        self._tell(state)
        return _SETTLED

    def _tell(self, state: WorldState) -> None:
        """Tell of the place, and follow all beginnings that it may have come from."""
        signal = int(self.world.signals[state.place])
        before, state.tracks = state.tracks, None
        state.lines.append(Utterance(USER, self.world.texts[signal]))
        state.seen.append(signal)
        if before is None:
            state.tracks = self.world.begun(signal)
        else:
            state.tracks = self.world.follow(before, state.codes[-1], signal)

    def read(self, text: str) -> int:
        """The code of a command, in whatever case and spacing; NOTHING of any other text."""
        code = self.code.get(text)
        return self.code.get(" ".join(text.lower().split()), NOTHING) if code is None else code

    @cached_property
    def _outcomes(self) -> dict[tuple[str, bool], Outcome]:
        """By kind of reward, and whether the dialogue is over."""
        made = {}
        for kind, amount in self.amounts.items():
            parts = {SYSTEM: {kind: amount}, USER: {kind: -amount}} if amount else _NO_PARTS
            made[kind, False] = Outcome.of(parts)
            made[kind, True] = Outcome.of(parts, terminated=True, success=kind == "goal")
        return made

    def path(self, state: WorldState) -> list[int]:
        """Places of a dialogue in their order."""
        places = [int(self.world.starts[state.start])]
        for code in state.codes:
            places.append(
                places[-1] if code == NOTHING else int(self.world.after[places[-1], code])
            )
        return places

    def tracks(self, state: WorldState) -> np.ndarray:
        """(H,) the place that each beginning would have come to; -1 of those that are refuted."""
        return self.world.starts if state.tracks is None else state.tracks

    def hypotheses(self, state: WorldState) -> int:
        """See `dialgym.tasks.ExactPosterior`."""
        return len(self.world.names)

    def posterior(self, state: WorldState) -> np.ndarray:
        """(H,) float64: every beginning that agrees with all that was told is as likely."""
        left = self.tracks(state) >= 0
        shares: np.ndarray = left / left.sum()
        return shares

    def truth(self, state: WorldState) -> int:
        """The number of the beginning."""
        return state.start

    def naming(self, state: WorldState) -> str:
        """The name of the beginning."""
        return self.world.names[state.start]

    def suppose(self, state: WorldState, place: int) -> WorldState:
        """The same dialogue from another beginning."""
        other = state.copy()
        other.start = place
        other.opening = [Utterance(USER, self.world.names[place], private=True)] * len(
            state.opening
        )
        other.place = self.path(other)[-1]
        return other

    @cached_property
    def exact(self) -> BeliefValues:
        """Values of who knows what was told, by value iteration over beliefs."""
        return BeliefValues(self.world, self.world.signals, self.turns, self.name)

    @cached_property
    def informed(self) -> BeliefValues:
        """Values of who sees the place itself: bounds of the others from above."""
        return BeliefValues(self.world, np.arange(len(self.world.ends)), self.turns, self.name)

    def action_values(self, state: WorldState) -> np.ndarray:
        """(A,) best expected return of each command from here, by what the system was told.

        -inf of those that cannot be given, all 0 where the dialogue is over.
        """
        left = self.turns - len(state.codes)
        if state.over or not left:
            return np.zeros(len(self.world.commands))
        return self.exact.action_values(self.tracks(state), left)

    def value(self, state: WorldState) -> float:
        """See `dialgym.tasks.ExactValue`; by value iteration over beliefs."""
        return float(self.action_values(state).max())

    def __getstate__(self) -> dict[str, Any]:
        """Without values, which another process computes again where it needs them."""
        return {key: v for key, v in self.__dict__.items() if key not in ("exact", "informed")}

    def static_constraint(self, party: str) -> Constraint | None:
        if party == USER:
            return self._beginnings
        if self.mask is None:
            return AnyText()
        return self._tries[0] if self.world.allowed.all() else None

    def union_constraint(self, party: str) -> Constraint:
        return self.static_constraint(party) or WordTrie(self.world.commands)

    def constraint(self, state: WorldState, party: str) -> Constraint:
        return self.constraint_at(state.seen[-1] if state.seen else 0, party)

    def constraint_at(self, signal: int, party: str) -> Constraint:
        """Constraint where something is told."""
        static = self.static_constraint(party)
        return self._tries[signal] if static is None else static

    @cached_property
    def allowed(self) -> np.ndarray:
        """(signals, A) bool: the commands that can be given where something is told."""
        allowed = np.zeros((len(self.world.texts), len(self.world.commands)), bool)
        allowed[self.world.signals] = self.world.allowed
        return allowed

    @cached_property
    def _tries(self) -> list[WordTrie]:
        commands = np.array(self.world.commands)
        return [WordTrie(commands[row].tolist()) for row in self.allowed]

    @cached_property
    def _beginnings(self) -> WordTrie:
        return WordTrie(self.world.names)

    def words(self) -> Sequence[str]:
        """Those of commands, of all that is told, and of the names of beginnings."""
        texts = (*self.world.commands, *self.world.texts, *self.world.names)
        return tuple(dict.fromkeys(word for text in texts for word in text.split()))


def told(texts: Sequence[str]) -> tuple[np.ndarray, tuple[str, ...]]:
    """The texts of S places as (S,) numbers, and those that differ."""
    number = {text: at for at, text in enumerate(dict.fromkeys(texts))}
    return np.array([number[text] for text in texts]), tuple(number)


_NO_PARTS: dict[str, dict[str, float]] = {SYSTEM: {}, USER: {}}
_SETTLED = Outcome.of(_NO_PARTS)
