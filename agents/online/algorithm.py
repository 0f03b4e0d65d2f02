"""Base of the online algorithms: construction, `learn`, `predict`, `save`.

In shape they are Stable-Baselines3's on-policy algorithms: any VecEnv, its callbacks, its logger,
`learn`, `predict`, `save`, `load`, `evaluate_policy`. What `learn` repeats, rollout and update, is
in `on_policy.py`.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar, Self, Unpack

import numpy as np
import torch
from gymnasium import spaces
from stable_baselines3.common.on_policy_algorithm import OnPolicyAlgorithm
from stable_baselines3.common.policies import ActorCriticPolicy, BasePolicy
from stable_baselines3.common.type_aliases import GymEnv, MaybeCallback, Schedule
from stable_baselines3.common.utils import ConstantSchedule, FloatSchedule
from torch import Tensor

from agents.buffers.sequences import SequenceBuffer
from agents.distributed.processes import Processes
from agents.learner import LearnerOptions, SetupOptions, UpdatedLearner
from agents.models.build import check_same_tokens
from agents.models.observations import has_masks
from agents.online.reference import FrozenPolicy, KLControl
from agents.policies.gpt import GPTActorCritic, GPTPolicy
from agents.storage.generators import generators_kept
from agents.storage.models import load
from agents.updater import Compute
from dialgym.errors import settings_as


class OnlineOptions(LearnerOptions, total=False):
    """Arguments that all online algorithms over tokens have in common."""

    n_steps: int
    batch_size: int
    ent_coef: float | Schedule
    kl: KLControl | Mapping[str, Any] | None
    env_masks: bool | None
    compute: Compute | Mapping[str, Any] | None


class OnlineAlgorithm(UpdatedLearner, OnPolicyAlgorithm):  # type: ignore[misc]
    """Base of the learners that play token by token, in the form of Stable-Baselines3.

    These are `SequencePPO`, `NLPO`, `GRPO`, `ExpertIteration`, `REFUEL` and `ArCHer`; rollout and
    update are `SequenceAlgorithm`'s.

    Args:
        policy: `agents.GPTPolicy`, or its name.
        env: any env or VecEnv of token windows.
        learning_rate: a number or a schedule.
        n_steps: tokens said in each dialogue from one update to the next, or at most.
        batch_size: decisions of a minibatch, about: minibatches are made of whole dialogues. With
            several processes, of each.
        n_epochs: passes over a rollout.
        ent_coef: weight of the entropy; a number or a schedule.
        max_grad_norm: largest norm of a gradient.
        kl: what divergence from a reference costs, a `KLControl` or a mapping of its fields.
        env_masks: ask the env for its `action_masks` at every step. None does so where neither
            observations nor their space say what is forbidden and the env does.
        compute: precision and memory of an update, a `Compute` or a mapping of its fields.
        run: further arguments of all learners, see `agents.learner`.

    Attributes:
        kl_coef: the coefficient of the divergence now, which `kl` may steer.
        reference: the policy that divergence is measured from, or None. It is what learning first
            began with, also in later calls of `learn`; `reference.follow(model.policy)` moves it.

    Raises:
        ValueError: a number or name that cannot be, another policy, or another kind of env.
    """

    policy_aliases: ClassVar[dict[str, type[BasePolicy]]] = {"GPTPolicy": GPTPolicy}
    policy_kinds = (GPTActorCritic,)
    expected_policy = (
        "a GPT policy (agents.GPTPolicy), whose update reads whole sequences (stock PPO takes any)"
    )
    policy: GPTActorCritic  # type: ignore[assignment]
    target_kl: float | None
    process_state: ClassVar[tuple[str, ...]] = (
        "rng",
        "_last_obs",
        "_last_episode_starts",
        "ep_info_buffer",
        "ep_success_buffer",
    )

    def __init__(
        self,
        policy: str | type[ActorCriticPolicy],
        env: GymEnv | str,
        learning_rate: float | Schedule = 3e-4,
        n_steps: int = 128,
        batch_size: int = 1024,
        n_epochs: int = 4,
        ent_coef: float | Schedule = 0.0,
        max_grad_norm: float = 0.5,
        kl: KLControl | Mapping[str, Any] | None = None,
        env_masks: bool | None = None,
        compute: Compute | Mapping[str, Any] | None = None,
        **run: Unpack[SetupOptions],
    ) -> None:
        self.algorithm = type(self).__name__
        self.batch_size = batch_size
        self.n_epochs = n_epochs
        self.kl = KLControl.of(kl)
        self.kl_coef = self.kl.coef
        self.env_masks = env_masks
        self.compute = settings_as(Compute, "compute", compute)
        super().__init__(
            policy,
            env,
            learning_rate=learning_rate,
            n_steps=n_steps,
            gamma=1.0,
            gae_lambda=1.0,
            ent_coef=ent_coef,  # type: ignore[arg-type]
            vf_coef=0.0,
            max_grad_norm=max_grad_norm,
            use_sde=False,
            sde_sample_freq=-1,
            rollout_buffer_class=SequenceBuffer,  # type: ignore[arg-type]
            supported_action_spaces=(spaces.Discrete,),
            **run,  # type: ignore[misc]
        )

    def _setup_model(self) -> None:
        self.processes = Processes(self.device)
        scaled = self._vec_normalize_env is not None and self._vec_normalize_env.norm_obs
        if scaled:
            raise ValueError(
                f"{self.algorithm}: expected observations of tokens, got an env that scales them; "
                "give VecNormalize norm_obs=False"
            )
        super()._setup_model()
        self.ent_coef = FloatSchedule(self.ent_coef)  # type: ignore[assignment]
        self._make_updater()
        if self.env is not None:  # that of a loaded model may be another than it learned in
            check_same_tokens(self.observation_space, self.env.observation_space, "the env")
        self.reference = self._make_reference() if self.kl.coef else None
        self._separate_randomness()
        known = self.policy.masker is not None or has_masks(self.observation_space)
        if self.env_masks is None and self.env is not None:
            self.env_masks = not known and self.env.has_attr("action_masks")

    def _make_reference(self) -> FrozenPolicy:
        """The policy now, or the model at `kl.reference`, whose weights we then keep.

        Its constructor's arguments are saved, so that our file can be loaded without that one.
        """
        if self.kl.reference is None:
            return FrozenPolicy(self.policy, dtype=self.kl.dtype, offload=self.kl.offload)
        if not hasattr(self, "reference_made_by"):
            with generators_kept():
                other = load(self.kl.reference, device=self.device).policy
            who = f"reference {str(self.kl.reference)!r}"
            check_same_tokens(self.observation_space, other.observation_space, who)
            arguments = other._get_constructor_parameters()
            arguments["lr_schedule"] = ConstantSchedule(0.0)  # the policy's own is no data
            self.reference_made_by = type(other), arguments
        else:
            kind, arguments = self.reference_made_by
            with generators_kept():
                other = kind(**arguments).to(self.device)
        return FrozenPolicy(other, False, self.kl.dtype, self.kl.offload)

    def _separate_randomness(self) -> None:
        """Dialogues, samples and minibatches differ between processes; weights do not."""
        seed, rank = self.seed or 0, self.processes.rank
        self.rng = np.random.default_rng([seed, rank])
        if rank:
            torch.manual_seed(int(self.rng.integers(2**31)))
            if self.env is not None:
                self.env.seed(seed + rank * self.n_envs)

    # Learning: rollout, update, rollout ...

    def learn(
        self,
        total_timesteps: int,
        callback: MaybeCallback = None,
        log_interval: int = 1,
        tb_log_name: str | None = None,
        reset_num_timesteps: bool = True,
        progress_bar: bool = False,
    ) -> Self:
        """Play and improve until `total_timesteps` tokens have been said.

        Args:
            total_timesteps: tokens of the learner, over all dialogues and processes.
            callback: as everywhere in Stable-Baselines3.
            log_interval: rollouts from one line of the log to the next.
            tb_log_name: of the folder of logs; the algorithm's name when None.
            reset_num_timesteps: count from 0; the reference of `kl` stays what it was.
            progress_bar: show one.

        Returns:
            The algorithm itself.

        Raises:
            FloatingPointError: a reward, loss or gradient is not finite.
        """
        super().learn(
            total_timesteps,
            callback,
            log_interval,
            tb_log_name or self.algorithm,
            reset_num_timesteps,
            progress_bar,
        )
        if self.updater.sharding is not None:
            self.policy = self.updater.unshard(self._new_policy)
        return self

    def _setup_learn(self, *args: Any, **kwargs: Any) -> Any:
        result = super()._setup_learn(*args, **kwargs)
        self.processes.agree(self.policy.parameters())
        if self.reference is not None and not getattr(self, "reference_is_set", False):
            if self.kl.reference is None:
                self.reference.follow(self.policy)  # what it is when learning first begins
            self.reference_is_set = True
        if self.processes.sharded:
            self.updater.shard(self.batch_size, self.target_kl)
        return result

    def _new_policy(self) -> Any:
        return self.policy_class(
            self.observation_space, self.action_space, self.lr_schedule, **self.policy_kwargs
        )

    # Prediction

    def _predicted(self, observation: Any, deterministic: bool, masks: Any) -> np.ndarray:
        within = self._masks_to_predict(observation, masks)
        if within is None:
            return super()._predicted(observation, deterministic, None)
        return self._predict_within(within, observation, deterministic)

    @property
    def _env_has_masks(self) -> bool:
        return bool(self.env_masks) and bool(self.policy.config["mask"])

    def _masks_to_predict(
        self, observation: Any, given: np.ndarray | None
    ) -> np.ndarray | Tensor | None:
        """Masks for `predict`; None leaves them to the observation and its space."""
        return given if self.policy.config["mask"] else None

    # Saving

    def get_parameters(self) -> dict[str, dict]:
        """As everywhere in Stable-Baselines3."""
        if self.updater.sharding is None:
            return super().get_parameters()
        own = self.updater.sharding.state()
        names, _ = self._get_torch_save_params()
        return {n: own[n] if n in own else getattr(self, n).state_dict() for n in names}

    def _excluded_save_params(self) -> list[str]:
        ours = ["rollout", "processes", "reference", "updater", "served"]
        return [*super()._excluded_save_params(), *ours]

    def _get_torch_save_params(self) -> tuple[list[str], list[str]]:
        modules, tensors = super()._get_torch_save_params()
        return [*modules, *(["reference"] if self.reference else [])], tensors
