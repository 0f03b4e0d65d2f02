"""The act view: actions are dialogue acts, observations what the learner knows or believes."""

from collections.abc import Sequence
from typing import Any

import gymnasium as gym
import numpy as np

from dialgym.language import Utterance
from dialgym.tasks import PartyActs, Task
from dialgym.tasks.acts import check_act
from dialgym.views.arguments import reset_needed
from dialgym.views.single import DialogueEnv


class ActEnv(DialogueEnv, gym.Env):
    """A dialogue in which the learner chooses a dialogue act a step, or several at once.

    Action: `Discrete(A)`, one of the acts of `act_names`; `MultiBinary(A)` where a task's party
    chooses several at once. A masked act can be chosen nonetheless.
    Observation: `Box(low, high, (B,), float32)`, what the learner knows or believes.
    Reward and info as in `TokenEnv`, at every step; ``utterance`` is what the action became.

    Args:
        task: the rules; it must have `Task.acts` of the learner.
        options: see `ViewOptions`.

    Raises:
        ValueError: the task has no acts, or none of the learner's.
    """

    view = "act"

    def __init__(self, task: Task, **options: Any) -> None:
        super().__init__(task, options)
        self.acts = acts_of(task, self.learner)
        self.observation_space, self.action_space = act_spaces(self.acts)

    @property
    def act_names(self) -> tuple[str, ...]:
        """The names of the acts."""
        return tuple(self.acts.names)

    def step(self, action: Any) -> tuple[np.ndarray, float, bool, bool, dict[str, Any]]:
        """Choose an act, or several.

        Raises:
            ResetNeeded: there is no dialogue under way.
            ValueError: the action is not one of the action space.
        """
        self._require_open()
        chosen = check_act(action, self.acts, self.task.name)
        text = self.acts.say(self.dialogue.state, chosen, self.np_random)
        exchange, info = self._say(text)
        over = exchange.terminated, exchange.truncated
        return self._observe(), exchange.reward, *over, self._more_info(info)

    def action_masks(self) -> np.ndarray:
        """(A,) bool: the acts that can be chosen, or the entries of a vector that can be 1."""
        if self.dialogue.state is None:
            raise reset_needed(self.task.name, self._closed_because, "action_masks")
        return self.acts.mask(self.dialogue.state)

    def _observe(self) -> np.ndarray:
        return self.acts.observe(self.dialogue.state)

    def _more_info(self, info: dict[str, Any]) -> dict[str, Any]:
        if self._mask_in_info:
            info["action_mask"] = self.action_masks().astype(np.int8)
        return super()._more_info(info)


class ActSide:
    """Side of a party that chooses acts: what it has heard is in the state already."""

    def append(self, utterances: Sequence[Utterance]) -> bool:
        """All of them fit."""
        return True

    def open(self) -> bool:
        """There is always room for one more act."""
        return True


def acts_of(task: Task, party: str) -> PartyActs:
    """The acts of a party.

    Raises:
        ValueError: the task has none of it.
    """
    if party in task.acts:
        return task.acts[party]
    if not task.acts:
        raise ValueError(
            f"act view: expected a task with dialogue acts (see Task.acts); got {task.name}, which "
            "has none. Use its token or utterance view."
        )
    raise ValueError(
        f"act view of {task.name}: expected a party with acts ({', '.join(task.acts)}); got "
        f"{party!r}, which has none. Use the utterance view."
    )


def act_spaces(
    acts: PartyActs,
) -> tuple[gym.spaces.Box, gym.spaces.Discrete | gym.spaces.MultiBinary]:
    """Observation and action space."""
    seen = gym.spaces.Box(acts.low, acts.high, (acts.size,), np.float32)
    count = len(acts.names)
    return seen, gym.spaces.MultiBinary(count) if acts.multiple else gym.spaces.Discrete(count)
