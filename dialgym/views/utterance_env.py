"""The utterance view: a whole utterance an action, the transcript as text the observation."""

from typing import Any

import gymnasium as gym

from dialgym.tasks import Task
from dialgym.views.dialogue import SimulatorLike
from dialgym.views.single import DialogueEnv
from dialgym.views.transcripts import TextTranscript


class UtteranceEnv(DialogueEnv, gym.Env):
    """A dialogue in which the learner says one utterance a step.

    Action: `Text`. A longer text is cut, a character outside the charset becomes U+FFFD.
    Observation: `Text`, what the learner has seen, a line an utterance (``system: crane``).
    Reward and info as in `TokenEnv`, at every step.

    Args:
        task: the rules.
        learner: the party that the actions are those of.
        simulator: who plays the other party; see `find_speaker`. None for the task's default.
        render_mode: ``ansi``, ``human`` or ``rgb_array``.
        text_info: whether the info has texts; without them it is numbers alone.
        anchors: put ``anchor`` into each info; see `TokenEnv`.
        belief_gain: reward of each bit that a turn tells; see `TokenEnv`.
        truths: put ``truth`` into each info; see `TokenEnv`.
    """

    view = "utterance"

    def __init__(
        self,
        task: Task,
        learner: str = "system",
        simulator: SimulatorLike = None,
        render_mode: str | None = None,
        text_info: bool = True,
        anchors: bool = False,
        belief_gain: float = 0.0,
        truths: bool = False,
    ) -> None:
        super().__init__(
            task, learner, simulator, render_mode, text_info, anchors, belief_gain, truths
        )
        self._text = TextTranscript(task, learner)
        self.observation_space = self._text.observation_space
        self.action_space = self._text.action_space

    def _begin(
        self, seed: int | None, options: dict[str, Any] | None
    ) -> tuple[str, dict[str, Any]]:
        exchange = self._start(seed, options)
        self._text.clear()
        self._text.hear(exchange.heard)
        return self._observe(), self._more_info(self._info.blank())

    def step(self, action: str) -> tuple[str, float, bool, bool, dict[str, Any]]:
        """Say one utterance.

        Raises:
            ResetNeeded: there is no dialogue under way.
            ValueError: the action is not a string.
        """
        if self._closed_because:
            raise self._refuse()
        exchange, info = self._say(self._text.say(action))
        self._text.hear(exchange.heard)
        if self._has_extras:
            info = self._more_info(info)
        return self._text.text, exchange.reward, exchange.terminated, exchange.truncated, info

    def _observe(self) -> str:
        return self._text.observe()

    def _saved_view(self) -> str:
        return self._text.saved()

    def _restore_view(self, saved: str) -> None:
        self._text.restore(saved)
