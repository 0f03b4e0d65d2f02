"""One dialogue from the learner's side: the rules, with a speaker as the other party."""

from collections.abc import Mapping
from typing import Any

import numpy as np

from dialgym.errors import one_of, service_error, with_settings
from dialgym.language import render_transcript
from dialgym.simulators import Speaker
from dialgym.simulators.base import check_text
from dialgym.tasks import ActPolicy, ActSpeaker, Outcome, Task
from dialgym.tasks.batch import Exchange, add
from dialgym.tasks.lookup import find_object
from dialgym.tasks.returns import watch_returns


class Dialogue:
    """A state of `task` in which `learner` speaks and `other` answers.

    `start` and `say` hold an exchange whole. Where `other` is asked for many dialogues at once, its
    parts are called: `begin` or `speak`, then `hear` with the other's words while it is `waiting`
    for them, then `exchange`.
    """

    def __init__(self, task: Task, learner: str, other: Speaker) -> None:
        self.task, self.learner, self.other = task, learner, other
        self.state: Any = None
        self.turn = 0
        self._seen = 0
        self._watch = watch_returns(task, learner)
        self._forget()

    def start(self, rng: np.random.Generator, options: Mapping[str, Any] | None) -> Exchange:
        """Begin anew, and let the other party speak until it is the learner's turn."""
        self.begin(rng, options)
        while self.waiting:
            self.hear(self._answer(rng), rng)
        return self.exchange()

    def say(self, text: str, rng: np.random.Generator) -> Exchange:
        """Let the learner say `text`, and the other party answer."""
        self.speak(text, rng)
        while self.waiting:
            self.hear(self._answer(rng), rng)
        return self.exchange()

    def _answer(self, rng: np.random.Generator) -> str:
        try:
            return self.other.reply(self.task, self.state, rng)
        except Exception as error:
            who = f"{type(self.other).__name__} of {self.task.name}"
            unanswered = service_error(who, self.other, error)
            if unanswered is None:
                raise
            raise unanswered from None

    def begin(self, rng: np.random.Generator, options: Mapping[str, Any] | None) -> None:
        """Begin anew."""
        self.state = self.task.initial(rng, options)
        self.turn = self._seen = 0
        self._forget()
        if self._watch is not None:
            self._watch.begin(_ONE)

    def held(self) -> tuple[Any, ...]:
        """All that `begin` and `exchange` replace, for `put_back`."""
        return self.state, self.turn, self._seen, self._reward, self._last, self._components

    def put_back(self, held: tuple[Any, ...]) -> None:
        """Be again as when it was `held`."""
        self.state, self.turn, self._seen, self._reward, self._last, self._components = held

    @property
    def waiting(self) -> bool:
        """Whether it is the other party's turn."""
        if self._last.terminated or self._last.truncated:
            return False
        return self.task.speaker(self.state) != self.learner

    def speak(self, text: str, rng: np.random.Generator) -> None:
        """Let the learner say `text`."""
        self.turn += 1
        self._seen += 1  # the learner knows its own words
        self._last = outcome = self.task.speak(self.state, text, rng)
        self._reward, self._components = outcome.rewards[self.learner], outcome.parts(self.learner)

    def hear(self, text: str, rng: np.random.Generator) -> None:
        """Let the other party say `text`; raises a ValueError where that is no string."""
        check_text(text, self.other, self.task)
        self._last = outcome = self.task.speak(self.state, text, rng)
        self._reward += outcome.rewards[self.learner]
        self._components = add(self._components, outcome.parts(self.learner))

    def exchange(self) -> Exchange:
        """What has come of it since the learner spoke; it is its turn, or all is over."""
        lines = self.task.transcript(self.state, self.learner)
        heard, self._seen = lines[self._seen :], len(lines)
        _, terminated, truncated, _, success = self._last
        if self._watch is not None:
            self._watch.note_one(self._reward, self._components, terminated or truncated)
        return Exchange(self._reward, terminated, truncated, heard, self._components, success)

    def _forget(self) -> None:
        self._reward, self._last = 0.0, _NOTHING
        self._components = {}

    def fork(self) -> "Dialogue":
        """The same dialogue at the same point, to go on in another way."""
        other = Dialogue(self.task, self.learner, self.other)
        other.restore(self.state.copy(), self.turn)
        return other

    def restore(self, state: Any, turn: int) -> None:
        """Go on from a state of the task, in which the learner has heard everything."""
        self.state, self.turn = state, turn
        self._seen = len(self.task.transcript(state, self.learner))
        self._forget()
        if self._watch is not None:
            self._watch.lose(_ONE)

    def transcript(self) -> str:
        """What the learner has seen, as text."""
        return render_transcript(self.task.transcript(self.state, self.learner))


