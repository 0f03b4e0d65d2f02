"""Train an agent on an id, with the hyperparameters that belong to it."""

from __future__ import annotations

import io
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, closing, contextmanager
from pathlib import Path
from typing import Any

import torch
import yaml
from stable_baselines3.common.callbacks import BaseCallback, CheckpointCallback
from stable_baselines3.common.logger import Logger, configure
from stable_baselines3.common.utils import get_device
from stable_baselines3.common.vec_env import VecEnv, VecMonitor

from agents.distributed.processes import Processes
from agents.offline.algorithm import OfflineAlgorithm
from agents.online.on_policy import SequenceAlgorithm
from agents.saved import start_from
from agents.training.callbacks import AtMultiples, LearningCurve, LossCurve, progress
from agents.training.checkpoint import FILE, Checkpoint, read_checkpoint
from agents.training.config import OFFLINE, constructor_arguments, find_algorithm, read_config
from agents.training.envs import monitored, normalized
from agents.training.evaluation import SampleDialogues, evaluation
from agents.training.metrics import Choice, Metric, Metrics, make_metrics
from agents.training.stored import Data, env_settings, label, stored_dialogues
from agents.training.tracking import wandb_run
from dialgym.files import write_atomically, write_text
from dialgym.registry import entry_of

Learner = SequenceAlgorithm | OfflineAlgorithm
EVALUATION_SEED = 1_000_003  # added to the seed: evaluation meets other dialogues than training


