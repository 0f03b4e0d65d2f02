"""DQN of Stable-Baselines3 with masks, and with what made it better since."""

from __future__ import annotations

from typing import Any, ClassVar, Unpack

import numpy as np
import stable_baselines3
import torch
from gymnasium import spaces
from stable_baselines3.common.policies import BasePolicy
from torch import Tensor
from torch.nn.functional import smooth_l1_loss

from agents.acts.base import ExplorationOptions, ReplayLearner, ReplayOptions
from agents.acts.q_network import QPolicy, count_heads, in_mode
from agents.buffers.masked_replay import MaskedReplayBuffer, Transitions
from agents.models.act_masks import (
    allowed,
    allowed_at_the_end,
    masked,
    random_acts,
    random_below,
)
from agents.updater import check_rewards


class StepOptions(ReplayOptions, total=False):
    """Arguments of `stable_baselines3.DQN` that all of our kin hand on."""

    learning_starts: int
    batch_size: int
    tau: float
    train_freq: int | tuple[int, str]
    n_steps: int
    target_update_interval: int


class StockOptions(StepOptions, ExplorationOptions, total=False):
    """Arguments of `stable_baselines3.DQN`, but for those of its buffer."""


class DQNOptions(StepOptions, total=False):
    """Arguments of `DQN`, the rates of exploration aside."""

    double: bool
    priority_alpha: float
    priority_beta: float
    reward_scale: float
    head_probability: float
    kl_coef: float


