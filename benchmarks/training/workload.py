"""The dialogue that learners are timed on: answer everyday dialogue in up to 20 words.

Its shape is that of DailyDialog as OpenRL trains on it (vocabulary 512, prompts of about 66 tokens,
replies of 20); its text is drawn at random, so that nothing needs to be downloaded.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from dialgym.language import Utterance
from dialgym.tasks import Facts, Outcome, Task
from dialgym.views.sb3 import DialogueVecEnv
from dialgym.views.token_vector_env import TokenVectorEnv

WORDS, FIRST_WORD = 507, 0x4E00
"""With the 5 special tokens a vocabulary of 512. Each word is one character, as in Chinese: an
utterance's limit is one of characters and of tokens alike."""
MANY, FIRST_OF_MANY = 0x8000, 0x20000
"""Number of words beyond which they begin after the surrogates."""
REPLY = 20  # most tokens of a reply, its <end> included
LENGTH_BONUS = 0.1


@dataclass
class Chat:
    """A dialogue so far, and the reply that the next one is compared with."""

    reference: str
    lines: list[Utterance] = field(default_factory=list)

    def copy(self) -> Chat:
        """An independent copy."""
        return replace(self, lines=self.lines.copy())


class Reply(Task):
    """Answer five turns of small talk; the reward is F1 against a hidden reference.

    Args:
        shortest, longest: words of each of the five turns, drawn uniformly. 9 and 13 make prompts
            of 56 to 76 tokens, tags and ``<end>`` included, 66 on average.
        words: of the vocabulary; with 5 special tokens it is that of the token view.
    """

    name = "Reply"

    def __init__(self, shortest: int = 9, longest: int = 13, words: int = WORDS) -> None:
        self.sizes = (shortest, longest + 1)
        self.first = FIRST_OF_MANY if words > MANY else FIRST_WORD
        self.alphabet = "".join(map(chr, range(self.first, self.first + words)))
        weights = 1 / np.arange(1.0, words + 1)  # Zipf's law, as in everyday text
        self._cumulative = (weights / weights.sum()).cumsum()
        self.facts = Facts(
            turn_limit=1,
            longest={"system": max(REPLY - 1, longest), "user": longest},
            heard={p: {"system": 3, "user": 3} for p in self.parties},
            returns={"system": (0.0, 1.0 + LENGTH_BONUS), "user": (0.0, 0.0)},
            charset=self.alphabet,
            components={"system": ("f1", "length")},
        )

    @property
    def window(self) -> int:
        """Tokens of the longest dialogue: each line with its tag and ``<end>``, then the reply."""
        return 5 * (self.sizes[1] + 1) + 1 + self.facts.limit("system")

    def initial(self, rng: np.random.Generator, options: Mapping[str, Any] | None = None) -> Chat:
        """Five turns, the user's first and last, and a reference, all drawn at random."""
        self.check_options(options)
        sizes = rng.integers(*self.sizes, size=5)
        ranks = np.searchsorted(self._cumulative, rng.random(int(sizes.sum()) + REPLY - 1))
        text = ranks.clip(max=len(self.alphabet) - 1) + self.first
        *turns, reference = ("".join(map(chr, part)) for part in np.split(text, sizes.cumsum()))
        speakers = ("user", "system", "user", "system", "user")
        return Chat(reference, [Utterance(s, t) for s, t in zip(speakers, turns)])

    def speaker(self, state: Chat) -> str:
        """Always the learner: the user has spoken already."""
        return "system"

    def transcript(self, state: Chat, party: str) -> list[Utterance]:
        """All lines, for both."""
        return state.lines

    def speak(self, state: Chat, text: str, rng: np.random.Generator) -> Outcome:
        """The one reply; the dialogue ends."""
        state.lines.append(Utterance("system", text))
        by_party = {"system": components_of(text, state.reference), "user": {}}
        return Outcome.of(by_party, terminated=True, success=text != "")


def components_of(text: str, reference: str) -> dict[str, float]:
    """The parts of the reward of a reply."""
    length = LENGTH_BONUS * min(len(text) / len(reference), 1.0)
    return {"f1": unigram_f1(text, reference), "length": length}


def unigram_f1(text: str, reference: str) -> float:
    """Harmonic mean of precision and recall of the words, each counted as often as it occurs."""
    common = (Counter(text) & Counter(reference)).total()
    return 2 * common / (len(text) + len(reference)) if common else 0.0


def reply_env(n_envs: int, seed: int = 0, **sizes: int) -> DialogueVecEnv:
    """`n_envs` dialogues of `Reply` in this process, for Stable-Baselines3."""
    task = Reply(**sizes)
    batch = TokenVectorEnv(task, n_envs, window=task.window, autoreset_mode="SameStep")
    env = DialogueVecEnv(batch)
    env.seed(seed)
    return env
