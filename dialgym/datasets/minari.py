"""Datasets as Minari's, at the level of utterances, and back."""

import json
from collections.abc import Mapping
from copy import deepcopy
from typing import Any

import numpy as np

from dialgym.datasets.dataset import Dataset
from dialgym.datasets.schema import Origin, Recorder
from dialgym.language import Utterance, render_transcript
from dialgym.optional import require
from dialgym.registry import MAKE_VIEW, Entry, entry_of, path_of
from dialgym.views.episodes import make_dialogue
from dialgym.views.making import spec_of
from dialgym.views.spaces import utterance_spaces


def to_minari(dataset: Dataset, name: str, data_format: str = "hdf5", **metadata: Any) -> Any:
    """Store the dialogues as a Minari dataset: those of the utterance view.

    Observations and actions are texts; token ids and what generators say of their dialogues are
    left out.

    Args:
        dataset: dialogues of one environment.
        name: of the Minari dataset (``wordle/random-v0``); it must be new.
        data_format: Minari's, ``"hdf5"`` or ``"arrow"``.
        metadata: more for Minari's `create_dataset_from_buffers` (``author``...).

    Returns:
        The `minari.MinariDataset`.

    Raises:
        ValueError: the dialogues are of several environments, or the name is taken.
        ImportError: Minari is not installed.
    """
    minari = _minari()
    env_id, settings = dataset.environment()
    entry = entry_of(env_id)
    dialogue = make_dialogue(entry, settings)
    seen, said = utterance_spaces(dialogue.task, dialogue.learner)
    policies = sorted({*dataset["policy"].tolist()})
    spec = _spec(entry.in_view("utterance"), settings)
    return minari.create_dataset_from_buffers(
        name,
        [_buffer(row) for row in dataset],
        env=spec,
        observation_space=seen,
        action_space=said,
        **{"algorithm_name": ", ".join(policies), "data_format": data_format, **metadata},
    )


def from_minari(name: str) -> Dataset:
    """The dialogues of a Minari dataset of an utterance view.

    Raises:
        ValueError: it is not a dataset of dialogues.
        FileNotFoundError: Minari has no such dataset.
        ImportError: Minari is not installed.
    """
    stored = _minari().load_dataset(name)
    spec = stored.env_spec
    if spec is None or path_of(spec.entry_point) != MAKE_VIEW:
        found = "no environment" if spec is None else spec.id
        raise ValueError(
            f"from_minari: expected a dataset of an utterance view of dialgym; {name!r} is of "
            f"{found}."
        )
    settings = {key: value for key, value in spec.kwargs.items() if key != "env_id"}
    entry = entry_of(spec.kwargs["env_id"])
    dialogue = make_dialogue(entry, settings)
    policy = str(stored.storage.metadata.get("algorithm_name", name))
    recorder = Recorder(Origin(entry.row.id(), settings, dialogue.learner, policy))
    indices = np.asarray(stored.episode_indices)
    abouts = stored.storage.get_episode_metadata(indices.tolist())
    for number, (episode, about) in enumerate(zip(stored.iterate_episodes(), abouts)):
        _record(recorder, episode, about, number)
    return Dataset(recorder.table())


def _record(recorder: Recorder, episode: Any, about: Mapping[str, Any], number: int) -> None:
    learner, said = recorder.origin.learner, list(episode.actions)
    lines, places = _lines(episode.observations, learner, said)
    options = about.get("options") or {}
    recorder.add(
        lines,
        places,
        np.asarray(episode.rewards).tolist(),
        terminated=bool(episode.terminations[-1]),
        truncated=bool(episode.truncations[-1]),
        success=bool(np.ravel((episode.infos or {}).get("is_success", False))[-1]),
        seed=int(about.get("seed") or 0),
        episode=number,
        options={key: _plain(value) for key, value in options.items()},
    )


def _lines(observations: Any, learner: str, said: list[str]) -> tuple[list[Utterance], list[int]]:
    """The transcript, from how it grew, and where in it the learner's utterances stand."""
    lines: list[Utterance] = []
    places, before = [], ""
    for step, text in enumerate(map(str, observations)):
        new = text[len(before) :]
        if step:
            places.append(len(lines))
            lines.append(Utterance(learner, said[step - 1]))
            new = new[len(f"{learner}: {said[step - 1]}\n") :]
        for line in new.splitlines():
            speaker, _, words = line.partition(": ")
            lines.append(Utterance(speaker, words))
        before = text
    return lines, places


def _buffer(row: Mapping[str, Any]) -> Any:
    """A row as the episode of Minari: T actions, T + 1 observations."""
    buffer = require("minari.data_collector", "data", "Minari").EpisodeBuffer
    observations, actions, rewards, seen = [], [], [], ""
    for turn in row["turns"]:
        if turn["said"]:
            observations.append(seen)
            actions.append(turn["text"])
            rewards.append(turn["reward"])
        seen += render_transcript([Utterance(turn["party"], turn["text"])])
    ends = len(actions) - 1
    return buffer(
        seed=row["seed"],
        options=json.loads(row["options"]) or None,
        observations=[*observations, seen],
        actions=actions,
        rewards=rewards,
        terminations=[row["terminated"] and i == ends for i in range(len(actions))],
        truncations=[row["truncated"] and i == ends for i in range(len(actions))],
        # a column of its own, since Minari's Arrow files cannot give back scalars
        infos={"is_success": np.array([[False]] * len(actions) + [[row["success"]]])},
    )


def _spec(entry: Entry, settings: Mapping[str, Any]) -> Any:
    spec = deepcopy(spec_of(entry))  # the registry's own must stay as it is
    spec.kwargs = {**spec.kwargs, **settings}
    return spec


def _plain(value: Any) -> Any:
    value = value.decode() if isinstance(value, bytes) else value
    return value.item() if isinstance(value, np.generic) else value


def _minari() -> Any:
    return require("minari", "data", "exchanging datasets with Minari")
