"""Action and observation spaces of the views, and the layout of transcripts in tokens."""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from numbers import Integral
from typing import Any, NoReturn

import gymnasium as gym
import numpy as np
from gymnasium.error import CustomSpaceError
from gymnasium.vector.utils import create_shared_memory

from dialgym.language import Constraint, TokenAutomaton, compile_constraint
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
from dialgym.views.saved import SeenTokens


class TokenBox(gym.spaces.Box):
    """`Box(0, V-1, (L,), int32)`: a transcript as token ids, PAD on the right.

    Beside what a Box has, it tells a policy what the tokens are.

    Attributes:
        vocab_size: V.
        window: L.
        tokenizer: what the ids mean.
        learner_tag: the token that opens the learner's utterances.
        constraint: what the learner may ever say; None where that depends on more than the
            utterance so far (then only the env's `action_masks()` knows it).
        union: what the learner may say in some state, for plans of an utterance where `constraint`
            is None; None where it is the constraint, or not known.
        limits: most tokens of an utterance, ``<end>`` included, by speaker; those not named have
            no limit.
    """

    def __init__(
        self,
        tokenizer: Tokenizer,
        window: int,
        learner_tag: int,
        constraint: Constraint | None = None,
        limits: Mapping[str, int] | None = None,
        union: Constraint | None = None,
    ) -> None:
        super().__init__(0, tokenizer.vocab_size - 1, (window,), np.int32)
        self.vocab_size = tokenizer.vocab_size
        self.window = window
        self.tokenizer = tokenizer
        self.learner_tag = learner_tag
        self.constraint = constraint
        self.union = union
        self.limits = dict(limits or {})

    @cached_property
    def automaton(self) -> TokenAutomaton | None:
        """The constraint over tokens, compiled on first use."""
        if self.constraint is None:
            return None
        return compile_constraint(self.constraint, self.tokenizer)

    @cached_property
    def union_automaton(self) -> TokenAutomaton | None:
        """The union over tokens, compiled on first use; the constraint's where that is known."""
        if self.automaton is not None or self.union is None:
            return self.automaton
        return compile_constraint(self.union, self.tokenizer)

    def __getstate__(self) -> dict[str, Any]:
        """Without the compiled automata, which are quickly made again."""
        compiled = ("automaton", "union_automaton")
        return {key: value for key, value in self.__dict__.items() if key not in compiled}


class UtteranceText(gym.spaces.Text):
    """`Text` of up to `longest` characters; samples of a seed are the same in every process.

    It is not for shared memory, which Gymnasium's batches over processes read once, while it still
    is empty: they are made with ``shared_memory=False``.
    """

    def __init__(self, longest: int, chars: str) -> None:
        super().__init__(longest, min_length=0, charset="".join(sorted(set(chars))))


@create_shared_memory.register(UtteranceText)
def _refuse_shared_memory(space: UtteranceText, n: int = 1, ctx: Any = None) -> NoReturn:
    raise CustomSpaceError(f"{space!r:.80} is read from shared memory once only.")


def utterance_spaces(task: Task, party: str) -> tuple[UtteranceText, UtteranceText]:
    """Observation and action space: what `party` sees of a dialogue, and what it can say."""
    chars = task.facts.charset + UNKNOWN
    frame = "".join(task.voices) + ": \n"
    longest = sum(
        count * (len(f"{speaker}: \n") + task.facts.limit(speaker))
        for speaker, count in task.facts.heard[party].items()
    )
    seen = UtteranceText(longest, chars + frame)
    return seen, UtteranceText(task.facts.limit(party), task.facts.charset)


def maskable(masks: np.ndarray, action_space: gym.Space) -> np.ndarray:
    """Action masks in the form that sb3-contrib's MaskablePPO reads.

    Args:
        masks: (..., A) bool.
        action_space: of one dialogue.

    Returns:
        The masks as they are for `Discrete`; for `MultiBinary` (..., 2A) bool, of each entry of an
        action whether it can be 0, which is always so, and whether it can be 1.
    """
    if not isinstance(action_space, gym.spaces.MultiBinary):
        return masks
    return np.stack([np.ones_like(masks), masks], -1).reshape(*masks.shape[:-1], -1)


def with_features(tokens: gym.Space, task: Task, party: str) -> gym.spaces.Dict:
    """``Dict(tokens, features)``: a party's tokens, and the array that it is given beside them.

    Raises:
        ValueError: the task gives it none.
    """
    form = task.facts.features.get(party)
    if form is None:
        raise ValueError(
            f"features of {task.name}: expected True only where the {party} is given some (see "
            "Facts.features); it is given none. Leave features= out."
        )
    box = gym.spaces.Box(form.low, form.high, form.shape, np.dtype(form.dtype))  # type: ignore[arg-type]
    return gym.spaces.Dict({"tokens": tokens, "features": box})


