"""A few games to look at, each policy with the same hidden states."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from dialgym.registry import Entry
from dialgym.rollouts import Job, Player
from dialgym.views.dialogue import Dialogue
from dialgym.views.render import render


class Game(NamedTuple):
    """One dialogue of a policy.

    Attributes:
        policy: its name.
        job: seed and episode.
        gained: the return.
        turns: utterances of the learner.
        text: the transcript.
        picture: (H, W, 3) uint8.
    """

    policy: str
    job: Job
    gained: float
    turns: int
    text: str
    picture: np.ndarray


def play_games(
    name: str, policy: Any, entry: Entry, jobs: Iterable[Job], kwargs: Mapping[str, Any]
) -> list[Game]:
    """Let an opened policy play the episodes; they are those of `evaluate`."""
    player = Player(entry, policy, kwargs, num_envs=1, record=hasattr(policy, "predict"))
    games = []
    for job in jobs:
        dialogue, played = player.hold(job)
        shown = dialogue.turn, dialogue.transcript(), _picture(dialogue)
        games.append(Game(name, job, float(played.returns[0]), *shown))
    player.close()
    return games


def _picture(dialogue: Dialogue) -> np.ndarray:
    picture = render("rgb_array", dialogue.task, dialogue.state, dialogue.learner)
    assert isinstance(picture, np.ndarray)
    return picture


def as_text(env_id: str, games: Sequence[Game]) -> str:
    """The transcripts, episode by episode, the policies below each other."""
    lines = []
    for job in dict.fromkeys(game.job for game in games):
        lines.append(f"{env_id}, seed {job[0]}, episode {job[1]}\n{'=' * 60}\n")
        for game in games:
            if game.job == job:
                lines.append(f"{game.policy}: return {game.gained:g}\n\n{_indented(game.text)}\n")
    return "\n".join(lines)


def _indented(text: str) -> str:
    return "".join(f"    {line}\n" for line in text.splitlines())
