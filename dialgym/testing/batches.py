"""A check that a batch of N dialogues equals N single ones."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from dialgym.language.tokenizers import END
from dialgym.tasks import Task
from dialgym.testing.scripts import random_action, require
from dialgym.views.act_env import ActEnv
from dialgym.views.act_vector_env import ActVectorEnv
from dialgym.views.info import row_info
from dialgym.views.token_env import TokenEnv
from dialgym.views.token_vector_env import TokenVectorEnv

MODES = ("SameStep", "NextStep")


def check_batch(
    task: Task, num_envs: int = 5, steps: int = 300, seed: int = 0, **kwargs: Any
) -> None:
    """Step a batch and as many single envs with the same random actions, over many autoresets.

    Observations, rewards, ends, masks and infos must be the same, in both autoreset modes: of the
    token view, with features where the task has some, and of the act view of each party that has
    acts.

    Args:
        task: the rules.
        num_envs, steps, seed: how much is played; an eighth of the steps in acts, which are longer.
        kwargs: arguments of both token views, such as `window` and `overflow`.

    Raises:
        AssertionError: a row differs from its single env; the message says where.
    """
    kwargs = {"features": task.parties[0] in task.facts.features, **kwargs}
    for mode in MODES:
        batch: Any = TokenVectorEnv(task, num_envs, autoreset_mode=mode, **kwargs)
        _Comparison(batch, [TokenEnv(task, **kwargs) for _ in range(num_envs)], mode, seed).run(
            steps
        )
        for party in task.acts:
            batch = ActVectorEnv(task, num_envs, mode, learner=party)
            singles = [ActEnv(task, learner=party) for _ in range(num_envs)]
            _Comparison(batch, singles, mode, seed).run(steps // 8)


class _Comparison:
    """A batch beside its singles."""

    def __init__(self, batch: Any, singles: Sequence[Any], mode: str, seed: int) -> None:
        self.task, self.mode, self.seed = batch.task, mode, seed
        self.batch, self.singles = batch, singles
        self.over = [False] * len(singles)
        self.rng = np.random.default_rng([seed, 2])
        self.at = 0

    def run(self, steps: int) -> None:
        observation, _ = self.batch.reset(seed=self.seed)
        for row, env in enumerate(self.singles):
            begun = env.reset(seed=self.seed + row)[0]
            self._same(row, "observation", _row(observation, row), begun)
        for self.at in range(steps):
            masks = self.batch.action_masks() if self.at % 3 else None
            actions = np.array([self._act(env) for env in self.singles])
            result = self.batch.step(actions)
            for row, action in enumerate(actions):
                if masks is not None and not self.over[row]:
                    self._same(row, "mask", masks[row], self.singles[row].action_masks())
                self._step(row, action, result)

    def _act(self, env: Any) -> Any:
        """Mostly an action that the mask allows, else any."""
        mask = env.action_masks()
        if isinstance(env, ActEnv):
            return random_action(mask, env.acts.multiple, self.rng)
        choices = np.flatnonzero(mask) if self.rng.random() < 0.8 else np.arange(len(mask))
        return int(self.rng.choice([*choices, END] if self.rng.random() < 0.1 else choices))

    def _step(self, row: int, action: Any, result: Any) -> None:
        observation, reward, terminated, truncated, info = result
        env = self.singles[row]
        if self.over[row]:
            observed, info_of_reset = env.reset()
            single: tuple[Any, ...] = (observed, 0.0, False, False, info_of_reset)
            self.over[row] = False
        else:
            single = env.step(action)
        got, final = _row(observation, row), row_info(info, row)
        ended = single[2] or single[3]
        if ended and self.mode == "SameStep":
            self._same(row, "final observation", final.pop("final_obs"), single[0])
            final = final["final_info"]
            single = (env.reset()[0], *single[1:])
        elif ended:
            self.over[row] = True
        self._same(row, "observation", got, single[0])
        self._same(row, "reward", reward[row], single[1])
        self._same(row, "end", (terminated[row], truncated[row]), single[2:4])
        if final != single[4]:
            require(False, self.task, self._where(row, "info", final, single[4]))

    def _same(self, row: int, what: str, got: Any, expected: Any) -> None:
        if isinstance(expected, dict):
            for name, value in expected.items():
                self._same(row, f"{what} ({name})", got[name], value)
        elif not np.array_equal(got, expected):  # a message about arrays is slow to write
            require(False, self.task, self._where(row, what, got, expected))

    def _where(self, row: int, what: str, got: Any, expected: Any) -> str:
        return (
            f"row {row} of the batch has another {what} than the single env at step {self.at} "
            f"({self.mode}, seed {self.seed}): got {got}, expected {expected}"
        )


def _row(observation: Any, row: int) -> Any:
    """The observation of a row, which may be of several parts."""
    if isinstance(observation, dict):
        return {name: values[row] for name, values in observation.items()}
    return observation[row]
