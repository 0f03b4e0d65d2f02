"""Picture of endgames for their page: a board, and how far from mate all positions are.

python scripts/draw_endgames.py [--out docs/images]
"""

import argparse
from pathlib import Path
from typing import Any

import numpy as np

from dialgym.experiments.plots import COLOURS, INK, new_figure, tidy
from dialgym.io.files import save_figure
from dialgym.tasks.endgames.board import ENDINGS, read_position
from dialgym.tasks.endgames.picture import drawn
from dialgym.tasks.endgames.tablebase import UNKNOWN, tablebase

POSITION = "white Kc3 Bd5 Be5 black Kd1"


def shares(ending: str) -> np.ndarray:
    """Share of the positions with white to move, of those that it wins, by moves to mate from 1."""
    plies = tablebase(ending).white
    counts = np.bincount((plies[plies < UNKNOWN] + 1) // 2)[1:]
    share: np.ndarray = counts / counts.sum()
    return share


def picture() -> Any:
    """A board, and a line for each ending."""
    figure = new_figure(9.6, 3.8)
    board, axes = figure.subplots(1, 2, width_ratios=(1, 1.5))
    board.imshow(drawn(*read_position(POSITION)))
    board.set_axis_off()
    board.set_title(POSITION, color=INK, fontsize=10)
    for colour, ending in zip(COLOURS, ENDINGS):
        found = 100 * shares(ending)
        axes.plot(range(1, len(found) + 1), found, color=colour, marker="o", markersize=4,
                  label=f"{ending}, at most {len(found)}")  # fmt: skip
    tidy(axes, "y")
    axes.set_xticks(range(0, 21, 4))
    axes.set_xlabel("moves to mate, both sides playing best", color=INK)
    axes.set_ylabel("share of won positions, %", color=INK)
    axes.legend(frameon=False, fontsize=9)
    return figure


def main() -> None:
    """Write the picture."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--out", type=Path, default=Path("docs/images"))
    save_figure(picture(), parser.parse_args().out / "endgames.png")


if __name__ == "__main__":
    main()
