"""The batched act view: many dialogues in one process, one action each a step."""

from typing import Any, Protocol, runtime_checkable

import gymnasium as gym
import numpy as np

from dialgym.tasks import DialogueBatch
from dialgym.views.act_env import act_spaces, acts_of
from dialgym.views.arguments import check_actions
from dialgym.views.dialogue import LoopedBatch
from dialgym.views.speakers import find_speaker
from dialgym.views.vector_base import DialogueVectorEnv, Info, Step


@runtime_checkable
class ActDialogueBatch(DialogueBatch, Protocol):
    """Vectorised form of a task with observations and masks of acts; see `PartyActs`."""

    def state(self, row: int) -> Any:
        """The dialogue of a row."""
        ...

    def observations(self) -> np.ndarray:
        """(N, B) float32, a copy: what the learner of each row knows or believes."""
        ...

    def act_masks(self) -> np.ndarray:
        """(N, A) bool: the acts that can be chosen."""
        ...


class ActVectorEnv(DialogueVectorEnv, gym.vector.VectorEnv):
    """N dialogues; observations (N, B) float32. Row by row `ActEnv`.

    Actions: (N,) whole numbers; (N, A) of 0 and 1 where several acts are chosen at once.

    Args:
        task: as in `ActEnv`.
        num_envs, autoreset_mode, options: as in `DialogueVectorEnv`.
    """

    view = "act"
    dialogues: ActDialogueBatch

    def _prepare(self) -> None:
        self.acts = acts_of(self.task, self.learner)
        self._batch_spaces(*act_spaces(self.acts))
        if not isinstance(self.dialogues, ActDialogueBatch):
            other = find_speaker(self.task, self.learner, self.options.simulator)
            self.dialogues = LoopedBatch(self.task, self.num_envs, self.learner, other)

    @property
    def act_names(self) -> tuple[str, ...]:
        """The names of the acts."""
        return tuple(self.acts.names)

    def step(self, actions: Any) -> Step:
        """Choose an act, or several, in each dialogue.

        Raises:
            ResetNeeded: before the first reset.
            ValueError: the actions are not those of the action space.
        """
        self._require_reset()
        chosen = check_actions(actions, self.action_space, self.task.name)
        active = self._begin_late()
        rows = chosen if self.acts.multiple else chosen.tolist()
        texts = [self._text(row, rows[row]) for row in active.tolist()]
        return self._play(active, active, np.array(texts, np.str_))

    def _text(self, row: int, action: Any) -> str:
        return self.acts.say(self.dialogues.state(row), action, self._rngs[row])

    def action_masks(self) -> np.ndarray:
        """(N, A) bool: the acts that can be chosen, or the entries of a vector that can be 1."""
        self._require_reset("action_masks")
        return self.dialogues.act_masks()

    def _more_info(self, info: Info) -> Info:
        if self.options.action_masks:
            info["action_mask"] = self.action_masks().astype(np.int8)
            info["_action_mask"] = np.ones(self.num_envs, bool)
        return super()._more_info(info)

    def _observe(self) -> np.ndarray:
        return self.dialogues.observations()

    def _observe_row(self, row: int) -> np.ndarray:
        return self.acts.observe(self.dialogues.state(row))
