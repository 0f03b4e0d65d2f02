"""The whole state of a training run in one file, from which a killed run goes on exactly."""

from __future__ import annotations

import io
import numbers
import random
import shutil
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch
from stable_baselines3.common.base_class import BaseAlgorithm
from stable_baselines3.common.buffers import BaseBuffer
from stable_baselines3.common.callbacks import BaseCallback, EvalCallback
from stable_baselines3.common.logger import Logger
from stable_baselines3.common.vec_env import (
    VecEnv,
    VecMonitor,
    unwrap_vec_normalize,
    unwrap_vec_wrapper,
)

from agents.storage.archive import CHECKPOINT, MALFORMED, MODEL, Archive, write_archive
from agents.storage.models import read_model
from agents.storage.models import save as save_model
from agents.training.interrupts import Interrupt, Interrupted
from dialgym.io.files import write_atomically
from dialgym.io.saved_models import UNFINISHED

FILE = UNFINISHED
BEFORE = "checkpoint-before.zip"
STOCK_STATE = ("_last_lstm_states",)
"""Attributes that stock algorithms keep between rollouts, and do not save with the model."""
MOMENTS = ("mean", "var", "count")
LONGEST = 600.0
"""Seconds after which a process that trains alone writes another checkpoint, due or not."""


class CheckpointCallback(BaseCallback):
    """Writes the state of training at the start of every `every`-th interval.

    There, between an update and a rollout, nothing is half done: the state is that of weights,
    optimizer, replay buffer, dialogues, random generators, log and learning curve. Where each
    timestep is an update, so it is after each; there, too, a run can be stopped, and has a
    checkpoint after ten minutes. Of several processes the first writes for all. The last one is
    written at the end, from which a finished run goes on where it is given more timesteps.

    Args:
        path: the file; it is replaced atomically.
        every: intervals from one checkpoint to the next; 0 is never.
        interval: timesteps of an interval; 0 takes rollouts for intervals, which are those of the
            log where dialogues are stored.
        settings: id, seed and hyperparameters of the run, which a resumed run must share.
        envs: the VecEnvs whose dialogues are to go on, each with a `VecMonitor`.
        callbacks: those whose state belongs to the run, one of a kind.
        interrupt: where it is requested, the end of the update that is under way leaves a
            checkpoint and raises `Interrupted`.

    Raises:
        ValueError: the states of a task have no form in a file.
    """

    def __init__(
        self,
        path: Path,
        every: int,
        interval: int,
        settings: Mapping[str, Any],
        envs: Sequence[VecEnv],
        callbacks: Sequence[BaseCallback],
        interrupt: Interrupt | None = None,
    ) -> None:
        super().__init__()
        self.interrupt = interrupt or Interrupt()
        self.path, self.every, self.interval = path, every, interval
        self.settings, self.envs, self.others = dict(settings), envs, callbacks
        self.rollouts = 0
        self.before = 0  # intervals at the last rollout's start
        if every:
            for env in envs:  # what cannot be saved is an error now, not after hours
                _monitor(env).venv.get_state()

    def _on_training_start(self) -> None:
        self.saved_at = time.monotonic()

    def _on_step(self) -> bool:
        if getattr(self.model, "steps_are_updates", False):
            self._save_if(due=False)
        return True

    def _on_rollout_start(self) -> None:
        now = self.model.num_timesteps // self.interval if self.interval else self.rollouts
        due = self.every > 0 and now // self.every > self.before // self.every
        self.before = now
        self._save_if(due)
        self.rollouts += 1

    def _save_if(self, due: bool) -> None:
        """Save where it is `due`, long since or the run is to stop; and stop there."""
        if due or self.interrupt.requested or self._is_long_since():
            self._save()
        if self.interrupt.requested:
            folder, timesteps = self.path.parent, self.model.num_timesteps
            raise Interrupted(folder, timesteps) from self.interrupt.cause

    def _is_long_since(self) -> bool:
        """Return True for a process that is alone: several have not the same time."""
        processes: Any = getattr(self.model, "processes", None)
        alone = processes is None or processes.count == 1
        return self.every > 0 and alone and time.monotonic() - self.saved_at > LONGEST

    def _on_training_end(self) -> None:
        if self.every:
            self._save()

    def _save(self) -> None:
        model: Any = self.model
        sharding = model.updater.sharding if hasattr(model, "updater") else None
        states = [self._of_this_process()]
        if hasattr(model, "processes"):
            states = model.processes.gather(states[0])
        if sharding is not None:
            sharding.gather_optimizer()
        if not hasattr(model, "processes") or model.processes.is_first:
            self._write(states)
        if sharding is not None:
            sharding.optimizer_state = None
        self.saved_at = time.monotonic()

    def _of_this_process(self) -> dict[str, Any]:
        names = _names_of_model(self.model)
        kept = {name: getattr(self.model, name) for name in names if hasattr(self.model, name)}
        buffer = getattr(self.model, "replay_buffer", None)
        return {
            "envs": [_env_state(env) for env in self.envs],
            "generators": _generators(),
            "log": _log_state(self.model.logger),
            "action_space": getattr(self.model.action_space, "_np_random", None),
            "model": kept,
            "replay_buffer": None if buffer is None else _buffer_state(buffer),
        }

    def _write(self, states: list[dict[str, Any]]) -> None:
        weights = io.BytesIO()
        save_model(self.model, weights)
        run = {
            "settings": self.settings,
            "rollouts": self.rollouts,
            "before": self.before,
            "callbacks": {type(other).__name__: _callback_state(other) for other in self.others},
        }
        processes = {f"process-{rank}": state for rank, state in enumerate(states)}
        sections = {"run": run, MODEL: {"file": weights.getvalue()}, **processes}
        _keep_former(self.path)
        write_archive(self.path, CHECKPOINT, sections)

    def restore(self, model: BaseAlgorithm, saved: SavedRun) -> None:
        """Set dialogues, buffers, callbacks and random generators to where they were.

        Raises:
            ValueError: the file holds what no checkpoint of this run does.
        """
        try:
            self._restore(model, saved)
        except MALFORMED as error:
            raise ValueError(
                f"{str(self.path)!r} holds what dialgym does not write ({error!r})."
            ) from error

    def _restore(self, model: BaseAlgorithm, saved: SavedRun) -> None:
        own = saved.of_process(model.processes.rank if hasattr(model, "processes") else 0)
        self.rollouts, self.before = saved.run["rollouts"], saved.run["before"]
        for env, state in zip(self.envs, own["envs"]):
            _restore_env(env, state)
        for callback in self.others:  # a resumed run may have more of them, or fewer
            kept = saved.run["callbacks"].get(type(callback).__name__, {})
            _set_known(callback, kept, _names_of_callback(callback))
        _set_known(model, own["model"], _names_of_model(model))
        if own["replay_buffer"] is not None:
            _restore_buffer(model.replay_buffer, own["replay_buffer"])  # type: ignore[attr-defined]
        if isinstance(own["action_space"], np.random.Generator):
            model.action_space._np_random = own["action_space"]
        _restore_log(model.logger, own.get("log", {}))
        _restore_generators(own["generators"])


