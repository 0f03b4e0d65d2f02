"""The batched token view: many dialogues in one process, their tokens in one array."""

from typing import Any

import gymnasium as gym
import numpy as np
from gymnasium.vector import AutoresetMode

from dialgym.errors import one_of
from dialgym.language import CharTokenizer, TokenAutomaton, compile_constraint
from dialgym.language.tokenizers import END, recorded
from dialgym.tasks import BatchOutcome, Task
from dialgym.views.arguments import check_actions
from dialgym.views.saved import SeenTokens
from dialgym.views.spaces import TokenLayout, clean, tokenizer_of, with_features
from dialgym.views.token_env import OVERFLOWS
from dialgym.views.token_transcripts import TokenRows
from dialgym.views.vector_base import DialogueVectorEnv, Info, Step


class TokenVectorEnv(DialogueVectorEnv, gym.vector.VectorEnv):
    """N dialogues; actions (N,) integer, observations (N, L) int32. Row by row a `TokenEnv`.

    Python runs only for tasks without a vectorised form, and there only for the rows whose
    utterance has just ended.

    Args:
        task, tokenizer, window, overflow: as in `TokenEnv`.
        num_envs, autoreset_mode, options: as in `DialogueVectorEnv`.
    """

    view = "token"
    seen_type = SeenTokens

    def __init__(
        self,
        task: Task,
        num_envs: int = 1,
        tokenizer: Any = None,
        window: int | None = None,
        overflow: str = "truncate",
        autoreset_mode: str | AutoresetMode = AutoresetMode.NEXT_STEP,
        **options: Any,
    ) -> None:
        super().__init__(task, num_envs, autoreset_mode, **options)
        one_of("overflow", overflow, OVERFLOWS, task.name)
        self.tokenizer = tokenizer_of(task, tokenizer)
        self.layout = TokenLayout.of(task, self.tokenizer, self.learner, window)
        self.steps_per_utterance = self.layout.said_limit
        self._vocab_size = self.tokenizer.vocab_size
        self._space = self.layout.space()
        features = self.options.features
        seen = with_features(self._space, task, self.learner) if features else self._space
        self._batch_spaces(seen, gym.spaces.Discrete(self._vocab_size))
        self._features = _zeros(self.observation_space) if features else None
        self._rows = TokenRows(self.layout, num_envs, overflow == "slide")
        self._walker: _Walker | None = None

    def step(self, actions: Any) -> Step:
        """Say one token in each dialogue.

        Raises:
            ResetNeeded: before the first reset.
            ValueError: the actions are not N whole numbers from 0 to V-1.
        """
        self._require_reset()
        tokens = check_actions(actions, self.action_space, self.task.name)
        active = self._begin_late()
        ended = self._write(active, tokens[active])
        ids, lengths = self._rows.utterances(ended)
        texts = self._clean(self.tokenizer.decode_many(ids, lengths))
        return self._play(active, ended, texts)

    def _write(self, active: np.ndarray, tokens: np.ndarray) -> np.ndarray:
        """Append one token to each active row; the rows whose utterance it ends."""
        rows = self._rows
        length = rows.length[active]
        rows.tokens[active, length] = recorded(tokens)
        rows.length[active] = length + 1
        full = length + 1 - rows.start[active] == rows.limit
        return active[full | (tokens == END)]

    def _clean(self, texts: np.ndarray) -> np.ndarray:
        """The texts as the rules get them; a character tokenizer decodes to nothing else."""
        if isinstance(self.tokenizer, CharTokenizer):
            return texts
        facts, learner = self.task.facts, self.learner
        return np.array([clean(text, facts, learner) for text in texts.tolist()], np.str_)

    def _clear(self, rows: np.ndarray) -> None:
        self._rows.clear(rows)

    def _append(self, rows: np.ndarray, outcome: BatchOutcome) -> np.ndarray:
        heard = outcome.heard_rows, outcome.heard_parties, outcome.heard_texts
        return self._rows.append(rows, *heard)

    def _open(self, rows: np.ndarray) -> np.ndarray:
        if self._walker is not None:
            self._walker.restart(rows)
        return self._rows.open(rows)

    def _observe(self) -> Any:
        return self._seen(slice(None))

    def _observe_row(self, row: int) -> Any:
        return self._seen(row)

    def _seen(self, rows: Any) -> Any:
        tokens = self._rows.tokens[rows, : self.layout.window].copy()
        if self._features is None:
            return tokens
        return {"tokens": tokens, "features": self._features[rows].copy()}

    def _update_extras(
        self, rows: np.ndarray, over: np.ndarray | None = None
    ) -> dict[str, np.ndarray]:
        if self._features is not None:
            for row, state in zip(rows.tolist(), self.dialogues.states(rows)):
                self._features[row] = self.task.features(state, self.learner)
        return super()._update_extras(rows, over)

    def _saved_row(self, row: int) -> Any:
        return self._rows.saved(row)

    def _restore_row(self, row: int, saved: Any) -> None:
        self._rows.restore(row, saved)
        if self._walker is not None:
            self._walker.restart(np.array([row]))

    def action_masks(self) -> np.ndarray:
        """(N, V) bool: the tokens that each row's constraint allows next, all after its end."""
        self._require_reset("action_masks")
        if self._walker is None:
            self._walker = _Walker(self._rows, self._compile, self._space.automaton)
        masks = self._walker.masks(self._all)
        masks[self._ended] = True
        return masks

    def _compile(self, row: int) -> TokenAutomaton:
        return compile_constraint(self.dialogues.constraint(row), self.tokenizer)

    def _more_info(self, info: Info) -> Info:
        if self.options.action_masks:
            info["action_mask"] = self.action_masks().view(np.int8)
            info["_action_mask"] = np.ones(self.num_envs, bool)
        return super()._more_info(info)


