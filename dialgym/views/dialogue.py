"""Dialogues from the learner's side: the rules, with a speaker as the other party."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from dialgym.errors import service_error
from dialgym.language import Constraint, Utterance, render_transcript
from dialgym.simulators import Speaker, ask_all
from dialgym.simulators.base import check_text
from dialgym.tasks import BatchOutcome, DialogueBatch, Outcome, Task
from dialgym.tasks.batch import Exchange, add, gather
from dialgym.tasks.return_checker import watch_returns
from dialgym.views.arguments import FAILED, reset_needed, undrawn_on_error
from dialgym.views.speakers import SimulatorLike, find_speaker, other_party

Generators = Sequence[np.random.Generator]


class Dialogue:
    """A state of `task` in which `learner` speaks and `other` answers.

    `start` and `say` hold an exchange whole. Where `other` is asked for many dialogues at once, its
    parts are called: `begin` or `speak`, then `answer` with the other's words while
    `other_to_speak`, then `exchange`.
    """

    def __init__(self, task: Task, learner: str, other: Speaker) -> None:
        self.task, self.learner, self.other = task, learner, other
        self.state: Any = None
        self.turn = self._seen = self._redraws = 0
        self._watch = watch_returns(task, learner)
        self._forget()

    def start(self, rng: np.random.Generator, options: Mapping[str, Any] | None) -> Exchange:
        """Begin, and let the other party speak until it is the learner's turn."""
        self.begin(rng, options)
        while self.other_to_speak:
            self.answer(self._ask(rng), rng)
        return self.exchange()

    def say(self, text: str, rng: np.random.Generator) -> Exchange:
        """Let the learner say `text`, and the other party answer."""
        self.speak(text, rng)
        while self.other_to_speak:
            self.answer(self._ask(rng), rng)
        return self.exchange()

    def _ask(self, rng: np.random.Generator) -> str:
        try:
            return self.other.reply(self.task, self.state, rng)
        except Exception as error:
            who = f"{type(self.other).__name__} of {self.task.name}"
            unanswered = service_error(who, self.other, error)
            if unanswered is None:
                raise
            raise unanswered from None

    def begin(self, rng: np.random.Generator, options: Mapping[str, Any] | None) -> None:
        """Begin; an error leaves the dialogue as it was, one of the options the generator too.

        Where the other party's first words end it, another is drawn, unless `options` fix it.
        """
        self._begin(rng, options)
        self._redraws = 0 if options else REDRAWS

    def _begin(self, rng: np.random.Generator, options: Mapping[str, Any] | None) -> None:
        if options:
            with undrawn_on_error([rng]):
                self.state = self.task.initial(rng, options)
        else:
            self.state = self.task.initial(rng, options)
        self.turn = self._seen = 0
        self._forget()
        if self._watch is not None:
            self._watch.begin(_ONE)

    @property
    def other_to_speak(self) -> bool:
        """Tell if it is the other party's turn."""
        if self._last.terminated or self._last.truncated:
            return False
        return self.task.speaker(self.state) != self.learner

    def speak(self, text: str, rng: np.random.Generator) -> None:
        """Let the learner say `text`.

        Raises:
            ResetNeeded: the other party has the floor, as its answer failed.
        """
        if self.other_to_speak:
            raise reset_needed(self.task.name, FAILED)
        self.turn += 1
        self._seen += 1  # the learner knows its own words
        self._last = outcome = self.task.speak(self.state, text, rng)
        self._reward, self._components = outcome.rewards[self.learner], outcome.parts(self.learner)

    def answer(self, text: str, rng: np.random.Generator) -> None:
        """Let the other party say `text`; raises a ValueError where that is no string."""
        check_text(text, self.other, self.task)
        self._last = outcome = self.task.speak(self.state, text, rng)
        self._reward += outcome.rewards[self.learner]
        self._components = add(self._components, outcome.parts(self.learner))
        if not self.turn and self._redraws and (outcome.terminated or outcome.truncated):
            self._redraws -= 1
            self._begin(rng, None)

    def exchange(self) -> Exchange:
        """All that has happened since the learner spoke; it is its turn again, or all is over."""
        lines = self.task.transcript(self.state, self.learner)
        heard, self._seen = lines[self._seen :], len(lines)
        _, terminated, truncated, _, success = self._last
        if self._watch is not None:
            self._watch.note_one(self._reward, self._components, terminated or truncated)
        return Exchange(self._reward, terminated, truncated, heard, self._components, success)

    def _forget(self) -> None:
        self._reward, self._last, self._components = 0.0, _NOTHING, {}

    def copy(self) -> "Dialogue":
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
            self._watch.unset(_ONE)

    def transcript(self) -> str:
        """The learner's transcript as text."""
        return render_transcript(self.task.transcript(self.state, self.learner))