class SavedRun:
    """The content of a file that `CheckpointCallback` wrote; reading it runs nothing.

    Args:
        path: the file.
        settings: of the run that is to go on.

    Raises:
        ValueError: it is no such file, or damaged, or the run had other settings; `n_timesteps`
            may differ.
    """

    def __init__(self, path: Path, settings: Mapping[str, Any]) -> None:
        try:
            self._archive = Archive(path, CHECKPOINT)
        except ValueError as error:
            raise ValueError(f"{error} {_way_out(path)}") from error
        self.run: dict[str, Any] = self._archive.read("run")
        _check_same(path, self.run["settings"], settings)

    def model(self, cls: type, env: VecEnv, device: str, **more: Any) -> Any:
        """The model, of the class `cls`."""
        file = io.BytesIO(self._archive.read(MODEL)["file"])
        return read_model(cls, file, env, device, force_reset=False, **more)

    def of_process(self, rank: int) -> dict[str, Any]:
        """The state of one process."""
        state: dict[str, Any] = self._archive.read(f"process-{rank}")
        return state


def find_checkpoint(directory: Path) -> Path | None:
    """The checkpoint in a run's folder; None where there is none."""
    return directory / FILE if (directory / FILE).is_file() else None


def _keep_former(path: Path) -> None:
    """Let the checkpoint that is about to be replaced stay beside it."""
    if path.is_file():
        write_atomically(path.with_name(BEFORE), lambda part: _link(path, part))


def _link(path: Path, other: Path) -> None:
    try:
        other.hardlink_to(path)
    except OSError:  # a file system without hard links
        shutil.copyfile(path, other)


def _way_out(path: Path) -> str:
    """Advice about a checkpoint that cannot be read."""
    former = path.with_name(BEFORE)
    try:
        Archive(former, CHECKPOINT)
    except (FileNotFoundError, ValueError):
        return "There is no other whole one: begin again without resume, or in another folder."
    return f"The one before it is whole: to go on from there, move {str(former)!r} to {path.name}."


def _check_same(path: Path, old: Mapping[str, Any], settings: Mapping[str, Any]) -> None:
    changed = sorted(
        key for key in {*old, *settings} - {"n_timesteps"} if old.get(key) != settings.get(key)
    )
    if "algorithm" in changed:
        changed = ["algorithm"]  # of whose hyperparameters most are others
    if changed:
        differences = ", ".join(f"{k}: {old.get(k)!r} -> {settings.get(k)!r}" for k in changed)
        raise ValueError(
            f"cannot resume {str(path)!r} with other settings ({differences}). "
            "Give the same ones, or another folder for a new run."
        )


# Parts of the state


