"""Replies in words: from the turns of a chat to an utterance of a GPT policy."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import accumulate
from threading import RLock
from typing import Any, NamedTuple, Protocol
from weakref import WeakKeyDictionary

import torch
from torch import Tensor

from agents.decoding.sampling import Sampling, Seed, generator_of
from dialgym.language.tokenizers import END, TAGS


class Turn(NamedTuple):
    """One utterance of a chat."""

    own: bool  # of who replies now, not of the other party
    text: str


class Talker(Protocol):
    """Says the next utterance of a chat."""

    def answer(self, turns: Sequence[Turn], sampling: Sampling, generator: torch.Generator) -> str:
        """The reply to the `turns`, oldest first."""
        ...


_locks: WeakKeyDictionary[Any, RLock] = WeakKeyDictionary()
_locks_guard = RLock()


def one_at_a_time(network: Any) -> RLock:
    """Lock of a network, whose KV cache holds one dialogue at a time.

    Threads that ask it for replies at once wait for one another.
    """
    with _locks_guard:
        return _locks.setdefault(network, RLock())


class Chats:
    """Gives an algorithm with a GPT policy the method `chat`."""

    policy: Any

    def chat(
        self, text: str | None, history: Sequence[str] = (), seed: Seed = None, **sampling: Any
    ) -> str:
        """The agent's reply to `text`; see `agents.ChatAgent.chat`."""
        return chat(PolicyTalker(self), text, history, seed, Sampling(**sampling))


def chat(
    talker: Talker, text: str | None, history: Sequence[str], seed: Seed, sampling: Sampling
) -> str:
    """See `agents.ChatAgent.chat`."""
    if isinstance(history, str) or not all(isinstance(line, str) for line in history):
        raise ValueError(
            "history: expected the utterances so far, oldest first and in turns, such as "
            f"['Hi!', 'Hello.'], got {history!r}"
        )
    if text is not None and not isinstance(text, str):
        raise ValueError(f"text: expected a string, or None to let it go first, got {text!r}")
    ends = len(history) % 2  # the last of the history is the agent's
    turns = [Turn(place % 2 != ends, line) for place, line in enumerate(history)]
    turns += [] if text is None else [Turn(False, text)]
    return talker.answer(turns, sampling, generator_of(seed))


class PolicyTalker:
    """A GPT policy that replies as in its environment: tags, limits, window and masks are those.

    A reply costs one reading of what is new since the last one, and a step for each token: the
    policy's cache is that of its rollouts. Threads may share it; one is answered at a time.

    Args:
        model: a learner whose policy is one, or the policy alone; its observations know their
            vocabulary (`TokenBox`).

    Raises:
        ValueError: it is another kind of policy, or of observations.
    """

    def __init__(self, model: Any) -> None:
        policy = getattr(model, "policy", model)
        space: Any = getattr(policy, "observation_space", None)
        if not hasattr(policy, "utter") or not hasattr(space, "tokenizer"):
            raise ValueError(
                "chat: expected an agent with a GPT policy and observations in words (a token view "
                f"of dialgym), got {type(policy).__name__} with {space}; it cannot talk"
            )
        self.policy, self.space = policy, space
        self.speaker = model if hasattr(model, "utter") else policy
        self.ask = getattr(model, "_masks_to_predict", None)  # of a learner with masks of its own
        self.own = next(name for name, tag in TAGS.items() if tag == space.learner_tag)
        self.other = next(name for name in TAGS if name != self.own)

    def answer(self, turns: Sequence[Turn], sampling: Sampling, generator: torch.Generator) -> str:
        """See `Talker`. The oldest utterances are left out where the window has no room.

        Raises:
            ValueError: the last utterance alone leaves no room for a reply.
        """
        most = self._most(sampling.max_tokens)
        prompt = self._prompt(turns, self.space.window - most)
        with one_at_a_time(self.policy), torch.no_grad():
            self.policy.set_training_mode(False)
            said = self.speaker.utter(prompt, most, sampling, generator, self._masks)
        text: str = self.space.tokenizer.decode([token for token in said if token != END])
        return text

    def _masks(self, tokens: Tensor) -> Any:
        return None if self.ask is None else self.ask(tokens.cpu().numpy(), None)

    def _limit(self, speaker: str) -> int | None:
        limit: int | None = getattr(self.space, "limits", {}).get(speaker)
        return limit

    def _most(self, wanted: int | None) -> int:
        """Tokens of a reply; a quarter of the window where neither task nor caller says it."""
        limit = self._limit(self.own)
        if wanted is None:
            return limit or max(self.space.window // 4, 1)
        return wanted if limit is None else min(wanted, limit)

    def _encode(self, turn: Turn) -> list[int]:
        """As token views write it: its tag, its tokens up to the limit, and ``<end>``."""
        speaker = self.own if turn.own else self.other
        limit = self._limit(speaker)
        ids = self.space.tokenizer.encode(turn.text)[:limit]
        ended = [] if limit is not None and len(ids) == limit else [END]
        return [TAGS[speaker], *ids, *ended]

    def _prompt(self, turns: Sequence[Turn], room: int) -> list[int]:
        """The tokens that a reply follows, at most `room`, its tag included."""
        written = newest([self._encode(turn) for turn in turns], room - 1)
        return [token for ids in written for token in ids] + [self.space.learner_tag]


def newest(written: Sequence[list[int]], room: int) -> Sequence[list[int]]:
    """The last utterances that have at most `room` tokens together.

    Raises:
        ValueError: there is no room for even the last.
    """
    sizes = list(accumulate(len(ids) for ids in reversed(written)))
    kept = sum(size <= room for size in sizes)
    if room < 0 or (written and not kept):
        raise ValueError(
            f"chat: the last utterance has {len(written[-1]) if written else 0} tokens, the window "
            f"has room for {max(room, 0)} beside a reply; say it in fewer words, or lower "
            "max_tokens"
        )
    return written[len(written) - kept :]
