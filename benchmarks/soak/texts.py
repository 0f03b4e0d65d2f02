"""Texts that nobody has thought of."""

import gymnasium as gym
import numpy as np

PIECES = (
    "", " ", "\n", "\x00", "\ud800", "é", "🙂", "\u202e", "<end>", "<system>", "<user>", "system:",
    "inform(food=\"thai\")", "inform(", "))))", "request(area)|bye()", "=,=", "crane", "b y b b g",
    "yes", "no", "is it red?", "0", "-1", "1e999", "nan", "%s%n", "{0}", "\\", "'", '"', "a" * 3000,
    "(" * 500, ",".join("ab" * 300), "  tabs\tand  spaces ", "ﬀ", "I\u0307", "\r\n", "|" * 40,
)  # fmt: skip


def random_text(rng: np.random.Generator, space: gym.spaces.Text) -> str:
    """Now and then a text of the space, else odd pieces in a row."""
    if rng.random() < 0.3:
        letters = np.array(list(space.characters))
        return "".join(rng.choice(letters, int(rng.integers(1, min(space.max_length, 60)))))
    return "".join(PIECES[i] for i in rng.integers(len(PIECES), size=int(rng.integers(1, 4))))