def _set_known(owner: Any, values: Mapping[str, Any], names: Sequence[str]) -> None:
    """Set the attributes that a checkpoint has of an object, and no others.

    Raises:
        ValueError: the values are of others.
    """
    if strange := sorted(values.keys() - set(names)):
        raise ValueError(f"a checkpoint has no {', '.join(strange)} of {type(owner).__name__}")
    vars(owner).update(values)


def _names_of_model(model: Any) -> Sequence[str]:
    """Attributes of a model in a checkpoint beside those that `save` keeps."""
    names: Sequence[str] = getattr(model, "process_state", STOCK_STATE)
    return names


def _names_of_callback(callback: BaseCallback) -> list[str]:
    names = ["n_calls", *getattr(callback, "state_names", [])]
    if isinstance(callback, EvalCallback):
        names += ["best_mean_reward", "last_mean_reward", "evaluations_results"]
        names += ["evaluations_timesteps", "evaluations_length", "evaluations_successes"]
    return names


def _env_state(env: VecEnv) -> dict[str, Any]:
    monitor, normalize = _monitor(env), unwrap_vec_normalize(env)
    state = {
        "dialogues": monitor.venv.get_state(),
        "seeds": monitor.venv._seeds,  # those that the next reset takes, if it is the first
        "returns": monitor.episode_returns,
        "lengths": monitor.episode_lengths,
        "count": monitor.episode_count,
    }
    if normalize:
        moments = {name: getattr(normalize.ret_rms, name) for name in MOMENTS}
        state["normalize"] = {**moments, "returns": normalize.returns}
    return state


def _restore_env(env: VecEnv, saved: Mapping[str, Any]) -> None:
    monitor, normalize = _monitor(env), unwrap_vec_normalize(env)
    monitor.venv.set_state(saved["dialogues"])
    monitor.venv._seeds = saved["seeds"]
    monitor.episode_returns, monitor.episode_lengths = saved["returns"], saved["lengths"]
    monitor.episode_count = saved["count"]
    if normalize:
        moments = dict(saved["normalize"])
        normalize.returns = moments.pop("returns")
        _set_known(normalize.ret_rms, moments, MOMENTS)


def _monitor(env: VecEnv) -> Any:
    return unwrap_vec_wrapper(env, VecMonitor)


def _buffer_state(buffer: BaseBuffer) -> dict[str, Any]:
    """The part of a replay buffer that is filled."""
    size = buffer.buffer_size if buffer.full else buffer.pos
    arrays = {name: _first(value, size) for name, value in _arrays(buffer).items()}
    return {"pos": buffer.pos, "full": buffer.full, "arrays": arrays}


def _restore_buffer(buffer: BaseBuffer, saved: Mapping[str, Any]) -> None:
    buffer.pos, buffer.full = saved["pos"], saved["full"]
    for name, own in _arrays(buffer).items():
        value = saved["arrays"][name]
        arrays, parts = (own, value) if isinstance(own, dict) else ({"": own}, {"": value})
        for key, part in parts.items():
            arrays[key][: len(part)] = part


def _arrays(buffer: BaseBuffer) -> dict[str, Any]:
    """Arrays of a buffer, or dicts of them by the name of the observation."""
    return {k: v for k, v in vars(buffer).items() if _is_array(v)}


def _is_array(value: Any) -> bool:
    if isinstance(value, dict):
        return all(isinstance(part, np.ndarray) for part in value.values())
    return isinstance(value, np.ndarray)


def _first(value: Any, size: int) -> Any:
    if isinstance(value, dict):
        return {key: part[:size] for key, part in value.items()}
    return value[:size]


def _log_state(logger: Logger) -> dict[str, Any]:
    """Numbers since the last line of the log, by name: value, count, formats that leave it out."""
    return {
        name: (float(value), logger.name_to_count[name], logger.name_to_excluded[name])
        for name, value in logger.name_to_value.items()
        if isinstance(value, numbers.Real)
    }


def _restore_log(logger: Logger, saved: Mapping[str, Any]) -> None:
    for name, (value, count, excluded) in saved.items():
        logger.name_to_value[name] = value
        logger.name_to_count[name] = count
        logger.name_to_excluded[name] = excluded


def _callback_state(callback: BaseCallback) -> dict[str, Any]:
    return {name: getattr(callback, name) for name in _names_of_callback(callback)}


def _generators() -> dict[str, Any]:
    return {
        "torch": torch.get_rng_state(),
        "cuda": torch.cuda.get_rng_state_all() if torch.cuda.is_available() else [],
        "numpy": np.random.get_state(),  # noqa: NPY002  (Stable-Baselines3 draws from it)
        "python": random.getstate(),
    }


def _restore_generators(saved: Mapping[str, Any]) -> None:
    torch.set_rng_state(saved["torch"])
    if saved["cuda"] and torch.cuda.is_available():
        torch.cuda.set_rng_state_all(saved["cuda"])
    np.random.set_state(saved["numpy"])  # noqa: NPY002
    random.setstate(saved["python"])
