"""One picture of the suite: a dialogue of each task, in two rows, each played by a scripted policy.

python scripts/draw_suite.py [--out docs/images/suite.png]
"""

import argparse
from pathlib import Path

import numpy as np
from sample_dialogues import sample_of

from dialgym.experiments.plots import new_figure
from dialgym.experiments.samples import SampleDialogue
from dialgym.io.files import write_atomically
from dialgym.registry import Row, entries

COLUMNS, SIDE = 5, 2.8
"""Pictures in a row, and the width of each, in inches."""


def first_rows() -> list[Row]:
    """The first environment of each task, in the order of the registry."""
    found: dict[str, Row] = {}
    for entry in entries().values():
        found.setdefault(entry.row.task, entry.row)
    return list(found.values())


def pixels(sample: SampleDialogue) -> np.ndarray:
    """(H, W, 3) uint8: the dialogue as its environment renders it, 3 wide for 2.25 high."""
    picture = np.asarray(sample.picture)
    height = min(len(picture), round(0.75 * picture.shape[1]))
    wide = round(len(picture) / 0.75)
    if wide > picture.shape[1] and (picture[height:] < 255).any():  # a tall picture is not cut
        margin = np.full((len(picture), wide - picture.shape[1], 3), 255, np.uint8)
        return np.concatenate([picture, margin], 1)
    return picture[:height]


def draw(path: Path) -> None:
    """Draw all tasks side by side."""
    shown = [(row, sample_of(row)) for row in first_rows()]
    lines = -(-len(shown) // COLUMNS)
    size = (COLUMNS * SIDE, lines * (SIDE * 0.75 + 0.3))
    figure = new_figure(*size)
    axes = figure.subplots(lines, COLUMNS)
    for axis in axes.flat:
        axis.set(xticks=[], yticks=[], anchor="N")
        axis.spines[:].set_color("#d0d4da")
    for axis, (row, sample) in zip(axes.flat, shown):
        axis.imshow(pixels(sample))
        axis.set_title(
            f"{row.name}: {sample.policy}, return {sample.episode_return:.3g}", fontsize=9
        )
    write_atomically(path, lambda file: figure.savefig(file, dpi=110))


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])  # type: ignore[union-attr]
    parser.add_argument("--out", type=Path, default=Path("docs/images/suite.png"))
    draw(parser.parse_args().out)
