"""The token view: one token an action, the transcript as token ids the observation."""

from typing import Any

import gymnasium as gym
import numpy as np

from dialgym.errors import one_of
from dialgym.language import Constraint
from dialgym.tasks import Task
from dialgym.tasks.batch import Exchange
from dialgym.views.dialogue import check_room
from dialgym.views.single import DialogueEnv
from dialgym.views.spaces import TokenLayout, tokenizer_of, with_features
from dialgym.views.token_transcripts import TokenTranscript

OVERFLOWS = ("truncate", "slide")


class TokenEnv(DialogueEnv, gym.Env):
    """A dialogue in which the learner says one token a step.

    Action: `Discrete(V)`. ``<end>`` ends the utterance, and so does the longest length. Any token
    is legal; special ones, a speaker's tag among them, are recorded as ``<unk>``.
    Observation: `TokenBox`, (L,) int32, what the learner has seen, append-only; at its turn it
    ends with the learner's tag and the tokens of the utterance so far. With `features` it is a
    dict of these ``tokens`` and of ``features``.
    Reward: 0 within an utterance, the task's at its end.
    Info: `dialgym.views.info`, the same keys and types at every step: ``utterance``, ``reply``,
    ``turn``, ``reward_components``, ``is_success`` and ``transcript``; all of it is empty within an
    utterance and after `reset`.

    Args:
        task: the rules.
        tokenizer: ``"char"``, ``"word"``, ``"hf:NAME"`` or a `Tokenizer`; None for the
            task's own.
        window: L; None for the length that every dialogue of the task fits into.
        overflow: when the next utterance might not fit: ``"truncate"`` the episode, or ``"slide"``:
            whole oldest utterances leave (the observation is then not append-only).
        options: see `ViewOptions`.
    """

    view = "token"

    def __init__(
        self,
        task: Task,
        tokenizer: Any = None,
        window: int | None = None,
        overflow: str = "truncate",
        **options: Any,
    ) -> None:
        super().__init__(task, options)
        one_of("overflow", overflow, OVERFLOWS, task.name)
        self.tokenizer = tokenizer_of(task, tokenizer)
        self._layout = TokenLayout.of(task, self.tokenizer, self.learner, window)
        self._slide = overflow == "slide"
        self._transcript = TokenTranscript(self._layout, self._slide)
        self._features: np.ndarray | None = None
        self.observation_space: gym.Space = self._layout.space()
        if self.options.features:
            self.observation_space = with_features(self.observation_space, task, self.learner)
        self.action_space = gym.spaces.Discrete(self.tokenizer.vocab_size)
        self.steps_per_utterance = self._layout.said_limit

    def _new_transcript(self, exchange: Exchange) -> TokenTranscript:
        tokens = TokenTranscript(self._layout, self._slide)
        fits = tokens.append(exchange.heard)
        check_room(self.task, self.learner, tokens.open() and fits)
        return tokens

    def step(self, action: Any) -> tuple[Any, float, bool, bool, dict[str, Any]]:
        """Say one token.

        Raises:
            ResetNeeded: there is no dialogue under way.
            ValueError: the action is not a whole number from 0 to V-1.
        """
        self._require_open()
        tokens = self._transcript
        text = tokens.say(action)
        if text is None:
            info = self._info.blank()
            if self._has_extras:
                info = self._more_info(info)
            seen = tokens.tokens.copy() if self._features is None else self._observe()
            return seen, 0.0, False, False, info
        exchange, info = self._say(text)
        terminated, truncated = exchange.terminated, exchange.truncated
        fits = tokens.append(exchange.heard)
        if not (terminated or truncated) and not (fits and tokens.open()):
            truncated = True
            self._finish(info, exchange.success)
        if self._has_extras:
            info = self._more_info(info)
        return self._observe(), exchange.reward, terminated, truncated, info

    def _observe(self) -> Any:
        tokens = self._transcript.tokens.copy()
        if self._features is None:
            return tokens
        return {"tokens": tokens, "features": self._features.copy()}

    def _update_extras(self, state: Any, over: bool = False) -> dict[str, float]:
        if self.options.features:
            self._features = self.task.features(state, self.learner)
        return super()._update_extras(state, over)

    def action_masks(self) -> np.ndarray:
        """(V,) bool: the tokens that the task's constraint allows next."""
        if self._closed_because:
            return self._transcript.no_masks()
        return self._transcript.masks(self._constraint)

    def _mask_for_info(self) -> np.ndarray:
        """(V,) int8; here, and not by a view of `action_masks`, because every step waits for it."""
        if self._closed_because:
            return self._transcript.no_masks().view(np.int8)
        return self._transcript.masks(self._constraint, int8=True)

    def _constraint(self) -> Constraint:
        return self.task.constraint(self.dialogue.state, self.learner)

    def _more_info(self, info: dict[str, Any]) -> dict[str, Any]:
        if self._mask_in_info:
            info["action_mask"] = self._mask_for_info()
        return super()._more_info(info) if self._extras.texts else info
