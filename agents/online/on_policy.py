"""The base of the online algorithms: dialogues are played, then learned from as whole sequences.

In shape they are Stable-Baselines3's on-policy algorithms: any VecEnv, its callbacks, its logger,
`learn`, `predict`, `save`, `load`, `evaluate_policy`. An algorithm is what it makes of a rollout
(`collect_rollouts`) and one `loss(batch)`.
"""

from __future__ import annotations

import warnings
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple

import numpy as np
import torch
from gymnasium import spaces
from stable_baselines3.common.callbacks import BaseCallback
from stable_baselines3.common.on_policy_algorithm import OnPolicyAlgorithm
from stable_baselines3.common.policies import ActorCriticPolicy, BasePolicy
from stable_baselines3.common.type_aliases import GymEnv, MaybeCallback, Schedule
from stable_baselines3.common.utils import ConstantSchedule, FloatSchedule
from stable_baselines3.common.vec_env import VecEnv
from torch import Tensor

from agents import updater
from agents.buffers.sequences import Part, SequenceBuffer, Sequences, minibatches
from agents.decoding.replies import Chats
from agents.distributed.processes import Processes
from agents.faults import check_rewards
from agents.models.build import check_same_tokens
from agents.models.cache import to_device
from agents.models.masking import packed_bits
from agents.models.observations import Observed, has_masks
from agents.online.reference import FrozenPolicy, KLControl
from agents.policies.gpt import GPTActorCritic, GPTPolicy
from agents.storage.models import SafeFiles, load
from agents.updater import Compute, Updater
from dialgym.errors import refuse_renamed

RENAMED = {
    "reference_kl": "kl={'coef': ...}",
    "reference_kl_target": "kl={'target': ...}",
    "reference_kl_horizon": "kl={'horizon': ...}",
    "reference_kl_clip": "kl={'clip': ...}",
    "reference_model": "kl={'reference': ...}",
    **updater.RENAMED,
}
"""Arguments of earlier versions, and how they are given now."""


class Batch(NamedTuple):
    """What one forward of an update reads: n decisions within S sequences."""

    tokens: Tensor  # (S, T) int64, PAD at the right
    at: Tensor  # (n,) int64, flat places in (S * T): the token just before each decision
    actions: Tensor  # (n,) int64, what was said
    log_probs: Tensor  # (n,) of the actions when they were said
    advantages: Tensor  # (n,)
    values: Tensor | None  # (n,) as estimated then; None in algorithms without values
    targets: Tensor | None  # (n,) of the values
    reference_log_probs: Tensor | None  # (n,) of the actions under the reference
    allowed: Tensor | None  # (n, V) bool, or its bits (n, ceil(V / 8)) uint8; None: everything
    features: Tensor | None  # (S, F) beside the tokens


@dataclass(frozen=True)
class Rollout:
    """What was played: sequences, and columns (N,) over all N decisions taken within them."""

    sequences: Sequences
    actions: Tensor  # (N,) int64
    log_probs: Tensor  # (N,)
    advantages: Tensor  # (N,)
    values: Tensor | None = None  # (N,)
    targets: Tensor | None = None  # (N,)
    reference_log_probs: Tensor | None = None  # (N,)

    def batch(self, part: Part, advantages: Tensor, allowed: Tensor | None) -> Batch:
        """The decisions of a forward, with `advantages` (N,) in place of the rollout's own."""

        def rows(column: Tensor | None) -> Any:
            return None if column is None else column[part.rows]

        return Batch(
            part.tokens,
            part.at,
            rows(self.actions),
            rows(self.log_probs),
            rows(advantages),
            rows(self.values),
            rows(self.targets),
            rows(self.reference_log_probs),
            allowed,
            part.features,
        )


