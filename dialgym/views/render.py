"""Rendering of dialogues: plain text, coloured text on the terminal, images."""

from typing import Any

import numpy as np

from dialgym.language import render_transcript
from dialgym.language.bubbles import DrawnTurn, draw_bubbles
from dialgym.simulators.human import styled_line
from dialgym.tasks import Task

RENDER_MODES = ("ansi", "human", "rgb_array")
METADATA = {"render_modes": list(RENDER_MODES), "render_fps": 4}
"""Of views of one dialogue."""


def render(mode: str, task: Task, state: Any, party: str) -> str | np.ndarray | None:
    """The dialogue as `party` sees it, in one of `RENDER_MODES`."""
    if mode == "ansi":
        return render_transcript(task.transcript(state, party))
    if mode == "rgb_array":
        picture = task.picture(state)
        return _draw(task, state, party) if picture is None else picture
    _print(task, state, party)
    return None


def _print(task: Task, state: Any, party: str) -> None:
    from rich.console import Console

    console = Console()
    console.rule(task.name)
    for line in task.transcript(state, party):
        console.print(styled_line(task, line))


def _draw(task: Task, state: Any, party: str) -> np.ndarray:
    """(400, 640, 3) uint8: what the party has seen, its own utterances on the right."""
    from PIL import Image, ImageDraw

    image = Image.new("RGB", (640, 400), "white")
    turns = []
    for line in task.transcript(state, party):
        text = "".join(char if char.isprintable() else " " for char in line.text)
        turns.append(DrawnTurn(line.speaker, line.speaker != party, text))
    draw_bubbles(ImageDraw.Draw(image), turns, (12, 12, 628, 388), size=16)
    return np.asarray(image)
