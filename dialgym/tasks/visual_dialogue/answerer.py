"""Answerers by rules, models or a server."""

from typing import Any

import numpy as np

from dialgym.simulators import EachReplies, Speaker
from dialgym.tasks.visual_dialogue.answers import UNCLEAR
from dialgym.tasks.visual_dialogue.pool import ROOM, Pool, make_part, scene_book
from dialgym.tasks.visual_dialogue.types import VisualState
from dialgym.tasks.visual_dialogue.understanding import parse

Generator = np.random.Generator

ANSWERERS = {
    "rules": f"{ROOM}.answerer:RuleAnswerer",
    "retrieval": f"{ROOM}.retrieval:RetrievalAnswerer",
    "remote": f"{ROOM}.remote:RemoteAnswerer",
}
"""Answerers by name, each made as ``Class(pool)``, or ``Class(pool, ARGUMENT)`` for a name that is
followed by a colon and an argument: ``remote:URL``."""


class RuleAnswerer(EachReplies):
    """Answers truthfully about a generated scene, in one of several ways.

    What is not understood is answered by ``I can't tell``; so is, or in like words, a question in
    twenty, whatever it is (`SceneBook.vague`).

    Raises:
        ValueError: the pool is none of generated scenes.
    """

    def __init__(self, pool: Pool) -> None:
        self.book = scene_book(pool, "answerer 'rules'", "'retrieval' or 'remote:URL'")

    def reply(self, task: Any, state: VisualState, rng: Generator) -> str:
        """See `dialgym.simulators.Speaker`."""
        question = parse(state.asked or "")
        if question is None:
            return UNCLEAR
        answers = self.book.answers.answers(question)
        chances = answers.chances[answers.content[state.image]]
        place = int(np.searchsorted(chances.cumsum(), rng.random(), side="right"))
        return answers.texts[min(place, len(chances) - 1)]


def make_answerer(spec: Any, pool: Pool) -> Speaker:
    """The answerer of a setting.

    Args:
        spec: None for that of the pool; a name of `ANSWERERS`, also with an argument after a
            colon; a mapping of ``name`` and settings; or an object with `reply`.
        pool: the images.

    Raises:
        ValueError: there is no such answerer, or it is not for this pool.
    """
    if isinstance(spec, Speaker):
        return spec
    where = "VisualDialogue (a name, a mapping, an object)"
    answerer: Speaker = make_part("answerer", spec, pool.answerer, ANSWERERS, where, pool)
    return answerer
