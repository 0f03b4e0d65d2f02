"""Plan of a training run: the configuration, checked and resolved before anything is made."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields, replace
from inspect import signature
from pathlib import Path
from typing import TYPE_CHECKING, Any

from agents.argument_checks import check_device
from agents.buffers.stored_tokens import check_environment
from agents.buffers.stream import DialogueStream
from agents.learner import UpdatedLearner
from agents.registry import ALGORITHMS, STORED, Algorithm, find
from agents.training.config import TrainConfig
from agents.training.hyperparameters import FILTERS, read_hyperparameters
from agents.training.plain import as_plain
from agents.training.rollout_metrics import Metric, make_metrics
from dialgym.datasets import Dataset, concatenate, load_dataset
from dialgym.errors import unknown
from dialgym.io.objects import without_module
from dialgym.registry import RegistryEntry, built_in, entry_of
from dialgym.trust import allow, check_names
from dialgym.views.sb3 import sb3_vec_env

if TYPE_CHECKING:
    from agents.training.config import Data

STOCK_INTERVAL = 1000
"""Timesteps of an interval of the curve, where rollouts may be of a few steps."""
PLAY = "play:"
"""Before the name of a policy whose dialogues are played while they are learned from."""
STREAM_KEYS = ("episodes", "policy_kwargs", "deterministic", "num_envs")
"""Settings of such a stream."""
UNBOUNDED = 2**48
"""Timesteps of a run that ends with a dialogue."""


@dataclass(frozen=True)
class TrainingPlan:
    """A checked training run, of which nothing is made yet.

    Attributes:
        config: what was asked for, its id and the name of its algorithm written out, with the
            module that registers them where that was said.
        algorithm: the row of the table.
        entry: the environment's.
        hyperparameters: as of `read_hyperparameters`.
        env_kwargs: settings of the env: those that stored dialogues were held with, then those
            asked for.
        dataset: the stored dialogues to learn from, or a stream of played ones; None where it takes
            none.
        held_out: those of them that are kept back, to measure the loss of; None for none.
        metrics: to measure rollouts with.
    """

    config: TrainConfig
    algorithm: Algorithm
    entry: RegistryEntry
    hyperparameters: dict[str, Any]
    env_kwargs: dict[str, Any]
    dataset: Dataset | DialogueStream | None
    held_out: Dataset | None
    metrics: Sequence[Metric]

    @property
    def folder(self) -> Path:
        """The folder of the run."""
        return self.config.folder

    @property
    def timesteps(self) -> int:
        """Timesteps to learn from."""
        return UNBOUNDED if self.config.dialogues else int(self.hyperparameters["n_timesteps"])

    @property
    def interval(self) -> int:
        """Timesteps from one row of the curve to the next; 0 gives each rollout one.

        Rollouts of our own algorithms are of whole dialogues or gradient steps.
        """
        return 0 if issubclass(self.algorithm.load(), UpdatedLearner) else STOCK_INTERVAL

    def resolved(self) -> TrainConfig:
        """The configuration with all of its hyperparameters and settings of the env written out."""
        others = dict(self.hyperparameters)
        return replace(
            self.config,
            total_timesteps=others.pop("n_timesteps", None),
            n_envs=others.pop("n_envs", None),
            hyperparameters=others,
            env_kwargs=self.env_kwargs or None,
        )

    def identity(self, processes: int) -> dict[str, Any]:
        """The settings that a run has in common with the one that it resumes, as JSON has them."""
        kept = [one.name for one in fields(self.config) if one.metadata["identity"]]
        found = {name: getattr(self.config, name) for name in kept if name != "hyperparameters"}
        found |= {"env_id": self.entry.id, "algorithm": self.algorithm.name}
        found |= {"env_kwargs": self.env_kwargs, "data": data_names(self.config.data)}
        found |= {"stored_dialogues": None if self.dataset is None else len(self.dataset)}
        plain: dict[str, Any] = as_plain({**self.hyperparameters, **found, "processes": processes})
        return plain


def prepare(config: TrainConfig) -> TrainingPlan:
    """Check and resolve a configuration; see `agents.train` for what is raised."""
    algorithm, entry = find(config.algorithm), entry_of(config.env_id)
    check_device(config.device, "train")
    kind = entry.kind.actions
    allow((config.hyperparameters or {}).get("stream"))  # a file's have been looked at
    _check_settings(config, entry)
    allow(config.env_kwargs or {})  # stored dialogues may have been held with the same
    found = read_hyperparameters(
        algorithm, entry.id, _changes(config), config.hyperparameters_file, kind, config.trust
    )
    _check_length(config, algorithm, entry, found)
    _check_kind(algorithm, entry, kind)
    _check_data(config, algorithm)
    dataset = _dialogues(config, algorithm, entry.id, found)
    chosen = found.get("metrics") if config.metrics is None else config.metrics
    if chosen and not algorithm.plays:
        raise ValueError("metrics: what learns from stored dialogues says nothing to be measured")
    held = dataset.environment()[1] if dataset is not None else {}
    held_out, dataset = _split(dataset, found.get("held_out"))
    return TrainingPlan(
        config=_with_full_names(config, algorithm, entry),
        algorithm=algorithm,
        entry=entry,
        hyperparameters=found,
        env_kwargs={**held, **(config.env_kwargs or {})},
        dataset=dataset,
        held_out=held_out,
        metrics=make_metrics(chosen),
    )


def _with_full_names(
    config: TrainConfig, algorithm: Algorithm, entry: RegistryEntry
) -> TrainConfig:
    """The configuration with names that another process finds: with the module that has them."""
    env_id, name = entry.id, algorithm.name
    said = config.env_id if isinstance(config.env_id, str) else ""
    if env_id == without_module(said) and env_id not in built_in():
        env_id = said
    if name not in ALGORITHMS and ":" in config.algorithm:
        name = config.algorithm
    return replace(config, env_id=env_id, algorithm=name)


def _check_settings(config: TrainConfig, entry: RegistryEntry) -> None:
    """Raises ValueError for a setting of the environment that the run decides."""
    flags = {one.name: one.metadata["flag"] for one in fields(config)}
    own = signature(sb3_vec_env).parameters
    for name in config.env_kwargs or {}:
        if name in own:
            advice = (
                f"; it is one of the run: {flags[name]}, or {name}=..." if name in flags else ""
            )
            raise ValueError(f"env_kwargs: {name!r} is no setting of {entry.id}{advice}")


def _changes(config: TrainConfig) -> dict[str, Any]:
    """Hyperparameters that the configuration sets, those with fields of their own among them."""
    own = {"n_timesteps": config.total_timesteps, "n_envs": config.n_envs}
    return {**(config.hyperparameters or {}), **{k: v for k, v in own.items() if v is not None}}


def _check_length(
    config: TrainConfig, algorithm: Algorithm, entry: RegistryEntry, found: Mapping[str, Any]
) -> None:
    """Raises ValueError for a run without an end, or one in dialogues that plays none."""
    if config.dialogues and not algorithm.plays:
        raise ValueError(f"dialogues: {algorithm.name} does not play; give its gradient steps")
    if not config.dialogues and "n_timesteps" not in found:
        raise ValueError(
            f"n_timesteps of {algorithm.name} on {entry.id}: expected a number in its "
            "configuration, or total_timesteps (--timesteps), got neither"
        )


def _check_kind(algorithm: Algorithm, entry: RegistryEntry, kind: str) -> None:
    if algorithm.plays and kind not in algorithm.kind:
        others = [row.name for row in ALGORITHMS.values() if kind in row.kind]
        raise ValueError(
            f"{algorithm.name} plays {' and '.join(algorithm.kind)}, got {entry.id!r}, "
            f"a view of {kind}; "
            + (f"these play it: {', '.join(others)}" if others else "take its token view")
        )


def _check_data(config: TrainConfig, algorithm: Algorithm) -> None:
    """Raises ValueError for dialogues where it takes none, and for none where it needs some."""
    name = algorithm.name
    if not algorithm.reads and config.data is not None:
        offline = [row.name for row in ALGORITHMS.values() if STORED in row.kind]
        raise ValueError(
            f"data: {name} learns by playing and takes none; stored dialogues teach "
            f"{', '.join(offline)}"
        )
    if algorithm.reads and config.data is None:
        raise ValueError(
            f"data: {name} learns from stored dialogues, got none; collect some with "
            "`dialgym collect`, and name their folder (--data PATH)"
        )
    if not algorithm.plays and config.workers:
        raise ValueError(f"workers: {name} does not play; expected 0, got {config.workers}")


# Stored dialogues


def _dialogues(
    config: TrainConfig, algorithm: Algorithm, env_id: str, chosen: Mapping[str, Any]
) -> Dataset | DialogueStream | None:
    """The dialogues of all of `data`, one after the other; those that `FILTERS` choose.

    Raises:
        ValueError: the dialogues are of another environment, or of several settings of it, or
            nothing is chosen.
        FileNotFoundError, ImportError: as of `dialgym.load_dataset`.
    """
    if config.data is None:
        return None
    parts = _parts(config.data)
    if any(map(_is_stream, parts)):
        return _stream(config, algorithm, env_id, chosen, parts)
    if "stream" in chosen:
        raise ValueError("stream: expected data=play:POLICY (--data), got stored dialogues")
    found = concatenate(
        [
            part if isinstance(part, Dataset) else load_dataset(part, trust=config.trust)
            for part in parts
        ]
    )
    check_environment(found, env_id)
    for name, choose in FILTERS.items():
        if chosen.get(name) is not None:
            found = choose(found, chosen[name])
    return found


def _is_stream(part: Any) -> bool:
    return isinstance(part, DialogueStream) or str(part).startswith(PLAY)


def _stream(
    config: TrainConfig,
    algorithm: Algorithm,
    env_id: str,
    chosen: Mapping[str, Any],
    parts: Sequence[Any],
) -> DialogueStream:
    """The stream of what a policy plays, with the settings in the hyperparameter `stream`.

    Raises:
        ValueError: it does not stand alone, is of another environment, or something is asked for
            that needs stored dialogues.
    """
    first, *others = parts
    if others or algorithm.plays:
        raise ValueError(
            f"data: expected one stream alone, for what learns offline, got "
            f"{data_names(config.data)} for {algorithm.name}; collect the dialogues first "
            "(`dialgym collect`)"
        )
    for name in ("held_out", *FILTERS):
        if chosen.get(name) is not None:
            raise ValueError(
                f"{name}: for stored dialogues, of which some are chosen; leave it out with a "
                "stream, whose dialogues are all new"
            )
    if isinstance(first, DialogueStream):
        if (played := first.environment()[0]) != env_id:
            raise ValueError(f"data: expected dialogues of {env_id}, got a stream of {played}")
        return first
    settings = chosen.get("stream") or {}
    for name in settings:
        if name not in STREAM_KEYS:
            raise unknown("setting", name, STREAM_KEYS, "stream")
    check_names(settings, "stream", config.trust)
    policy = str(first).removeprefix(PLAY)
    env_kwargs = dict(config.env_kwargs or {})
    return DialogueStream(
        env_id, policy, seed=config.seed, env_kwargs=env_kwargs, trust=config.trust, **settings
    )


def _split(
    dataset: Dataset | DialogueStream | None, share: float | None
) -> tuple[Dataset | None, Dataset | DialogueStream | None]:
    """The dialogues to hold out, the same ones in every run, and those to learn from.

    Raises:
        ValueError: the share is not between 0 and 1, or leaves no dialogue on one of the sides.
    """
    if not isinstance(dataset, Dataset) or share is None:
        return None, dataset
    if not 0 < share < 1:
        raise ValueError(f"held_out: expected a share between 0 and 1, got {share!r}")
    held_out, rest = dataset.split(share)
    if not len(held_out) or not len(rest):
        raise ValueError(
            f"held_out: expected dialogues to hold out and others to learn from, got "
            f"{len(held_out)} and {len(rest)}; collect more, or give another share than {share!r}"
        )
    return held_out, rest


def data_names(data: Data | None) -> list[str] | None:
    """Names of the stored dialogues of a run."""
    if data is None:
        return None
    named = (str, Path)
    return [str(part) if isinstance(part, named) else repr(part) for part in _parts(data)]


def _parts(data: Data) -> Sequence[Any]:
    one = Dataset | DialogueStream | str | Path
    parts: Any = [data] if isinstance(data, one) else data
    if not isinstance(parts, Sequence) or not all(isinstance(part, one) for part in parts):
        raise ValueError(f"data: expected a path, a data set or a list of them, got {data!r}")
    return parts
