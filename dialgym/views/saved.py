"""Saved dialogues: the state of each with its generator, as objects and as plain JSON."""

from collections.abc import Sequence
from copy import deepcopy
from dataclasses import dataclass
from typing import Any, Generic, NamedTuple, TypeVar, get_type_hints

import numpy as np
from gymnasium.utils.seeding import np_random

from dialgym.io.typed_json import Json, from_json, to_json
from dialgym.tasks import Task
from dialgym.views.arguments import check_seed

State = TypeVar("State")
Seen = TypeVar("Seen")


class SeenTokens(NamedTuple):
    """Part of the learner's transcript that a token view keeps."""

    tokens: np.ndarray  # (n,) int32, all so far
    start: int  # of the learner's utterance


@dataclass(frozen=True)
class SavedDialogue(Generic[State, Seen]):
    """A dialogue as it stood, with its generator: what `clone_state` of a view gives.

    It can be gone on from any number of times, in a single view and in a row of a batch alike, and
    be pickled. What a simulator remembers by itself is no part of it.
    """

    task: str
    view: str
    state: State
    turn: int
    rng: np.random.Generator
    seen: Seen  # what the view keeps of the learner's transcript, of its `seen_type`
    over: bool  # it acts no more
    ended: bool = False  # by its rules, not by the limit of a batch's steps
    steps: int = 0  # of the episode, where a batch counts them
    idle: bool = False  # a batch ignores its actions, see `deactivate`

    def generator(self, seed: int | None) -> np.random.Generator:
        """A copy of the dialogue's generator, or a new one of a seed."""
        return deepcopy(self.rng) if seed is None else np_random(check_seed(seed, self.task))[0]


def check_saved(saved: Any, task: Task, view: str) -> None:
    """Raise a ValueError unless it is a dialogue of this task and view."""
    known = isinstance(saved, SavedDialogue)
    if not known or (saved.task, saved.view) != (task.name, view):
        got = f"one of the {saved.view} view of {saved.task}" if known else f"{saved!r:.80}"
        raise ValueError(
            f"restore_state of {task.name}: expected a dialogue of its {view} view; got {got}."
        )


def dialogues_to_json(
    dialogues: Sequence[SavedDialogue[Any, Any]], task: Task, seen_type: Any
) -> list[Json]:
    """Dialogues of a task as plain JSON; see `dialgym.io.typed_json`.

    Raises:
        ValueError: the state of the task holds what its hints do not say.
    """
    try:
        written: list[Json] = to_json(list(dialogues), _type(task, seen_type))
    except ValueError as error:
        raise ValueError(
            f"the state of {task.name} cannot be written to a file: {error}. Its class says by "
            "type hints what it holds; checkpoint_every=0 trains without."
        ) from error
    return written


def dialogues_from_json(values: Json, task: Task, seen_type: Any) -> list[SavedDialogue[Any, Any]]:
    """Dialogues from JSON, which may be anybody's: reading it runs nothing.

    Raises:
        ValueError: it is anything else than dialogues of this task.
    """
    try:
        read: list[SavedDialogue[Any, Any]] = from_json(values, _type(task, seen_type))
    except ValueError as error:
        raise ValueError(f"the state of {task.name} cannot be read: {error}.") from error
    return read


def _type(task: Task, seen_type: Any) -> Any:
    return list[SavedDialogue[state_type(task), seen_type]]  # type: ignore[misc]


def state_type(task: Task) -> Any:
    """The type of a task's states: as `Task.initial` is annotated, else of what it returns.

    Raises:
        ValueError: the hints of `initial` name what cannot be found.
    """
    try:
        hint = get_type_hints(type(task).initial).get("return", Any)
    except NameError as error:
        raise ValueError(f"{type(task).__name__}.initial: {error}") from error
    return type(task.initial(np.random.default_rng(0))) if hint is Any else hint
