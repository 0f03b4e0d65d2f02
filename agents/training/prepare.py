"""Checks the arguments of `agents.train`, then makes or restores the envs and the model."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import ExitStack, closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from stable_baselines3.common.base_class import BaseAlgorithm
from stable_baselines3.common.utils import get_device
from stable_baselines3.common.vec_env import VecEnv

import dialgym
from agents.argument_checks import check_bounds, check_device
from agents.distributed.processes import Processes
from agents.learner import UpdatedLearner
from agents.policies.init_from import start_from
from agents.registry import ALGORITHMS, STORED, Algorithm, find
from agents.training.checkpoint import Saved, find_checkpoint
from agents.training.data import Data, env_settings, label, stored_dialogues
from agents.training.dialogues import UNBOUNDED, Budget
from agents.training.envs import env_wrapper, normalized, replaces_forbidden
from agents.training.folder import make_room
from agents.training.hyperparameters import constructor_arguments, read_config
from agents.training.rollout_metrics import Choice, Metric, make_metrics
from dialgym.datasets import Dataset
from dialgym.io.locks import PATIENCE, locked
from dialgym.registry import Environment, RegistryEntry, entry_of
from dialgym.trust import allow

STOCK_INTERVAL = 1000
"""Timesteps of an interval of the curve, where rollouts may be of a few steps."""


@dataclass(frozen=True)
class Plan:
    """What a run is to do, checked; nothing is made yet.

    Attributes:
        algorithm: the row of the table.
        entry: the environment's.
        settings: hyperparameters, as of `read_config`.
        env_kwargs: settings of the env.
        dataset: the stored dialogues to learn from; None where it takes none.
        data: what they are called.
        metrics: to measure rollouts with.
        budget: of dialogues; None where the run is measured in timesteps.
        seed, device, workers, verbose, init_from, trust: as of `agents.train`.
        directory: the run's folder.
    """

    algorithm: Algorithm
    entry: RegistryEntry
    settings: dict[str, Any]
    env_kwargs: dict[str, Any]
    dataset: Dataset | None
    data: list[str] | None
    metrics: Sequence[Metric]
    budget: Budget | None
    seed: int
    device: str
    workers: int
    verbose: int
    init_from: str | None
    trust: bool
    directory: Path

    @property
    def plays(self) -> bool:
        """Whether it learns by playing."""
        return self.algorithm.plays

    @property
    def timesteps(self) -> int:
        """To learn from."""
        return UNBOUNDED if self.budget else int(self.settings["n_timesteps"])

    @property
    def interval(self) -> int:
        """Timesteps from one row of the curve to the next; 0 gives each rollout one."""
        return 0 if _has_long_rollouts(self.algorithm.load()) else STOCK_INTERVAL

    def identity(self, processes: int) -> dict[str, Any]:
        """What a run has in common with the one that it resumes."""
        found = {"algorithm": self.algorithm.name, **self.settings}
        found |= {"env_id": self.entry.id, "env_kwargs": self.env_kwargs}
        found |= {"seed": self.seed, "processes": processes, "init_from": self.init_from}
        dialogues = None if self.dataset is None else len(self.dataset)
        played = {"budget": self.budget.count} if self.budget else {}
        return {**found, "data": self.data, "dialogues": dialogues, **played}


def prepare(
    algo: str,
    env_id: Environment,
    changes: Mapping[str, Any],
    config: str | Path | None,
    env_kwargs: Mapping[str, Any] | None,
    data: Data | None,
    metrics: Choice | None,
    budget: Budget | None,
    log_dir: str | Path | None,
    seed: int,
    device: str,
    workers: int,
    verbose: int,
    init_from: str | Path | None,
    trust: bool,
) -> Plan:
    """The plan of a run; see `agents.train` for the arguments, and for what is raised."""
    algorithm, entry = find(algo), entry_of(env_id)
    check_device(device, "train")
    check_bounds("train", {"seed": seed})
    kind = entry.kind.actions
    allow(env_kwargs or {})  # stored dialogues may have been held with the same
    settings = read_config(algorithm, entry.id, changes, config, kind, trust)
    if budget and not algorithm.plays:
        raise ValueError(f"dialogues: {algorithm.name} does not play; give its gradient steps")
    if budget is None and "n_timesteps" not in settings:
        raise ValueError(
            f"n_timesteps of {algorithm.name} on {entry.id}: expected a number in its "
            "configuration, or total_timesteps (--timesteps), got neither"
        )
    _check_kind(algorithm, entry, kind)
    _check_data(algorithm, data, workers)
    dataset = None if data is None else stored_dialogues(data, entry.id, settings.get("top"), trust)
    chosen = settings.get("metrics") if metrics is None else metrics
    if chosen and not algorithm.plays:
        raise ValueError("metrics: what learns from stored dialogues says nothing to be measured")
    name = f"{algorithm.name}-{entry.id.rpartition('/')[2]}-seed{seed}"
    return Plan(
        algorithm=algorithm,
        entry=entry,
        settings=settings,
        env_kwargs=env_settings(dataset, env_kwargs),
        dataset=dataset,
        data=label(data),
        metrics=make_metrics(chosen),
        budget=budget,
        seed=seed,
        device=device,
        workers=workers,
        verbose=verbose,
        init_from=None if init_from is None else str(init_from),
        trust=trust,
        directory=Path(log_dir or Path("runs") / name),
    )


@dataclass
class Session:
    """What a run works with.

    Attributes:
        plan: of the run.
        processes: this one among those of the run.
        env: that the model plays, or that says what stored dialogues mean.
        model: to train.
        saved: the state that it goes on from; None for a run that begins.
        stack: closes what the run opens.
    """

    plan: Plan
    processes: Processes
    env: VecEnv
    model: BaseAlgorithm
    saved: Saved | None
    stack: ExitStack

    def make_env(self, rows: int, seed: int, workers: int = 0) -> VecEnv:
        """Dialogues of the run's env, closed at its end."""
        return _make_env(self.plan, self.stack, rows, seed, workers)


