"""Answerers by rules, models or a server."""

from collections.abc import Mapping
from typing import Any

import numpy as np

from dialgym.errors import unknown, with_settings
from dialgym.io.objects import find_object
from dialgym.simulators import EachReplies, Speaker
from dialgym.tasks.visual_dialogue.answers import UNCLEAR
from dialgym.tasks.visual_dialogue.pool import ROOM, Pool, scene_book
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
    settings = dict(spec) if isinstance(spec, Mapping) else {"name": spec or pool.answerer}
    name, colon, argument = str(settings.pop("name", pool.answerer)).partition(":")
    if name not in ANSWERERS:
        raise unknown("answerer", name, ANSWERERS, "VisualDialogue (a name, a mapping, an object)")
    make = find_object(ANSWERERS[name], "answerer")
    if colon:
        answerer: Speaker = make(pool, argument, **settings)
        return answerer
    made: Speaker = with_settings(
        make, f"answerer {name!r} of VisualDialogue", {"pool": pool, **settings}
    )
    return made
