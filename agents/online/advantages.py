"""Advantages of tokens and of turns.

All arrays are (T, N) float32: T decisions of N dialogues, the other party's tokens not among them,
so that one step is from a decision to the next one whatever was said between.
"""

from __future__ import annotations

import numpy as np


def gae(
    rewards: np.ndarray,
    values: np.ndarray,
    dones: np.ndarray,
    last_values: np.ndarray,
    gamma: float | np.ndarray,
    gae_lambda: float | np.ndarray,
) -> np.ndarray:
    """Generalised advantage estimation (Schulman et al. 2016, equation 16).

    Where an episode was truncated, gamma times the value of its last observation must have been
    added to the reward; the rollout's own end is bootstrapped here.

    Args:
        rewards: (T, N).
        values: (T, N) of the observation before each decision.
        dones: (T, N) bool, whether the episode ended with this decision.
        last_values: (N,) of the observations after the last decisions.
        gamma, gae_lambda: discount and decay of each step, one number or (T, N).

    Returns:
        Advantages (T, N); added to `values` they are the TD(lambda) targets of the values.
    """
    goes_on = (~dones).astype(np.float32)
    decay = np.broadcast_to(np.float32(gamma) * goes_on, rewards.shape)
    lambdas = np.broadcast_to(np.asarray(gae_lambda, np.float32), rewards.shape)
    following = np.concatenate([values[1:], last_values[None]])
    delta = rewards + decay * following - values
    advantages = np.empty_like(delta, dtype=np.float32)
    running = np.zeros(rewards.shape[1], np.float32)
    for t in reversed(range(len(rewards))):
        running = delta[t] + decay[t] * lambdas[t] * running
        advantages[t] = running
    return advantages


def turn_ends(lengths: np.ndarray, last_lengths: np.ndarray, dones: np.ndarray) -> np.ndarray:
    """Which decisions (T, N) ended an utterance: more than their own token was appended.

    Args:
        lengths: (T, N) tokens of the observation before each decision.
        last_lengths: (N,) of the observations after the last ones.
        dones: (T, N) bool.
    """
    after = np.concatenate([lengths[1:], last_lengths[None]])
    return dones | (after - lengths != 1)


def turn_level(
    rewards: np.ndarray,
    values: np.ndarray,
    dones: np.ndarray,
    last_values: np.ndarray,
    ends: np.ndarray,
    gamma: float,
    gae_lambda: float,
) -> tuple[np.ndarray, np.ndarray]:
    """An utterance as one action: all its tokens get the advantage of its first.

    Discount and decay apply from turn to turn, not from token to token. See `gae` for the
    arguments; `ends` (T, N) is from `turn_ends`.

    Returns:
        Advantages (T, N), and targets of the values (T, N), which are those of single tokens.
    """
    by_token = gae(
        rewards,
        values,
        dones,
        last_values,
        np.where(ends, np.float32(gamma), np.float32(1)),
        np.where(ends, np.float32(gae_lambda), np.float32(1)),
    )
    begins = np.concatenate([np.ones_like(ends[:1]), ends[:-1]])
    step = np.arange(len(ends))[:, None]
    opened = np.maximum.accumulate(np.where(begins, step, 0), axis=0)
    return np.take_along_axis(by_token, opened, 0), by_token + values