def train(
    algo: str = "ppo",
    env_id: str = "dialgym/Wordle-20-v0",
    total_timesteps: int | None = None,
    n_envs: int | None = None,
    workers: int = 0,
    seed: int = 0,
    log_dir: str | Path | None = None,
    overrides: Mapping[str, Any] | None = None,
    device: str = "auto",
    progress_bar: bool = True,
    env_kwargs: Mapping[str, Any] | None = None,
    config: str | Path | None = None,
    threads: int | None = 1,
    eval_freq: int = 0,
    eval_episodes: int = 200,
    save_freq: int = 0,
    verbose: int = 0,
    checkpoint_every: int = 10,
    resume: bool = False,
    samples: int | None = None,
    wandb: bool | Mapping[str, Any] = False,
    init_from: str | Path | None = None,
    data: Data | None = None,
    metrics: Choice | None = None,
) -> Learner:
    """Train a model, save it and return it.

    Under `torchrun` each process plays dialogues of its own (`n_envs` each), or reads its share of
    each batch of stored ones, and all train one policy; the first writes the files.

    `log_dir` then holds `model.zip`, `learning_curve.csv`, `config.yml`, TensorBoard events, and,
    where asked for, `evaluations.npz`, `best_model.zip`, `samples/`, `checkpoints/` and `wandb/`.

    Args:
        algo: what plays: "ppo" (`SequencePPO`), "nlpo" (`NLPO`), "grpo" (`GRPO`); or what
            learns from stored dialogues: "bc", "single-step", "ilql", "cql", "psi",
            "utterance-ilql", "chai", "decision-transformer".
        env_id: an id of a token view, with or without the leading `dialgym/`.
        total_timesteps: tokens to learn from, or gradient steps where dialogues are stored; what
            the configuration says when None.
        n_envs: dialogues at a time; what the configuration says when None.
        workers: processes for the dialogues; 0 keeps them in this one.
        seed: of the weights, the dialogues and the minibatches.
        log_dir: `runs/<algo>-<id>-seed<seed>` when None.
        overrides: hyperparameters that replace those of the configuration.
        device: "cpu", "cuda" or "auto".
        progress_bar: show one.
        env_kwargs: settings of the env, as for `gym.make`; those that stored dialogues were held
            with need not be given again.
        config: a YAML file instead of `agents/configs/<algo>.yml`.
        threads: PyTorch threads while training. One is the fastest for small models, above all
            where other work shares the cores; None leaves what PyTorch has.
        eval_freq: evaluate at the first step that reaches each multiple of so many timesteps;
            0 is never.
        eval_episodes: dialogues of one evaluation.
        save_freq: keep the model of each so many timesteps, in the same way; 0 is never.
        verbose: 1 prints the log table.
        checkpoint_every: rollouts, or intervals of the log (`log_interval`), from one
            `checkpoint.pkl` to the next; 0 is never.
        resume: go on from the folder's `checkpoint.pkl`, exactly as if the run had not been
            interrupted; without one, begin.
        samples: dialogues to write down at each evaluation; 3 when None, where it evaluates.
        wandb: log to Weights & Biases too; a mapping has arguments of `wandb.init`.
        init_from: a saved model whose weights to begin with, such as a cloned one.
        data: stored dialogues: a `Dataset`, its path or its name on the hub, or several.
        metrics: classes to measure each rollout with, by name (`module:Class`), beside the parts of
            the reward and the lengths of utterances; see `agents.training.metrics.make_metrics`.
            Those of the configuration (`metrics`) when None.

    Raises:
        ValueError: unknown algorithm, id, hyperparameter or setting, with the nearest one; a
            number out of range; dialogues given to what plays, none or some of another env to what
            does not; or the run to be resumed had other hyperparameters.
        ImportError: a package that was asked for is missing.
    """
    _check_counts(eval_freq, eval_episodes, save_freq, checkpoint_every, samples)
    env_id = entry_of(env_id).id
    given = {"n_timesteps": total_timesteps, "n_envs": n_envs}
    changes = {**(overrides or {}), **{k: v for k, v in given.items() if v is not None}}
    settings = read_config(algo, env_id, changes, config)
    plays = _plays(algo, data, workers)
    dataset = None if data is None else stored_dialogues(data, env_id, settings.get("top"))
    env_kwargs = env_settings(dataset, env_kwargs)
    measures = _measures(metrics, settings, plays)
    directory = Path(log_dir or Path("runs") / f"{algo}-{env_id.rpartition('/')[2]}-seed{seed}")

    processes = Processes(get_device(device))
    run = {**settings, "env_id": env_id, "env_kwargs": env_kwargs, "seed": seed}
    run |= {"processes": processes.count, "init_from": init_from and str(init_from)}
    run |= {"data": label(data), "dialogues": dataset and len(dataset)}
    with ExitStack() as stack:

        def make(rows: int, first_seed: int, shards: int = workers) -> VecMonitor:
            env = monitored(env_id, rows, shards, first_seed, env_kwargs)
            return stack.enter_context(closing(env))

        file, rows = directory / FILE, settings.get("n_envs", 1)
        state = read_checkpoint(file, run) if resume and file.is_file() else None
        env = normalized(make(rows, seed + processes.rank * rows), settings, training=True)
        played = [env] if plays else []
        more: dict[str, Any] = {} if plays else {"dataset": dataset}
        model = build(algo, settings, env, seed, device, verbose, **more)
        if state:
            weights = io.BytesIO(state["model"])
            model = type(model).load(weights, env, device=device, force_reset=False, **more)
        elif init_from:
            start_from(model.policy, init_from)
        model.set_logger(Logger(None, []))
        kept: list[BaseCallback] = []
        callbacks: list[BaseCallback] = []
        if processes.is_first:
            directory.mkdir(parents=True, exist_ok=True)
            write_text(directory / "config.yml", yaml.safe_dump({env_id: settings}))
            tracked = wandb_run(wandb, directory, run, resumed=state is not None)
            board = stack.enter_context(tracked)
            model.set_logger(_logger(directory, verbose))
            kept.append((LearningCurve if plays else LossCurve)(directory / "learning_curve.csv"))
            if plays:
                kept.append(Metrics(measures))
            callbacks += kept
        if processes.is_first and save_freq:
            callbacks.append(AtMultiples(save_freq, _checkpoints(directory)))
        if processes.is_first and eval_freq:
            first, shown = seed + EVALUATION_SEED, 3 if samples is None else samples
            reader = None
            if shown:
                reader = SampleDialogues(make(shown, first, 0), first, directory / "samples", board)
            met = normalized(make(min(eval_episodes, 64), first), settings, training=False)
            kept.append(evaluation(model, met, eval_episodes, directory, reader, verbose))
            played.append(met)
            callbacks.append(AtMultiples(eval_freq, kept[-1]))
        checkpoint = Checkpoint(file, checkpoint_every, run, played, kept)
        if state:
            checkpoint.restore(model, state)
        left = settings["n_timesteps"] - model.num_timesteps
        callbacks.append(checkpoint)
        if progress_bar and processes.is_first:
            callbacks.append(stack.enter_context(progress(plays)))
        with torch_threads(threads):
            model.learn(left, callbacks, reset_num_timesteps=state is None)
    if processes.is_first:
        write_atomically(directory / "model.zip", model.save)
    processes.wait()
    return model


