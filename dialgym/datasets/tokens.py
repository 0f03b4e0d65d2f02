"""Token arrays of a dataset, to learn from."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from os import PathLike
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from dialgym.datasets.packing import check_vocabulary, flat_arrays, kept_arrays
from dialgym.errors import did_you_mean, finite_number
from dialgym.io.files import read_json
from dialgym.language.tokenizers import PAD, UNK, Tokenizer
from dialgym.views.spaces import TokenLayout

CACHED_FROM = 10_000
"""Dialogues from which on `pack` keeps the arrays unless told otherwise."""


class TokenBatch(NamedTuple):
    """B dialogues, PAD, False and 0 on the right. L is the window, or the longest of the batch.

    ``tokens[i]`` is what the learner sees at the end of the dialogue, its last utterance included.
    The action at place p was chosen after seeing ``tokens[i, :p]``.
    """

    tokens: np.ndarray  # (B, L) int32
    is_action: np.ndarray  # (B, L) bool, the tokens that the learner said, <end> included
    reward: np.ndarray  # (B, L) float32, at the action that earned it: an utterance's last
    return_to_go: np.ndarray  # (B, L) float32, at actions: what it and later ones earn; else 0
    terminated: np.ndarray  # (B,) bool
    truncated: np.ndarray  # (B,) bool
    lengths: np.ndarray  # (B,) int64, tokens that are not PAD
    rows: np.ndarray  # (B,) int64, which dialogues of the dataset they are

    @property
    def cut_off(self) -> np.ndarray:
        """(B,) bool: ended by a limit alone, and not by the rules as well."""
        return self.truncated & ~self.terminated


@dataclass(frozen=True, eq=False)
class TokenData:
    """All dialogues of a dataset as flat arrays, T tokens in all; batches are cut from them.

    Attributes:
        layout: how they are written.
        tokens: (T,) int32.
        is_action: (T,) bool.
        reward: (T,) float32.
        offsets: (N+1,) int64; dialogue i is the tokens from ``offsets[i]`` to ``offsets[i+1]``.
        terminated, truncated: (N,) bool.
    """

    layout: TokenLayout
    tokens: np.ndarray
    is_action: np.ndarray
    reward: np.ndarray
    offsets: np.ndarray
    terminated: np.ndarray
    truncated: np.ndarray

    def __len__(self) -> int:
        return len(self.offsets) - 1

    @property
    def window(self) -> int:
        """L."""
        return self.layout.window

    @property
    def vocab_size(self) -> int:
        """V."""
        return self.layout.tokenizer.vocab_size

    @property
    def lengths(self) -> np.ndarray:
        """(N,) int64: tokens of each dialogue."""
        return np.diff(self.offsets)

    def batch(
        self, rows: Sequence[int] | np.ndarray, gamma: float = 1.0, trim: bool = False
    ) -> TokenBatch:
        """The dialogues at `rows`.

        Args:
            rows: (B,) indices from 0 to N-1.
            gamma: discount of the returns, for each action token.
            trim: L is the longest length in the batch instead of the window.
        """
        rows = np.asarray(rows, np.int64)
        start, lengths = self.offsets[rows], self.offsets[rows + 1] - self.offsets[rows]
        width = int(lengths.max(initial=0)) if trim else self.window
        columns = np.arange(width)
        inside = columns < lengths[:, None]
        positions = np.where(inside, start[:, None] + columns, 0)
        is_action = self.is_action[positions] & inside
        reward = np.where(inside, self.reward[positions], np.float32(0))
        return TokenBatch(
            np.where(inside, self.tokens[positions], np.int32(PAD)),
            is_action,
            reward,
            returns_to_go(reward, is_action, gamma),
            self.terminated[rows],
            self.truncated[rows],
            lengths,
            rows,
        )

    def batches(
        self,
        size: int,
        rng: np.random.Generator,
        gamma: float = 1.0,
        trim: bool = False,
    ) -> Iterator[TokenBatch]:
        """Batches of `size` dialogues without end, each epoch in a new order.

        The last dialogues of an epoch, too few for a batch, are left out of it.

        Raises:
            ValueError: there are fewer dialogues than a batch holds.
        """
        for rows in shuffled_rows(len(self), size, rng, "dialogues"):
            yield self.batch(rows, gamma, trim)

    def with_token_rewards(
        self,
        constant: float = 0.0,
        by_token: Mapping[int | str, float] | str | PathLike[str] | None = None,
        scale: float = 1.0,
        reward_scale: float = 1.0,
        reward_shift: float = 0.0,
    ) -> "TokenData":
        """The same data with rewards added to the environment's at every action.

        Args:
            constant: for each token that the learner said.
            by_token: more for some of them, by the token's id or its text, such as ``<end>``; or a
                JSON file of rewards by id.
            scale: factor of those in `by_token`.
            reward_scale: factor of the environment's.
            reward_shift: added to the environment's for each utterance, at its last action; with
                `reward_scale` what the options of views of these names do.

        Raises:
            ValueError: a token is not in the vocabulary, or a reward is no finite number.
            FileNotFoundError: there is no such file.
        """
        where = "with_token_rewards"
        table = np.full(self.vocab_size, finite_number(f"{where}: constant", constant), np.float32)
        for name, value in _rewards(by_token).items():
            token = token_id(self.layout.tokenizer, name, where)
            table[token] += scale * finite_number(f"{where}: the reward of {name!r}", value)
        more = np.where(self.is_action, table[self.tokens], np.float32(0))
        factor = np.float32(finite_number(f"{where}: reward_scale", reward_scale))
        shift = np.float32(finite_number(f"{where}: reward_shift", reward_shift))
        own = factor * self.reward + shift * self._ends_utterance()
        return replace(self, reward=own + more)

    def _ends_utterance(self) -> np.ndarray:
        """Mark the last action of each of the learner's utterances, (tokens,) bool."""
        goes_on = np.append(self.is_action[1:], False)
        goes_on[self.offsets[1:] - 1] = False
        return self.is_action & ~goes_on


