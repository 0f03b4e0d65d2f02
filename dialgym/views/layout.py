"""The layout of a party's transcript in tokens or characters: tags, limits, window."""

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from dialgym.language.text import UNKNOWN, Utterance
from dialgym.language.tokenizers import (
    END,
    TAGS,
    CharTokenizer,
    Tokenizer,
    WordTokenizer,
    make_tokenizer,
)
from dialgym.tasks import Facts, Task
from dialgym.views.spaces import TokenBox


@dataclass(frozen=True)
class TokenLayout:
    """The token form of what `party` sees: ``<tag> text... <end>`` for each utterance.

    An utterance has at most `limit(speaker)` tokens; one of just that many has no ``<end>``.
    """

    task: Task
    tokenizer: Tokenizer
    party: str
    window: int

    @classmethod
    def of(cls, task: Task, tokenizer: Tokenizer, party: str, window: int | None) -> "TokenLayout":
        """The layout with the window that every dialogue fits into, unless one is given.

        Raises:
            ValueError: the window cannot hold even one exchange.
        """
        cost = {s: 1 + token_limit(task, tokenizer, party, s) for s in task.parties}
        least = sum(cost.values())
        if window is None:
            window = max(least, sum(cost[s] * n for s, n in task.facts.heard[party].items()))
        if not isinstance(window, int) or window < least:
            raise ValueError(
                f"window of {task.name}: expected a whole number from {least} (one exchange); "
                f"got {window!r}. Make it larger, or leave it out."
            )
        return cls(task, tokenizer, party, window)

    @property
    def tag(self) -> int:
        """The token that opens the party's own utterances."""
        return TAGS[self.party]

    def limit(self, speaker: str) -> int:
        """Most tokens of one utterance, ``<end>`` included."""
        return self._limits[speaker]

    @cached_property
    def _limits(self) -> dict[str, int]:
        task = self.task
        return {s: token_limit(task, self.tokenizer, self.party, s) for s in task.parties}

    def encode(self, utterance: Utterance) -> list[int]:
        """The tokens of an utterance, its tag first."""
        limit = self._limits[utterance.speaker]
        ids = self.tokenizer.encode(utterance.text)[:limit]
        if len(ids) < limit:
            ids.append(END)
        return [TAGS[utterance.speaker], *ids]

    def space(self) -> TokenBox:
        """The observation space of the party."""
        constraint = self.task.static_constraint(self.party)
        limits = {speaker: self.limit(speaker) for speaker in self.task.parties}
        return TokenBox(self.tokenizer, self.window, self.tag, constraint, limits)


def tokenizer_of(task: Task, spec: Any = None) -> Tokenizer:
    """The tokenizer that a setting names, or the task's own; see `make_tokenizer`."""
    return make_tokenizer(
        task.tokenizer if spec is None else spec, task.facts.charset, task.words()
    )


def token_limit(task: Task, tokenizer: Tokenizer, party: str, speaker: str) -> int:
    """Most tokens of one utterance of `speaker` that `party` sees, ``<end>`` included."""
    if isinstance(tokenizer, WordTokenizer):
        return task.facts.word_limit(party, speaker)
    if isinstance(tokenizer, CharTokenizer):
        return task.facts.limit(speaker)
    return task.facts.piece_limit(speaker)


def clean(text: str, facts: Facts, speaker: str) -> str:
    """A text as the rules and all transcripts get it: cut to the limit, foreign characters out."""
    text = text[: facts.limit(speaker)]
    if set(facts.charset).issuperset(text):
        return text
    return "".join([char if char in facts.charset else UNKNOWN for char in text])


def oldest_to_drop(tokens: np.ndarray, excess: int) -> int:
    """How many of the first tokens must leave, whole utterances only, to free `excess`."""
    begins = np.flatnonzero(np.isin(tokens[1:], tuple(TAGS.values()))) + 1
    enough = begins[begins >= excess]
    return int(enough[0]) if len(enough) else len(tokens)
