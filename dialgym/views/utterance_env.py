"""The utterance view: a whole utterance an action, the transcript as text the observation."""

from typing import Any

import gymnasium as gym

from dialgym.tasks import Task
from dialgym.tasks.batch import Exchange
from dialgym.views.single import DialogueEnv
from dialgym.views.spaces import utterance_spaces
from dialgym.views.transcripts import TextTranscript


class UtteranceEnv(DialogueEnv, gym.Env):
    """A dialogue in which the learner says one utterance a step.

    Action: `Text`. A longer text is cut, a character outside the charset becomes U+FFFD.
    Observation: `Text`, what the learner has seen, a line an utterance (``system: crane``).
    Reward and info as in `TokenEnv`, at every step.

    Args:
        task: the rules.
        options: see `ViewOptions`.
    """

    view = "utterance"

    def __init__(self, task: Task, **options: Any) -> None:
        super().__init__(task, options)
        self.observation_space, self.action_space = utterance_spaces(task, self.learner)
        self._text = TextTranscript(task, self.learner)

    def _begin_view(self, exchange: Exchange) -> None:
        self._text = TextTranscript(self.task, self.learner)
        self._text.append(exchange.heard)

    def step(self, action: str) -> tuple[str, float, bool, bool, dict[str, Any]]:
        """Say one utterance.

        Raises:
            ResetNeeded: there is no dialogue under way.
            ValueError: the action is not a string.
        """
        if self._closed_because:
            raise self._refuse()
        exchange, info = self._say(self._text.say(action))
        self._text.append(exchange.heard)
        if self._has_extras:
            info = self._more_info(info)
        return self._text.text, exchange.reward, exchange.terminated, exchange.truncated, info

    def _observe(self) -> str:
        return self._text.observe()

    def _saved_view(self) -> str:
        return self._text.saved()

    def _restore_view(self, saved: str) -> None:
        self._text.restore(saved)
