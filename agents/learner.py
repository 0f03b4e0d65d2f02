"""Bases of our own algorithms: arguments, checks, messages and `predict` of all; the updater."""

from __future__ import annotations

import warnings
from collections.abc import Iterable
from pathlib import Path
from typing import Any, ClassVar, Self, TypedDict

import numpy as np
import torch
from sb3_contrib.common.maskable.utils import is_masking_supported
from stable_baselines3.common.callbacks import BaseCallback, ConvertCallback
from stable_baselines3.common.policies import BasePolicy
from stable_baselines3.common.type_aliases import MaybeCallback, Schedule
from stable_baselines3.common.utils import FloatSchedule

from agents.argument_checks import check_bounds, check_device, check_env, check_timesteps
from agents.decoding.replies import Chats
from agents.distributed.processes import Processes
from agents.duration import DurationWarning
from agents.models.build import OF_VALUES, make_optimizer
from agents.models.exported import save_pretrained
from agents.registry import POLICIES, load_class
from agents.storage.models import SafeFiles, trained_in
from agents.updater import Compute, Updater, check_number
from dialgym.errors import arguments_of, check_arguments, unknown


class RunOptions(TypedDict, total=False):
    """Arguments of all learners, as everywhere in Stable-Baselines3."""

    stats_window_size: int
    tensorboard_log: str | None
    policy_kwargs: dict[str, Any] | None
    verbose: int
    seed: int | None
    device: torch.device | str


class SetupOptions(RunOptions, total=False):
    """`RunOptions`, and one for loading a learner from a file."""

    _init_setup_model: bool


class LearnerOptions(SetupOptions, total=False):
    """Arguments of all learners that follow gradients."""

    learning_rate: float | Schedule
    max_grad_norm: float


