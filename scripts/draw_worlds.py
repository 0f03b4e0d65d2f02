"""The picture of a maze and a house in the documentation.

python scripts/draw_worlds.py [--out docs/images/worlds.png]
"""

import argparse
from pathlib import Path

import numpy as np
from PIL import Image

from dialgym.io.files import write_atomically
from dialgym.rollouts import Player

IDS = ("Maze-Partial-v0", "TextNav-Partial-v0")
SEED, GAP = 1, 24


def draw(path: Path) -> None:
    """Draw a dialogue of the optimal policy in each, side by side."""
    players = [Player(env_id, "optimal", num_envs=1) for env_id in IDS]
    shown = [player.task.picture(player.play_one((SEED, 0))[0].state) for player in players]
    height = max(map(len, shown))
    width = sum(picture.shape[1] for picture in shown) + GAP * (len(shown) - 1)
    sheet, left = np.full((height, width, 3), 255, np.uint8), 0
    for picture in shown:
        top = (height - len(picture)) // 2
        sheet[top : top + len(picture), left : left + picture.shape[1]] = picture
        left += picture.shape[1] + GAP
    write_atomically(path, lambda file: Image.fromarray(sheet).save(file, "PNG"))


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])  # type: ignore[union-attr]
    parser.add_argument("--out", type=Path, default=Path("docs/images/worlds.png"))
    draw(parser.parse_args().out)
