"""The act view: a summary act an action, what the system believes the observation."""

from operator import index
from typing import Any, Protocol, runtime_checkable

import gymnasium as gym
import numpy as np
from gymnasium.error import ResetNeeded

from dialgym.simulators import Speaker
from dialgym.tasks import Task
from dialgym.views.single import DialogueEnv


@runtime_checkable
class ActTask(Protocol):
    """What a task has beside its rules to be seen as beliefs and summary acts."""

    @property
    def act_names(self) -> tuple[str, ...]:
        """The names of the A summary acts."""
        ...

    def belief(self, state: Any) -> np.ndarray:
        """(B,) float32, each from 0 to 1: what the system believes."""
        ...

    def belief_size(self) -> int:
        """B."""
        ...

    def act_mask(self, state: Any) -> np.ndarray:
        """(A,) bool: the summary acts that can be chosen; never empty."""
        ...

    def act_text(self, state: Any, index: int, rng: np.random.Generator) -> str:
        """What the system says by choosing a summary act."""
        ...


class ActEnv(DialogueEnv, gym.Env):
    """A dialogue in which the system chooses a summary act a step.

    Action: `Discrete(A)`, the acts of `act_names`. A masked act can be chosen nonetheless.
    Observation: `Box(0, 1, (B,), float32)`, what the system believes.
    Reward and info as in `TokenEnv`, at every step; ``utterance`` is what the act became.

    Args:
        task: the rules; it must meet `ActTask`.
        learner: the party that the actions are those of, which must be the system.
        simulator: who plays the user: a name or a `Speaker`; None for the task's default.
        action_masks: put ``action_mask``, (A,) int8, into each info.
        render_mode: ``ansi``, ``human`` or ``rgb_array``.
        text_info: whether the info has texts; without them it is numbers alone.

    Raises:
        ValueError: the task has no summary acts, or not for the learner.
    """

    def __init__(
        self,
        task: Task,
        learner: str = "system",
        simulator: str | Speaker | None = None,
        action_masks: bool = False,
        render_mode: str | None = None,
        text_info: bool = True,
    ) -> None:
        super().__init__(task, learner, simulator, render_mode, text_info)
        self._acts = check_act_task(task, learner)
        self.observation_space, self.action_space = act_spaces(self._acts)
        self._mask_in_info = action_masks

    @property
    def act_names(self) -> tuple[str, ...]:
        """The names of the actions."""
        return self._acts.act_names

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[np.ndarray, dict[str, Any]]:
        """Begin a dialogue; `options` fixes hidden parts of it (see the task)."""
        self._start(seed, options)
        return self._observe(), self._with_mask(self._info.blank())

    def step(self, action: Any) -> tuple[np.ndarray, float, bool, bool, dict[str, Any]]:
        """Choose a summary act.

        Raises:
            ResetNeeded: there is no dialogue under way.
            ValueError: the action is not a whole number from 0 to A-1.
        """
        if self._closed_because:
            raise self._refuse()
        chosen = check_act(action, self._acts, self.task.name)
        text = self._acts.act_text(self.dialogue.state, chosen, self.np_random)
        exchange, info = self._say(text)
        over = exchange.terminated, exchange.truncated
        return self._observe(), exchange.reward, *over, self._with_mask(info)

    def action_masks(self) -> np.ndarray:
        """(A,) bool: the summary acts that can be chosen."""
        if self.dialogue.state is None:
            raise ResetNeeded(f"{self.task.name}: action_masks() was called before reset().")
        return self._acts.act_mask(self.dialogue.state)

    def _observe(self) -> np.ndarray:
        return self._acts.belief(self.dialogue.state)

    def _with_mask(self, info: dict[str, Any]) -> dict[str, Any]:
        if self._mask_in_info:
            info["action_mask"] = self.action_masks().astype(np.int8)
        return info


def check_act_task(task: Task, learner: str) -> ActTask:
    """The task, if it has summary acts for the learner.

    Raises:
        ValueError: it has none.
    """
    if not isinstance(task, ActTask):
        raise ValueError(
            f"act view: expected a task with summary acts (see ActTask); got {task.name}, which "
            "has none. Use its token or utterance view."
        )
    if learner != task.parties[0]:
        raise ValueError(
            f"act view of {task.name}: its summary acts are those of the {task.parties[0]}; got "
            f"learner={learner!r}. Use the utterance view."
        )
    return task


def act_spaces(task: ActTask) -> tuple[gym.spaces.Box, gym.spaces.Discrete]:
    """Observation and action space."""
    beliefs = gym.spaces.Box(0.0, 1.0, (task.belief_size(),), np.float32)
    return beliefs, gym.spaces.Discrete(len(task.act_names))


def check_act(action: Any, task: ActTask, name: str) -> int:
    """The index of an act.

    Raises:
        ValueError: it is not a whole number from 0 to A-1.
    """
    try:
        chosen = index(action)
    except TypeError:
        chosen = -1
    if not 0 <= chosen < len(task.act_names):
        raise ValueError(
            f"action of {name}: expected a whole number from 0 to {len(task.act_names) - 1}, one "
            f"of its summary acts; got {action!r}."
        )
    return chosen
