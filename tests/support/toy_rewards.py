"""Replies whose worth is known: good ones are about what the context is about."""

from __future__ import annotations

import csv
import json
from pathlib import Path

import numpy as np

THINGS = ["tea", "coffee", "rain", "snow", "train", "music", "garden", "film", "football", "soup"]
ASKED = ["I like {}.", "Do you like {}?", "We talked about {} today.", "Tell me about {}."]
SAID = ["Yes, {} is great.", "{} again?", "I know a lot about {}.", "Let us have some {}."]
FAST = {"width": 64, "dropout": 0.0, "learning_rate": 2e-3, "patience": 0, "progress_bar": False}


def preferences(count: int, seed: int = 0) -> list[dict]:
    """Pairs of a reply about the same thing and one about another."""
    rng = np.random.default_rng(seed)
    lines = []
    for _ in range(count):
        same, other = rng.choice(THINGS, 2, replace=False).tolist()
        ask, good, bad = (ASKED[rng.integers(4)], SAID[rng.integers(4)], SAID[rng.integers(4)])
        context = ["Hello.", ask.format(same)]
        lines.append(
            {"context": context, "chosen": good.format(same), "rejected": bad.format(other)}
        )
    return lines


def scored(count: int, seed: int = 0) -> list[dict]:
    """Replies whose score is 100, and 7 more for each polite word."""
    rng = np.random.default_rng(seed)
    lines = []
    for _ in range(count):
        words = rng.choice([*THINGS, "please", "thanks", "sorry"], 4, replace=False).tolist()
        polite = sum(word in ("please", "thanks", "sorry") for word in words)
        context = ASKED[rng.integers(4)].format(THINGS[rng.integers(10)])
        lines.append({"context": context, "reply": " ".join(words), "score": 100.0 + 7 * polite})
    return lines


def write_lines(path: Path, lines: list[dict]) -> Path:
    """As CSV or JSONL, by the ending."""
    if path.suffix == ".csv":
        with path.open("w", encoding="utf-8", newline="") as file:
            writer = csv.DictWriter(file, lines[0])
            writer.writeheader()
            writer.writerows(lines)
    else:
        path.write_text("".join(json.dumps(line) + "\n" for line in lines), "utf-8")
    return path
