"""The utterance view: a whole utterance an action, the transcript as text the observation."""

from typing import Any

import gymnasium as gym

from dialgym.language import render_transcript
from dialgym.language.utterances import UNKNOWN, Utterance
from dialgym.simulators import Speaker
from dialgym.tasks import Task
from dialgym.views.layout import clean, utterance_limit
from dialgym.views.single import DialogueEnv


def utterance_spaces(task: Task, party: str) -> tuple[gym.spaces.Text, gym.spaces.Text]:
    """Observation and action space: what `party` sees of a dialogue, and what it can say."""
    chars = task.facts.charset + UNKNOWN
    frame = "".join(task.parties) + ": \n"
    longest = sum(
        count * (len(f"{speaker}: \n") + utterance_limit(task.facts, speaker))
        for speaker, count in task.facts.heard[party].items()
    )
    seen = gym.spaces.Text(longest, min_length=0, charset=frozenset(chars + frame))
    said = gym.spaces.Text(
        utterance_limit(task.facts, party), min_length=0, charset=frozenset(task.facts.charset)
    )
    return seen, said


class UtteranceEnv(DialogueEnv):
    """A dialogue in which the learner says one utterance a step.

    Action: `Text`. A longer text is cut, a character outside the charset becomes U+FFFD.
    Observation: `Text`, what the learner has seen, a line an utterance (``system: crane``).
    Reward and info as in `TokenEnv`, at every step.

    Args:
        task: the rules.
        learner: the party that the actions are those of.
        simulator: who plays the other party: a name or a `Speaker`; None for the task's default.
        render_mode: ``ansi``, ``human`` or ``rgb_array``.
    """

    def __init__(
        self,
        task: Task,
        learner: str = "system",
        simulator: str | Speaker | None = None,
        render_mode: str | None = None,
    ) -> None:
        super().__init__(task, learner, simulator, render_mode)
        self.observation_space, self.action_space = utterance_spaces(task, learner)
        self._text = ""

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[str, dict[str, Any]]:
        """Begin a dialogue; `options` fixes hidden parts of it (see the task)."""
        self._text = render_transcript(self._start(seed, options).heard)
        return self._text, {}

    def step(self, action: str) -> tuple[str, float, bool, bool, dict[str, Any]]:
        """Say one utterance.

        Raises:
            ResetNeeded: there is no dialogue under way.
            ValueError: the action is not a string.
        """
        if self._closed_because:
            raise self._refuse()
        if not isinstance(action, str):
            raise ValueError(
                f"action of {self.task.name}: expected a string; got {action!r}. "
                "For token ids use the token env."
            )
        text = clean(action, self.task.facts, self.learner)
        exchange, info = self._say(text)
        said = Utterance(self.learner, text)
        self._text += render_transcript((said, *exchange.heard))
        return self._text, exchange.reward, exchange.terminated, exchange.truncated, info
