"""Pictures of visual dialogue for its page: scenes, dialogues, rank curves.

    python scripts/draw_visual_dialogues.py [--out docs/images] [--episodes 500]

Dialogues and curves are of the 1,000 test scenes; a shadow is the 95 % interval of the mean.
"""

import argparse
from collections.abc import Mapping
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.tables.visual import QUESTIONERS, TEST, play
from dialgym.experiments.plots import draw_band, new_figure, tidy
from dialgym.experiments.statistics import Estimate
from dialgym.io.files import save_figure, write_atomically
from dialgym.optional import require
from dialgym.tasks.visual_dialogue import VisualDialogue

SHOWN = (("greedy", 14), ("human-like", 14), ("random", 14))
"""Policies and images whose dialogues are drawn."""
COLOURS = ("#0072b2", "#009e73", "#d55e00", "#999999")
"""Colours that colour-blind readers tell apart too (Okabe and Ito, 2008)."""
QUANTILE = 1.96


def scenes(task: VisualDialogue, rows: int = 2, columns: int = 3) -> np.ndarray:
    """Some scenes side by side, with a white line between."""
    pictures = [task.pool.picture(image) for image in range(rows * columns)]
    framed = [framed_in_white(picture, 3) for picture in pictures if picture is not None]
    lines = [np.concatenate(framed[i : i + columns], 1) for i in range(0, len(framed), columns)]
    return np.concatenate(lines)


def dialogues(task: VisualDialogue) -> np.ndarray:
    """A dialogue of each questioner that is shown, one below the other."""
    asked = [(task.speaker_named("system", name), image) for name, image in SHOWN]
    sheets = [task.picture(play(task, questioner, 1, image).state) for questioner, image in asked]
    return np.concatenate([framed_in_white(sheet, 6) for sheet in sheets if sheet is not None])


def framed_in_white(picture: np.ndarray, width: int) -> np.ndarray:
    """The picture with a margin."""
    return np.pad(picture, ((width, width), (width, width), (0, 0)), constant_values=255)


def curves(episodes: int) -> Mapping[str, np.ndarray]:
    """For each questioner the percentile ranks (episodes, 1 + rounds)."""
    task = VisualDialogue(TEST, mode="10_stop")
    named = {name: task.speaker_named("system", name) for name in QUESTIONERS}
    return {
        name: np.array([play(task, one, seed).state.percentiles for seed in range(episodes)])
        for name, one in named.items()
    }


def draw_curves(ranks: Mapping[str, np.ndarray]) -> Any:
    """The mean rank from the top, of 1,000, by turn: a figure of matplotlib."""
    figure = new_figure(6.4, 4.0)
    axes = figure.subplots()
    tidy(axes)
    for (name, found), colour in zip(ranks.items(), COLOURS):
        points = [interval_of(column) for column in found.T]
        draw_band(axes, range(len(points)), points, colour, marker="o", markersize=4, label=name)
    axes.set(xlabel="questions", ylabel="percentile rank of the hidden scene")
    axes.legend(frameon=False)
    return figure


def interval_of(values: np.ndarray) -> Estimate:
    """The mean of some dialogues and its 95 % interval."""
    mean, half = values.mean(), QUANTILE * values.std() / len(values) ** 0.5
    return Estimate(float(mean), float(mean - half), float(mean + half))


def save(picture: np.ndarray, path: Path) -> None:
    """Write a PNG, atomically."""
    image = require("PIL.Image", "ui", "drawing pictures").fromarray(picture)
    write_atomically(path, partial(image.save, format="png", optimize=True))


def main() -> None:
    """Draw all."""
    parser = argparse.ArgumentParser(description=str(__doc__).splitlines()[0])
    parser.add_argument("--out", type=Path, default=Path("docs/images"))
    parser.add_argument("--episodes", type=int, default=500)
    args = parser.parse_args()
    task = VisualDialogue(TEST)
    save(scenes(task), args.out / "visual_scenes.png")
    save(dialogues(task), args.out / "visual_dialogues.png")
    save_figure(draw_curves(curves(args.episodes)), args.out / "visual_ranks.png")


if __name__ == "__main__":
    main()