class Learner(SafeFiles):
    """Base of our learners, to the left of one of Stable-Baselines3's base classes.

    Args:
        stats_window_size: episodes that the log's means are of.
        tensorboard_log: folder of logs for TensorBoard; None writes none.
        policy_kwargs: arguments of the policy, beyond its spaces and the learning rate.
        verbose: 0 is silent, 1 says what is done and prints the log, 2 says more.
        seed: of weights, draws and dialogues; None begins anywhere.
        device: "auto", "cpu", "cuda" or another of PyTorch's.
    """

    env: Any
    policy: Any
    num_timesteps: int
    max_grad_norm: float
    device: torch.device
    policy_class: type
    policy_kwargs: dict[str, Any]
    policy_aliases: ClassVar[dict[str, type[BasePolicy]]]
    policy_kinds: ClassVar[tuple[type, ...]] = ()
    """The policies that it takes; those of `policy_aliases` where nothing is said."""
    expected_policy: ClassVar[str] = "{}"
    """Words for those, in the error for another one; `{}` are their names."""
    learns_state_values: ClassVar[bool] = False
    """True where it teaches the value head of a `GPTActorCritic`."""
    value_learning_rate: float | Schedule | None = None
    """The learning rate of what makes values alone; None for that of all."""

    def __new__(cls, *args: Any, **kwargs: Any) -> Self:
        """An object whose arguments have been looked at, before anything is made of them."""
        check_arguments(kwargs, arguments_of(cls), cls.__name__)
        check_bounds(cls.__name__, kwargs)
        check_device(kwargs.get("device"), cls.__name__)
        check_env(kwargs["env"] if "env" in kwargs else [*args, None, None][1], cls.__name__)
        return super().__new__(cls)

    def __repr__(self) -> str:
        policy = getattr(self, "policy", None)
        if policy is None:  # while it is made or loaded
            return f"{type(self).__name__}(not made yet)"
        count = sum(parameter.numel() for parameter in policy.parameters())
        place = trained_in(self)
        where = f", {place['id']}" if place else ""
        return (
            f"{type(self).__name__}({type(policy).__name__} of {count:,} parameters{where}, "
            f"{self.device}, {self.num_timesteps:,} timesteps learned)"
        )

    def _get_policy_from_name(self, policy_name: str) -> Any:
        aliases = self.policy_aliases
        if policy_name in aliases:
            return aliases[policy_name]
        if policy_name in POLICIES:
            return load_class(POLICIES[policy_name])
        error = unknown("policy", policy_name, {*aliases, *POLICIES}, type(self).__name__)
        raise ValueError(
            f"{error} A policy class will do as well. An MlpPolicy reads the beliefs of act views; "
            "token views take a GPT policy."
        )

    def _setup_model(self) -> None:
        self._check_settings()
        super()._setup_model()  # type: ignore[misc]

    def _check_settings(self) -> None:
        """Raise an error for a number out of bounds, another policy, or arguments unknown to it.

        The last names the nearest one.
        """
        check_bounds(type(self).__name__, vars(self))
        kinds = self.policy_kinds or tuple(self.policy_aliases.values())
        if not issubclass(self.policy_class, kinds):
            expected = self.expected_policy.format(
                " or ".join(f"agents.{k.__name__}" for k in kinds)
            )
            raise ValueError(
                f"{type(self).__name__}: expected {expected}, got {self.policy_class.__name__}."
            )
        policy, where = self.policy_class, f"policy_kwargs of {type(self).__name__}"
        check_arguments(self.policy_kwargs, arguments_of(policy), where)

    def _setup_learn(
        self, total_timesteps: Any, *args: Any, **kwargs: Any
    ) -> tuple[int, BaseCallback]:
        check_timesteps(type(self).__name__, total_timesteps)
        if getattr(self, "env", None) is None:
            raise ValueError(
                f"{type(self).__name__}.learn: expected an environment to learn in; the model was "
                "loaded without. Give it one with set_env(env), or load(path, env=env)."
            )
        check_bounds(type(self).__name__, vars(self))  # what was set since it was made
        if (updater := getattr(self, "updater", None)) is not None:
            updater.max_grad_norm = self.max_grad_norm
        found: tuple[int, BaseCallback] = super()._setup_learn(  # type: ignore[misc]
            total_timesteps, *args, **kwargs
        )
        return found

    def _init_callback(self, callback: MaybeCallback, progress_bar: bool = False) -> BaseCallback:
        every = [*callback_list(callback), DurationWarning()]
        found: BaseCallback = super()._init_callback(every, progress_bar)  # type: ignore[misc]
        return found

    def _begins_again(
        self,
        total_timesteps: Any,
        callback: Any = None,
        reset_num_timesteps: bool = True,
        *args: Any,
        **kwargs: Any,
    ) -> bool:
        """Return True if `_setup_learn`, called with the same arguments, resets the env."""
        return reset_num_timesteps or getattr(self, "_last_obs", None) is None

    def predict(
        self,
        observation: Any,
        state: tuple[np.ndarray, ...] | None = None,
        episode_start: np.ndarray | None = None,
        deterministic: bool = False,
        action_masks: np.ndarray | None = None,
    ) -> tuple[np.ndarray, tuple[np.ndarray, ...] | None]:
        """The next tokens or acts; where only the env has masks, it warns once without any.

        Args:
            observation: (n_envs, L) tokens or (n_envs, B) beliefs, one of them, or a mapping of
                such arrays, as the space has it.
            state, episode_start: as everywhere in Stable-Baselines3; not used.
            deterministic: the likeliest or best action, else one drawn as in training.
            action_masks: (n_envs, A), or (A,), what may be chosen, where the caller knows more than
                the observation. A policy made with `mask=False` takes no notice.

        Raises:
            ValueError: masks of another shape, or a row that allows nothing; see `fitting`.
        """
        self._expect_masks(action_masks)
        return self._predicted(observation, deterministic, action_masks), state

    def _predicted(self, observation: Any, deterministic: bool, masks: Any) -> np.ndarray:
        """The next actions, one or several as observations are."""
        found: np.ndarray = self.policy.predict(observation, deterministic=deterministic)[0]
        return found

    def _separate_values(self) -> None:
        """Give what makes values alone its own learning rate, where there is one."""
        if self.value_learning_rate is not None:
            self.value_learning_rate = FloatSchedule(self.value_learning_rate)
            schedule: Schedule = vars(self)["lr_schedule"]
            self.policy.optimizer = make_optimizer(self.policy, schedule, apart=True)
            self.policy.optimizer.register_step_pre_hook(self._set_value_rate)

    def _set_value_rate(self, optimizer: torch.optim.Optimizer, *_: Any) -> None:
        """Set the rate of the values before a step of the optimizer."""
        learner: Any = self
        rate = learner.value_learning_rate(learner._current_progress_remaining)
        learner.logger.record("train/value_learning_rate", rate)
        for group in optimizer.param_groups:
            if group.get(OF_VALUES):
                group["lr"] = rate

    def descend(
        self, optimizer: torch.optim.Optimizer, loss: torch.Tensor, max_norm: float | None = None
    ) -> None:
        """Take one step against the gradient, clipped to `max_norm`, or to `max_grad_norm`.

        Raises:
            FloatingPointError: the loss or the gradient is not finite; weights stay as they are.
        """
        check_number("loss", float(loss.detach()), self._where)
        optimizer.zero_grad()
        loss.backward()
        learned = [weight for group in optimizer.param_groups for weight in group["params"]]
        limit = self.max_grad_norm if max_norm is None else max_norm
        norm = torch.nn.utils.clip_grad_norm_(learned, limit)
        check_number("gradient", float(norm), self._where)
        optimizer.step()

    @property
    def _where(self) -> str:
        """Learner and time, for errors."""
        return f"{type(self).__name__} at timestep {self.num_timesteps}"

    def _expect_masks(self, given: Any) -> None:
        """Warn once where `predict` is given no action masks, and the env of the learner has some.

        They are not taken from that env: what is observed may be of another one.
        """
        if given is not None or getattr(self, "_masks_were_expected", False):
            return
        self._masks_were_expected = True
        if self._env_has_masks:
            warnings.warn(
                f"{type(self).__name__} learned within masks that only its env knows, and predict "
                "was given none: it may choose what is forbidden. Pass action_masks="
                "env.action_masks(), of a VecEnv np.stack(env.env_method('action_masks')), learn "
                "in a dialgym.MaskedObservation, or play with dialgym.evaluate.",
                stacklevel=3,
            )

    @property
    def _env_has_masks(self) -> bool:
        """Return True if the env that it learns in, or learned in when it was saved, has masks."""
        return trained_in(self) is not None if self.env is None else is_masking_supported(self.env)

    def _excluded_save_params(self) -> list[str]:
        return [*super()._excluded_save_params(), "_masks_were_expected"]  # type: ignore[misc]


