"""Utterances and dialogues as the page gets them: plain values, and texts in styled pieces."""

import base64
import io
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from dialgym.language import Utterance
from dialgym.tasks import Task

STYLES = {
    "bold black on green": "right",
    "bold black on yellow": "near",
    "white on bright_black": "absent",
    "bold green": "yes",
    "bold red": "no",
    "bright_black": "faint",
}
"""Styles that tasks paint with (`Task.styled`), and the names that the page has for them."""


def pieces(task: Task | None, line: Utterance) -> list[tuple[str, str]]:
    """The text of an utterance in pieces that add up to it, each with a name of a style."""
    styled = [(line.text, "")] if task is None else task.styled(line)
    return [(text, STYLES.get(style, "")) for text, style in styled]


def turn(
    task: Task | None, line: Utterance, said: bool, reward: float | None = None, **more: Any
) -> dict[str, Any]:
    """An utterance.

    Args:
        task: its rules; None where they are unavailable.
        line: speaker and text.
        said: it is one of the learner.
        reward: of the utterance, if it is.
        more: other values.
    """
    values = {"party": line.speaker, "text": line.text, "private": line.private, "said": said}
    values["pieces"] = pieces(task, line)
    if said:
        values["reward"] = reward
    return values | more


def number_as_text(value: Any) -> str | None:
    """A seed: browsers know no whole numbers of 64 bits."""
    return None if value is None else str(int(value))


def first_words(texts: Sequence[str], most: int = 90) -> str:
    """The first words of a dialogue."""
    text = " · ".join(texts)
    return text if len(text) <= most else f"{text[: most - 1]}…"


def rounded(parts: Mapping[str, float]) -> dict[str, float]:
    """Components of a reward, but for those of nothing."""
    return {name: round(float(value), 6) for name, value in parts.items() if value}


def picture_address(picture: np.ndarray | None) -> str | None:
    """A picture (H, W, 3) uint8 as an address that holds it as a PNG file."""
    if picture is None:
        return None
    from PIL import Image

    file = io.BytesIO()
    Image.fromarray(picture).save(file, "PNG")
    return f"data:image/png;base64,{base64.b64encode(file.getvalue()).decode()}"