def build(
    algo: str,
    settings: Mapping[str, Any],
    env: VecEnv,
    seed: int = 0,
    device: str = "auto",
    verbose: int = 0,
    **more: Any,
) -> Learner:
    """The untrained model of `read_config`'s settings; `more` are arguments beside them."""
    arguments = constructor_arguments(settings)
    model: Learner = find_algorithm(algo)(
        env=env, seed=seed, device=device, verbose=verbose, **arguments, **more
    )
    return model


@contextmanager
def torch_threads(count: int | None) -> Iterator[None]:
    """Use `count` PyTorch threads inside, the former number after; None changes nothing."""
    before = torch.get_num_threads()
    torch.set_num_threads(count or before)
    try:
        yield
    finally:
        torch.set_num_threads(before)


def _plays(algo: str, data: Data | None, workers: int) -> bool:
    """Whether `algo` learns by playing; raises ValueError where other things were given."""
    if algo not in OFFLINE and data is not None:
        raise ValueError(
            f"data: {algo} learns by playing and takes none; stored dialogues teach "
            f"{', '.join(OFFLINE)}"
        )
    if algo in OFFLINE and data is None:
        raise ValueError(
            f"data: {algo} learns from stored dialogues, got none; collect some with "
            "`dialgym collect`, and name their folder (--data PATH)"
        )
    if algo in OFFLINE and workers:
        raise ValueError(f"workers: {algo} does not play; expected 0, got {workers}")
    return algo not in OFFLINE


def _measures(metrics: Choice | None, settings: Mapping[str, Any], plays: bool) -> Sequence[Metric]:
    """What to measure rollouts with; raises ValueError where there are none."""
    chosen = settings.get("metrics") if metrics is None else metrics
    if chosen and not plays:
        raise ValueError("metrics: what learns from stored dialogues says nothing to be measured")
    return make_metrics(chosen)


def _logger(directory: Path, verbose: int) -> Any:
    formats = ["tensorboard", *(["stdout"] if verbose else [])]
    return configure(str(directory / "tensorboard"), formats)


def _checkpoints(directory: Path) -> CheckpointCallback:
    return CheckpointCallback(1, str(directory / "checkpoints"), "model")


def _check_counts(
    eval_freq: int, eval_episodes: int, save_freq: int, checkpoint_every: int, samples: int | None
) -> None:
    counts = {"eval_freq": eval_freq, "save_freq": save_freq, "checkpoint_every": checkpoint_every}
    for name, count in {**counts, "samples": samples or 0}.items():
        if count < 0:
            raise ValueError(f"{name}: expected 0 (never) or more, got {count}")
    if eval_episodes < 1:
        raise ValueError(f"eval_episodes: expected 1 or more, got {eval_episodes}")
    if samples and not eval_freq:
        raise ValueError(
            f"samples: expected 0 without evaluations, after which dialogues are played, "
            f"got {samples}; set eval_freq too"
        )
