"""What a run does beside learning: curve, metrics, evaluations, kept models, checkpoints, bar."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml
from stable_baselines3.common.callbacks import BaseCallback, EventCallback
from stable_baselines3.common.logger import Logger, configure

from agents.storage.models import save
from agents.training.checkpoint import FILE, Checkpoint
from agents.training.console import training_progress
from agents.training.curves import LearningCurve, LossCurve
from agents.training.dialogues import Dialogues
from agents.training.envs import normalized
from agents.training.evaluation import SampleDialogues, evaluation
from agents.training.interrupts import Interrupt
from agents.training.prepare import Session
from agents.training.rollout_metrics import Metrics
from agents.training.tracking import wandb_run
from dialgym.io.files import write_text

EVALUATION_SEED = 1_000_003  # added to the seed: evaluation meets other dialogues than training
LARGEST_EVALUATION = 64  # dialogues at a time


@dataclass(frozen=True)
class Schedule:
    """When a run does what; see `agents.train`.

    Raises:
        ValueError: a number out of range, or samples without evaluations.
    """

    eval_freq: int
    eval_episodes: int
    save_freq: int
    checkpoint_every: int
    samples: int | None

    def __post_init__(self) -> None:
        for name in ("eval_freq", "save_freq", "checkpoint_every", "samples"):
            count = getattr(self, name) or 0
            if count < 0:
                raise ValueError(f"{name}: expected 0 (never) or more, got {count}")
        if self.eval_episodes < 1:
            raise ValueError(f"eval_episodes: expected 1 or more, got {self.eval_episodes}")
        if self.samples and not self.eval_freq:
            raise ValueError(
                "samples: expected 0 without evaluations, after which dialogues are played, "
                f"got {self.samples}; set eval_freq too"
            )


def make_callbacks(
    session: Session,
    schedule: Schedule,
    wandb: bool | Mapping[str, Any],
    progress_bar: bool,
    interrupt: Interrupt,
) -> list[BaseCallback]:
    """The callbacks of a run, in order, set to where the run goes on from.

    Of several processes the first writes and evaluates; all keep checkpoints in step.
    """
    model, plan = session.model, session.plan
    model.set_logger(Logger(None, []))
    kept: list[BaseCallback] = []  # whose state belongs to the run
    callbacks: list[BaseCallback] = []
    played = [session.env] if plan.plays else []
    if session.processes.is_first:
        board = _open_logs(session, wandb)
        kind = LearningCurve if plan.plays else LossCurve
        curve = kind(plan.directory / "learning_curve.csv", plan.interval)
        dialogues = Dialogues(plan.budget, plan.directory) if plan.budget else None
        kept.append(curve)
        kept += [Metrics(plan.metrics)] if plan.plays else []
        kept += [dialogues] if dialogues else []
        callbacks += kept
        if schedule.save_freq:
            keep = KeepModel(plan.directory / "checkpoints" / "model_{}_steps.zip")
            callbacks.append(AtMultiples(schedule.save_freq, keep))
        if schedule.eval_freq:
            evaluate = _evaluation(session, schedule, board)
            played.append(evaluate.eval_env)
            kept.append(evaluate)
            callbacks.append(AtMultiples(schedule.eval_freq, evaluate))
    identity = plan.identity(session.processes.count)
    file, every = plan.directory / FILE, schedule.checkpoint_every
    checkpoint = Checkpoint(file, every, plan.interval, identity, played, kept, interrupt)
    if session.saved is not None:
        checkpoint.restore(model, session.saved)
    callbacks.append(checkpoint)
    if progress_bar and session.processes.is_first:
        shown = training_progress(session, curve, dialogues)
        callbacks.append(session.stack.enter_context(shown))
    return callbacks


def _open_logs(session: Session, wandb: bool | Mapping[str, Any]) -> Any:
    """Write down the settings, open TensorBoard's log; the run of Weights & Biases, if any."""
    plan, resumed = session.plan, session.saved is not None
    plan.directory.mkdir(parents=True, exist_ok=True)
    rows = {plan.entry.id: _as_yaml(plan.settings)}
    write_text(plan.directory / "config.yml", yaml.safe_dump(rows))
    identity = plan.identity(session.processes.count)
    tracked = wandb_run(wandb, plan.directory, identity, resumed=resumed)
    board = session.stack.enter_context(tracked)
    formats = ["tensorboard", *(["stdout"] if plan.verbose else [])]
    session.model.set_logger(configure(str(plan.directory / "tensorboard"), formats))
    return board


def _as_yaml(value: Any) -> Any:
    """Settings as YAML spells them: classes by name, tuples as lists."""
    if isinstance(value, Mapping):
        return {key: _as_yaml(part) for key, part in value.items()}
    if isinstance(value, list | tuple):
        return [_as_yaml(part) for part in value]
    if isinstance(value, type):
        return f"{value.__module__}.{value.__qualname__}"
    return value


def _evaluation(session: Session, schedule: Schedule, board: Any) -> Any:
    plan = session.plan
    seed, shown = plan.seed + EVALUATION_SEED, 3 if schedule.samples is None else schedule.samples
    reader = None
    if shown:
        folder = plan.directory / "samples"
        reader = SampleDialogues(session.make_env(shown, seed), seed, folder, board)
    rows = min(schedule.eval_episodes, LARGEST_EVALUATION)
    env = normalized(session.make_env(rows, seed, plan.workers), plan.settings, training=False)
    best = KeepModel(plan.directory / "best_model.zip")
    episodes, verbose = schedule.eval_episodes, plan.verbose
    return evaluation(session.model, env, episodes, plan.directory, best, reader, verbose)


class KeepModel(BaseCallback):
    """Saves the model when it is called; `{}` in the file's name is the number of timesteps."""

    def __init__(self, path: Path) -> None:
        super().__init__()
        self.path = path

    def _on_step(self) -> bool:
        save(self.model, self.path.with_name(self.path.name.format(self.num_timesteps)))
        return True


class AtMultiples(EventCallback):
    """Calls `callback` at the first step that reaches each multiple of `freq` timesteps.

    A step is as many timesteps as there are dialogues. Counting calls, as callbacks of
    Stable-Baselines3 do, drifts where that does not divide `freq`, and begins again in a run that
    is resumed; here the time depends on the timesteps alone.
    """

    def __init__(self, freq: int, callback: BaseCallback) -> None:
        super().__init__(callback)
        self.freq = freq

    def _init_callback(self) -> None:
        super()._init_callback()
        self.before = self.model.num_timesteps

    def _on_step(self) -> bool:
        reached = self.num_timesteps // self.freq > self.before // self.freq
        self.before = self.num_timesteps
        return self._on_event() if reached else True
