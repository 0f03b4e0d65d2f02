"""Tokens that GRPO generates for each episode it learns from, and the return that it logs.

The reference is of the same rollouts: the tokens it would take if all dialogues were played until
the slowest one has ended, which are dialogues times the longest episode of each rollout.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from stable_baselines3.common.callbacks import BaseCallback

import dialgym
from agents.offline.bc import BC
from agents.online.grpo import GRPO
from agents.policies.init_from import start_from
from benchmarks.environments.timing import Figure

ENV, DIALOGUES, GROUP, ITERATIONS = "dialgym/Wordle-20-v0", 256, 16, 3
TEACHER, GAMES, STEPS = "optimal", 300, 200
"""Policy that is cloned, number of its games, and gradient steps."""


class Counts(BaseCallback):
    """Counts what is generated and earned, step by step; stops after `iterations` rollouts.

    Attributes:
        tokens: generated in all rollouts.
        longest: tokens of the longest episode of each rollout.
        returns: of the episodes learned from, by rollout (n_envs,).
        logged: mean return in the log at the end of each rollout.
    """

    def __init__(self, iterations: int) -> None:
        super().__init__()
        self.iterations = iterations
        self.tokens = 0
        self.longest: list[int] = []
        self.returns: list[np.ndarray] = []
        self.logged: list[float] = []

    def _on_rollout_start(self) -> None:
        if len(self.logged) < self.iterations:
            self.longest.append(0)
            self.returns.append(np.zeros(self.training_env.num_envs))

    def _on_step(self) -> bool:
        if len(self.logged) == self.iterations:
            return False
        self.tokens += len(self.locals["rows"])
        self.longest[-1] += 1
        self.returns[-1] += self.locals["rewards"]
        return True

    def _on_rollout_end(self) -> None:
        assert self.model.ep_info_buffer, "the env has no monitor"
        self.logged.append(float(np.mean([episode["r"] for episode in self.model.ep_info_buffer])))


def counted(clone: Any = None) -> Counts:
    """Counts of rollouts with an update after each, begun from a clone or from scratch."""
    env = dialgym.sb3_vec_env(ENV, DIALOGUES, seed=0)
    model = GRPO("GPTPolicy", env, n_steps=36, group_size=GROUP, seed=0, device="cpu")
    if clone is not None:
        start_from(model.policy, clone)
    counts = Counts(ITERATIONS)
    model.learn(10**9, callback=counts)
    env.close()
    return counts


def figures() -> Iterator[Figure]:
    """Begun from a clone, whose games are short, and from scratch."""
    games = dialgym.collect(ENV, TEACHER, GAMES, seed=0)
    clone = BC("GPTPolicy", dialgym.sb3_vec_env(ENV, 1), games, seed=0, device="cpu").learn(STEPS)
    for name, begun in {"clone": clone, "scratch": None}.items():
        counts = counted(begun)
        played = Figure(f"{name}, tokens until all end", float(np.mean(counts.longest)), "")
        tokens = counts.tokens / (DIALOGUES * ITERATIONS)
        true = Figure(f"{name}, mean return", float(np.mean(counts.returns)), "")
        logged = float(np.mean(counts.logged))
        yield played
        yield Figure(f"GRPO from {name}, tokens", tokens, "", None, played, "until all end")
        yield true
        yield Figure(f"GRPO from {name}, logged", logged, "", None, true, "true")
