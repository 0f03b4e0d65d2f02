"""What the scripts of this folder share: two environments, a score, and what must be reached.

Each script is the smallest one of a library's own documentation, on an act view and, where it
learns with action masks, on a token view: ``python with_NAME.py act`` and ``... tokens``.
"""

import sys
from collections.abc import Callable
from typing import Any

import gymnasium as gym
import numpy as np

import dialgym  # noqa: F401  # registers the ids

ACTS = "dialgym/SlotFilling-act-v0"
TOKENS = "dialgym/Wordle-20-v0"
BARS = {"act": 0.0, "tokens": -4.0}
"""Mean returns to be reached; random play has -5.4 and, among allowed tokens, -5.1."""


def chosen_view(*views: str) -> str:
    """The view that the command line names, the first by default."""
    view = sys.argv[1] if len(sys.argv) > 1 else views[0]
    if view not in views:
        sys.exit(f"{sys.argv[0]}: expected one of {', '.join(views)}; got {view!r}.")
    return view


def mean_return(env: gym.Env, act: Callable[[Any, dict], Any], episodes: int = 100) -> float:
    """The mean return of ``act(observation, info)`` over the same dialogues for every library."""
    returns = []
    for seed in range(10_000, 10_000 + episodes):
        observation, info = env.reset(seed=seed)
        gained, over = 0.0, False
        while not over:
            observation, reward, terminated, truncated, info = env.step(act(observation, info))
            gained, over = gained + float(reward), terminated or truncated
        returns.append(gained)
    return float(np.mean(returns))


def report(view: str, gained: float) -> None:
    """Print the mean return, and end with an error where it is below the bar."""
    print(f"{view}: mean return {gained:.2f}, bar {BARS[view]:.2f}")
    if gained < BARS[view]:
        sys.exit(1)