def _zeros(space: gym.Space) -> np.ndarray:
    """(N, ...) room for the features of a batch of ``Dict(tokens, features)``."""
    assert isinstance(space, gym.spaces.Dict)
    form = space["features"]
    return np.zeros(form.shape or (), form.dtype)


class _Walker:
    """State of each row in the automaton of its constraint, which moves when asked for masks."""

    def __init__(self, rows: TokenRows, compile_row: Any, static: TokenAutomaton | None) -> None:
        self._rows, self._compile, self._static = rows, compile_row, static
        self._node = np.zeros(len(rows.length), np.int64)
        self._walked = rows.start.copy()
        self._own: dict[int, TokenAutomaton] = {}

    def restart(self, rows: np.ndarray) -> None:
        """A new utterance begins in the rows (their start follows at once)."""
        self._node[rows] = 0
        self._walked[rows] = -1
        if self._static is None:
            for row in rows.tolist():
                self._own.pop(row, None)

    def masks(self, rows: np.ndarray) -> np.ndarray:
        walked = np.where(self._walked < 0, self._rows.start, self._walked)
        while (behind := walked < self._rows.length).any():
            late = np.flatnonzero(behind)
            self._node[late] = self._next(late, self._rows.tokens[late, walked[late]])
            walked[late] += 1
        self._walked = walked
        if self._static is not None:
            return self._static.allowed[self._node]
        return np.stack([self._automaton(r).allowed[self._node[r]] for r in rows.tolist()])

    def _next(self, rows: np.ndarray, tokens: np.ndarray) -> Any:
        if self._static is not None:
            return self._static.transitions[self._node[rows], tokens]
        pairs = zip(rows.tolist(), tokens.tolist())
        return [self._automaton(row).transitions[self._node[row], token] for row, token in pairs]

    def _automaton(self, row: int) -> TokenAutomaton:
        if row not in self._own:
            self._own[row] = self._compile(row)
        return self._own[row]
