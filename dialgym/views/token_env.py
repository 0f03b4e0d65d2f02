"""The token view: one token an action, the transcript as token ids the observation."""

from typing import Any

import gymnasium as gym
import numpy as np

from dialgym.errors import one_of
from dialgym.language import Constraint
from dialgym.tasks import Task
from dialgym.views.dialogue import SimulatorLike, check_room
from dialgym.views.layout import TokenLayout, tokenizer_of
from dialgym.views.single import DialogueEnv
from dialgym.views.spaces import with_features
from dialgym.views.transcripts import TokenTranscript

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
        learner: the party that the actions are those of.
        simulator: who plays the other party; see `find_speaker`. None for the task's default.
        window: L; None for the length that every dialogue of the task fits into.
        overflow: when the next utterance might not fit: ``"truncate"`` the episode, or ``"slide"``:
            whole oldest utterances leave (the observation is then not append-only).
        action_masks: put ``action_mask``, (V,) int8, into each info.
        render_mode: ``ansi``, ``human`` or ``rgb_array``.
        text_info: whether the info has texts; without them it is numbers alone.
        features: observe ``Dict(tokens, features)``: beside the tokens the array that the task
            gives the learner; see `Task.features`.
        anchors: put ``anchor`` into each info, the name of the situation that the learner is in
            since the last exchange; see `Task.anchor`.
        belief_gain: reward of each bit by which a turn raises the posterior of the hidden truth,
            beside the task's; see `dialgym.views.belief_gain`. 0 for the task's alone.
        truths: put ``truth`` into each info, the utterance that names what is hidden, for whoever
            teaches the learner; see `dialgym.tasks.NamesTruth`.
    """

    view = "token"

    def __init__(
        self,
        task: Task,
        tokenizer: Any = None,
        learner: str = "system",
        simulator: SimulatorLike = None,
        window: int | None = None,
        overflow: str = "truncate",
        action_masks: bool = False,
        render_mode: str | None = None,
        text_info: bool = True,
        features: bool = False,
        anchors: bool = False,
        belief_gain: float = 0.0,
        truths: bool = False,
    ) -> None:
        super().__init__(
            task, learner, simulator, render_mode, text_info, anchors, belief_gain, truths
        )
        one_of("overflow", overflow, OVERFLOWS, task.name)
        self.tokenizer = tokenizer_of(task, tokenizer)
        layout = TokenLayout.of(task, self.tokenizer, learner, window)
        self._tokens = TokenTranscript(layout, overflow == "slide")
        self._features: np.ndarray | None = None
        self._has_features = features
        self.observation_space: gym.Space = self._tokens.observation_space
        if features:
            self.observation_space = with_features(self.observation_space, task, learner)
        self.action_space = self._tokens.action_space
        self.steps_per_utterance = layout.said_limit
        self._mask_in_info = action_masks
        self._has_extras = self._has_extras or action_masks or features

    def _begin(
        self, seed: int | None, options: dict[str, Any] | None
    ) -> tuple[Any, dict[str, Any]]:
        exchange = self._start(seed, options)
        self._tokens.clear()
        fits = self._tokens.hear(exchange.heard)
        check_room(self.task, self.learner, self._tokens.open() and fits)
        return self._observe(), self._more_info(self._info.blank())

    def step(self, action: Any) -> tuple[Any, float, bool, bool, dict[str, Any]]:
        """Say one token.

        Raises:
            ResetNeeded: there is no dialogue under way.
            ValueError: the action is not a whole number from 0 to V-1.
        """
        if self._closed_because:
            raise self._refuse()
        tokens = self._tokens
        text = tokens.say(action)
        if text is None:
            info = self._info.blank()
            if self._has_extras:
                info = self._more_info(info)
            seen = tokens.tokens.copy() if self._features is None else self._observe()
            return seen, 0.0, False, False, info
        exchange, info = self._say(text)
        terminated, truncated = exchange.terminated, exchange.truncated
        fits = tokens.hear(exchange.heard)
        if not (terminated or truncated) and not (fits and tokens.open()):
            truncated = True
            self._finish(info, exchange.success)
        if self._has_extras:
            info = self._more_info(info)
        return self._observe(), exchange.reward, terminated, truncated, info

    def _observe(self) -> Any:
        tokens = self._tokens.tokens.copy()
        if self._features is None:
            return tokens
        return {"tokens": tokens, "features": self._features.copy()}

    def _look(self) -> float:
        if self._has_features:
            self._features = self.task.features(self.dialogue.state, self.learner)
        return super()._look()

    def _saved_view(self) -> Any:
        return self._tokens.saved()

    def _restore_view(self, saved: Any) -> None:
        self._tokens.restore(saved)

    def action_masks(self) -> np.ndarray:
        """(V,) bool: the tokens that the task's constraint allows next."""
        if self._closed_because:
            return self._tokens.no_masks()
        return self._tokens.masks(self._constraint)

    def _mask_for_info(self) -> np.ndarray:
        """(V,) int8; here, and not by a view of `action_masks`, because every step waits for it."""
        if self._closed_because:
            return self._tokens.no_masks().view(np.int8)
        return self._tokens.masks(self._constraint, int8=True)

    def _constraint(self) -> Constraint:
        return self.task.constraint(self.dialogue.state, self.learner)

    def _more_info(self, info: dict[str, Any]) -> dict[str, Any]:
        if self._mask_in_info:
            info["action_mask"] = self._mask_for_info()
        return super()._more_info(info) if self._notes else info
