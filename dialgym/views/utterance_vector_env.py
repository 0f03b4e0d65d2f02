"""The batched utterance view: many dialogues in one process, one utterance each a step."""

from collections.abc import Sequence
from typing import Any

import gymnasium as gym
import numpy as np

from dialgym.language.text import in_case
from dialgym.tasks import BatchOutcome
from dialgym.tasks.batch import silence
from dialgym.views.arguments import after_the_end
from dialgym.views.spaces import clean, utterance_spaces
from dialgym.views.vector_base import DialogueVectorEnv, Step


class UtteranceVectorEnv(DialogueVectorEnv, gym.vector.VectorEnv):
    """N dialogues; actions and observations are tuples of N strings. Row by row `UtteranceEnv`.

    Args:
        task: as in `UtteranceEnv`.
        num_envs, autoreset_mode, options: as in `DialogueVectorEnv`.
    """

    view = "utterance"
    seen_type = str

    def _prepare(self) -> None:
        self._batch_spaces(*utterance_spaces(self.task, self.learner))
        self._dtype = f"<U{self.task.facts.limit(self.learner)}"
        self._texts = [""] * self.num_envs
        self.outcome = silence(self.num_envs)  # of the rows that have spoken or begun last

    def step(self, actions: Any) -> Step:
        """Say one utterance in each dialogue.

        Raises:
            ResetNeeded: before the first reset.
            ValueError: the actions are not N strings.
        """
        self._require_reset()
        self._check(actions)
        active = self._begin_late()
        return self.say(active, [actions[row] for row in active.tolist()])

    def say(self, rows: np.ndarray, texts: Sequence[str]) -> Step:
        """Say an utterance in each of some rows (k,) under way; the others rest."""
        self._require_reset()
        if self._over[rows].any():  # a reset has failed
            raise after_the_end(self.task.name, rows[self._over[rows]])
        facts, learner = self.task.facts, self.learner
        texts = [clean(in_case(text, facts.charset), facts, learner) for text in texts]
        for row, text in zip(rows.tolist(), texts):
            self._texts[row] += f"{learner}: {text}\n"
        array = np.array(texts, self._dtype)
        return self._play(rows, rows, array)

    def _check(self, actions: Any) -> None:
        given = isinstance(actions, (Sequence, np.ndarray)) and not isinstance(actions, str)
        if not given or len(actions) != self.num_envs:
            got = f"{len(actions)}" if given else f"{type(actions).__name__}"
        elif kinds := sorted({type(a).__name__ for a in actions if not isinstance(a, str)}):
            got = f"{', '.join(kinds)}"
        else:
            return
        raise ValueError(
            f"actions of {self.task.name}: expected {self.num_envs} strings; got {got}."
        )

    def _clear(self, rows: np.ndarray) -> None:
        for row in rows.tolist():
            self._texts[row] = ""

    def _append(self, rows: np.ndarray, outcome: BatchOutcome) -> np.ndarray:
        self.outcome = outcome
        parties, owners = self.task.voices, rows[outcome.heard_rows].tolist()
        for row, party, text in zip(
            owners, outcome.heard_parties.tolist(), outcome.heard_texts.tolist()
        ):
            self._texts[row] += f"{parties[party]}: {text}\n"
        return np.ones(len(rows), bool)

    def _observe(self) -> tuple[str, ...]:
        return tuple(self._texts)

    def _observe_row(self, row: int) -> str:
        return self._texts[row]

    def _saved_row(self, row: int) -> str:
        return self._texts[row]

    def _restore_row(self, row: int, saved: str) -> None:
        self._texts[row] = saved
