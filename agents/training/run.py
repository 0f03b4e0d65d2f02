"""Train an agent on an id, with the hyperparameters that belong to it: prepare, callbacks, run."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import torch

from agents.storage.models import save
from agents.training.callbacks import Schedule, make_callbacks
from agents.training.console import RunReport
from agents.training.data import Data
from agents.training.dialogues import budget
from agents.training.folder import MODEL
from agents.training.interrupts import caught
from agents.training.prepare import open_session, prepare
from agents.training.rollout_metrics import Choice
from dialgym.errors import whole_number, with_checked_arguments
from dialgym.io.files import read_json, write_text
from dialgym.io.hub import check_commits, commits
from dialgym.registry import Environment

HUB = "hub.json"


@with_checked_arguments
def train(
    algo: str = "ppo",
    env_id: Environment = "dialgym/Wordle-20-v0",
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
    trust: bool = False,
    dialogues: int | None = None,
    keep_dialogues: Sequence[int] = (),
    force: bool = False,
    final_episodes: int = 0,
) -> Any:
    """Train a model, save it and return it.

    Under `torchrun` each process plays dialogues of its own (`n_envs` each), or reads its share of
    each batch of stored ones, and all train one policy; the first writes the files.

    The model remembers the environment and its settings (`trained_in`). Ctrl-C or SIGTERM ends a
    run after the update that is under way: it leaves a checkpoint and raises `agents.Interrupted`.

    `log_dir` then holds `model.zip`, `learning_curve.csv`, `config.yml`, `run.json` (what the run
    was asked for, and what came of it), TensorBoard events, `hub.json` (commits of what was read
    from the hub, if anything), and, where asked for, `evaluations.npz`, `best_model.zip`,
    `samples/`, `checkpoints/` and `wandb/`.

    Args:
        algo: a name in the table of algorithms (`agents.registry`), such as "ppo"
            (`SequencePPO`), "maskable-ppo" or "ilql"; or the `module:Class` of your own.
        env_id: an id of a token or act view, with or without the leading `dialgym/`; a task; or
            the `module:Class` of one.
        total_timesteps: tokens or acts to learn from, or gradient steps where dialogues are stored;
            what the configuration says when None.
        n_envs: dialogues at a time; what the configuration says when None.
        workers: processes for the dialogues; 0 keeps them in this one.
        seed: of the weights, the dialogues and the minibatches.
        log_dir: `runs/<algo>-<id>-seed<seed>` when None.
        overrides: hyperparameters that replace those of the configuration.
        device: "cpu", "cuda" or "auto".
        progress_bar: say what the run is about, how far it is and what came of it: on a terminal
            with a bar, elsewhere by a line now and then.
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
            `checkpoint.zip` to the next; stock algorithms, whose rollouts may be of a few steps,
            count thousands of timesteps in place of rollouts. 0 is never.
        resume: go on from the folder's `checkpoint.zip`, exactly as if the run had not been
            interrupted; without one, begin, if there is no finished run. The one before it is kept
            as `checkpoint-before.zip`.
        samples: dialogues to write down at each evaluation; 3 when None, where it evaluates.
        wandb: log to Weights & Biases too; a mapping has arguments of `wandb.init`.
        init_from: a saved model whose weights to begin with, such as a cloned one.
        data: stored dialogues: a `Dataset`, its path or ``hf:NAME``, or several.
        metrics: classes to measure each rollout with, by name (`module:Class`), beside the parts of
            the reward and the lengths of utterances; see `rollout_metrics.make_metrics`.
            Those of the configuration (`metrics`) when None.
        trust: read `init_from` where it is a pickle, and import the classes that `config` and
            `data` name, which can run code; see `agents.load` and `dialgym.load_dataset`.
        dialogues: learn from so many dialogues, whatever timesteps they take; schedules then fall
            over the dialogues.
        keep_dialogues: after how many dialogues to keep the model, as
            `checkpoints/model_N_dialogues.zip`.
        force: remove the run that is in the folder; without it, or `resume`, that is an error.
        final_episodes: dialogues that the model plays at the end, for the summary; 0 for none.

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
    schedule = Schedule(eval_freq, eval_episodes, save_freq, checkpoint_every, samples)
    limit = budget(dialogues, keep_dialogues)
    given = {"n_timesteps": total_timesteps, "n_envs": n_envs}
    changes = {**(overrides or {}), **{k: v for k, v in given.items() if v is not None}}
    plan = prepare(
        algo, env_id, changes, config, env_kwargs, data, metrics, limit, log_dir, seed, device,
        workers, verbose, init_from, trust,
    )  # fmt: skip
    whole_number("final_episodes", final_episodes, "train", 0)
    with ExitStack() as stack:
        interrupt = stack.enter_context(caught())
        session = open_session(plan, resume, force, stack)
        report = RunReport(session, progress_bar)
        if session.processes.is_first:
            _note_hub(plan.directory, session.saved is not None)
            report.begin(resume)
        callbacks = make_callbacks(session, schedule, wandb, progress_bar, interrupt)
        model = session.model
        left = max(0, plan.timesteps - model.num_timesteps)
        with torch_threads(threads):
            model.learn(left, callbacks, reset_num_timesteps=session.saved is None)
        if session.processes.is_first:
            save(model, plan.directory / MODEL)
            _note_hub(plan.directory)
            report.end(final_episodes)
        session.processes.wait()
    return model


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
