"""The whole state of a training run in one file, from which a killed run goes on exactly."""

from __future__ import annotations

import io
import pickle
import random
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch
from stable_baselines3.common.callbacks import BaseCallback, EvalCallback
from stable_baselines3.common.vec_env import (
    VecEnv,
    VecMonitor,
    unwrap_vec_normalize,
    unwrap_vec_wrapper,
)

from agents.offline.algorithm import OfflineAlgorithm
from agents.online.on_policy import SequenceAlgorithm
from agents.training.callbacks import Curve
from agents.training.metrics import Metrics
from dialgym.files import write_atomically

FILE = "checkpoint.pkl"


class Checkpoint(BaseCallback):
    """Writes the state of training at the start of every `every`-th rollout.

    There, between an update and a rollout, nothing is half done: the state is that of weights,
    optimizer, dialogues, random generators and learning curve. What learns from stored dialogues
    has intervals of its log for rollouts. Of several processes the first writes for all.

    Args:
        path: the file; it is replaced atomically.
        every: rollouts from one checkpoint to the next.
        settings: id, seed and hyperparameters of the run, which a resumed run must share.
        envs: the VecEnvs whose dialogues are to go on, each with a `VecMonitor`.
        callbacks: those whose state belongs to the run, one of a kind.
    """

    model: SequenceAlgorithm | OfflineAlgorithm  # type: ignore[assignment]

    def __init__(
        self,
        path: Path,
        every: int,
        settings: Mapping[str, Any],
        envs: Sequence[VecEnv],
        callbacks: Sequence[BaseCallback],
    ) -> None:
        super().__init__()
        self.path, self.every, self.settings = path, every, dict(settings)
        self.envs, self.others = envs, callbacks
        self.rollouts = 0

    def _on_training_start(self) -> None:
        self.begun = self.model.num_timesteps

    def _on_step(self) -> bool:
        return True

    def _on_rollout_start(self) -> None:
        due = self.every and self.rollouts % self.every == 0
        if due and self.model.num_timesteps > self.begun:
            self._save()
        self.rollouts += 1

    def _save(self) -> None:
        processes, sharding = self.model.processes, self.model.updater.sharding
        own = {
            "envs": [_env_state(env) for env in self.envs],
            "generators": _generators(),
            "model": {name: getattr(self.model, name) for name in self.model.process_state},
        }
        states = processes.gather(own)
        if sharding is not None:
            sharding.gather_optimizer()
        if processes.is_first:
            self._write(states)
        if sharding is not None:
            sharding.optimizer_state = None

    def _write(self, states: list[dict[str, Any]]) -> None:
        weights = io.BytesIO()
        self.model.save(weights)
        state = {
            "settings": self.settings,
            "model": weights.getvalue(),
            "rollouts": self.rollouts,
            "callbacks": {type(other).__name__: _callback_state(other) for other in self.others},
            "processes": states,
        }
        write_atomically(self.path, lambda part: part.write_bytes(pickle.dumps(state)))

    def restore(
        self, model: SequenceAlgorithm | OfflineAlgorithm, state: Mapping[str, Any]
    ) -> None:
        """Set dialogues, callbacks and random generators to where the checkpoint left them."""
        own = state["processes"][model.processes.rank]
        self.rollouts = state["rollouts"]
        for env, saved in zip(self.envs, own["envs"]):
            _restore_env(env, saved)
        for callback in self.others:  # a resumed run may have more of them, or fewer
            callback.__dict__.update(state["callbacks"].get(type(callback).__name__, {}))
        model.__dict__.update(own["model"])
        _restore_generators(own["generators"])


def read_checkpoint(path: Path, settings: Mapping[str, Any]) -> dict[str, Any]:
    """The state in a file that `Checkpoint` wrote. It is a pickle: read only your own.

    Raises:
        ValueError: the run had other settings; `n_timesteps` may differ.
    """
    state: dict[str, Any] = pickle.loads(path.read_bytes())
    old = state["settings"]
    changed = sorted(
        key
        for key in {*old, *settings} - {"n_timesteps"}
        if repr(old.get(key)) != repr(settings.get(key))
    )
    if changed:
        differences = ", ".join(f"{k}: {old.get(k)!r} -> {settings.get(k)!r}" for k in changed)
        raise ValueError(
            f"cannot resume {str(path)!r} with other settings ({differences}). "
            "Give the same ones, or another folder for a new run."
        )
    return state


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
        state["normalize"] = {"ret_rms": normalize.ret_rms, "returns": normalize.returns}
    return state


def _restore_env(env: VecEnv, saved: Mapping[str, Any]) -> None:
    monitor, normalize = _monitor(env), unwrap_vec_normalize(env)
    monitor.venv.set_state(saved["dialogues"])
    monitor.venv._seeds = saved["seeds"]
    monitor.episode_returns, monitor.episode_lengths = saved["returns"], saved["lengths"]
    monitor.episode_count = saved["count"]
    if normalize:
        normalize.__dict__.update(saved["normalize"])


def _monitor(env: VecEnv) -> Any:
    return unwrap_vec_wrapper(env, VecMonitor)


def _callback_state(callback: BaseCallback) -> dict[str, Any]:
    names = ["n_calls"]
    if isinstance(callback, Metrics):
        names.append("said")
    if isinstance(callback, Curve):
        names.append("rows")
    if isinstance(callback, EvalCallback):
        names += ["best_mean_reward", "last_mean_reward", "evaluations_results"]
        names += ["evaluations_timesteps", "evaluations_length", "evaluations_successes"]
    return {name: getattr(callback, name) for name in names}


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