class DQN(ReplayLearner, stable_baselines3.DQN):  # type: ignore[misc]
    """Deep Q-learning within masks, of any env with `Discrete` acts and observations of one array.

    y = r_t + ... + gamma^n max_a Q'(s_t+n, a), over the acts that s_t+n allows; the loss is Huber's
    of y - Q(s_t, a_t). A truncated episode is bootstrapped, with the mask of its last observation
    where infos have it (`action_masks=True`), else with that which its last act was chosen within,
    since its env has begun another one. So is one that a new call of `learn` breaks off.

    Networks are those of `QPolicy`: dueling, NoisyNet, dropout, concrete dropout, bootstrapped
    heads, each of which has targets of its own. Uncertain ones explore by what they are uncertain
    of, beside which `exploration_initial_eps=exploration_final_eps=0` is usual. Targets of NoisyNet
    are those of its mean weights, where the paper draws noise for them, too.

    Sources: Mnih et al. (2015); van Hasselt et al. (2016); Schaul et al. (2016); Osband et al.
    (2016); Fortunato et al. (2018). PyDial's has Polyak targets (`tau=0.02,
    target_update_interval=1`), of which its benchmark takes the single ones.

    Args:
        policy: `agents.QPolicy`, or "MlpPolicy".
        env: to learn in.
        double: the online network chooses the act whose target value is taken.
        priority_alpha: see `MaskedReplayBuffer`; 0 draws transitions all alike.
        priority_beta: how much of the bias of such draws is taken away; 1 is reached linearly.
        reward_scale: what rewards are multiplied by before they are learned from. Where a dialogue
            can be given up at any time, small ones leave Q of acts that have not been tried above
            that of giving up for longer.
        head_probability: that a head of a bootstrapped network learns from a transition.
        kl_coef: weight of the divergence of variational weights ("bayes", "concrete") from their
            prior, of which each transition in memory bears its share: the variance of the noise
            that targets are taken to have.
        kwargs: further arguments of `stable_baselines3.DQN`, among them `n_steps`.

    Raises:
        ValueError: other observations or actions, a number that cannot be, or curiosity with
            `n_steps` of more than one.
    """

    policy_aliases: ClassVar[dict[str, type[BasePolicy]]] = {"MlpPolicy": QPolicy}
    policy: QPolicy
    replay_buffer: MaskedReplayBuffer  # type: ignore[assignment]

    def __init__(
        self,
        policy: str | type[BasePolicy],
        env: Any,
        *,
        double: bool = True,
        priority_alpha: float = 0.0,
        priority_beta: float = 0.4,
        reward_scale: float = 1.0,
        head_probability: float = 0.5,
        kl_coef: float = 0.01,
        **kwargs: Unpack[StockOptions],
    ) -> None:
        self.double, self.kl_coef, self.reward_scale = double, kl_coef, reward_scale
        self.priority_alpha, self.priority_beta = priority_alpha, priority_beta
        self.head_probability = head_probability
        self._masks = np.ones((0, 0), bool)  # (n_envs, A), of `_last_obs`
        self._heads = np.zeros(0, np.int64)  # (n_envs,), that each dialogue is held by
        super().__init__(policy, env, **kwargs)  # type: ignore[arg-type]

    def _setup_model(self) -> None:
        """With a buffer of our own, which reads `n_steps` too."""
        if isinstance(self.observation_space, spaces.Dict):
            raise ValueError(
                f"{type(self).__name__}: expected observations of one array, got "
                f"{self.observation_space}; stock-dqn takes dicts"
            )
        self.replay_buffer = self._make_buffer()  # Stable-Baselines3 then makes none
        super()._setup_model()
        self.replay_buffer_class = None
        if self.n_steps > 1 and self.policy.curiosity is not None:
            raise ValueError(
                f"{type(self).__name__}: expected n_steps=1 with curiosity, whose reward is that "
                f"of one step; got {self.n_steps}. Leave one of the two out."
            )

    def _make_buffer(self) -> MaskedReplayBuffer:
        self._n_heads = count_heads(**self.policy_kwargs)
        return MaskedReplayBuffer(
            self.buffer_size,
            self.observation_space,
            self.action_space,
            device=self.device,
            n_envs=self.n_envs,
            n_steps=self.n_steps,
            gamma=self.gamma,
            n_heads=self._n_heads,
            head_probability=self.head_probability if self._n_heads > 1 else 1.0,
            alpha=self.priority_alpha,
        )

    # Acting

    def _setup_learn(self, *args: Any, **kwargs: Any) -> Any:
        """Dialogues that the env begins again are not gone on with in the memory."""
        if self._begins_again(*args, **kwargs):
            self.replay_buffer.close_episodes()
        found = super()._setup_learn(*args, **kwargs)
        self._masks = allowed(self.env)  # type: ignore[arg-type]
        if len(self._heads) != self.n_envs:
            self._heads = self._draw_heads()
        return found

    def _draw_heads(self) -> np.ndarray:
        return random_below(self._n_heads, self.n_envs)

    def _sample_action(
        self, learning_starts: int, action_noise: Any = None, n_envs: int = 1
    ) -> tuple[np.ndarray, np.ndarray]:
        """Acts (n_envs,) for the env, and for the buffer."""
        if self.num_timesteps < learning_starts:
            acts = random_acts(self._masks)
        else:
            seen, _ = self.policy.obs_to_tensor(self._last_obs)  # type: ignore[arg-type]
            acts = self.policy.explore(seen, self._masks, self.exploration_rate, self._heads)
        return acts, acts

    def _store_transition(
        self,
        replay_buffer: Any,
        buffer_action: np.ndarray,
        new_obs: Any,
        reward: np.ndarray,
        dones: np.ndarray,
        infos: list[dict[str, Any]],
    ) -> None:
        """With the masks of the next states; of an ended episode, whose env shows another one's.

        Raises FloatingPointError for rewards that are not finite, before they are kept.
        """
        check_rewards(reward, self._where)
        after = allowed(self.env)  # type: ignore[arg-type]
        last = allowed_at_the_end(self._masks, infos, self.action_space)
        replay_buffer.expect(np.where(dones[:, None], last, after))
        super()._store_transition(replay_buffer, buffer_action, new_obs, reward, dones, infos)
        self._masks = after
        if dones.any():
            self._heads = np.where(dones, self._draw_heads(), self._heads)

    def _predicted(self, observation: Any, deterministic: bool, masks: Any) -> np.ndarray:
        rate = self.exploration_rate
        return self.policy.predict(observation, None, None, deterministic, masks, rate)[0]

    def q_distribution(self, obs: np.ndarray, samples: int = 32) -> tuple[np.ndarray, ...]:
        """Mean and standard deviation of Q, each (n, A); see `QPolicy.q_distribution`.

        Of the env's rewards, whatever `reward_scale` they were learned at.
        """
        mean, deviation = self.policy.q_distribution(obs, samples)
        return mean / self.reward_scale, deviation / self.reward_scale

    # Learning

    def train(self, gradient_steps: int, batch_size: int = 100) -> None:
        """Descend on so many minibatches."""
        self.policy.set_training_mode(True)
        self._update_learning_rate(self.policy.optimizer)
        beta = 1 - (1 - self.priority_beta) * self._current_progress_remaining
        for _ in range(gradient_steps):
            batch = self.replay_buffer.sample(batch_size, self._vec_normalize_env, beta)
            loss, errors = self.loss(batch)
            self.descend(self.policy.optimizer, loss)
            self.replay_buffer.update_priorities(batch.places, errors.cpu().numpy())
            self.logger.record_mean("train/loss", loss.item())
        self._n_updates += gradient_steps
        self.logger.record("train/n_updates", self._n_updates, exclude="tensorboard")

    def loss(self, batch: Transitions) -> tuple[Tensor, Tensor]:
        """The loss () of a minibatch, and the size (n,) of its errors."""
        batch = batch._replace(rewards=batch.rewards * self.reward_scale)
        more: Tensor | float = 0.0
        if self.policy.curiosity is not None:
            bonus, more = self.policy.curiosity(
                self._seen(batch.observations), batch.actions, self._seen(batch.next_observations)
            )
            batch = batch._replace(rewards=batch.rewards + bonus)
        q = self.estimates(batch.observations)  # (H, n, A)
        at = batch.actions.expand(len(q), -1)[..., None]
        errors = self.targets(batch) - q.gather(-1, at)[..., 0]  # (H, n)
        fit = (self.misfit(errors, batch.heads.T) * batch.weights).mean()
        if self.policy.is_variational:
            more = more + self.kl_coef / self._transitions * self.policy.q_net.divergence()
        return fit + more, errors.detach().abs().mean(0)

    @torch.no_grad()
    def _seen(self, observations: Tensor) -> Tensor:
        """(n, F): observations as Q's network reads them."""
        net = self.policy.q_net
        return net.extract_features(observations, net.features_extractor)

    def estimates(self, observations: Tensor) -> Tensor:
        """(H, n, A): Q that the loss compares with targets, by each head or drawn weights."""
        return self.policy.q_net.q_values(observations)

    @torch.no_grad()
    def targets(self, batch: Transitions) -> Tensor:
        """Q targets (H, n) of the chosen acts, within the masks of the next states."""
        after = self.policy.q_net_target.q_values(batch.next_observations)  # (H, n, A)
        judge = after
        if self.double:
            with in_mode(self.policy.q_net, training=False):
                judge = self.policy.q_net.q_values(batch.next_observations)
        best = masked(judge, batch.next_masks).argmax(-1, keepdim=True)
        return batch.rewards + batch.discounts * after.gather(-1, best)[..., 0]

    def misfit(self, errors: Tensor, heads: Tensor) -> Tensor:
        """(n,): loss of errors (H, n), of the heads (H, n) that learn from each transition."""
        each = smooth_l1_loss(errors, torch.zeros_like(errors), reduction="none")
        return (each * heads).mean(0)

    @property
    def _transitions(self) -> int:
        """Of the memory, as far as it is filled."""
        return self.replay_buffer.size() * self.n_envs

    def _excluded_save_params(self) -> list[str]:
        return [*super()._excluded_save_params(), "_masks"]
