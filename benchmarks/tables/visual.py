"""Scripted questioners of visual dialogue under each penalty: a table.

    python -m benchmarks.tables.visual [--episodes 500]

Dialogues are about the 1,000 test scenes.
"""

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from benchmarks.tables.records import Figures, counted, from_counts, mean_and_half, run_measurement
from dialgym.experiments.tables import markdown_table
from dialgym.simulators import Speaker
from dialgym.tasks.visual_dialogue import VisualDialogue
from dialgym.tasks.visual_dialogue.types import VisualState

NAME, COMMAND = "visual", "python -m benchmarks.tables.visual"
TEST = {"name": "scenes", "split": "test"}
QUESTIONERS = ("greedy", "greedy-yes-no", "human-like", "random")
PENALTIES = ("none", "hard", "conservative")
HEAD = ("penalty", "questioner", "return", "questions", "found", "just yes or no")


class Played(NamedTuple):
    """A dialogue of a scripted questioner, and its return."""

    state: VisualState
    gained: float


def play(task: VisualDialogue, questioner: Speaker, seed: int, image: int | None = None) -> Played:
    """Let a scripted questioner ask about an image, by default one that the seed draws."""
    rng, gained = np.random.default_rng(seed), 0.0
    state: VisualState = task.initial(rng, None if image is None else {"image": image})
    while not state.over:
        task.speak(state, questioner.reply(task, state, rng), rng)
        said = task.answerer.reply(task, state, rng)
        gained += task.speak(state, said, rng).rewards["system"]
    return Played(state, gained)


def measure(episodes: int) -> dict[str, Any]:
    """Figures of each questioner, by penalty."""
    return {
        penalty: {name: measured(penalty, name, episodes) for name in QUESTIONERS}
        for penalty in PENALTIES
    }


def measured(penalty: str, name: str, episodes: int) -> dict[str, Any]:
    """Returns, counted, and means of what was asked and found."""
    task = VisualDialogue(TEST, penalty=penalty)
    questioner = task.speaker_named("system", name)
    played = [play(task, questioner, seed) for seed in range(episodes)]
    states = [state for state, _ in played]
    found = [task.scoring.cutoff.reached(state.percentiles) for state in states]
    return {
        "returns": counted(np.array([gained for _, gained in played])),
        "questions": round(float(np.mean([len(state.history) for state in states])), 4),
        "found": round(float(np.mean(found)), 4),
        "yes or no": round(float(np.mean([task.metrics(s)["yes/no answers"] for s in states])), 4),
    }


def table(figures: Figures) -> str:
    """Mean return with its 95 % interval, and what was asked, by penalty and questioner."""
    rows: list[Sequence[str]] = [HEAD]
    for penalty, parts in figures.items():
        for name, found in parts.items():
            gained = mean_and_half(from_counts(found["returns"]))
            shares = (f"{100 * found[key]:.0f} %" for key in ("found", "yes or no"))
            rows.append((penalty, f"`{name}`", gained, f"{found['questions']:.1f}", *shares))
    return markdown_table(rows)


if __name__ == "__main__":
    run_measurement(__doc__, NAME, COMMAND, 500, measure, table)