_ONE = np.zeros(1, np.int64)
_NOTHING = Outcome({})
"""Nothing has been said yet."""
REDRAWS = 100
"""Most dialogues that are drawn again, as they were over before the learner had the floor."""


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


class LoopedBatch:
    """A `DialogueBatch` by the task's own rules; what a task's vectorised form must equal."""

    def __init__(self, task: Task, size: int, learner: str, other: Speaker) -> None:
        self.task, self.learner, self.other = task, learner, other
        self.dialogues = [Dialogue(task, learner, other) for _ in range(size)]
        self.names: Sequence[int | str] = range(size)  # in errors

    def draw(
        self, rows: np.ndarray, rngs: Generators, options: Mapping[str, Any]
    ) -> list[Dialogue]:
        fresh = [Dialogue(self.task, self.learner, self.other) for _ in rows]
        for row, dialogue in zip(rows.tolist(), fresh):
            dialogue.begin(rngs[row], options)
        return fresh

    def begin(self, rows: np.ndarray, drawn: list[Dialogue], rngs: Generators) -> BatchOutcome:
        for row, dialogue in zip(rows.tolist(), drawn):
            self.dialogues[row] = dialogue
        return self._answer(rows.tolist(), rngs)

    def say(self, rows: np.ndarray, texts: np.ndarray, rngs: Generators) -> BatchOutcome:
        for row, text in zip(rows.tolist(), texts.tolist()):
            self.dialogues[row].speak(text, rngs[row])
        return self._answer(rows.tolist(), rngs)

    def clear(self) -> None:
        """Drop all dialogues."""
        self.dialogues = [Dialogue(self.task, self.learner, self.other) for _ in self.dialogues]

    def _answer(self, rows: list[int], rngs: Generators) -> BatchOutcome:
        """Let the other party speak until nobody waits for it; in each round it is asked once."""
        waiting = rows
        while waiting := [row for row in waiting if self.dialogues[row].other_to_speak]:
            states = [self.dialogues[row].state for row in waiting]
            own, names = [rngs[row] for row in waiting], [self.names[row] for row in waiting]
            texts = ask_all(self.other, self.task, states, own, names)
            for row, text in zip(waiting, texts):
                self.dialogues[row].answer(text, rngs[row])
        return gather([self.dialogues[row].exchange() for row in rows], self.task.voices)

    def transcript(self, row: int) -> Sequence[Utterance]:
        return self.task.transcript(self.dialogues[row].state, self.learner)

    def constraint(self, row: int) -> Constraint:
        return self.task.constraint(self.dialogues[row].state, self.learner)

    def observations(self) -> np.ndarray:
        """(N, B) float32: what the learner of each row knows or believes, where it has acts."""
        observe = self.task.acts[self.learner].observe
        return np.stack([observe(dialogue.state) for dialogue in self.dialogues])

    def act_masks(self) -> np.ndarray:
        """(N, A) bool: the acts that can be chosen, where the learner has acts."""
        mask = self.task.acts[self.learner].mask
        return np.stack([mask(dialogue.state) for dialogue in self.dialogues])

    def state(self, row: int) -> Any:
        """The dialogue of a row."""
        return self.dialogues[row].state

    def states(self, rows: np.ndarray) -> list[Any]:
        """The dialogues of some rows."""
        return [self.dialogues[row].state for row in rows.tolist()]

    def restore(self, row: int, state: Any, turn: int) -> None:
        """Let a row go on from a state."""
        self.dialogues[row] = Dialogue(self.task, self.learner, self.other)
        self.dialogues[row].restore(state, turn)

    def turn(self, rows: np.ndarray) -> np.ndarray:
        return np.array([self.dialogues[i].turn for i in rows.tolist()], np.int64)


def make_batch(task: Task, size: int, learner: str, simulator: SimulatorLike) -> DialogueBatch:
    """The task's own vectorised form where it has one for this simulator, else the loop."""
    other = find_speaker(task, learner, simulator)
    batch = task.batch(size, learner, other)
    return LoopedBatch(task, size, learner, other) if batch is None else batch
