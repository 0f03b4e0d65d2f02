"""The utterance view: a whole utterance an action, the transcript as text the observation."""

from collections.abc import Iterable, Sequence
from typing import Any

import gymnasium as gym

from dialgym.language.text import Utterance, in_case
from dialgym.tasks import Task
from dialgym.tasks.batch import Exchange
from dialgym.views.single import DialogueEnv
from dialgym.views.spaces import clean, utterance_spaces


class UtteranceEnv(DialogueEnv, gym.Env):
    """A dialogue in which the learner says one utterance a step.

    Action: `Text`. It is taken in lower case where the charset knows no other. A longer text is
    cut, a character outside the charset becomes U+FFFD.
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
        self._transcript = TextTranscript(task, self.learner)
        self.heard: Sequence[Utterance] = ()  # since the learner has spoken last

    def _new_transcript(self, exchange: Exchange) -> "TextTranscript":
        transcript = TextTranscript(self.task, self.learner)
        transcript.append(exchange.heard)
        return transcript

    def step(self, action: str) -> tuple[str, float, bool, bool, dict[str, Any]]:
        """Say one utterance.

        Raises:
            ResetNeeded: there is no dialogue under way.
            ValueError: the action is not a string.
        """
        self._require_open()
        exchange, info = self._say(self._transcript.say(action))
        self._transcript.append(exchange.heard)
        self.heard = exchange.heard
        if self._has_extras:
            info = self._more_info(info)
        return self._transcript.text, exchange.reward, exchange.terminated, exchange.truncated, info

    def _observe(self) -> str:
        return self._transcript.observe()


class TextTranscript:
    """A party's transcript as text, a line an utterance."""

    def __init__(self, task: Task, party: str) -> None:
        self.task, self.party = task, party
        self.text = ""

    def observe(self) -> str:
        """All lines so far."""
        return self.text

    def saved(self) -> str:
        """All lines so far."""
        return self.text

    def restore(self, saved: str) -> None:
        """Go on from what was `saved`."""
        self.text = saved

    def append(self, utterances: Iterable[Utterance]) -> bool:
        """Append utterances; all of them fit."""
        for speaker, text, _ in utterances:
            self.text += f"{speaker}: {text}\n"
        return True

    def open(self) -> bool:
        """There is always room for one more utterance."""
        return True

    def say(self, action: Any) -> str:
        """Append what the party says, as the rules get it.

        Raises:
            ValueError: the action is not a string.
        """
        if not isinstance(action, str):
            raise ValueError(
                f"action of {self.task.name}: expected a string; got {action!r}. "
                "For token ids use the token env."
            )
        facts = self.task.facts
        text = clean(in_case(action, facts.charset), facts, self.party)
        self.text += f"{self.party}: {text}\n"
        return text
