"""A dialogue of each task for its page: what is said, and the picture of it."""

import html
import io
from functools import cache
from typing import NamedTuple

from PIL import Image

from dialgym.registry import Row, entry_of
from dialgym.rollouts import Player
from dialgym.views.render import render

SEEDS = {"dialgym.tasks.twenty_questions:TwentyQuestions": 4}
"""Of tasks whose first dialogue says little of them; else 0."""


class Sample(NamedTuple):
    """One dialogue: who played, in which environment, what came of it."""

    env_id: str
    policy: str
    seed: int
    turns: list[tuple[str, str]]
    learner: str
    gained: float
    png: bytes


@cache
def sample(env_id: str, policy: str, seed: int) -> Sample:
    """Episode 0 of a scripted policy, as `dialgym.evaluate` plays it."""
    player = Player(entry_of(env_id), policy, {}, num_envs=1)
    dialogue, played = player.play_one((seed, 0))
    heard = dialogue.task.transcript(dialogue.state, dialogue.learner)
    picture = io.BytesIO()
    pixels = render("rgb_array", dialogue.task, dialogue.state, dialogue.learner)
    Image.fromarray(pixels).save(picture, "PNG", optimize=True)  # type: ignore[arg-type]
    player.close()
    turns = [(line.speaker, line.text) for line in heard]
    gained = float(played.returns[0])
    return Sample(env_id, policy, seed, turns, dialogue.learner, gained, picture.getvalue())


def sample_of(row: Row) -> Sample:
    """The dialogue that shows what a task is."""
    view = "act" if "act" in row.views else "utterance"
    policy = row.expert_policy or "random"
    return sample(row.id(view), policy, SEEDS.get(row.task, 0))


def as_html(shown: Sample) -> str:
    """The dialogue as bubbles, the learner's on the right; the style sheet colours them."""
    lines = ['<div class="dialogue" markdown="0">']
    for party, text in shown.turns:
        side = "learner" if party == shown.learner else "other"
        words = html.escape(text).replace("\n", "<br>")
        name = html.escape(party)
        lines.append(f'<p class="{side} {name}"><b>{name}</b> {words}</p>')
    return "\n".join([*lines, "</div>\n"])