def open_session(plan: Plan, resume: bool, force: bool, stack: ExitStack) -> Session:
    """The envs and the model of a plan, from the checkpoint in its folder where it is to resume.

    The folder is locked until the `stack` is closed; see `make_room` for what is refused.

    Raises:
        ValueError, OSError: as of `agents.train`.
    """
    processes = Processes(get_device(plan.device))
    if processes.count > 1 and not hasattr(plan.algorithm.load(), "process_state"):
        raise ValueError(
            f"{plan.algorithm.name} trains in one process, got {processes.count}; "
            "ppo, nlpo, grpo and what learns from stored dialogues train in several"
        )
    if processes.count > 1 and plan.budget:
        raise ValueError(
            f"dialogues: expected one process, which counts all of them, got {processes.count}; "
            "give timesteps"
        )
    if processes.is_first:
        stack.enter_context(locked(plan.directory, PATIENCE))
        make_room(plan.directory, resume, force)
    rows = plan.settings.get("n_envs", 1)
    raw = _make_env(plan, stack, rows, plan.seed + processes.rank * rows, plan.workers)
    env = normalized(raw, plan.settings, training=True)
    arguments = constructor_arguments(plan.settings)  # whose classes files may name, too
    file = find_checkpoint(plan.directory) if resume else None
    saved = None if file is None else Saved(file, plan.identity(processes.count))
    if saved is None:
        model = _new_model(plan, env, arguments)
    else:
        cls, more = plan.algorithm.load(), _dataset(plan)
        model = saved.model(cls, env, plan.device, **more)
    if choose := replaces_forbidden(plan.settings):
        model.replace_forbidden = choose  # saved with it, and heeded wherever it plays
    return Session(plan, processes, env, model, saved, stack)


def build(
    algo: str,
    settings: Mapping[str, Any],
    env: VecEnv,
    seed: int = 0,
    device: str = "auto",
    verbose: int = 0,
    **more: Any,
) -> Any:
    """The untrained model of `read_config`'s settings; `more` are arguments beside them."""
    arguments = {**constructor_arguments(settings), **more}
    return find(algo).load()(env=env, seed=seed, device=device, verbose=verbose, **arguments)


def _new_model(plan: Plan, env: VecEnv, arguments: Mapping[str, Any]) -> Any:
    more = {"seed": plan.seed, "device": plan.device, "verbose": plan.verbose, **_dataset(plan)}
    check_bounds(plan.algorithm.name, arguments)
    model = plan.algorithm.load()(env=env, **more, **arguments)
    if plan.init_from:
        start_from(model.policy, plan.init_from, plan.trust)
    return model


def _dataset(plan: Plan) -> dict[str, Any]:
    return {"dataset": plan.dataset} if plan.algorithm.reads else {}


def _make_env(plan: Plan, stack: ExitStack, rows: int, seed: int, workers: int) -> VecEnv:
    wrapper = env_wrapper(plan.settings)
    env = dialgym.sb3_vec_env(plan.entry, rows, workers, seed, wrapper, **plan.env_kwargs)
    return stack.enter_context(closing(env))


def _has_long_rollouts(cls: type) -> bool:
    """Whether its rollouts are of whole dialogues or gradient steps: those of our own."""
    return issubclass(cls, UpdatedLearner)


def _check_kind(algorithm: Algorithm, entry: RegistryEntry, kind: str) -> None:
    if algorithm.plays and kind not in algorithm.kind:
        others = [row.name for row in ALGORITHMS.values() if kind in row.kind]
        raise ValueError(
            f"{algorithm.name} plays {' and '.join(algorithm.kind)}, got {entry.id!r}, "
            f"a view of {kind}; "
            + (f"these play it: {', '.join(others)}" if others else "take its token view")
        )


def _check_data(algorithm: Algorithm, data: Data | None, workers: int) -> None:
    """Raises ValueError for dialogues where it takes none, and for none where it needs some."""
    name = algorithm.name
    if not algorithm.reads and data is not None:
        offline = [row.name for row in ALGORITHMS.values() if STORED in row.kind]
        raise ValueError(
            f"data: {name} learns by playing and takes none; stored dialogues teach "
            f"{', '.join(offline)}"
        )
    if algorithm.reads and data is None:
        raise ValueError(
            f"data: {name} learns from stored dialogues, got none; collect some with "
            "`dialgym collect`, and name their folder (--data PATH)"
        )
    if not algorithm.plays and workers:
        raise ValueError(f"workers: {name} does not play; expected 0, got {workers}")
