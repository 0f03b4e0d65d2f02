"""Small everyday dialogues for tests."""

import json
from pathlib import Path

import numpy as np

from dialgym.rewards import Reward

TALKS = [
    ("train", ["Hi, Ann.", "Hello, Bob.", "How are you?", "Fine, thanks.", "Good."]),
    ("train", ["Any tea?", "Yes, please.", "Here you are."]),
    ("train", ["Is the bank open?", "No, it is closed on Sundays."]),
    ("test", ["Hi, Tom.", "Hello, Sue.", "How are you today?", "Not too bad."]),
]
ACTS = ["inform", "question", "directive", "commissive"]


class Words(Reward):
    """The number of words, at most 50."""

    name = "words"
    bounds = (0.0, 50.0)

    def score(self, replies):
        return np.array([min(len(reply.text.split()), 50) for reply in replies], np.float64)


class Copies(Reward):
    """Return True if the reply is the first reference."""

    name = "copies"

    def score(self, replies):
        return np.array([reply.text == reply.references[0] for reply in replies], np.float64)


REWARDS = {"words": {"reward": Words(), "weight": 0.1}, "copies": {"reward": Copies(), "weight": 2}}


def rows(with_acts: bool = True) -> list[dict]:
    """The dialogues as rows; the acts follow the lengths of utterances."""
    found = []
    for split, turns in TALKS:
        row = {"split": split, "turns": turns, "emotions": ["happiness"] * len(turns)}
        if with_acts:
            row["acts"] = [ACTS[len(turn) % 4] for turn in turns]
        found.append(row)
    return found


def write_jsonl(path: Path, content: list[dict]) -> str:
    """The rows, one a line."""
    path.write_text("".join(json.dumps(row) + "\n" for row in content), encoding="utf-8")
    return str(path)
