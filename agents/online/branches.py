"""Values of situations by going on from them: a policy's mean return from where turns began."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, NamedTuple

import numpy as np
from stable_baselines3.common.vec_env import VecEnv

from dialgym.experiments.advantages import continued_returns
from dialgym.rollouts.policies import Predictor
from dialgym.views.saved import SavedDialogue


class BranchValues(NamedTuple):
    """Values of the situations in which turns began.

    Attributes:
        values: (T + 1, n), where a turn began or, after the last step, would; NaN elsewhere.
        steps: how many actions the continuations took.
    """

    values: np.ndarray
    steps: int


class Branches:
    """Dialogues of a vector env as they stood where turns began.

    Args:
        env: made by `dialgym.sb3_vec_env`, in this process.

    Raises:
        ValueError: its dialogues cannot be saved and gone on from.
    """

    def __init__(self, env: VecEnv) -> None:
        self.batch: Any = getattr(getattr(env.unwrapped, "env", None), "unwrapped", None)
        if not (hasattr(self.batch, "clone_state") and hasattr(self.batch, "restore_state")):
            raise ValueError(
                "branches: expected an env whose dialogues can be saved and gone on from "
                f"(dialgym.sb3_vec_env with workers=0); got {env.unwrapped!r}"
            )
        self.begun: dict[tuple[int, int], SavedDialogue] = {}

    def note(self, step: int, rows: Iterable[int]) -> None:
        """Keep the dialogues `rows` as they stand before a step."""
        rows = list(rows)
        saved = self.batch.clone_state(rows) if rows else []
        self.begun |= {(step, row): dialogue for row, dialogue in zip(rows, saved)}

    def forget(self, rows: Iterable[int]) -> None:
        """Forget the dialogues `rows`, which others take the place of."""
        gone = {*rows}
        self.begun = {place: kept for place, kept in self.begun.items() if place[1] not in gone}

    def values(
        self, policy: Predictor, shape: tuple[int, int], count: int, rng: np.random.Generator
    ) -> BranchValues:
        """Let the policy go on `count` times from each dialogue; it draws what it says.

        The env's dialogues are other ones afterwards: begin them again.

        Args:
            policy: has `predict`.
            shape: (T, n) of the rollout.
            count: continuations of each dialogue, with its hidden things as they are.
            rng: of what other parties draw.
        """
        places = [*self.begun]
        dialogues = [self.begun[place] for place in places for _ in range(count)]
        returns, steps = continued_returns(policy, self.batch, dialogues, rng)
        values = np.full((shape[0] + 1, shape[1]), np.nan)
        if places:
            values[tuple(np.array(places).T)] = returns.reshape(-1, count).mean(1)
        return BranchValues(values, int(steps.sum()))
