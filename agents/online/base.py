"""What the sequence algorithms share: the rollout, and the update by whole sequences.

In shape they are Stable-Baselines3's on-policy algorithms: any VecEnv, its callbacks, its logger,
`learn`, `predict`, `save`, `load`, `evaluate_policy`.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import torch
from gymnasium import spaces
from stable_baselines3.common.callbacks import BaseCallback
from stable_baselines3.common.on_policy_algorithm import OnPolicyAlgorithm
from stable_baselines3.common.policies import ActorCriticPolicy, BasePolicy
from stable_baselines3.common.type_aliases import GymEnv, Schedule
from stable_baselines3.common.utils import ConstantSchedule, FloatSchedule
from stable_baselines3.common.vec_env import VecEnv
from torch import Tensor

from agents.buffers.sequences import SequenceBuffer, Sequences
from agents.decoding.replies import Chats
from agents.distributed.processes import Processes
from agents.faults import check_rewards
from agents.models.build import check_same_tokens
from agents.models.masking import packed_bits
from agents.models.prefixes import left_aligned, lengths_of
from agents.online.reference import KLControl, Reference
from agents.online.update import SequenceUpdate
from agents.policies.gpt import GPTActorCritic, GPTPolicy
from agents.storage.models import SafeFiles, load
from agents.updater import Compute, Updater

FIXED: Mapping[str, float] = {"gamma": 1.0, "gae_lambda": 1.0, "vf_coef": 0.0}
COMMON: dict[str, Any] = {
    "use_sde": False,
    "sde_sample_freq": -1,
    "rollout_buffer_class": SequenceBuffer,
    "supported_action_spaces": (spaces.Discrete,),
    "_init_setup_model": False,
}


class SequenceAlgorithm(Chats, SequenceUpdate, SafeFiles, OnPolicyAlgorithm):
    """Base of `SequencePPO` and `GRPO`.

    A subclass collects a rollout into `self.sequences` and gives the loss of its decisions.

    Args:
        policy: `agents.GPTPolicy`, or its name.
        env: any env or VecEnv of token windows.
        learning_rate: a number or a schedule.
        n_steps: tokens said in each dialogue from one update to the next, or at most.
        batch_size: decisions of a minibatch, about: minibatches are made of whole dialogues. With
            several processes, of each.
        n_epochs: passes over a rollout.
        clip_range: of the probability ratio; a number or a schedule.
        ent_coef: weight of the entropy; a number or a schedule.
        max_grad_norm: largest norm of a gradient.
        target_kl: a rollout's update stops when the policy is 1.5 times as far from the old one.
        reference_kl: price of a nat of divergence from the policy that learning began with, or
            from `reference_model`; 0 keeps no reference.
        reference_kl_target: divergence, in nats a token, that the price is steered towards
            (`KLControl`); None keeps the price.
        reference_kl_horizon: tokens in which the price follows; None goes by rollouts.
        reference_kl_clip: the largest relative error that moves the price.
        reference_model: a saved agent to stay near, such as a cloned one; its network may be
            another, its tokens may not. None is the policy that learning begins with.
        env_masks: ask the env for its `action_masks` at every step. None does so where the
            observation space has no automaton and the env has masks.
        compute: precision and memory of an update, see `Compute`.
        stats_window_size, tensorboard_log, policy_kwargs, verbose, seed, device: as everywhere in
            Stable-Baselines3.
        hyperparameters: of `OnPolicyAlgorithm`, set by the subclass.

    Raises:
        ValueError: a number or name that cannot be, another policy, or another kind of env.
    """

    policy_aliases: ClassVar[dict[str, type[BasePolicy]]] = {"GPTPolicy": GPTPolicy}
    policy: GPTActorCritic  # type: ignore[assignment]
    rollout_buffer: SequenceBuffer  # type: ignore[assignment]
    sequences: Sequences
    processes: Processes
    process_state: ClassVar[tuple[str, ...]] = (
        "rng",
        "_last_obs",
        "_last_episode_starts",
        "ep_info_buffer",
        "ep_success_buffer",
    )
    """Attributes that each process has for itself, beyond what `save` keeps."""

    def __init__(
        self,
        policy: str | type[ActorCriticPolicy],
        env: GymEnv | str,
        learning_rate: float | Schedule = 3e-4,
        n_steps: int = 128,
        batch_size: int = 1024,
        n_epochs: int = 4,
        clip_range: float | Schedule = 0.2,
        ent_coef: float | Schedule = 0.0,
        max_grad_norm: float = 0.5,
        target_kl: float | None = None,
        reference_kl: float = 0.0,
        reference_kl_target: float | None = None,
        reference_kl_horizon: int | None = None,
        reference_kl_clip: float = 0.2,
        reference_model: str | Path | None = None,
        env_masks: bool | None = None,
        compute: Compute | Mapping[str, Any] | None = None,
        stats_window_size: int = 100,
        tensorboard_log: str | None = None,
        policy_kwargs: dict[str, Any] | None = None,
        verbose: int = 0,
        seed: int | None = None,
        device: torch.device | str = "auto",
        _init_setup_model: bool = True,
        hyperparameters: Mapping[str, float] = FIXED,
    ) -> None:
        for name, number in {"batch_size": batch_size, "n_epochs": n_epochs}.items():
            if number < 1:
                raise ValueError(f"{type(self).__name__}: {name} must be at least 1, got {number}")
        self.algorithm = type(self).__name__  # for whoever loads the file
        self.batch_size = batch_size
        self.n_epochs = n_epochs
        self.target_kl = target_kl
        self.kl_control = KLControl(
            reference_kl, reference_kl_target, reference_kl_horizon, reference_kl_clip
        )
        self.reference_model = reference_model and str(reference_model)
        self.env_masks = env_masks
        self.compute = Compute.of(compute)
        self.clip_range = clip_range
        super().__init__(
            policy,
            env,
            learning_rate=learning_rate,
            n_steps=n_steps,
            ent_coef=ent_coef,  # type: ignore[arg-type]
            max_grad_norm=max_grad_norm,
            stats_window_size=stats_window_size,
            tensorboard_log=tensorboard_log,
            policy_kwargs=policy_kwargs,
            verbose=verbose,
            seed=seed,
            device=device,
            **{**FIXED, **hyperparameters, **COMMON},
        )
        if _init_setup_model:
            self._setup_model()

    def _setup_model(self) -> None:
        self.processes = Processes(self.device)
        super()._setup_model()
        self.ent_coef = FloatSchedule(self.ent_coef)  # type: ignore[assignment]
        self.clip_range = FloatSchedule(self.clip_range)
        if not isinstance(self.policy, GPTActorCritic):
            raise ValueError(
                f"{self.algorithm}: expected a GPT policy (agents.GPTPolicy), whose update reads "
                f"whole sequences; got {type(self.policy).__name__}. Stock PPO takes any policy."
            )
        self.updater = Updater(
            self.policy, self.processes, self.compute, self.max_grad_norm, lambda: self._where
        )
        self.updater.load_state_dict(getattr(self, "updater_state", {"scaler": {}}))
        if self.env is not None:  # that of a loaded model may be another than it learned in
            check_same_tokens(self.observation_space, self.env.observation_space, "the env")
        self.reference = self._make_reference() if self.kl_control.coefficient else None
        self._separate_randomness()
        if self.env_masks is None and self.env is not None:
            self.env_masks = self.policy.masker is None and self.env.has_attr("action_masks")

    def _make_reference(self) -> Reference:
        """What learning begins with, or the model at `reference_model`, whose weights we then keep.

        Its constructor's arguments are saved, so that our file can be loaded without that one.
        """
        if self.reference_model is None:
            return Reference.beginning(self.policy)
        if not hasattr(self, "reference_made_by"):
            other = load(self.reference_model, device=self.device).policy
            who = f"reference_model {self.reference_model!r}"
            check_same_tokens(self.observation_space, other.observation_space, who)
            arguments = other._get_constructor_parameters()
            arguments["lr_schedule"] = ConstantSchedule(0.0)  # the policy's own is no data
            self.reference_made_by = type(other), arguments
        else:
            kind, arguments = self.reference_made_by
            other = kind(**arguments).to(self.device)
        return Reference(other.backbone, other.policy_head)

    def _separate_randomness(self) -> None:
        """Dialogues, samples and minibatches differ between processes; weights do not."""
        seed, rank = self.seed or 0, self.processes.rank
        self.rng = np.random.default_rng([seed, rank])
        if rank:
            torch.manual_seed(int(self.rng.integers(2**31)))
            if self.env is not None:
                self.env.seed(seed + rank * self.n_envs)

    def predict(
        self,
        observation: Any,
        state: tuple[np.ndarray, ...] | None = None,
        episode_start: np.ndarray | None = None,
        deterministic: bool = False,
        action_masks: np.ndarray | None = None,
    ) -> tuple[np.ndarray, tuple[np.ndarray, ...] | None]:
        """The next tokens.

        Args:
            observation: (n_envs, L), or (L,).
            state, episode_start: as everywhere in Stable-Baselines3; not used.
            deterministic: the likeliest token, else one drawn.
            action_masks: (n_envs, V), or (V,), what may be said, where the caller knows more than
                the observation space. A policy made with `mask=False` takes no notice.
        """
        masks = self._masks_to_predict(observation, action_masks)
        if masks is None:
            return super().predict(observation, state, episode_start, deterministic)
        self.policy.set_training_mode(False)
        tokens, vectorized = self.policy.obs_to_tensor(observation)
        with torch.no_grad():
            actions = self.policy._predict(tokens, deterministic, masks).cpu().numpy()
        return (actions if vectorized else actions.squeeze(0)), state

    def _masks_to_predict(
        self, observation: Any, given: np.ndarray | None
    ) -> np.ndarray | Tensor | None:
        """What `predict` lets the policy say; None leaves it to the observation space."""
        return given if self.policy.config["mask"] else None

    # Saving

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
        """As everywhere in Stable-Baselines3; with shared weights, while they are gathered.

        Raises FloatingPointError for weights that have overflowed, before anything is written.
        """
        self.updater.check_weights()
        self.updater_state = self.updater.state_dict()
        super().save(path, exclude, include)

    def get_parameters(self) -> dict[str, dict]:
        """As everywhere in Stable-Baselines3."""
        if self.updater.sharding is None:
            return super().get_parameters()
        own = self.updater.sharding.state()
        names, _ = self._get_torch_save_params()
        return {n: own[n] if n in own else getattr(self, n).state_dict() for n in names}

    def _excluded_save_params(self) -> list[str]:
        return [*super()._excluded_save_params(), "sequences", "processes", "reference", "updater"]

    def _get_torch_save_params(self) -> tuple[list[str], list[str]]:
        modules, tensors = super()._get_torch_save_params()
        return [*modules, *(["reference"] if self.reference else [])], tensors

    # The rollout

    def _setup_learn(self, *args: Any, **kwargs: Any) -> Any:
        result = super()._setup_learn(*args, **kwargs)
        self.processes.agree(self.policy.parameters())
        if self.reference and self.reference_model is None and self.num_timesteps == 0:
            self.reference.follow(self.policy)  # what it is when learning begins
        if self.processes.sharded:
            self.updater.shard(self.batch_size, self.target_kl)
        return result

    def _step(self, env: VecEnv, callback: BaseCallback) -> dict[int, dict[str, Any]] | None:
        """Say one token in each dialogue and keep what came of it.

        Returns:
            The infos of the dialogues that ended, by row; None when a callback asked to stop.
        """
        assert self._last_obs is not None
        with torch.no_grad(), self.updater.precision():
            tokens = self._tokens(self._last_obs)
            lengths = lengths_of(tokens)
            masks = self._masks(env, tokens)
            sampled, values, log_probs = self.policy(tokens, action_masks=masks)
        actions = sampled.cpu().numpy()
        new_obs, rewards, dones, infos = env.step(actions)
        check_rewards(rewards, self._where)
        self.num_timesteps += env.num_envs * self.processes.count
        callback.update_locals(locals())
        if not callback.on_step():
            return None
        self._update_info_buffer(infos, dones)
        step = {
            "actions": actions,
            "values": values.float().cpu().numpy()[:, 0],
            "log_probs": log_probs.float().cpu().numpy(),
            "rewards": np.asarray(rewards, np.float32),
            "dones": dones,
        }
        if masks is not None:
            step["masks"] = packed_bits(masks).cpu().numpy()
        starts = np.asarray(self._last_episode_starts, bool)
        self.rollout_buffer.add(tokens.cpu().numpy(), lengths.cpu().numpy(), starts, **step)
        self._last_obs, self._last_episode_starts = new_obs, dones  # type: ignore[assignment]
        return {row: infos[row] for row in np.flatnonzero(dones).tolist()}

    def _masks(self, env: VecEnv, tokens: Tensor) -> Tensor | None:
        """What may be said (n_envs, V) bool and has to be kept; None leaves it to the policy."""
        if not self.env_masks:
            return None
        return torch.as_tensor(np.stack(env.env_method("action_masks")), device=self.device).bool()

    @property
    def _keeps_masks(self) -> bool:
        """Whether `_masks` gives any."""
        return bool(self.env_masks)

    def _tokens(self, observations: Any) -> Tensor:
        """Observations as the policy reads them: padding at the right, wherever the env has it."""
        return left_aligned(torch.as_tensor(observations, device=self.device))

    def _values_of(self, observations: np.ndarray) -> np.ndarray:
        """Values (b,) of observations (b, L) that have nothing to do with one another."""
        tokens = self._tokens(observations)
        ends = lengths_of(tokens)
        tokens = tokens[:, : int(ends.max())].long()
        at = torch.arange(len(ends), device=self.device) * tokens.shape[1] + ends - 1
        with torch.no_grad(), self.updater.precision():
            values, _, _ = self.policy.evaluate_sequences(tokens, at, torch.zeros_like(at))
        return values.float().cpu().numpy()

    def _make_sequences(self, keep: np.ndarray, **columns: np.ndarray) -> Sequences:
        """The rollout's sequences, and what the update asks of every decision."""
        buffer = self.rollout_buffer
        stored = {"actions": buffer.steps("actions"), "log_probs": buffer.steps("log_probs")}
        if self._keeps_masks:
            stored["masks"] = buffer.steps("masks")
        sequences = buffer.sequences(keep, self.device, **stored, **columns)
        if not self._keeps_masks and self.policy.masker is not None:
            sequences.add_states(self.policy.masker)
        if self.compute.autocast:
            # A cached step rounds otherwise than a whole forward; ratios must start at one.
            sequences.columns["log_probs"] = self._all_log_probs(sequences, self.policy)
        if self.reference:
            sequences.columns["reference"] = self._all_log_probs(sequences, self.reference)
        return sequences

    @torch.no_grad()
    def _all_log_probs(self, sequences: Sequences, model: GPTActorCritic | Reference) -> Tensor:
        """Log-probability (N,) of every decision under `model`, in order."""
        result = torch.empty(len(sequences), device=self.device)
        for part in sequences.parts(np.arange(len(sequences.sizes)), self.updater.most_tokens):
            actions = sequences.columns["actions"][part.rows]
            log_prob = model.log_prob if isinstance(model, Reference) else model.sequence_log_prob
            with self.updater.precision():
                result[part.rows] = log_prob(
                    part.tokens, part.at, actions, self._allowed(sequences, part.rows)
                )
        return result

    def _steer(self) -> Tensor:
        """Nats (N,) from the reference at every decision; they move the price for later ones."""
        columns, price = self.sequences.columns, self.kl_control.coefficient
        kl = columns["log_probs"] - columns["reference"]
        total, count = self.processes.sums(float(kl.sum()), len(kl))
        self.kl_control.update(total / max(count, 1), int(count))
        self.logger.record("reference/kl", total / max(count, 1))
        self.logger.record("reference/coefficient", price)
        return kl
