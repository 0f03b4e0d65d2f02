"""Folder, environments and model of a training run, made or restored from its checkpoint."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Mapping
from contextlib import ExitStack, closing
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from stable_baselines3.common.base_class import BaseAlgorithm
from stable_baselines3.common.utils import get_device
from stable_baselines3.common.vec_env import VecEnv, VecNormalize

import dialgym
from agents.argument_checks import check_bounds
from agents.distributed.processes import Processes
from agents.policies.init_from import start_from
from agents.registry import find
from agents.storage.models import trained_in
from agents.training.checkpoint import BEFORE, SavedRun, find_checkpoint
from agents.training.checkpoint import FILE as CHECKPOINT
from agents.training.config import CONFIG, RECORD
from agents.training.hyperparameters import constructor_arguments
from agents.training.prepare import TrainingPlan, data_names
from dialgym.errors import unknown, with_settings
from dialgym.io.files import read_json
from dialgym.io.locks import PATIENCE, locked
from dialgym.io.saved_models import find_checkpoint as find_model
from dialgym.views.wrappers import VectorReplaceForbidden

MODEL = "model.zip"
RUN_OUTPUTS = (MODEL, CHECKPOINT, "best_model.zip", "checkpoints")
"""Files and folders that training has taken time to make."""
RUN_FILES = (
    *RUN_OUTPUTS, BEFORE, RECORD, "learning_curve.csv", CONFIG, "tensorboard", "hub.json",
    "samples", "evaluations.npz", "dialogues.csv", "wandb_id.txt", "report.html",
)  # fmt: skip
Wrapper = Callable[[Any], Any]
NORMALIZE_KEYS = ("norm_obs", "norm_reward", "clip_reward", "gamma", "epsilon")
WRAPPERS: dict[str, Wrapper] = dict.fromkeys(
    ("dialgym.ReplaceForbidden", "dialgym.VectorReplaceForbidden"), VectorReplaceForbidden
)
"""Wrappers that `env_wrapper` may name; rl-zoo3 itself puts the first around single envs."""
NO_TRAINING = {"training": False, "norm_reward": False}


@dataclass
class Session:
    """The objects that a run works with.

    Attributes:
        plan: of the run.
        processes: this one among those of the run.
        env: that the model plays, or that says what stored dialogues mean.
        model: to train.
        saved: the state that it goes on from; None for a run that begins.
        stack: closes what the run opens.
    """

    plan: TrainingPlan
    processes: Processes
    env: VecEnv
    model: BaseAlgorithm
    saved: SavedRun | None
    stack: ExitStack

    def make_env(self, rows: int, seed: int, workers: int = 0) -> VecEnv:
        """Dialogues of the run's env, closed at its end."""
        return _make_env(self.plan, self.stack, rows, seed, workers)


def open_session(plan: TrainingPlan, stack: ExitStack) -> Session:
    """The envs and the model of a plan, from the checkpoint in its folder where it is to resume.

    The folder is locked until the `stack` is closed; see `check_room` for what is refused. With
    `force` the run that is there is removed last.

    Raises:
        ValueError, OSError: as of `agents.train`.
    """
    config = plan.config
    processes = Processes(get_device(config.device))
    _check_processes(plan, processes)
    if processes.is_first:
        stack.enter_context(locked(plan.folder, PATIENCE))
        check_room(plan)
    rows = plan.hyperparameters.get("n_envs", 1)
    raw = _make_env(plan, stack, rows, config.seed + processes.rank * rows, config.workers)
    env = normalized(raw, plan.hyperparameters, training=True)
    arguments = constructor_arguments(plan.hyperparameters)  # whose classes files may name, too
    file = find_checkpoint(plan.folder) if config.resume else None
    saved = None if file is None else SavedRun(file, plan.identity(processes.count))
    more = {"dataset": plan.dataset} if plan.algorithm.reads else {}
    if saved is None:
        model = _new_model(plan, env, {**more, **arguments})
    else:
        model = saved.model(plan.algorithm.load(), env, config.device, **more)
    if choose := replaces_forbidden(plan.hyperparameters):
        model.replace_forbidden = choose  # saved with it, and heeded wherever it plays
    if plan.config.env_id != plan.entry.id and (place := trained_in(model)):
        model.trained_in = {**place, "id": plan.config.env_id}  # which another process finds
    if config.force and processes.is_first:
        for name in RUN_FILES:  # only now, when it is known that the new run can begin
            _remove(plan.folder / name)
    return Session(plan, processes, env, model, saved, stack)


def _check_processes(plan: TrainingPlan, processes: Processes) -> None:
    """Raises ValueError for several processes where one has to learn alone."""
    if processes.count > 1 and not hasattr(plan.algorithm.load(), "process_state"):
        raise ValueError(
            f"{plan.algorithm.name} trains in one process, got {processes.count}; "
            "learners of tokens that play, and of stored dialogues alone, train in several"
        )
    if processes.count > 1 and plan.config.dialogues:
        raise ValueError(
            f"dialogues: expected one process, which counts all of them, got {processes.count}; "
            "give timesteps"
        )


def build(
    algorithm: str,
    hyperparameters: Mapping[str, Any],
    env: VecEnv,
    seed: int = 0,
    device: str = "auto",
    verbose: int = 0,
    **more: Any,
) -> Any:
    """The untrained model of `read_hyperparameters`; `more` are arguments beside them."""
    arguments = {**constructor_arguments(hyperparameters), **more}
    return find(algorithm).load()(env=env, seed=seed, device=device, verbose=verbose, **arguments)


