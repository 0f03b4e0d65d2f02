"""Tiny envs of beliefs, acts and masks whose optimum is known, for the learners of `agents.acts`.

Each is a table: transitions (S, A) -> S or the end, mean rewards, masks. An act that the mask
forbids is an AssertionError, so that a learner which ever chooses one fails its test.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import gymnasium as gym
import numpy as np
from stable_baselines3.common.monitor import Monitor
from stable_baselines3.common.vec_env import DummyVecEnv, VecEnv

END = -1


@dataclass(frozen=True)
class Table:
    """The rules of an env.

    Attributes:
        after: (S, A) int, the next state, or `END`.
        rewards: (S, A) float, their means.
        masks: (S, A) bool.
        starts: states that an episode begins in, all equally likely.
        noise: deviation of the rewards.
        limit: steps after which an episode is truncated.
    """

    after: np.ndarray
    rewards: np.ndarray
    masks: np.ndarray
    starts: tuple[int, ...] = (0,)
    noise: float = 0.0
    limit: int = 20

    def q_values(self, gamma: float = 0.99) -> np.ndarray:
        """(S, A): Q of the best policy, by value iteration; -inf where an act is forbidden."""
        values = np.zeros(len(self.after) + 1)  # the last entry, of `END`, stays 0
        for _ in range(1000):
            q = np.where(self.masks, self.rewards + gamma * values[self.after], -np.inf)
            values[:-1] = q.max(1)
        return q

    def best_return(self, gamma: float = 1.0) -> float:
        """The expected return of the best policy from the start."""
        return float(self.q_values(gamma).max(1)[list(self.starts)].mean())


def five_states() -> Table:
    """Five states in a row: jumping two ahead is the best way to the end, worth 1.

    A step costs 0.1. Stopping early is worth a little at once. From 0 the best way is to jump, jump
    and go ahead: 0.7 in all.
    """
    ahead, stop, back, jump = range(4)
    after = np.full((5, 4), END)
    rewards = np.full((5, 4), -0.1)
    masks = np.ones((5, 4), bool)
    for state in range(5):
        after[state, ahead] = state + 1 if state < 4 else END
        after[state, back] = max(state - 1, 0)
        after[state, jump] = min(state + 2, 4)
        rewards[state, stop] = 0.1 * state
    rewards[4, ahead] = 0.9
    rewards[1, jump] = 5.0  # forbidden there: what heeds no masks hopes for it
    masks[0, back] = masks[2, stop] = masks[1, jump] = masks[3, jump] = masks[4, jump] = False
    return Table(after, rewards, masks)


def noisy_bandit() -> Table:
    """Two states of one step each, five arms with rewards of deviation 1; the best is forbidden."""
    rewards = np.array([[0.0, 0.2, 0.8, -0.3, 2.0], [0.9, -0.2, 0.1, 2.0, 0.0]])
    masks = rewards < 1.5
    return Table(np.full((2, 5), END), rewards, masks, starts=(0, 1), noise=1.0)


def long_chain(length: int = 10) -> Table:
    """One act of two goes on, another one in each state; all the way is worth 1, leaving 0.01.

    Acts at random arrive in 1 of 2 ** length episodes: only deep exploration finds it.
    """
    right = np.random.default_rng(7).integers(2, size=length)
    states = np.arange(length)
    after = np.full((length, 2), END)
    after[states, right] = np.append(states[1:], END)
    rewards = np.full((length, 2), 0.01)
    rewards[states, right] = np.append(np.zeros(length - 1), 1.0)
    return Table(after, rewards, np.ones((length, 2), bool), limit=length + 1)


class TableEnv(gym.Env):
    """An env of a `Table`.

    Args:
        table: its rules.
        features: None for one-hot observations (S,); or the length of random ones, each at least
            as long as there are states, so that values are linear in them.
    """

    def __init__(self, table: Table, features: int | None = None) -> None:
        states, acts = table.masks.shape
        self.table = table
        self.beliefs = np.eye(states, dtype=np.float32)
        if features:
            assert features >= states
            drawn = np.random.default_rng(5).random((states, features))
            self.beliefs = drawn.astype(np.float32)
        self.observation_space = gym.spaces.Box(0, 1, (self.beliefs.shape[1],), np.float32)
        self.action_space = gym.spaces.Discrete(acts)
        self.state, self.steps = END, 0

    def reset(self, *, seed: int | None = None, options: Any = None) -> tuple[np.ndarray, dict]:
        super().reset(seed=seed)
        self.state, self.steps = int(self.np_random.choice(self.table.starts)), 0
        return self.beliefs[self.state].copy(), {}

    def step(self, action: Any) -> tuple[np.ndarray, float, bool, bool, dict]:
        here, act = self.state, int(action)
        assert self.table.masks[here, act], f"act {act} is forbidden in state {here}"
        reward = self.table.rewards[here, act] + self.table.noise * self.np_random.normal()
        self.state, self.steps = int(self.table.after[here, act]), self.steps + 1
        over = self.state == END
        seen = self.beliefs[here if over else self.state].copy()
        return seen, float(reward), over, not over and self.steps >= self.table.limit, {}

    def action_masks(self) -> np.ndarray:
        return self.table.masks[self.state].copy()


def vec_env(table: Table, rows: int = 1, seed: int = 0, features: int | None = None) -> VecEnv:
    """`rows` envs of a table; `env.envs[0].unwrapped` is the first."""
    env = DummyVecEnv([lambda: Monitor(TableEnv(table, features))] * rows)
    env.seed(seed)
    return env


def beliefs_of(env: VecEnv) -> np.ndarray:
    """(S, B) float32: the observation of each state."""
    found: np.ndarray = env.envs[0].unwrapped.beliefs  # type: ignore[attr-defined]
    return found


def greedy_return(model: Any, table: Table, features: int | None = None) -> float:
    """The expected undiscounted return of the acts that a model takes for the best, exactly."""
    beliefs = TableEnv(table, features).beliefs
    acts, _ = model.predict(beliefs, deterministic=True, action_masks=table.masks)
    returns = [_return(table, acts, start) for start in table.starts]
    return float(np.mean(returns))


def _return(table: Table, acts: np.ndarray, state: int) -> float:
    total = 0.0
    for _ in range(table.limit):
        if state == END:
            break
        assert table.masks[state, acts[state]], f"act {acts[state]} is forbidden in state {state}"
        total += float(table.rewards[state, acts[state]])
        state = int(table.after[state, acts[state]])
    return total
