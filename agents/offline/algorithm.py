"""Base of the offline algorithms: Stable-Baselines3's shape around gradient steps on dialogues.

A timestep is a gradient step. The env is never played while learning; it says what is seen and
said, and callbacks evaluate in it.

One step, in the order in which it is read: `gradient_step` here takes dialogues that the sampler
chose; `agents.buffers.stored` finds the decisions in them and gathers a typed batch; the `loss` of
the algorithm reads it; `agents.updater` accumulates gradients and moves the weights.
"""

from __future__ import annotations

import warnings
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping
from typing import Any, ClassVar, Self, Unpack

import numpy as np
import torch
from gymnasium import spaces
from stable_baselines3.common.base_class import BaseAlgorithm
from stable_baselines3.common.callbacks import BaseCallback, ProgressBarCallback
from stable_baselines3.common.policies import BasePolicy
from stable_baselines3.common.type_aliases import GymEnv, MaybeCallback, Schedule
from torch import Tensor

from agents.argument_checks import COUNT, require
from agents.buffers.sequences import Part, Sequences
from agents.buffers.stored import DecisionBatch, Sampler, decisions_of
from agents.buffers.stored_acts import StoredActs, act_decisions_of, stored_acts
from agents.buffers.stored_tokens import token_data, with_token_reward
from agents.buffers.stream import DialogueStream, StreamedData
from agents.distributed.processes import Processes
from agents.learner import LearnerOptions, RunOptions, UpdatedLearner, callback_list
from agents.policies.belief import BeliefPolicy
from agents.policies.gpt import GPTActorCritic, GPTPolicy
from agents.storage.models import trained_in
from agents.updater import Compute
from dialgym.datasets import ActData, TokenBatch, TokenData
from dialgym.errors import settings_as

DialogueSample = TokenBatch | ActData
"""Some dialogues of a dataset, as tokens or as beliefs and acts."""
Losses = tuple[Tensor, dict[str, Tensor]]
"""Losses (n,) of a batch, and metrics (n,): averaged over decisions, minimised and logged."""


class OfflineOptions(LearnerOptions, total=False):
    """Arguments that all offline algorithms have in common."""

    batch_size: int
    gamma: float
    compute: Compute | Mapping[str, Any] | None
    log_interval: int
    token_reward: Mapping[str, Any] | None


