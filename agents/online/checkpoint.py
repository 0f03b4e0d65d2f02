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
from stable_baselines3.common.base_class import BaseAlgorithm
from stable_baselines3.common.callbacks import BaseCallback, EvalCallback
from stable_baselines3.common.vec_env import VecMonitor

from agents.online.callbacks import LearningCurve
from dialgym.files import write_atomically

FILE = "checkpoint.pkl"


class Checkpoint(BaseCallback):
    """Writes the state of training at the start of every `every`-th rollout.

    There, between an update and a rollout, nothing is half done: the state is that of weights,
    optimizer, dialogues, random generators and learning curve.

    Args:
        path: the file; it is replaced atomically.
        every: rollouts from one checkpoint to the next.
        settings: id, seed and hyperparameters of the run, which a resumed run must share.
        envs: the VecEnvs whose dialogues are to go on.
        callbacks: those whose state belongs to the run.
    """

    def __init__(
        self,
        path: Path,
        every: int,
        settings: Mapping[str, Any],
        envs: Sequence[VecMonitor],
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
        weights = io.BytesIO()
        self.model.save(weights)
        state = {
            "settings": self.settings,
            "model": weights.getvalue(),
            "rollouts": self.rollouts,
            "envs": [_env_state(env) for env in self.envs],
            "callbacks": [_callback_state(callback) for callback in self.others],
            "generators": _generators(self.model),
        }
        write_atomically(self.path, lambda part: part.write_bytes(pickle.dumps(state)))

    def restore(self, model: BaseAlgorithm, state: Mapping[str, Any]) -> None:
        """Set dialogues, callbacks and random generators to where the checkpoint left them."""
        self.rollouts = state["rollouts"]
        for env, saved in zip(self.envs, state["envs"]):
            _restore_env(env, saved)
        for callback, saved in zip(self.others, state["callbacks"]):
            callback.__dict__.update(saved)
        _restore_generators(model, state["generators"])


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


def _env_state(env: VecMonitor) -> dict[str, Any]:
    pool: Any = env.venv
    return {
        "dialogues": pool.get_state(),
        "returns": env.episode_returns,
        "lengths": env.episode_lengths,
        "count": env.episode_count,
    }


def _restore_env(env: VecMonitor, saved: Mapping[str, Any]) -> None:
    pool: Any = env.venv
    pool.set_state(saved["dialogues"])
    env.episode_returns, env.episode_lengths = saved["returns"], saved["lengths"]
    env.episode_count = saved["count"]


def _callback_state(callback: BaseCallback) -> dict[str, Any]:
    names = ["n_calls"]
    if isinstance(callback, LearningCurve):
        names.append("rows")
    if isinstance(callback, EvalCallback):
        names += ["best_mean_reward", "last_mean_reward", "evaluations_results"]
        names += ["evaluations_timesteps", "evaluations_length", "evaluations_successes"]
    return {name: getattr(callback, name) for name in names}


def _generators(model: BaseAlgorithm) -> dict[str, Any]:
    buffer = getattr(model, "rollout_buffer", None)
    return {
        "torch": torch.get_rng_state(),
        "cuda": torch.cuda.get_rng_state_all() if torch.cuda.is_available() else [],
        "numpy": np.random.get_state(),  # noqa: NPY002  (Stable-Baselines3 draws from it)
        "python": random.getstate(),
        "buffer": getattr(buffer, "rng", None),
    }


def _restore_generators(model: Any, saved: Mapping[str, Any]) -> None:
    torch.set_rng_state(saved["torch"])
    if saved["cuda"] and torch.cuda.is_available():
        torch.cuda.set_rng_state_all(saved["cuda"])
    np.random.set_state(saved["numpy"])  # noqa: NPY002
    random.setstate(saved["python"])
    if saved["buffer"] is not None:
        model.rollout_buffer.rng = saved["buffer"]
