"""Sample dialogues of policies, as text and for pages and pictures."""

import pickle
from collections.abc import Iterable, Mapping, Sequence
from itertools import groupby
from textwrap import indent
from typing import Any, NamedTuple

import numpy as np
from gymnasium.utils.seeding import np_random

from dialgym.registry import RegistryEntry
from dialgym.rollouts import Job, Player, episode_seed, make_dialogue
from dialgym.rollouts.policies import plays_by_sampling
from dialgym.views.dialogue import Dialogue
from dialgym.views.render import render
from dialgym.views.speakers import other_party


class SampleUtterance(NamedTuple):
    """An utterance as it is shown.

    Attributes:
        speaker: the party.
        pieces: the text in pieces, each with a style of rich's; see `Task.styled`.
        own: the learner says it.
        private: only its own party sees it.
    """

    speaker: str
    pieces: Sequence[tuple[str, str]]
    own: bool
    private: bool


class SampleDialogue(NamedTuple):
    """A dialogue of a policy.

    Attributes:
        env_id: the environment.
        policy: its name.
        job: seed and episode.
        episode_return: the return.
        turns: utterances of the learner.
        solved: it was a success.
        text: the transcript.
        utterances: the same, one by one.
        hidden: what only the other party was told.
        picture: (H, W, 3) uint8; None but for the first environment.
    """

    env_id: str
    policy: str
    job: Job
    episode_return: float
    turns: int
    solved: bool
    text: str
    utterances: Sequence[SampleUtterance]
    hidden: str
    picture: np.ndarray | None


def distinct_jobs(
    entry: RegistryEntry, seed: int, episodes: int, count: int, kwargs: Mapping[str, Any]
) -> list[Job]:
    """The first `count` of a seed's episodes that differ in what is hidden from the learner.

    Where fewer differ, the first of the others too.
    """
    dialogue = make_dialogue(entry, kwargs)
    names = dialogue.task.hidden_fields.get(dialogue.learner, ())
    distinct: dict[Any, int] = {}
    for episode in range(episodes if names else 0):
        state = dialogue.task.initial(np_random(episode_seed(seed, episode))[0], None)
        distinct.setdefault(pickle.dumps([getattr(state, name) for name in names]), episode)
        if len(distinct) >= count:
            break
    shown = dict.fromkeys([*distinct.values(), *range(count)])
    return [(seed, episode) for episode in sorted([*shown][:count])]


def play_samples(
    name: str,
    policy: Any,
    entry: RegistryEntry,
    pictured: bool,
    jobs: Iterable[Job],
    kwargs: Mapping[str, Any],
    deterministic: bool | None = None,
) -> list[SampleDialogue]:
    """Let an opened policy play some of the episodes of `evaluate`."""
    best = not plays_by_sampling(policy) if deterministic is None else deterministic
    player = Player(entry, policy, kwargs, num_envs=1, deterministic=best)
    samples = []
    for job in jobs:
        dialogue, played = player.play_one(job)
        sample = SampleDialogue(
            env_id=entry.id,
            policy=name,
            job=job,
            episode_return=float(played.returns[0]),
            turns=dialogue.turn,
            solved=bool(played.success[0]),
            text=dialogue.transcript(),
            utterances=_utterances(dialogue),
            hidden=_hidden(dialogue),
            picture=_picture(dialogue) if pictured else None,
        )
        samples.append(sample)
    player.close()
    return samples


def _utterances(dialogue: Dialogue) -> list[SampleUtterance]:
    task, learner = dialogue.task, dialogue.learner
    return [
        SampleUtterance(
            said.speaker, tuple(task.styled(said)), said.speaker == learner, said.private
        )
        for said in task.transcript(dialogue.state, learner)
    ]


def _hidden(dialogue: Dialogue) -> str:
    other = other_party(dialogue.task, dialogue.learner)
    private = (said for said in dialogue.task.transcript(dialogue.state, other) if said.private)
    return " ".join(f"{said.speaker} is told: {said.text}" for said in private)


def _picture(dialogue: Dialogue) -> np.ndarray:
    picture = render("rgb_array", dialogue.task, dialogue.state, dialogue.learner)
    assert isinstance(picture, np.ndarray)
    return picture


def samples_as_text(samples: Sequence[SampleDialogue], labels: Mapping[str, str]) -> str:
    """The transcripts, episode by episode, the policies below each other."""
    lines = []
    for (env_id, job), alike in groupby(samples, key=lambda sample: (sample.env_id, sample.job)):
        lines.append(f"{labels[env_id]}, seed {job[0]}, episode {job[1]}\n{'=' * 60}\n")
        for sample in alike:
            head = f"{sample.policy}: return {sample.episode_return:g}"
            lines.append(f"{head}\n\n{indent(sample.text, '    ')}\n")
    return "\n".join(lines)
