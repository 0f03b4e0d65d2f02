"""A dialogue of each task for its page: what is said, and the picture of it."""

import html
import io
from collections.abc import Sequence
from functools import cache

from PIL import Image

from dialgym.experiments.samples import SampleDialogue, play_samples
from dialgym.registry import Row, entry_of

SEEDS = {"dialgym.tasks.twenty_questions:TwentyQuestions": 4}
"""Of tasks whose first dialogue says little of them; else 0."""


@cache
def sample(env_id: str, policy: str, seed: int) -> SampleDialogue:
    """Episode 0 of a scripted policy, as `dialgym.evaluate` plays it."""
    [shown] = play_samples(policy, policy, entry_of(env_id), True, [(seed, 0)], {})
    return shown


def sample_of(row: Row) -> SampleDialogue:
    """The dialogue that shows what a task is."""
    view = "act" if "act" in row.views else "utterance"
    policy = row.expert_policy or "random"
    return sample(row.id(view), policy, SEEDS.get(row.task, 0))


def as_png(shown: SampleDialogue) -> bytes:
    """The picture of a dialogue as a file."""
    file = io.BytesIO()
    Image.fromarray(shown.picture).save(file, "PNG", optimize=True)  # type: ignore[arg-type]
    return file.getvalue()


def as_html(shown: SampleDialogue) -> str:
    """The dialogue as bubbles, the learner's on the right; the style sheet colours them."""
    lines = ['<div class="dialogue" markdown="0">']
    for said in shown.utterances:
        side = "learner" if said.own else "other"
        words = html.escape(text_of(said.pieces)).replace("\n", "<br>")
        name = html.escape(said.speaker)
        lines.append(f'<p class="{side} {name}"><b>{name}</b> {words}</p>')
    return "\n".join([*lines, "</div>\n"])


def text_of(pieces: Sequence[tuple[str, str]]) -> str:
    """A text without its styles."""
    return "".join(text for text, _ in pieces)