@dataclass(frozen=True)
class TokenLayout:
    """The token form of what `party` sees: ``<tag> text... <end>`` for each utterance.

    An utterance has at most `limit(speaker)` tokens; one of just that many has no ``<end>``. The
    party itself says at most `said_limit`.
    """

    task: Task
    tokenizer: Tokenizer
    party: str
    window: int

    @classmethod
    def of(cls, task: Task, tokenizer: Tokenizer, party: str, window: int | None) -> "TokenLayout":
        """The layout with the window that every dialogue fits into, unless one is given.

        Where tokens are pieces of words, it is every ordinary dialogue; see `Facts.ordinary`.

        Raises:
            ValueError: the window cannot hold even one exchange.
        """
        cost = {s: 1 + room_for(task, tokenizer, party, s) for s in task.voices}
        least = sum(cost.values())
        if window is None:
            window = max(least, _default_window(task, tokenizer, party))
        if not isinstance(window, Integral) or window < least:
            raise ValueError(
                f"window of {task.name}: expected a whole number from {least} (one exchange); "
                f"got {window!r}. Make it larger, or leave it out."
            )
        return cls(task, tokenizer, party, int(window))

    @property
    def tag(self) -> int:
        """The token that opens the party's own utterances."""
        return TAGS[self.party]

    def tag_of(self, speaker: str) -> int:
        """The token that opens an utterance; of a source's, that of the other party."""
        other = next(tag for name, tag in TAGS.items() if name != self.party)
        return TAGS.get(speaker, other)

    def limit(self, speaker: str) -> int:
        """Most tokens of one utterance, ``<end>`` included, as far as the window goes."""
        return self._limits[speaker]

    @cached_property
    def said_limit(self) -> int:
        """Most tokens of one utterance that the party says, ``<end>`` included."""
        return room_for(self.task, self.tokenizer, self.party, self.party)

    @cached_property
    def _limits(self) -> dict[str, int]:
        task, tokenizer = self.task, self.tokenizer
        limits = {s: token_limit(task, tokenizer, self.party, s) for s in task.voices}
        return {speaker: min(limit, self.window) for speaker, limit in limits.items()}

    def encode(self, utterance: Utterance) -> list[int]:
        """The tokens of an utterance, its tag first."""
        limit = self._limits[utterance.speaker]
        ids = self.tokenizer.encode(utterance.text)[:limit]
        if len(ids) < limit:
            ids.append(END)
        return [self.tag_of(utterance.speaker), *ids]

    def check_seen(self, seen: SeenTokens) -> None:
        """Raise a ValueError unless these are tokens that the party can have seen."""
        tokens, most = seen.tokens, self.tokenizer.vocab_size
        right = tokens.ndim == 1 and len(tokens) <= self.window and tokens.dtype.kind == "i"
        if not right or not ((tokens >= 0) & (tokens < most)).all():
            raise ValueError(
                f"{self.task.name}: expected up to {self.window} token ids below {most}; got "
                f"{tokens.dtype} {tokens.shape}. Restore dialogues of a view with the same "
                "tokenizer and window."
            )
        if not 0 <= seen.start <= len(tokens):
            raise ValueError(f"{self.task.name}: no utterance begins at token {seen.start}.")

    def space(self) -> TokenBox:
        """The observation space of the party."""
        constraint = self.task.static_constraint(self.party)
        union = self.task.union_constraint(self.party) if constraint is None else None
        limits = {speaker: self.limit(speaker) for speaker in self.task.voices}
        limits[self.party] = self.said_limit
        return TokenBox(self.tokenizer, self.window, self.tag, constraint, limits, union)


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


def room_for(task: Task, tokenizer: Tokenizer, party: str, speaker: str) -> int:
    """Tokens of one utterance, ``<end>`` included, that a window makes room for."""
    if isinstance(tokenizer, WordTokenizer | CharTokenizer):
        return token_limit(task, tokenizer, party, speaker)
    return task.facts.ordinary_limit(speaker)


def _default_window(task: Task, tokenizer: Tokenizer, party: str) -> int:
    """Tokens of the longest dialogue; in pieces of words of any that ordinary ones come near.

    There each utterance gets a token for two of its `Facts.ordinary` characters. Few are as long:
    measured, whole dialogues fit even at a token a character. The last one may still be whole.
    """
    facts = task.facts
    room = {speaker: room_for(task, tokenizer, party, speaker) for speaker in task.voices}
    if facts.ordinary is None or isinstance(tokenizer, WordTokenizer | CharTokenizer):
        return sum((1 + room[s]) * n for s, n in facts.heard[party].items())
    spoken = sum((1 + room[s] // 2) * n for s, n in facts.heard[party].items())
    return spoken + sum(room.values())


def clean(text: str, facts: Facts, speaker: str) -> str:
    """A text as the rules and all transcripts get it: cut to the limit, foreign characters out."""
    text = text[: facts.limit(speaker)]
    if facts.characters.issuperset(text):
        return text
    return "".join([char if char in facts.charset else UNKNOWN for char in text])


def oldest_to_drop(tokens: np.ndarray, excess: int) -> int:
    """Number of the first tokens to drop, whole utterances only, to free `excess`."""
    begins = np.flatnonzero(np.isin(tokens[1:], tuple(TAGS.values()))) + 1
    enough = begins[begins >= excess]
    return int(enough[0]) if len(enough) else len(tokens)