class SequenceAlgorithm(Chats, SafeFiles, OnPolicyAlgorithm):  # type: ignore[misc]
    """Base of `SequencePPO`, `NLPO` and `GRPO`.

    A subclass plays dialogues and leaves what came of it in `rollout`, and gives the `loss` of its
    decisions. To add one, see `GRPO`.

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
        stats_window_size, tensorboard_log, policy_kwargs, verbose, seed, device: as everywhere in
            Stable-Baselines3.

    Attributes:
        kl_coef: the coefficient of the divergence now, which `kl` may steer.
        reference: the policy that divergence is measured from, or None. It is what learning first
            began with, also in later calls of `learn`; `reference.follow(model.policy)` moves it.

    Raises:
        ValueError: a number or name that cannot be, another policy, or another kind of env.
    """

    policy_aliases: ClassVar[dict[str, type[BasePolicy]]] = {"GPTPolicy": GPTPolicy}
    policy: GPTActorCritic  # type: ignore[assignment]
    rollout_buffer: SequenceBuffer  # type: ignore[assignment]
    rollout: Rollout
    processes: Processes
    updater: Updater
    target_kl: float | None = None
    renamed: ClassVar[Mapping[str, str]] = RENAMED
    process_state: ClassVar[tuple[str, ...]] = (
        "rng",
        "_last_obs",
        "_last_episode_starts",
        "ep_info_buffer",
        "ep_success_buffer",
    )
    """Attributes that each process has for itself, beyond what `save` keeps."""

    def __new__(cls, *args: Any, **kwargs: Any) -> Any:
        """Refuses arguments of earlier versions, whichever class takes them."""
        refuse_renamed(cls.__name__, kwargs, cls.renamed)
        return super().__new__(cls)

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
        stats_window_size: int = 100,
        tensorboard_log: str | None = None,
        policy_kwargs: dict[str, Any] | None = None,
        verbose: int = 0,
        seed: int | None = None,
        device: torch.device | str = "auto",
        _init_setup_model: bool = True,
    ) -> None:
        self._check_counts(batch_size=batch_size, n_epochs=n_epochs)
        self.algorithm = type(self).__name__
        self.batch_size = batch_size
        self.n_epochs = n_epochs
        self.kl = KLControl.of(kl)
        self.kl_coef = self.kl.coef
        self.env_masks = env_masks
        self.compute = Compute.of(compute)
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
            stats_window_size=stats_window_size,
            tensorboard_log=tensorboard_log,
            policy_kwargs=policy_kwargs,
            verbose=verbose,
            seed=seed,
            device=device,
            supported_action_spaces=(spaces.Discrete,),
            _init_setup_model=False,
        )
        if _init_setup_model:
            self._setup_model()

    def _check_counts(self, **counts: int) -> None:
        for name, number in counts.items():
            if number < 1:
                raise ValueError(f"{type(self).__name__}: {name} must be at least 1, got {number}")

    def _setup_model(self) -> None:
        self.processes = Processes(self.device)
        super()._setup_model()
        self.ent_coef = FloatSchedule(self.ent_coef)  # type: ignore[assignment]
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
        self.reference = self._make_reference() if self.kl.coef else None
        self._separate_randomness()
        known = self.policy.masker is not None or has_masks(self.observation_space)
        if self.env_masks is None and self.env is not None:
            self.env_masks = not known and self.env.has_attr("action_masks")

    def _make_reference(self) -> FrozenPolicy:
        """What learning begins with, or the model at `kl.reference`, whose weights we then keep.

        Its constructor's arguments are saved, so that our file can be loaded without that one.
        """
        if self.kl.reference is None:
            return FrozenPolicy(self.policy)
        if not hasattr(self, "reference_made_by"):
            other = load(self.kl.reference, device=self.device).policy
            who = f"reference {str(self.kl.reference)!r}"
            check_same_tokens(self.observation_space, other.observation_space, who)
            arguments = other._get_constructor_parameters()
            arguments["lr_schedule"] = ConstantSchedule(0.0)  # the policy's own is no data
            self.reference_made_by = type(other), arguments
        else:
            kind, arguments = self.reference_made_by
            other = kind(**arguments).to(self.device)
        return FrozenPolicy(other, share=False)

    def _separate_randomness(self) -> None:
        """Dialogues, samples and minibatches differ between processes; weights do not."""
        seed, rank = self.seed or 0, self.processes.rank
        self.rng = np.random.default_rng([seed, rank])
        if rank:
            torch.manual_seed(int(self.rng.integers(2**31)))
            if self.env is not None:
                self.env.seed(seed + rank * self.n_envs)

    @property
    def _where(self) -> str:
        """Learner and time, for errors."""
        return f"{type(self).__name__} at timestep {self.num_timesteps}"

    # Learning: rollout, update, rollout ...

    def learn(
        self,
        total_timesteps: int,
        callback: MaybeCallback = None,
        log_interval: int = 1,
        tb_log_name: str | None = None,
        reset_num_timesteps: bool = True,
        progress_bar: bool = False,
    ) -> Any:
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

    # The rollout

    def _step(
        self, env: VecEnv, callback: BaseCallback, playing: np.ndarray | None = None
    ) -> dict[int, dict[str, Any]] | None:
        """Say one token in each dialogue, or each of those `playing`, and keep what came of it.

        Rows that rest are not read, and what their env makes of a token of no meaning is not seen.
        Two transfers wait for the device: the check of the probabilities, and the results.

        Returns:
            The infos of the dialogues that ended, by row; None when a callback asked to stop.
        """
        assert self._last_obs is not None
        everything = Observed.of(self._last_obs)
        rows = np.arange(env.num_envs) if playing is None else np.flatnonzero(playing)
        seen = everything if len(rows) == env.num_envs else everything.part(rows)
        with torch.no_grad(), self.updater.precision():
            masks = self._masks(env, seen)
            sampled, values, log_probs = self.policy(seen, action_masks=masks)
            results = torch.stack([sampled.float(), values[:, 0].float(), log_probs.float()])
        said, values, log_probs = results.cpu().numpy()  # token ids are exact in float32

        def of_all(numbers: Any, dtype: Any = np.float32) -> np.ndarray:
            filled = np.zeros((env.num_envs, *numbers.shape[1:]), dtype)
            filled[rows] = numbers
            return filled

        actions = of_all(said, np.int64)
        new_obs, rewards, dones, infos = env.step(actions)
        if len(rows) < env.num_envs:
            dones = of_all(dones[rows], bool)
            infos = [info if on else {} for info, on in zip(infos, playing)]  # type: ignore[arg-type]
        rewards = of_all(np.asarray(rewards)[rows])
        check_rewards(rewards, self._where)
        self.num_timesteps += len(rows) * self.processes.count
        callback.update_locals(locals())
        if not callback.on_step():
            return None
        self._update_info_buffer(infos, dones)
        step = {
            "actions": actions,
            "values": of_all(values),
            "log_probs": of_all(log_probs),
            "rewards": rewards,
            "dones": dones,
        }
        if masks is not None:
            step["masks"] = self._kept_masks(masks, rows, env.num_envs)
        starts = np.asarray(self._last_episode_starts, bool)
        features = None if everything.features is None else everything.features.numpy()
        tokens, lengths = everything.tokens.numpy(), everything.lengths
        self.rollout_buffer.add(tokens, lengths, starts, playing, features, **step)
        self._last_obs, self._last_episode_starts = new_obs, dones  # type: ignore[assignment]
        return {row: infos[row] for row in np.flatnonzero(dones).tolist()}

    def _masks(self, env: VecEnv, seen: Observed) -> np.ndarray | Tensor | None:
        """What may be said (b, V) bool and has to be kept; None leaves it to the automaton."""
        if self.env_masks:
            indices = None if seen.rows is None else seen.rows.tolist()
            return np.stack(env.env_method("action_masks", indices=indices)).astype(bool)
        return seen.allowed if self._keeps_masks else None

    @property
    def _keeps_masks(self) -> bool:
        """Whether `_masks` gives any."""
        carried = has_masks(self.observation_space) and self.policy.config["mask"]
        return bool(self.env_masks) or carried

    def _kept_masks(self, masks: Any, rows: np.ndarray, total: int) -> Any:
        """Bits (total, ceil(V / 8)) of masks (b, V) of the `rows`, on the side where they are."""
        packed = packed_bits(torch.as_tensor(masks))
        if len(rows) == total:
            return packed
        kept = packed.new_zeros(total, packed.shape[1])
        kept[to_device(rows, packed.device)] = packed
        return kept

    def _sequences(self, keep: np.ndarray) -> Sequences:
        """The rollout's sequences, with what the update asks of every decision as columns."""
        buffer = self.rollout_buffer
        stored = {"actions": buffer.steps("actions"), "log_probs": buffer.steps("log_probs")}
        if self._keeps_masks:
            stored["masks"] = buffer.steps("masks")
        sequences = buffer.sequences(keep, self.device, **stored)
        if not self._keeps_masks and self.policy.masker is not None:
            sequences.add_states(self.policy.masker)
        if self.compute.autocast:
            # A cached step rounds otherwise than a whole forward; ratios must start at one.
            sequences.columns["log_probs"] = self._all_log_probs(
                sequences, self.policy.sequence_log_prob
            )
        return sequences

    def _reference_log_probs(self, sequences: Sequences) -> Tensor | None:
        """Of the actions (N,) under the reference; None without one."""
        if self.reference is None:
            return None
        return self._all_log_probs(sequences, self.reference.log_prob)

    @torch.no_grad()
    def _all_log_probs(self, sequences: Sequences, log_prob: Callable[..., Tensor]) -> Tensor:
        """Log-probability (N,) of every decision, in order."""
        result = torch.empty(len(sequences), device=self.device)
        for part in sequences.parts(np.arange(len(sequences.sizes)), self.updater.most_tokens):
            actions = sequences.columns["actions"][part.rows]
            allowed = self._allowed(sequences, part.rows)
            with self.updater.precision():
                result[part.rows] = log_prob(part.tokens, part.at, actions, allowed, part.features)
        return result

    def _allowed(self, sequences: Sequences, rows: Tensor) -> Tensor | None:
        """What could be said at the decisions `rows` (n,), as `Batch.allowed`."""
        if self._keeps_masks:
            return sequences.columns["masks"][rows]
        if self.policy.masker is not None:
            return self.policy.masker.allowed[sequences.columns["states"][rows]]
        return None

    # The update

    def loss(self, batch: Batch) -> tuple[Tensor, dict[str, Tensor]]:
        """Loss (n,) of each decision, whose mean is minimised, and metrics (n,) to be logged."""
        raise NotImplementedError

    def train(self) -> None:
        """Improve the policy with the last rollout, in `n_epochs` passes over its dialogues."""
        self.policy.set_training_mode(True)
        self._update_learning_rate(self.policy.optimizer)
        logs: dict[str, list[float]] = defaultdict(list)
        with self.updater.improving():
            for _ in range(self.n_epochs):
                going_on = self._epoch(logs)
                self._n_updates += 1
                if not going_on:
                    break
        for name, values in logs.items():
            self.logger.record(f"train/{name}", float(np.mean(values)))
        self.logger.record("train/n_updates", self._n_updates, exclude="tensorboard")
        self._steer()

    def _epoch(self, logs: dict[str, list[float]]) -> bool:
        """One pass over the rollout; False when the policy has moved too far from the old one."""
        sequences = self.rollout.sequences
        [decisions] = self.processes.sums(len(sequences))
        count = max(1, round(decisions / (self.batch_size * self.processes.count)))
        for chosen in minibatches(sequences.sizes, count, self.rng):
            metrics = self.updater.backward(
                self.loss,
                self.batches(chosen),
                int(sequences.sizes[chosen].sum()),
                spare=lambda: self._batch(sequences.shortest(), self.rollout.advantages),
            )
            too_far = self.target_kl is not None and metrics["approx_kl"] > 1.5 * self.target_kl
            if not too_far:
                metrics |= self.updater.step()
            for name, value in metrics.items():
                logs[name].append(value)
            if too_far:
                return False
        return True

    def batches(self, chosen: np.ndarray) -> Iterator[Batch]:
        """The sequences `chosen` (s,) of the rollout: a minibatch, in pieces that fit in memory."""
        sequences = self.rollout.sequences
        advantages = self._minibatch_advantages(sequences.decisions(chosen))
        for part in sequences.parts(chosen, self.updater.most_tokens):
            yield self._batch(part, advantages)

    def _batch(self, part: Part, advantages: Tensor) -> Batch:
        allowed = self._allowed(self.rollout.sequences, part.rows)
        return self.rollout.batch(part, advantages, allowed)

    def _minibatch_advantages(self, rows: Tensor) -> Tensor:
        """Advantages (N,) for a minibatch of the decisions `rows`; the others are not looked at."""
        return self.rollout.advantages

    def _steer(self) -> None:
        """Log the divergence of the rollout and the coefficient that it was learned with; steer."""
        if self.rollout.reference_log_probs is None:
            return
        kl = self.rollout.log_probs - self.rollout.reference_log_probs
        total, count = self.processes.sums(float(kl.sum()), len(kl))
        mean = total / max(count, 1)
        self.logger.record("reference/kl", mean)
        self.logger.record("reference/kl_coef", self.kl_coef)
        self.kl_coef = self.kl.steered(self.kl_coef, mean, int(count))

    # Playing

    def predict(
        self,
        observation: Any,
        state: tuple[np.ndarray, ...] | None = None,
        episode_start: np.ndarray | None = None,
        deterministic: bool = False,
        action_masks: np.ndarray | None = None,
    ) -> tuple[np.ndarray, tuple[np.ndarray, ...] | None]:
        """The next tokens.

        Where only the env knows what may be said, it warns once when it is given no masks.

        Args:
            observation: (n_envs, L), or (L,), or a mapping of such arrays, as the space has it.
            state, episode_start: as everywhere in Stable-Baselines3; not used.
            deterministic: the likeliest token, else one drawn.
            action_masks: (n_envs, V), or (V,), what may be said, where the caller knows more than
                the observation space. A policy made with `mask=False` takes no notice.
        """
        if self.env_masks and action_masks is None and self.policy.config["mask"]:
            self._warn_unmasked()
        masks = self._masks_to_predict(observation, action_masks)
        if masks is None:
            return super().predict(observation, state, episode_start, deterministic)
        self.policy.set_training_mode(False)
        tokens, vectorized = self.policy.obs_to_tensor(observation)
        with torch.no_grad():
            actions = self.policy._predict(tokens, deterministic, masks).cpu().numpy()
        return (actions if vectorized else actions.squeeze(0)), state

    def _warn_unmasked(self) -> None:
        if getattr(self, "_warned_unmasked", False):
            return
        self._warned_unmasked = True
        warnings.warn(
            f"{self.algorithm} learned within masks that only its env knows, and predict was given "
            "none: it may say what is forbidden. Pass action_masks=env.action_masks(), play with "
            "dialgym.evaluate, or train with observations that carry the masks "
            "(dialgym.MaskedObservation).",
            stacklevel=3,
        )

    def _masks_to_predict(
        self, observation: Any, given: np.ndarray | None
    ) -> np.ndarray | Tensor | None:
        """What `predict` lets the policy say; None leaves it to the observation and its space."""
        return given if self.policy.config["mask"] else None

    # Saving

    def save(self, *args: Any, **kwargs: Any) -> None:
        """See `agents.save`; with shared weights, while they are gathered.

        Raises FloatingPointError for weights that have overflowed, before anything is written.
        """
        self.updater.check_weights()
        self.updater_state = self.updater.state_dict()
        super().save(*args, **kwargs)

    def get_parameters(self) -> dict[str, dict]:
        """As everywhere in Stable-Baselines3."""
        if self.updater.sharding is None:
            return super().get_parameters()
        own = self.updater.sharding.state()
        names, _ = self._get_torch_save_params()
        return {n: own[n] if n in own else getattr(self, n).state_dict() for n in names}

    def _excluded_save_params(self) -> list[str]:
        ours = ["rollout", "processes", "reference", "updater", "_warned_unmasked"]
        return [*super()._excluded_save_params(), *ours]

    def _get_torch_save_params(self) -> tuple[list[str], list[str]]:
        modules, tensors = super()._get_torch_save_params()
        return [*modules, *(["reference"] if self.reference else [])], tensors