def _rewards(
    by_token: Mapping[int | str, float] | str | PathLike[str] | None,
) -> Mapping[int | str, float]:
    """The rewards of tokens; those of a JSON file are by id."""
    if by_token is None or isinstance(by_token, Mapping):
        return by_token or {}
    found = read_json(Path(by_token), "rewards by token id")
    if not isinstance(found, Mapping) or not all(str(key).isdecimal() for key in found):
        raise ValueError(
            f"{by_token}: expected a JSON object of rewards by token id, such as "
            f'{{"7": -1.0}}, got {found!r:.80}'
        )
    return {int(key): value for key, value in found.items()}


def token_id(tokenizer: Tokenizer, name: int | str, where: str) -> int:
    """The id of a token that is named by its id or its text, a special one such as ``<end>`` too.

    Raises:
        ValueError: it is none of the vocabulary.
    """
    size = tokenizer.vocab_size
    if isinstance(name, str):
        if name in tokenizer.tokens:
            return list(tokenizer.tokens).index(name)
        encoded = tokenizer.encode(name)
        if len(encoded) == 1 and encoded != [UNK]:
            return encoded[0]
        hint = did_you_mean(name, tokenizer.tokens)
        raise ValueError(
            f"{where}: {name!r} is no single token of the vocabulary of {size:,}.{hint}"
        )
    if not 0 <= name < size:
        raise ValueError(f"{where}: token ids are from 0 to {size - 1}; got {name!r}.")
    return name


def returns_to_go(reward: np.ndarray, is_action: np.ndarray, gamma: float = 1.0) -> np.ndarray:
    """(B, L) float32: at each action ``G = r + gamma G'``, G' that of the next action; else 0."""
    earned = np.where(is_action, reward, np.float32(0)).astype(np.float64)
    if gamma == 1:
        sums = earned[:, ::-1].cumsum(1)[:, ::-1]
        return np.where(is_action, sums, 0).astype(np.float32)
    result = np.zeros(reward.shape, np.float32)
    next_return = np.zeros(len(reward))
    for p in range(reward.shape[1] - 1, -1, -1):
        next_return = np.where(is_action[:, p], earned[:, p] + gamma * next_return, next_return)
        result[:, p] = np.where(is_action[:, p], next_return, 0)
    return result


def flat_returns_to_go(rewards: np.ndarray, last: np.ndarray, gamma: float) -> np.ndarray:
    """(M,): the same of decisions one after the other; `last` (M,) bool ends a dialogue."""
    result, next_return = np.zeros(len(rewards)), 0.0
    for i in range(len(rewards) - 1, -1, -1):
        next_return = rewards[i] + (0.0 if last[i] else gamma * next_return)
        result[i] = next_return
    return result


def shuffled_rows(
    count: int, size: int, rng: np.random.Generator, what: str
) -> Iterator[np.ndarray]:
    """(size,) int64 rows of `count` without end, each epoch in a new order, its rest left out.

    Raises:
        ValueError: there are fewer rows than a batch holds; `what` names them.
    """
    if not 1 <= size <= count:
        raise ValueError(
            f"batches: size must be a whole number from 1 to the {count} {what} of the data; "
            f"got {size!r}."
        )
    while True:
        order = rng.permutation(count)
        for start in range(0, count - size + 1, size):
            yield order[start : start + size]


def pack(
    dataset: Any, layout: TokenLayout, reencode: bool = False, cache: bool | None = None
) -> TokenData:
    """The dialogues of a dataset in a token layout.

    Token ids that were logged are taken as they are; text is encoded.

    Args:
        dataset: a `Dataset` whose learner is the layout's party.
        layout: how to write them.
        reencode: encode the text even where other token ids were logged.
        cache: keep the arrays in `dialgym.io.cache.cache_dir`, and map them from there where the
            same dialogues were packed before; None: from 10,000 dialogues on.

    Raises:
        ValueError: the learner is another party, logged ids are of another vocabulary, or a
            dialogue does not fit into the window.
    """
    check_vocabulary(dataset, layout, reencode)

    def build() -> Any:
        return flat_arrays(dataset, layout, reencode)

    keep = len(dataset) >= CACHED_FROM if cache is None else cache
    return TokenData(layout, *(kept_arrays(dataset, layout, reencode, build) if keep else build()))