class OfflineAlgorithm(UpdatedLearner, BaseAlgorithm):  # type: ignore[misc]
    """Base of the offline algorithms; a subclass gives the `loss` of the decisions in a batch.

    Args:
        policy: `agents.GPTPolicy`, or its name; on act views `agents.BeliefPolicy`, or "MlpPolicy".
        env: any env or VecEnv of token windows, or of beliefs and acts.
        dataset: `dialgym.datasets.Dataset`, `TokenData`, on act views `ActData` (with the returns
            that it has), a path, or an `agents.DialogueStream`; None only to load and play.
        learning_rate: a number or a schedule.
        batch_size: dialogues of a gradient step, over all processes.
        gamma: discount from one token, or act, of the learner to the next.
        max_grad_norm: largest norm of a gradient.
        compute: precision and memory of a gradient step, as `Compute` or a mapping of its settings.
        log_interval: gradient steps from one line of the log to the next.
        token_reward: added to the rewards of the tokens that the learner says, in the dialogues
            alone: `constant`, `by_token` (rewards by a token's text, or a JSON file of rewards by
            id) and their `scale`; see `TokenData.with_token_rewards`.
        run: further arguments of all learners, see `agents.learner`.

    Raises:
        ValueError: a number or name that cannot be, another policy, or a dataset that does not
            belong to the env.
    """

    policy_aliases: ClassVar[dict[str, type[BasePolicy]]] = {
        "GPTPolicy": GPTPolicy,
        "MlpPolicy": BeliefPolicy,
    }
    policy_kinds: ClassVar[tuple[type, ...]] = (GPTActorCritic, BeliefPolicy)
    expected_policy = "a GPT policy (agents.GPTPolicy), or on act views agents.BeliefPolicy"
    policy: GPTActorCritic  # type: ignore[assignment]
    find_decisions: ClassVar[Callable[..., Sequences]] = staticmethod(decisions_of)
    batch_class: ClassVar[Any] = DecisionBatch
    averaged_over: ClassVar[str] = "is_action"
    """The column that says over which of its places a batch's losses are averaged."""
    steps_are_updates: ClassVar[bool] = True
    together: ClassVar[int] = 1
    """Dialogues in a row that stand in one batch."""

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
        token_reward: Mapping[str, Any] | None = None,
        _init_setup_model: bool = True,
        **run: Unpack[RunOptions],
    ) -> None:
        self.algorithm = type(self).__name__  # for whoever loads the file
        self.batch_size = batch_size
        self.gamma = gamma
        self.max_grad_norm = max_grad_norm
        self.compute = settings_as(Compute, "compute", compute)
        self.log_interval = log_interval
        self.token_reward = token_reward
        self.dataset = dataset
        self._n_updates = 0
        super().__init__(
            policy,
            env,
            learning_rate,
            support_multi_env=True,
            monitor_wrapper=True,
            supported_action_spaces=(spaces.Discrete, spaces.MultiBinary),
            **run,  # type: ignore[misc]
        )
        if _init_setup_model:
            self._setup_model()

    def _setup_model(self) -> None:
        super()._setup_model()
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
        ).to(self.device)
        self._make_updater()
        self.data: Any = None  # `TokenData`, `StoredActs` or `StreamedData`
        if self.dataset is not None:
            self.data = self.stored(self.dataset)
            endless = getattr(self.data, "endless", False)
            self.sampler = Sampler(len(self.data), self.batch_size, self.seed or 0, endless)

    @property
    def _plays_acts(self) -> bool:
        return isinstance(self.policy, BeliefPolicy)

    @property
    def _env_has_masks(self) -> bool:
        """On act views; the masks of tokens are those of the policy."""
        return self._plays_acts and super()._env_has_masks

    def stored(self, dataset: Any) -> TokenData | StoredActs | StreamedData:
        """The dialogues of a dataset, as the env writes them and with the rewards to learn from.

        Raises:
            ValueError: they do not belong to the env, or what is asked for is for tokens alone.
        """
        if isinstance(dataset, DialogueStream):
            return StreamedData(dataset, self.stored)
        if not self._plays_acts:
            if self.policy.features is not None:
                raise ValueError(
                    f"{self.algorithm}: stored dialogues have no features beside their tokens; "
                    "make the env without features"
                )
            return with_token_reward(self.tokens_of(dataset), self.token_reward)
        if self.token_reward:
            raise ValueError(f"{self.algorithm}: token_reward is for words; leave it out here")
        spaces = self.observation_space, self.action_space
        return stored_acts(dataset, spaces, self.gamma, trained_in(self))

    def tokens_of(self, dataset: Any) -> TokenData:
        """The dialogues of a dataset, as the env writes them and with the rewards as earned.

        Raises:
            ValueError: they do not belong to the env.
        """
        env_id = (trained_in(self) or {}).get("id")
        return token_data(dataset, self.policy.token_space, env_id)

    # Learning

    def learn(
        self,
        total_timesteps: int,
        callback: MaybeCallback = None,
        log_interval: int | None = None,
        tb_log_name: str | None = None,
        reset_num_timesteps: bool = True,
        progress_bar: bool = False,
    ) -> Self:
        """Take `total_timesteps` gradient steps; a second call goes on to further batches.

        Args:
            total_timesteps: how many, beside those before where `reset_num_timesteps` is false.
            callback: one, several, or a function, as everywhere in Stable-Baselines3. An interval
                of the log is to callbacks what a rollout is elsewhere.
            log_interval: gradient steps from one line of the log to the next, from now on; None
                leaves it.
            tb_log_name: of the run's folder; None is the algorithm's name.
            reset_num_timesteps: count from 0 again, schedules included. The stream of batches goes
                on in either case.
            progress_bar: show one.

        Returns:
            The algorithm itself.

        Raises:
            ValueError: there is no dataset, or `log_interval` is below 1.
            FloatingPointError: a loss, a gradient or a weight is not finite.
        """
        if self.data is None:
            raise ValueError(
                f"{self.algorithm}: expected stored dialogues to learn from, got dataset=None. "
                f"Give some, as in {self.algorithm}(policy, env, dataset=load_dataset(PATH)) or "
                "load(..., dataset=...); `dialgym collect` and `dialgym import` make them"
            )
        if log_interval is not None:
            require(self.algorithm, COUNT, log_interval=log_interval)
            self.log_interval = log_interval
        name = tb_log_name or self.algorithm
        total_timesteps, callback = self._setup_learn(
            total_timesteps, callback, reset_num_timesteps, name, progress_bar
        )
        self.processes.agree(self.policy.parameters())
        callback.on_training_start(locals(), globals())
        while self.num_timesteps < total_timesteps:
            if self._n_updates % self.log_interval == 0:
                callback.on_rollout_start()
            self._update_current_progress_remaining(self.num_timesteps, total_timesteps)
            self.gradient_step(self.sampler.rows(self._n_updates))
            self.num_timesteps += 1
            callback.update_locals(locals())
            if self._n_updates % self.log_interval == 0:
                callback.on_rollout_end()
                self.dump_logs()
            if not callback.on_step():
                break
        callback.on_training_end()
        return self

    def gradient_step(self, rows: np.ndarray) -> dict[str, float]:
        """One step on the dialogues `rows` of the data, of which each process reads its share.

        Returns:
            The metrics, which are logged too: means over the decisions of all processes.
        """
        assert self.data is not None
        self.policy.set_training_mode(True)
        self._update_learning_rate(self.policy.optimizer)
        share = rows[self.processes.rank :: self.processes.count]
        dialogues = self.data.batch(share, self.gamma, trim=True)
        sequences = self.read(dialogues)
        if not self._n_updates:
            self._warn_of_refused(sequences)
        count = int(sequences.columns[self.averaged_over].sum())
        metrics = self.updater.backward(self.loss, self.batches(sequences), count)
        metrics |= self.updater.step()
        self.policy.set_training_mode(False)
        self._n_updates += 1
        for name, value in metrics.items():
            self.logger.record_mean(f"train/{name}", value)
        return metrics

    @torch.no_grad()
    def mean_losses(self, data: Any) -> dict[str, float]:
        """Means of the loss and its metrics over `data`, as `stored` gives it; no step is taken."""
        sequences = self.read(data.batch(np.arange(len(data)), self.gamma, trim=True))
        count = int(sequences.columns[self.averaged_over].sum())
        sums: dict[str, float] = defaultdict(float)
        for batch in self.batches(sequences):
            with self.updater.precision():
                losses, metrics = self.loss(batch)
            for name, values in {"loss": losses, **metrics}.items():
                sums[name] += float(values.double().sum())
        return {name: total / max(count, 1) for name, total in sums.items()}

    @property
    def cloning(self) -> bool:
        """Return True while a clone is learned for what follows, as in CHAI."""
        return False

    def loss(self, batch: Any) -> Losses:
        """Losses (n,) of the decisions in a batch, and metrics (n,) for the log.

        They are averaged over the places that `averaged_over` names; at the others they are 0,
        unless they make up for it by a weight.
        """
        raise NotImplementedError

    # From dialogues to batches

    def batch(self, dialogues: DialogueSample) -> Any:
        """All decisions in `dialogues` as one batch, such as `loss` reads."""
        sequences = self.read(dialogues)
        [batch] = self.batches(
            sequences, most_tokens=2 * sequences.lengths.sum() * len(sequences.lengths)
        )
        return batch

    def batches(self, sequences: Sequences, most_tokens: int | None = None) -> Iterator[Any]:
        """All decisions in `sequences`, in batches of at most so many tokens."""
        everything = np.arange(len(sequences.sizes)).reshape(-1, self.together)
        for part in sequences.parts(everything, most_tokens or self.updater.most_tokens):
            yield self.gather(sequences, part)

    def of_all(
        self, sequences: Sequences, function: Callable[[Any], Tensor], most_tokens: int
    ) -> Tensor:
        """Rows (N, ...) that a function has for the decisions of a batch, in the order of all N.

        Args:
            sequences: as of `read`.
            function: of a batch of n decisions, (n, ...).
            most_tokens: of a batch.
        """
        everything = np.arange(len(sequences.sizes))
        parts = list(sequences.parts(everything, most_tokens))
        found = torch.cat([function(self.gather(sequences, part)) for part in parts])
        return found[torch.cat([part.rows for part in parts]).argsort()]

    def read(self, dialogues: DialogueSample) -> Sequences:
        """The decisions in stored dialogues, and in which states of the masker they were taken."""
        if isinstance(dialogues, ActData):
            return act_decisions_of(dialogues, self.device)
        space = self.policy.token_space
        tag, window = getattr(space, "learner_tag", None), space.shape[0]
        sequences = self.find_decisions(dialogues, self.device, tag, window)
        if self.policy.masker is not None:
            sequences.add_states(self.policy.masker)
        return sequences

    def gather(self, sequences: Sequences, part: Part) -> Any:
        """A part of `sequences` as a batch."""
        return self.batch_class.gather(sequences, part, self.allowed(sequences, part.rows))

    def allowed(self, sequences: Sequences, rows: Tensor) -> Tensor | None:
        """The actions (n, A) that could be chosen, or were, at `rows` (n,); None for all."""
        columns = sequences.columns
        if "masks" in columns:
            allowed = columns["masks"][rows]
        elif self.policy.masker is not None:
            allowed = self.policy.masker.allowed[columns["states"][rows]]
        else:
            return None
        # A logged policy may know no rules: what was chosen counts as allowed.
        actions, is_action = columns["actions"][rows], columns["is_action"][rows, None]
        if actions.dim() == 1:
            actions = actions[:, None]
            return allowed.scatter(1, actions, allowed.gather(1, actions) | is_action)
        can_be_one = allowed | actions.bool()  # as sb3-contrib has masks of several binary choices
        return torch.stack([torch.ones_like(allowed), can_be_one], -1).flatten(1)

    def _warn_of_refused(self, sequences: Sequences) -> None:
        """Warn of logged tokens outside the masks: the policy learns them and cannot say them."""
        columns = sequences.columns
        if "states" not in columns:
            return
        allowed = self.policy.masker.allowed[columns["states"], columns["actions"]]  # type: ignore[union-attr]
        is_action = columns["is_action"].bool()
        if refused := int((is_action & ~allowed).sum()):
            warnings.warn(
                f"{self.algorithm}: {refused} of {int(is_action.sum())} tokens of the first batch "
                "are outside the env's masks, so that the policy cannot say them. Check that the "
                "dialogues are of this env, or set policy_kwargs={'mask': False}",
                stacklevel=3,
            )

    # Stable-Baselines3

    def _predicted(self, observation: Any, deterministic: bool, masks: Any) -> np.ndarray:
        if masks is None or not getattr(self.policy, "config", {"mask": True})["mask"]:
            return super()._predicted(observation, deterministic, None)
        return self._predict_within(masks, observation, deterministic)

    def _excluded_save_params(self) -> list[str]:
        own = ["dataset", "data", "sampler", "processes", "updater"]
        return [*super()._excluded_save_params(), *own]

    def _get_torch_save_params(self) -> tuple[list[str], list[str]]:
        return ["policy", "policy.optimizer"], []

    def dump_logs(self) -> None:
        """Write a line of the log."""
        self.logger.record("time/total_timesteps", self.num_timesteps, exclude="tensorboard")
        self.logger.dump(self.num_timesteps)

    def _init_callback(self, callback: MaybeCallback, progress_bar: bool = False) -> BaseCallback:
        shown = [StepsBar()] if progress_bar else []
        return super()._init_callback([*callback_list(callback), *shown])


class StepsBar(ProgressBarCallback):
    """A progress bar of gradient steps; Stable-Baselines3's own counts a step for every env."""

    def _on_step(self) -> bool:
        self.pbar.update(1)
        return True
