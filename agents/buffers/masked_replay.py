"""A replay buffer with masks: n-step returns, priorities, and which heads learn from what."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from stable_baselines3.common.buffers import ReplayBuffer
from stable_baselines3.common.vec_env import VecNormalize
from torch import Tensor

from agents.models.act_masks import random_below, uniform
from agents.models.masking import count_acts
from agents.returns import n_step_returns

LEAST = 1e-6
"""Added to an error, so that no transition is never drawn again."""


class Transitions(NamedTuple):
    """n transitions, each from a state over some steps to a later one."""

    observations: Tensor  # (n, B) float32
    actions: Tensor  # (n,) int64
    rewards: Tensor  # (n,) float32, the discounted sum over the steps
    discounts: Tensor  # (n,) float32, what the value of the next state counts; 0 after the end
    next_observations: Tensor  # (n, B) float32
    next_masks: Tensor  # (n, A) bool, the acts that the next state allows
    heads: Tensor  # (n, H) float32 of 0 and 1: the heads that learn from it
    weights: Tensor  # (n,) float32, against the bias of prioritised draws; at most 1
    places: np.ndarray  # (n,) int64, where they lie in the buffer


class MaskedReplayBuffer(ReplayBuffer):
    """`ReplayBuffer` of Stable-Baselines3 that knows the masks of the next states.

    Truncated episodes are bootstrapped, as there. Everything that it holds is an array with a row
    for each step, so that a checkpoint keeps it whole.

    Args:
        args: as of that class: buffer_size, observation_space, action_space, device, n_envs.
        n_steps: rewards that are added up before a value takes over.
        gamma: discount of a step.
        n_heads: H, heads of a bootstrapped network.
        head_probability: that a head learns from a transition (Osband et al., 2016).
        alpha: how much errors count in the draw, p ~ |error|^alpha (Schaul et al., 2016, eq. 1);
            0 draws all alike.
        kwargs: as of that class.
    """

    def __init__(
        self,
        *args: Any,
        n_steps: int = 1,
        gamma: float = 0.99,
        n_heads: int = 1,
        head_probability: float = 1.0,
        alpha: float = 0.0,
        **kwargs: Any,
    ) -> None:
        super().__init__(*args, **kwargs)
        self.n_steps, self.gamma = n_steps, gamma
        self.head_probability, self.alpha = head_probability, alpha
        rows = self.buffer_size, self.n_envs
        self.next_masks = np.ones((*rows, count_acts(self.action_space)), bool)
        self.heads = np.ones((*rows, n_heads), np.float32)
        self.priorities = np.zeros(rows if alpha else (0, 0), np.float64)

    def expect(self, next_masks: np.ndarray) -> None:
        """Masks (n_envs, A) of the next observations that `add` is given then."""
        self.next_masks[self.pos] = next_masks

    def add(self, *args: Any, **kwargs: Any) -> None:
        """As of `ReplayBuffer`."""
        at = self.pos
        if self.head_probability < 1:
            self.heads[at] = uniform(*self.heads[at].shape) < self.head_probability
        if self.alpha:
            self.priorities[at] = self.priorities[: self.size()].max(initial=0.0) or 1.0
        super().add(*args, **kwargs)

    def close_episodes(self) -> None:
        """End the episodes that go on in the last step, as a limit would: their env is reset."""
        if self.size():
            last = (self.pos - 1) % self.buffer_size
            going_on = self.dones[last] == 0
            self.dones[last, going_on] = self.timeouts[last, going_on] = 1

    def sample(  # type: ignore[override]
        self, batch_size: int, env: VecNormalize | None = None, beta: float = 1.0
    ) -> Transitions:
        """Draw transitions, with replacement.

        Args:
            batch_size: n.
            env: what normalises observations and rewards.
            beta: how much of the bias of priorities the weights take away (eq. 2 there).
        """
        count = self.size() * self.n_envs
        if not self.alpha:
            return self.at(random_below(count, batch_size), env)
        sums = self.priorities[: self.size()].cumsum()
        drawn = uniform(batch_size) * sums[-1]
        places = np.minimum(sums.searchsorted(drawn, side="right"), count - 1)
        shares = self.priorities.reshape(-1)[places] / sums[-1]
        weights = (count * shares) ** -beta
        return self.at(places, env, weights / weights.max())

    def update_priorities(self, places: np.ndarray, errors: np.ndarray) -> None:
        """Errors (n,) of transitions as they are now."""
        if self.alpha:
            self.priorities.reshape(-1)[places] = (np.abs(errors) + LEAST) ** self.alpha

    def at(
        self, places: np.ndarray, env: VecNormalize | None = None, weights: np.ndarray | None = None
    ) -> Transitions:
        """The transitions that begin at places (n,), row by row of the buffer."""
        rows, columns = np.divmod(places, self.n_envs)
        steps = (rows[:, None] + np.arange(self.n_steps)) % self.buffer_size  # (n, n_steps)
        length = self._length(steps, columns)
        last = steps[np.arange(len(rows)), length - 1]
        ended = self.dones[last, columns] * (1 - self.timeouts[last, columns])
        discounts = self.gamma**length * (1 - ended)
        known = np.ones(len(rows)) if weights is None else weights
        found = (
            self._normalize_obs(self.observations[rows, columns], env),
            self.actions[rows, columns, 0].astype(np.int64),
            self._returns(steps, columns, length, env),
            discounts.astype(np.float32),
            self._normalize_obs(self.next_observations[last, columns], env),
            self.next_masks[last, columns],
            self.heads[rows, columns],
            known.astype(np.float32),
        )
        return Transitions._make([*(self.to_torch(part, copy=False) for part in found), places])  # type: ignore[arg-type]

    def _length(self, steps: np.ndarray, columns: np.ndarray) -> np.ndarray:
        """(n,): steps until the episode's end, or until the newest of the buffer, at most n."""
        newest = steps == (self.pos - 1) % self.buffer_size
        ends = newest | (self.dones[steps, columns[:, None]] > 0)
        return np.where(ends.any(1), ends.argmax(1) + 1, self.n_steps)

    def _returns(
        self, steps: np.ndarray, columns: np.ndarray, length: np.ndarray, env: VecNormalize | None
    ) -> np.ndarray:
        """(n,) float32: discounted sums of the first `length` rewards."""
        rewards = self._normalize_reward(self.rewards[steps, columns[:, None]], env)
        return n_step_returns(rewards, length, self.gamma)
