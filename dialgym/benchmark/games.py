"""Sample dialogues of each policy, all from the same hidden states."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from dialgym.benchmark.rollout import play_dialogue, play_token_env
from dialgym.registry import Entry
from dialgym.simulators import Speaker
from dialgym.views.dialogue import Dialogue
from dialgym.views.episodes import Job, make_dialogue, named_speaker
from dialgym.views.making import make
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
    games = []
    for job in jobs:
        dialogue, gained, _ = play_game(policy, entry, job, kwargs)
        picture = _picture(dialogue)
        games.append(Game(name, job, gained, dialogue.turn, dialogue.transcript(), picture))
    return games


def play_game(
    policy: Any,
    entry: Entry,
    job: Job,
    kwargs: Mapping[str, Any],
    options: Mapping[str, Any] | None = None,
) -> tuple[Dialogue, float, bool]:
    """Let an opened policy hold one dialogue: that, its return, and whether the task was solved.

    `options` fixes hidden parts of the dialogue, as in ``env.reset``.
    """
    if isinstance(policy, (str, Speaker)):
        dialogue = make_dialogue(entry, kwargs)
        return dialogue, *play_dialogue(named_speaker(policy, dialogue), dialogue, job, options)
    env = make(entry, **kwargs)
    own: Any = env.unwrapped
    gained, solved = play_token_env(policy, env, job, dict(options or {}))
    return own.dialogue, gained, solved


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