_ONE = np.zeros(1, np.int64)
_NOTHING = Outcome({})
"""Nothing has been said yet."""


class Nobody:
    """Stands in for a party that a task has no speaker for, and that never gets the floor."""

    def reply(self, task: Task, state: Any, rng: np.random.Generator) -> str:
        """Raise a RuntimeError that says what to give."""
        raise RuntimeError(
            f"{task.name} has nobody to play its {task.speaker(state)}, which has the floor. Give "
            "one as simulator=, an object with reply(task, state, rng) -> str."
        )


SimulatorLike = str | Mapping[str, Any] | Speaker | ActPolicy | None
"""What `simulator=` takes; see `find_speaker`."""


LANGUAGE_MODELS = (
    "A language model is given as {'name': 'agents:ChatAgent', 'talker': 'hf:NAME'}, or its folder "
    "as the talker; one behind a service as an object of your own that asks it, with "
    "reply(task, state, rng) -> str."
)


def find_speaker(task: Task, learner: str, simulator: SimulatorLike) -> Speaker:
    """Who plays the other party.

    Args:
        task: the rules.
        learner: the party that is not played.
        simulator: a registered name or ``module:Class``; a mapping of ``name`` and settings of
            who is named, ``{"name": "retrieval", "nearest": 3}``; an object; or None for the
            task's default.

    An object that chooses acts, an `ActPolicy`, says what they become.

    Raises:
        ValueError: the learner is no party, or there is no such simulator or setting of it.
    """
    other = other_party(task, learner)
    if isinstance(simulator, Mapping):
        settings = dict(simulator)
        return _named(task, other, settings.pop("name", None), settings)
    if isinstance(simulator, str) or simulator is None:
        return _named(task, other, simulator, {})
    if isinstance(simulator, Speaker):
        return simulator
    if isinstance(simulator, ActPolicy) and other in task.acts:
        return ActSpeaker(simulator)
    raise ValueError(
        f"simulator of {task.name}: expected a registered name, a mapping of a name and settings, "
        f"or an object with reply(task, state, rng) -> str; got {simulator!r}."
    )


def _named(task: Task, party: str, name: str | None, settings: dict[str, Any]) -> Speaker:
    name = name or default_speaker(task, party)
    if name is None:
        return Nobody()
    if ":" not in name:
        return task.speaker_named(party, name, **settings)
    try:
        make = find_object(name, "simulator")
    except ValueError as error:
        raise ValueError(f"{error} {LANGUAGE_MODELS}") from None
    speaker: Speaker = with_settings(make, f"simulator {name!r} of {task.name}", settings)
    return speaker


def other_party(task: Task, learner: str) -> str:
    """The party that is not the learner."""
    one_of("learner", learner, task.parties, task.name)
    first, second = task.parties
    return second if learner == first else first


def check_floor(task: Task, learner: str, over: bool) -> None:
    """Raise a ValueError where a dialogue is over before the learner could speak."""
    if over:
        raise ValueError(
            f"{task.name}: the dialogue was over before the {learner} had the floor. Learn as the "
            f"{other_party(task, learner)}, or choose dialogues in which it has."
        )


def check_room(task: Task, learner: str, fits: bool) -> None:
    """Raise a ValueError where the window cannot hold how a dialogue begins."""
    if not fits:
        raise ValueError(
            f"window of {task.name}: a dialogue begins with more than it holds beside one "
            f"utterance of the {learner}. Make it larger, or leave it out for room for all; with "
            "overflow='slide' the oldest utterances leave."
        )


def default_speaker(task: Task, party: str) -> str | None:
    """The name of who plays `party` when nobody is named, if there is anybody."""
    return next(iter(task.speakers.get(party, {})), None)
