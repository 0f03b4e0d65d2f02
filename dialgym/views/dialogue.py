"""One dialogue from the learner's side: the rules, with the other party played by a speaker."""

from collections.abc import Mapping
from typing import Any

import numpy as np

from dialgym.errors import one_of
from dialgym.language import render_transcript
from dialgym.rewards import Components
from dialgym.simulators import Speaker
from dialgym.tasks import ActPolicy, ActSpeaker, Task
from dialgym.tasks.exchange import Exchange, add


class Dialogue:
    """A state of `task` in which `learner` speaks and `other` answers."""

    def __init__(self, task: Task, learner: str, other: Speaker) -> None:
        self.task, self.learner, self.other = task, learner, other
        self.state: Any = None
        self.turn = 0
        self._seen = 0

    def start(self, rng: np.random.Generator, options: Mapping[str, Any] | None) -> Exchange:
        """Begin anew, and let the other party speak until it is the learner's turn."""
        self.state = self.task.initial(rng, options)
        self.turn = self._seen = 0
        return self._until_my_turn(0.0, False, False, {}, None, rng)

    def say(self, text: str, rng: np.random.Generator) -> Exchange:
        """Let the learner say `text`, and the other party answer."""
        outcome = self.task.speak(self.state, text, rng)
        self.turn += 1
        self._seen += 1  # its own words are no news to the learner
        end = outcome.terminated, outcome.truncated
        reward, components = outcome.rewards[self.learner], outcome.parts(self.learner)
        return self._until_my_turn(reward, *end, components, outcome.success, rng)

    def _until_my_turn(
        self,
        reward: float,
        terminated: bool,
        truncated: bool,
        components: Components,
        success: bool | None,
        rng: np.random.Generator,
    ) -> Exchange:
        task, state = self.task, self.state
        while not (terminated or truncated) and task.speaker(state) != self.learner:
            text = self.other.reply(task, state, rng)
            outcome = task.speak(state, text, rng)
            _, terminated, truncated, _, success = outcome
            reward += outcome.rewards[self.learner]
            more = outcome.parts(self.learner)
            components = add(components, more) if more else components
        lines = task.transcript(state, self.learner)
        heard, self._seen = lines[self._seen :], len(lines)
        return Exchange(reward, terminated, truncated, heard, components, success)

    def fork(self) -> "Dialogue":
        """The same dialogue at the same point, to go on in another way."""
        other = Dialogue(self.task, self.learner, self.other)
        other.state, other.turn, other._seen = self.state.copy(), self.turn, self._seen
        return other

    def transcript(self) -> str:
        """What the learner has seen, as text."""
        return render_transcript(self.task.transcript(self.state, self.learner))


class Nobody:
    """Stands in for a party that a task has no speaker for, and that never gets the floor."""

    def reply(self, task: Task, state: Any, rng: np.random.Generator) -> str:
        """Raise a RuntimeError that says what to give."""
        raise RuntimeError(
            f"{task.name} has nobody to play its {task.speaker(state)}, which has the floor. Give "
            "one as simulator=, an object with reply(task, state, rng) -> str."
        )


def find_speaker(task: Task, learner: str, simulator: str | Speaker | None) -> Speaker:
    """Who plays the other party: an object, a registered name, or the task's default.

    An object that chooses acts, an `ActPolicy`, says what they become.

    Raises:
        ValueError: the learner is no party, or there is no such simulator.
    """
    other = other_party(task, learner)
    name = simulator or default_speaker(task, other) or Nobody()
    if isinstance(name, str):
        return task.speaker_named(other, name)
    if isinstance(name, Speaker):
        return name
    if isinstance(name, ActPolicy) and other in task.acts:
        return ActSpeaker(name)
    raise ValueError(
        f"simulator of {task.name}: expected a registered name or an object with "
        f"reply(task, state, rng) -> str; got {simulator!r}."
    )


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
