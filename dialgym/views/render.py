"""Rendering of dialogues: plain text, coloured text on the terminal, images."""

from typing import Any

import numpy as np

from dialgym.language import render_transcript
from dialgym.simulators.human import styled_line
from dialgym.tasks import Task

RENDER_MODES = ("ansi", "human", "rgb_array")


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
    from PIL import Image, ImageDraw, ImageFont

    font = ImageFont.load_default(16)
    lines = render_transcript(task.transcript(state, party)).splitlines()[-16:]
    image = Image.new("RGB", (640, 400), "white")
    draw = ImageDraw.Draw(image)
    for i, line in enumerate(lines):
        draw.text((12, 10 + 24 * i), line[:72], fill="black", font=font)
    return np.asarray(image)