def callback_list(given: MaybeCallback) -> list[BaseCallback]:
    """The callbacks that `learn` was given, of which each may be a function."""
    each = given if isinstance(given, list) else [] if given is None else [given]
    return [one if isinstance(one, BaseCallback) else ConvertCallback(one) for one in each]


class UpdatedLearner(Chats, Learner):
    """A learner whose policy an `Updater` moves, and which can be talked to where it speaks."""

    processes: Processes
    updater: Updater
    compute: Compute
    process_state: ClassVar[tuple[str, ...]] = ()
    """Attributes that each process has for itself, beyond what `save` keeps."""
    steps_are_updates: ClassVar[bool] = False
    """A timestep is a gradient step, after which nothing is half done."""

    def _make_updater(self) -> None:
        """The updater of the policy, as it was when it was saved."""
        self.updater = Updater(
            self.policy, self.processes, self.compute, self.max_grad_norm, lambda: self._where
        )
        self.updater.load_state_dict(getattr(self, "updater_state", {"scaler": {}}))

    def _predict_within(self, masks: Any, observation: Any, deterministic: bool) -> np.ndarray:
        """The next actions, one or several as observations are, within masks (n_envs, A)."""
        self.policy.set_training_mode(False)
        seen, vectorized = self.policy.obs_to_tensor(observation)
        with torch.no_grad():
            actions: np.ndarray = self.policy._predict(seen, deterministic, masks).cpu().numpy()
        return actions if vectorized else actions.squeeze(0)

    def save_pretrained(self, folder: str | Path, lora: str = "merged") -> Path:
        """Write the language model that the policy is, for `transformers`, with its tokenizer.

        See `agents.models.exported.save_pretrained`. Of what speaks by values beside, it is the
        cloned policy.

        Raises:
            ValueError: the policy is no GPT, or the folder holds other things.
        """
        return save_pretrained(self.policy, folder, lora)  # type: ignore[attr-defined]

    def save(
        self,
        path: Any,
        exclude: Iterable[str] | None = None,
        include: Iterable[str] | None = None,
    ) -> None:
        """See `agents.save`; with shared weights, while they are gathered.

        Raises FloatingPointError for weights that have overflowed, before anything is written.
        """
        self.updater.check_weights()
        self.updater_state = self.updater.state_dict()
        super().save(path, exclude, include)
