"""Export to Minari and import from it, at the level of utterances or acts."""

import json
import re
from collections.abc import Mapping, Sequence
from copy import deepcopy
from typing import Any, cast

import numpy as np

from dialgym.datasets.schema import Origin, Recorder, acts_name
from dialgym.io.objects import load
from dialgym.kinds import KINDS
from dialgym.language import Utterance, render_transcript
from dialgym.optional import require
from dialgym.registry import MAKE_VIEW, RegistryEntry, check_id, entry_of, path_of
from dialgym.rollouts import EpisodeBatch, make_dialogue
from dialgym.rollouts.episode_batch import Decisions, RecordedTurns
from dialgym.tasks import PartyActs
from dialgym.trust import check_names
from dialgym.views.act_env import act_spaces, acts_of
from dialgym.views.making import spec_of
from dialgym.views.spaces import utterance_spaces

TOKEN_SETTINGS = "dialgym_token_settings"
"""The key of Minari's metadata with settings of a token view, such as its window."""


def to_minari(dataset: Any, name: str, data_format: str = "hdf5", **metadata: Any) -> Any:
    """Store the dialogues as a Minari dataset: those of the act view, else of the utterance view.

    Where the learner chose acts, observations and actions are those of the act view, and infos
    hold ``action_mask``. Elsewhere they are texts; token ids and what generators say of their
    dialogues are left out, and settings of the token view alone stand in Minari's metadata.

    Args:
        dataset: a `Dataset` of dialogues of one environment.
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
    entry, dialogue = entry_of(env_id), make_dialogue(env_id, settings)
    task, learner = dialogue.task, dialogue.learner
    view, spaces, buffer_of = "utterance", cast(Any, utterance_spaces), _text_buffer
    if "" not in dataset["acts"]:
        view, spaces, buffer_of = "act", lambda *of: act_spaces(acts_of(*of)), _act_buffer
    seen, said = spaces(task, learner)
    policies = sorted({*dataset["policy"].tolist()})
    here, there = (load(kind.single).arguments() for kind in (entry.kind, KINDS[view]))
    apart = {key: value for key, value in settings.items() if key in {*here} - {*there}}
    stored = minari.create_dataset_from_buffers(
        name,
        [buffer_of(row) for row in dataset],
        env=_spec(entry.in_view(view), {k: v for k, v in settings.items() if k not in apart}),
        observation_space=seen,
        action_space=said,
        **{"algorithm_name": ", ".join(policies), "data_format": data_format, **metadata},
    )
    stored.storage.update_metadata({TOKEN_SETTINGS: apart})
    return stored


def table_of_minari(name: str) -> Any:
    """The dialogues of a Minari dataset as an Arrow table; see `dialgym.datasets.from_minari`."""
    stored = _minari().load_dataset(name)
    where = f"the Minari dataset {name!r}"
    entry, settings, apart = _environment(stored, where)
    dialogue = make_dialogue(entry, settings)
    policy = str(stored.storage.metadata.get("algorithm_name", name))
    acts = acts_of(dialogue.task, dialogue.learner) if entry.kind.of_acts else None
    kind = acts_name(acts.names, acts.size) if acts else ""
    env_id = entry.id if acts else entry.row.id()
    recorder = Recorder(Origin(env_id, settings | apart, dialogue.learner, policy, acts=kind))
    indices = np.asarray(stored.episode_indices)
    abouts = stored.storage.get_episode_metadata(indices.tolist())
    for number, (episode, about) in enumerate(zip(stored.iterate_episodes(), abouts)):
        _check_infos(episode.infos or {}, acts, where)
        voices = dialogue.task.voices
        recorder.add(_played(episode, about, number, dialogue.learner, voices, acts))
    return recorder.table()


def _environment(stored: Any, where: str) -> tuple[RegistryEntry, dict[str, Any], dict[str, Any]]:
    """The environment of a dataset, its settings, and those of the token view alone."""
    spec, entry = stored.env_spec, None
    if spec is not None and path_of(spec.entry_point) == MAKE_VIEW:
        named = spec.kwargs.get("env_id")
        env_id = named.get("id") if isinstance(named, Mapping) else named  # its row may say more
        check_id(str(env_id), where)
        entry = entry_of(str(env_id))
    if entry is None or entry.view == "token":
        got = "no environment" if spec is None else spec.id
        raise ValueError(
            f"from_minari: expected a dataset of an utterance or act view of dialgym; {where} is "
            f"of {got}."
        )
    settings = {key: value for key, value in spec.kwargs.items() if key != "env_id"}
    check_names(settings, where)
    apart = dict(stored.storage.metadata.get(TOKEN_SETTINGS, {}))
    check_names(apart, where)
    return entry, settings, apart


def _check_infos(infos: Mapping[str, Any], acts: PartyActs | None, where: str) -> None:
    """Raise a ValueError where infos lack what a row holds and what nothing else tells."""
    for key in ("is_success", *(("action_mask",) if acts else ())):
        if key not in infos:
            masks = ", action_masks=True" if acts else ""
            raise ValueError(
                f"from_minari: expected {key!r} in the infos of {where}, got "
                f"{', '.join(infos) or 'none'}. Record them: DataCollector(gym.make(id, "
                f"text_info=False{masks}), record_infos=True)."
            )


def _played(
    episode: Any,
    about: Mapping[str, Any],
    number: int,
    learner: str,
    voices: Sequence[str],
    acts: PartyActs | None,
) -> EpisodeBatch:
    turns, decisions = RecordedTurns(), None
    rewards = np.asarray(episode.rewards, np.float64)
    infos = episode.infos
    if acts is None:
        said = list(episode.actions)
        turns.add(*_lines(episode.observations, learner, said, voices), rewards.tolist())
    else:
        masks = np.asarray(infos["action_mask"], bool)
        decisions = [Decisions(episode.observations, episode.actions, masks)]
        lines = [Utterance(learner, _names(acts, action)) for action in episode.actions]
        turns.add(lines, range(len(lines)), rewards.tolist())
    options = about.get("options") or {}
    return EpisodeBatch(
        [int(about.get("seed") or 0)],
        [number],
        rewards.sum(keepdims=True),
        np.array([len(rewards)]),
        np.ravel(infos["is_success"])[-1:].astype(bool),
        np.asarray(episode.terminations[-1:], bool),
        np.asarray(episode.truncations[-1:], bool),
        turns=turns,
        decisions=decisions,
        options=[{key: _plain(value) for key, value in options.items()}],
    )


def _names(acts: PartyActs, action: Any) -> str:
    """The acts of an action by name, in the place of the words that they became."""
    chosen = np.flatnonzero(action) if acts.multiple else [int(action)]
    return ", ".join(acts.names[int(k)] for k in chosen)


def _lines(
    observations: Any, learner: str, said: list[str], voices: Sequence[str]
) -> tuple[list[Utterance], list[int]]:
    """The transcript, from how it grew, and where in it the learner's utterances stand.

    An utterance may have several lines: one begins where a line has the name of a speaker.
    """
    names = re.compile(f"^({'|'.join(map(re.escape, voices))}): ", re.MULTILINE)
    lines: list[Utterance] = []
    positions, before = [], ""
    for step, text in enumerate(map(str, observations)):
        new = text[len(before) :]
        if step:
            positions.append(len(lines))
            lines.append(Utterance(learner, said[step - 1]))
            new = new[len(f"{learner}: {said[step - 1]}\n") :]
        _, *parts = names.split(new)
        lines += [Utterance(*one) for one in zip(parts[::2], (p[:-1] for p in parts[1::2]))]
        before = text
    return lines, positions


def _text_buffer(row: Mapping[str, Any]) -> Any:
    """A row in texts as the episode of Minari: T actions, T + 1 observations."""
    observations, actions, rewards, seen = [], [], [], ""
    for turn in row["turns"]:
        if turn["said"]:
            observations.append(seen)
            actions.append(turn["text"])
            rewards.append(turn["reward"])
        seen += render_transcript([Utterance(turn["party"], turn["text"])])
    return _buffer(row, [*observations, seen], actions, rewards, {})


def _act_buffer(row: Mapping[str, Any]) -> Any:
    """A row in acts as the episode of Minari."""
    actions = np.array(row["actions"])
    multiple = actions.shape[1] > 1
    return _buffer(
        row,
        np.array(row["observations"], np.float32),
        actions.astype(np.int8) if multiple else actions[:, 0].astype(np.int64),
        [turn["reward"] for turn in row["turns"] if turn["said"]],
        {"action_mask": np.array(row["action_masks"], bool)},
    )


def _buffer(
    row: Mapping[str, Any], observations: Any, actions: Any, rewards: list[float], infos: Any
) -> Any:
    ends = len(actions) - 1
    # a column of its own, since Minari's Arrow files cannot give back scalars
    success = np.array([[False]] * len(actions) + [[row["success"]]])
    return require("minari.data_collector", "data", "Minari").EpisodeBuffer(
        seed=row["seed"],
        options=json.loads(row["options"]) or None,
        observations=observations,
        actions=actions,
        rewards=rewards,
        terminations=[row["terminated"] and i == ends for i in range(len(actions))],
        truncations=[row["truncated"] and i == ends for i in range(len(actions))],
        infos={"is_success": success, **infos},
    )


def _spec(entry: RegistryEntry, settings: Mapping[str, Any]) -> Any:
    spec = deepcopy(spec_of(entry))  # the registry's own must stay as it is
    spec.kwargs = {**spec.kwargs, **settings}
    return spec


def _plain(value: Any) -> Any:
    value = value.decode() if isinstance(value, bytes) else value
    return value.item() if isinstance(value, np.generic) else value


def _minari() -> Any:
    return require("minari", "data", "exchanging datasets with Minari")
