"""Training of an agent in an environment: `train`, and the callbacks that accompany it."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, nullcontext
from dataclasses import fields
from pathlib import Path
from typing import Any, Unpack

import torch
from stable_baselines3.common.callbacks import BaseCallback
from stable_baselines3.common.logger import Logger, TensorBoardOutputFormat, configure

from agents.duration import DurationWarning
from agents.learner import Learner
from agents.storage.models import save
from agents.training.callbacks import (
    AtMultiples,
    Curve,
    HeldOutLoss,
    KeepModel,
    LearningCurve,
    LossCurve,
    StopAfterDialogues,
)
from agents.training.checkpoint import FILE, CheckpointCallback
from agents.training.config import CONFIG, TrainConfig, TrainFields
from agents.training.console import RunReport, training_progress
from agents.training.evaluation import SampleDialogues, evaluation
from agents.training.interrupts import Interrupt, interrupt_handler
from agents.training.prepare import prepare
from agents.training.rollout_metrics import Metrics
from agents.training.session import MODEL, Session, normalized, open_session
from agents.training.tracking import wandb_run
from dialgym.errors import check_arguments
from dialgym.io.files import read_json, write_text
from dialgym.io.hub import check_commits, commits
from dialgym.optional import check_installed
from dialgym.registry import Environment

HUB, BEST = "hub.json", "best_model.zip"
EVALUATION_SEED = 1_000_003  # added to the seed: evaluation meets other dialogues than training
LARGEST_EVALUATION = 64  # dialogues at a time


def train(
    env_id: Environment = "dialgym/Wordle-20-v0",
    algorithm: str = "ppo",
    **given: Unpack[TrainFields],
) -> Any:
    """Train a model, save it and return it.

    Under `torchrun` each process plays dialogues of its own (`n_envs` each), or reads its share of
    each batch of stored ones, and all train one policy; the first writes the files.

    The model remembers the environment and its settings (`trained_in`). Ctrl-C or SIGTERM ends a
    run after the update that is under way: it leaves a checkpoint and raises `agents.Interrupted`;
    `agents.load` reads the model in it.

    `log_dir` then holds `model.zip`, `learning_curve.csv`, `config.yml`, `run.json` (what the run
    was asked for, and what came of it), TensorBoard events, `hub.json` (commits of what was read
    from the hub, if anything), and, where asked for, `evaluations.npz`, `best_model.zip`,
    `samples/`, `checkpoints/` and `wandb/`.

    Args:
        env_id: an id of a token or act view, with or without the leading `dialgym/`; a task; or
            the `module:Class` of one.
        algorithm: a name in the table of algorithms (`agents.registry`), such as "ppo"
            (`SequencePPO`), "maskable-ppo" or "ilql"; or the `module:Class` of your own.
        given: fields of `agents.TrainConfig`.

    Raises:
        agents.Interrupted: Ctrl-C was pressed, or SIGTERM came; a `KeyboardInterrupt`.
        FileExistsError: there is a run in the folder, which would be lost.
        ValueError: unknown algorithm, id, hyperparameter or setting, with the nearest one; a
            number out of range; a view that the algorithm does not play; dialogues given to what
            plays, none or some of another env to what does not; or the run to be resumed had other
            hyperparameters, or its checkpoint is damaged.
        OSError: `log_dir` cannot be written, or another process is writing there.
        ImportError: a package that was asked for is missing.
    """
    check_arguments(given, [one.name for one in fields(TrainConfig)], "train")
    return run_training(TrainConfig(env_id=env_id, algorithm=algorithm, **given))


def run_training(config: TrainConfig) -> Any:
    """Train as a configuration says; see `train`."""
    plan = prepare(config)
    with ExitStack() as stack:
        interrupt = stack.enter_context(interrupt_handler())
        session = open_session(plan, stack)
        report = RunReport(session)
        if session.processes.is_first:
            _note_hub(plan.folder, session.saved is not None)
            report.begin()
        callbacks = make_callbacks(session, interrupt)
        model = session.model
        left = max(0, plan.timesteps - model.num_timesteps)
        with torch_threads(config.threads):
            model.learn(left, callbacks, reset_num_timesteps=session.saved is None, **_log(config))
        if session.processes.is_first:
            save(model, plan.folder / MODEL)
            _note_hub(plan.folder)
            report.end(next(one.seconds for one in callbacks if isinstance(one, Curve)))
        session.processes.wait()
    return model


def _log(config: TrainConfig) -> dict[str, Any]:
    """Arguments of `learn` for the log."""
    return {} if config.log_interval is None else {"log_interval": config.log_interval}


def _note_hub(folder: Path, resumed: bool = False) -> None:
    """Write down the commits of what the run takes from the hub, if anything.

    Raises:
        ValueError: the run that it resumes took others.
    """
    file = folder / HUB
    if resumed and file.is_file():
        check_commits(read_json(file, "commits as JSON"), repr(str(folder)))
    if found := commits():
        write_text(file, json.dumps(found, indent=1) + "\n")


@contextmanager
def torch_threads(count: int | None) -> Iterator[None]:
    """Use `count` PyTorch threads inside, the former number after; None changes nothing."""
    before = torch.get_num_threads()
    torch.set_num_threads(count or before)
    try:
        yield
    finally:
        torch.set_num_threads(before)


# Callbacks


def make_callbacks(session: Session, interrupt: Interrupt) -> list[BaseCallback]:
    """The callbacks of a run, in order, set to where the run goes on from.

    Of several processes the first writes and evaluates; all keep checkpoints in step.
    """
    session.model.set_logger(Logger(None, []))
    made = _Callbacks(session) if session.processes.is_first else None
    plays = session.plan.algorithm.plays
    played = ([session.env] if plays else []) + (made.envs if made else [])
    held_out = _held_out_loss(session)
    checkpoint = CheckpointCallback(
        session.plan.folder / FILE,
        session.plan.config.checkpoint_every,
        session.plan.interval,
        session.plan.identity(session.processes.count),
        played,
        [*made.saved, *held_out] if made else [],
        interrupt,
    )
    if session.saved is not None:
        checkpoint.restore(session.model, session.saved)
    around = (made.before, made.after) if made else ([], [])
    return [*held_out, *around[0], checkpoint, *around[1]]


def _held_out_loss(session: Session) -> list[BaseCallback]:
    """The callback that measures held-out dialogues, where there are some.

    It keeps the best model, unless that is for evaluations in the env to say.
    """
    plan = session.plan
    if plan.held_out is None:
        return []
    keeps = session.processes.is_first and not plan.config.eval_freq
    return [HeldOutLoss(plan.held_out, KeepModel(plan.folder / BEST) if keeps else None)]


class _Callbacks:
    """Callbacks of the process that writes: those around the checkpoint, and those in it."""

    def __init__(self, session: Session) -> None:
        plan, config = session.plan, session.plan.config
        board = _open_logs(session)
        plays = plan.algorithm.plays
        self.curve: Curve = (LearningCurve if plays else LossCurve)(
            plan.folder / "learning_curve.csv", plan.interval
        )
        self.limit: StopAfterDialogues | None = None
        if config.dialogues:
            keep = tuple(config.keep_dialogues)
            self.limit = StopAfterDialogues(config.dialogues, plan.folder, keep)
        self.saved: list[BaseCallback] = [self.curve]  # whose state belongs to the run
        self.saved += [Metrics(plan.metrics)] if plays else []
        self.saved += [self.limit] if self.limit else []
        self.before, self.envs = [*self.saved], []
        if config.save_freq:
            keep_model = KeepModel(plan.folder / "checkpoints" / "model_{}_steps.zip")
            self.before.append(AtMultiples(config.save_freq, keep_model))
        if config.eval_freq:
            evaluate = _evaluation(session, board)
            self.envs.append(evaluate.eval_env)
            self.saved.append(evaluate)
            self.before.append(AtMultiples(config.eval_freq, evaluate))
        own = isinstance(session.model, Learner)  # which warns by itself
        self.after: list[BaseCallback] = [] if own else [DurationWarning()]
        if config.progress_bar:
            shown = training_progress(session, self.curve, self.limit)
            self.after.append(session.stack.enter_context(shown))


def _open_logs(session: Session) -> Any:
    """Write down the settings, open TensorBoard's log; the run of Weights & Biases, if any."""
    plan, config, resumed = session.plan, session.plan.config, session.saved is not None
    plan.folder.mkdir(parents=True, exist_ok=True)
    write_text(plan.folder / CONFIG, plan.resolved().as_yaml())
    tracked: Any = nullcontext()
    if config.wandb is not False:
        identity = plan.identity(session.processes.count)
        tracked = wandb_run(config.wandb, plan.folder, identity, resumed=resumed)
    board = session.stack.enter_context(tracked)
    check_installed("agents", "the log of a training", "tensorboard")
    formats = ["tensorboard", *(["stdout"] if config.verbose else [])]
    logger = configure(str(plan.folder / "tensorboard"), formats)
    for output in logger.output_formats:
        if isinstance(output, TensorBoardOutputFormat):  # a model that learns on opens it again
            session.stack.callback(output.writer.close)
    session.model.set_logger(logger)
    return board


def _evaluation(session: Session, board: Any) -> Any:
    plan, config = session.plan, session.plan.config
    seed, shown = config.seed + EVALUATION_SEED, 3 if config.samples is None else config.samples
    reader = None
    if shown:
        folder = plan.folder / "samples"
        reader = SampleDialogues(session.make_env(shown, seed), seed, folder, board)
    rows = min(config.eval_episodes, LARGEST_EVALUATION)
    raw = session.make_env(rows, seed, config.workers)
    env = normalized(raw, plan.hyperparameters, training=False)
    best = KeepModel(plan.folder / BEST)
    episodes = config.eval_episodes
    return evaluation(session.model, env, episodes, plan.folder, best, reader, config.verbose)