def _new_model(plan: TrainingPlan, env: VecEnv, arguments: Mapping[str, Any]) -> Any:
    config = plan.config
    check_bounds(plan.algorithm.name, arguments)
    more = {"seed": config.seed, "device": config.device, "verbose": config.verbose}
    model = plan.algorithm.load()(env=env, **more, **arguments)
    if config.init_from:
        start_from(model.policy, config.init_from, config.trust)
    return model


# The folder


def check_room(plan: TrainingPlan) -> None:
    """Check that a run that begins destroys no other, and nothing that it begins with.

    Raises:
        FileExistsError: there is a run that would be lost.
        ValueError: the run that is to be removed has the model or data to begin with.
    """
    folder, config = plan.folder, plan.config
    if config.force:
        _check_sources(plan)
        return
    found = [name for name in RUN_OUTPUTS if (folder / name).exists()]
    if not found or (config.resume and (CHECKPOINT in found or MODEL not in found)):
        return
    resumes = f"Resume it with `dialgym train --resume {folder}`"
    go_on = resumes if CHECKPOINT in found else "It left no checkpoint to resume"
    raise FileExistsError(
        f"{str(folder)!r} holds a run already ({_about(folder)}{', '.join(found)}). {go_on}; begin "
        "again with --force, which removes it; or choose another folder (--out). In Python: "
        "resume=True, force=True, log_dir=..."
    )


def _check_sources(plan: TrainingPlan) -> None:
    """Raises ValueError for a source of the run among the files that `force` removes."""
    removed = [(plan.folder / name).resolve() for name in RUN_FILES]
    model = plan.config.init_from
    sources = [] if model is None else [("init_from", find_model(model) or model)]
    sources += [("data", name) for name in data_names(plan.config.data) or ()]
    for field, source in sources:
        path = Path(source).resolve()
        if any(path.is_relative_to(one) for one in removed):
            raise ValueError(
                f"{field}: expected something outside of the run that force removes, got "
                f"{str(source)!r}; move it, or choose another folder for the run (--out, log_dir)"
            )


def _about(folder: Path) -> str:
    try:
        record = read_json(folder / RECORD, "a run")
        return f"{record['config']['algorithm']} on {record['config']['env_id']}; "
    except (OSError, ValueError, KeyError, TypeError):
        return ""


def _remove(path: Path) -> None:
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path)
    else:
        path.unlink(missing_ok=True)


# Environments


def _make_env(plan: TrainingPlan, stack: ExitStack, rows: int, seed: int, workers: int) -> VecEnv:
    wrapper = env_wrapper(plan.hyperparameters)
    env = dialgym.sb3_vec_env(plan.entry, rows, workers, seed, wrapper, **plan.env_kwargs)
    return stack.enter_context(closing(env))


def replaces_forbidden(settings: Mapping[str, Any]) -> str | None:
    """The `choose` of the `env_wrapper`, which is one that replaces; None where there is none."""
    given = settings.get("env_wrapper")
    if not given:
        return None
    arguments = {} if isinstance(given, str) else next(iter(given.values())) or {}
    return str(arguments.get("choose", "random"))


def env_wrapper(settings: Mapping[str, Any]) -> Wrapper | None:
    """The wrapper that rl-zoo3's key `env_wrapper` names, from a fixed table; None without one.

    Args:
        settings: hyperparameters; the key has a name, or a mapping of one name to its arguments.

    Raises:
        ValueError: it is neither, or the name is not in the table.
    """
    given = settings.get("env_wrapper")
    if not given:
        return None
    named = {given: None} if isinstance(given, str) else given
    if not isinstance(named, Mapping) or len(named) != 1:
        raise ValueError(
            "env_wrapper: expected a name, or a mapping such as {dialgym.ReplaceForbidden: "
            f"{{choose: nearest}}}}, got {given!r}"
        )
    ((name, arguments),) = named.items()
    if name not in WRAPPERS:
        raise unknown("env_wrapper", name, WRAPPERS)
    return lambda env: with_settings(partial(WRAPPERS[name], env), name, arguments or {})


def normalized(env: VecEnv, settings: Mapping[str, Any], training: bool) -> VecEnv:
    """`env` in Stable-Baselines3's `VecNormalize`, where the settings have `normalize`.

    It lies outside of the monitor, as in rl-zoo3: the returns of episodes stay raw. Without
    `training` rewards stay raw too.
    """
    options = normalize_options(settings)
    if not options:
        return env
    return VecNormalize(env, **{**options, **({} if training else NO_TRAINING)})


def normalize_options(settings: Mapping[str, Any]) -> dict[str, Any]:
    """Arguments of `VecNormalize` from rl-zoo3's key `normalize`; none when it is missing or false.

    `gamma` is that of the algorithm, also when left out.

    Raises:
        ValueError: no mapping, an unknown key, `norm_obs` is not false, or another `gamma`.
    """
    given = settings.get("normalize") or {}
    example = "{norm_obs: false, norm_reward: true}"
    if not isinstance(given, Mapping):
        raise ValueError(f"normalize: expected a mapping such as {example}, got {given!r}")
    for key in given:
        if key not in NORMALIZE_KEYS:
            raise unknown("key", key, NORMALIZE_KEYS, "normalize")
    if given and given.get("norm_obs", True):
        raise ValueError(
            "normalize: observations are tokens and cannot be normalised; "
            f"expected norm_obs: false, as in {example}, got {dict(given)!r}"
        )
    gamma = settings.get("gamma", given.get("gamma", 0.99))
    if given.get("gamma", gamma) != gamma:
        raise ValueError(
            f"normalize: expected the algorithm's gamma {gamma!r}, got {given['gamma']!r}; "
            "leave it out to have the same"
        )
    return {**given, "gamma": gamma} if given else {}
