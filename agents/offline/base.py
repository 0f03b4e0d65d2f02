"""What the offline algorithms share: Stable-Baselines3's shape around gradient steps on dialogues.

A timestep is a gradient step. The env is never played while learning; it says what is seen and
said, and callbacks evaluate in it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any, ClassVar

import numpy as np
import torch
from gymnasium import spaces
from stable_baselines3.common.base_class import BaseAlgorithm
from stable_baselines3.common.callbacks import BaseCallback, CallbackList, ProgressBarCallback
from stable_baselines3.common.policies import BasePolicy
from stable_baselines3.common.type_aliases import GymEnv, MaybeCallback, Schedule
from torch import Tensor

from agents.buffers.sequences import Sequences
from agents.buffers.stored import Sampler, decisions_of, token_data
from agents.decoding.replies import Chats
from agents.distributed.processes import Processes
from agents.policies.gpt import GPTActorCritic, GPTPolicy
from agents.storage.models import SafeFiles
from agents.updater import Compute, Loss, Updater
from dialgym.datasets import TokenBatch


class OfflineAlgorithm(Chats, SafeFiles, BaseAlgorithm):
    """Base of the offline algorithms; a subclass gives the loss of the decisions that it reads.

    Args:
        policy: `agents.GPTPolicy`, or its name.
        env: any env or VecEnv of token windows.
        dataset: `dialgym.datasets.Dataset`, `TokenData`, or a path; None only to load and play.
        learning_rate: a number or a schedule.
        batch_size: dialogues of a gradient step, over all processes.
        gamma: discount from one token that the learner says to the next.
        max_grad_norm: largest norm of a gradient.
        compute: precision and memory of a gradient step, see `Compute`.
        log_interval: gradient steps from one line of the log to the next.
        stats_window_size, tensorboard_log, policy_kwargs, verbose, seed, device: as everywhere in
            Stable-Baselines3.

    Raises:
        ValueError: a number or name that cannot be, another policy, or a dataset that does not
            belong to the env.
    """

    policy_aliases: ClassVar[dict[str, type[BasePolicy]]] = {"GPTPolicy": GPTPolicy}
    policy: GPTActorCritic  # type: ignore[assignment]
    process_state: ClassVar[tuple[str, ...]] = ()
    """Attributes that each process has for itself, beyond what `save` keeps."""

    def __init__(
        self,
        policy: str | type[BasePolicy],
        env: GymEnv | str,
        dataset: Any = None,
        learning_rate: float | Schedule = 1e-3,
        batch_size: int = 64,
        gamma: float = 1.0,
        max_grad_norm: float = 1.0,
        compute: Compute | Mapping[str, Any] | None = None,
        log_interval: int = 100,
        stats_window_size: int = 100,
        tensorboard_log: str | None = None,
        policy_kwargs: dict[str, Any] | None = None,
        verbose: int = 0,
        seed: int | None = None,
        device: torch.device | str = "auto",
        _init_setup_model: bool = True,
    ) -> None:
        for name, number in {"batch_size": batch_size, "log_interval": log_interval}.items():
            if number < 1:
                raise ValueError(f"{type(self).__name__}: {name} must be at least 1, got {number}")
        if not 0 <= gamma <= 1:
            raise ValueError(f"{type(self).__name__}: gamma must be from 0 to 1, got {gamma}")
        self.algorithm = type(self).__name__  # for whoever loads the file
        self.batch_size = batch_size
        self.gamma = gamma
        self.max_grad_norm = max_grad_norm
        self.compute = Compute.of(compute)
        self.log_interval = log_interval
        self.dataset = dataset
        self._n_updates = 0
        super().__init__(
            policy,
            env,
            learning_rate,
            policy_kwargs=policy_kwargs,
            stats_window_size=stats_window_size,
            tensorboard_log=tensorboard_log,
            verbose=verbose,
            device=device,
            support_multi_env=True,
            monitor_wrapper=True,
            seed=seed,
            supported_action_spaces=(spaces.Discrete,),
        )
        if _init_setup_model:
            self._setup_model()

    def _setup_model(self) -> None:
        self.processes = Processes(self.device)
        if self.processes.sharded:
            raise ValueError(
                f"{self.algorithm}: what learns from stored dialogues cannot share weights "
                "(accelerate, distributed_type: FSDP or DEEPSPEED); use MULTI_GPU, or one process"
            )
        self._setup_lr_schedule()
        self.set_random_seed(self.seed)
        self.policy = self.policy_class(  # type: ignore[assignment]
            self.observation_space, self.action_space, self.lr_schedule, **self.policy_kwargs
        )
        if not isinstance(self.policy, GPTActorCritic):
            raise ValueError(
                f"{self.algorithm}: expected a GPT policy (agents.GPTPolicy), got "
                f"{type(self.policy).__name__}"
            )
        self.policy = self.policy.to(self.device)
        self.updater = Updater(
            self.policy, self.processes, self.compute, self.max_grad_norm, lambda: self._where
        )
        self.updater.load_state_dict(getattr(self, "updater_state", {"scaler": {}}))
        self.data = None
        if self.dataset is not None:
            self.data = token_data(self.dataset, self.observation_space)
            self.sampler = Sampler(len(self.data), self.batch_size, self.seed or 0)

    def _excluded_save_params(self) -> list[str]:
        return [
            *super()._excluded_save_params(),
            "dataset",
            "data",
            "sampler",
            "processes",
            "updater",
        ]

    @property
    def _where(self) -> str:
        """Learner and time, for errors."""
        return f"{type(self).__name__} at timestep {self.num_timesteps}"

    def save(
        self,
        path: Any,
        exclude: Iterable[str] | None = None,
        include: Iterable[str] | None = None,
    ) -> None:
        """As everywhere in Stable-Baselines3.

        Raises FloatingPointError for weights that have overflowed, before anything is written.
        """
        self.updater.check_weights()
        self.updater_state = self.updater.state_dict()
        super().save(path, exclude, include)

    def _get_torch_save_params(self) -> tuple[list[str], list[str]]:
        return ["policy", "policy.optimizer"], []

    def learn(
        self,
        total_timesteps: int,
        callback: MaybeCallback = None,
        log_interval: int | None = None,
        tb_log_name: str | None = None,
        reset_num_timesteps: bool = True,
        progress_bar: bool = False,
    ) -> OfflineAlgorithm:
        """Take `total_timesteps` gradient steps.

        An interval of the log is to callbacks what a rollout is elsewhere.

        Raises:
            ValueError: there is no dataset.
        """
        if self.data is None:
            raise ValueError(
                f"{self.algorithm}: expected a dataset to learn from, got none; give one to the "
                "constructor, or to load(..., dataset=...)"
            )
        self.log_interval = log_interval or self.log_interval
        total_timesteps, callback = self._setup_learn(
            total_timesteps,
            callback,
            reset_num_timesteps,
            tb_log_name or self.algorithm,
            progress_bar,
        )
        self.processes.agree(self.policy.parameters())
        callback.on_training_start(locals(), globals())
        while self.num_timesteps < total_timesteps:
            if self._n_updates % self.log_interval == 0:
                callback.on_rollout_start()
            self._update_current_progress_remaining(self.num_timesteps, total_timesteps)
            self._learn_from(self.sampler.rows(self.num_timesteps))
            self.num_timesteps += 1
            callback.update_locals(locals())
            if self._n_updates % self.log_interval == 0:
                callback.on_rollout_end()
                self._dump_logs()
            if not callback.on_step():
                break
        callback.on_training_end()
        return self

    def _learn_from(self, rows: np.ndarray) -> None:
        """A gradient step on the dialogues `rows`, of which each process reads its share."""
        assert self.data is not None
        self.policy.set_training_mode(True)
        self._update_learning_rate(self.policy.optimizer)
        batch = self.data.batch(
            rows[self.processes.rank :: self.processes.count], self.gamma, trim=True
        )
        sequences = self._decisions(batch)
        everything = np.arange(len(sequences.sizes))
        count = int(sequences.columns["real"].sum())
        parts = sequences.parts(everything, self.updater.most_tokens)
        metrics = self.updater.backward(self._loss_of(sequences), parts, count)
        metrics |= self.updater.step()
        self.policy.set_training_mode(False)
        self._n_updates += 1
        for name, value in metrics.items():
            self.logger.record_mean(f"train/{name}", value)

    def _decisions(self, batch: TokenBatch) -> Sequences:
        """The decisions in a batch, and in which states of the masker they were taken."""
        space = self.observation_space
        tag, window = getattr(space, "learner_tag", None), space.shape[0]  # type: ignore[index]
        sequences = self.read(batch, self.device, tag, window)
        if self.policy.masker is not None:
            sequences.add_states(self.policy.masker)
        return sequences

    def _dump_logs(self) -> None:
        self.logger.record("time/total_timesteps", self.num_timesteps, exclude="tensorboard")
        self.logger.dump(self.num_timesteps)

    read: ClassVar[Callable[..., Sequences]] = staticmethod(decisions_of)
    """From a batch to the places in it that count."""

    def _loss_of(self, sequences: Sequences) -> Loss:
        """A function that reads a part of `sequences` and gives the losses of its decisions.

        They are averaged over the decisions that are real; at the others they must be 0.
        """
        raise NotImplementedError

    def _allowed(self, sequences: Sequences, rows: Tensor) -> Tensor | None:
        """What could be said (n, V) at the decisions `rows`, and what was; None for everything."""
        if self.policy.masker is None:
            return None
        columns = sequences.columns
        allowed = self.policy.masker.allowed[columns["states"][rows]]
        said, real = columns["actions"][rows], columns["real"][rows]
        said_too = allowed.gather(1, said[:, None]) | real[:, None]
        return allowed.scatter(1, said[:, None], said_too)  # a logged policy may know no rules

    def _init_callback(self, callback: MaybeCallback, progress_bar: bool = False) -> BaseCallback:
        ready = super()._init_callback(callback)
        if not progress_bar:
            return ready
        both = CallbackList([ready, StepsBar()])
        both.init_callback(self)
        return both


class StepsBar(ProgressBarCallback):
    """Stable-Baselines3's own counts a step for every env."""

    def _on_step(self) -> bool:
        self.pbar.update(1)
        return True
