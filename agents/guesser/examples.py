"""Dialogues about images, for a guesser to learn from: what people said, or what is played."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from dialgym.registry import Environment, entry_of, make_task
from dialgym.tasks.visual_dialogue import VisualDialogue
from dialgym.tasks.visual_dialogue.guessers import Held


class Unranked:
    """A guesser that tells no image from another, so that no dialogue ends before its time."""

    def percentiles(self, dialogues: Sequence[Held]) -> np.ndarray:
        """(m,) a half each."""
        return np.full(len(dialogues), 0.5)


def task_of(env: Environment, settings: dict[str, Any]) -> VisualDialogue:
    """The task, without a guesser that would have to be there already.

    Raises:
        ValueError: it is none of visual dialogue.
    """
    entry = entry_of(env)
    if not isinstance(make_task(entry, {}), VisualDialogue):
        raise ValueError(f"guesser: expected an id of visual dialogue; got {env!r}.")
    task: VisualDialogue = make_task(entry, {**settings, "guesser": Unranked()})
    return task


def said_by_people(task: VisualDialogue) -> list[Held]:
    """The dialogues that the task's images come with.

    Raises:
        ValueError: they come with none.
    """
    dialogues = getattr(task.pool, "dialogues", ())
    found = [
        Held(dialogue.caption, dialogue.rounds, image)
        for image, dialogue in enumerate(dialogues)
        if dialogue.rounds
    ]
    if not found:
        raise ValueError(
            f"guesser: {type(task.pool).__name__} has no dialogues of people to learn from. Name a "
            "policy that plays some."
        )
    return found


def played(task: VisualDialogue, policy: str, count: int, seed: int) -> list[Held]:
    """Dialogues of a scripted questioner with the task's answerer, of all rounds.

    Each image comes as often as any other, as near as that goes.

    Args:
        task: the rules.
        policy: the name of the questioner.
        count: of dialogues.
        seed: of images, questions and answers.
    """
    questioner = task.speaker_named("system", policy)
    answerer = task.speaker_named("user", next(iter(task.speakers["user"])))
    rng = np.random.default_rng(seed)
    images = np.concatenate(
        [rng.permutation(len(task.pool)) for _ in range(-(-count // len(task.pool)))]
    )[:count]
    found = []
    for image in images.tolist():
        state = task.initial(rng, {"image": image})
        while not state.over:
            asking = task.speaker(state) == "system"
            text = (questioner if asking else answerer).reply(task, state, rng)
            task.speak(state, text, rng)
        found.append(task.held(state))
    return found
