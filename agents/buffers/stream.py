"""Dialogues that a policy plays while they are learned from: a stream of them, block by block."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Unpack

import numpy as np

from dialgym.datasets import Dataset, TokenBatch, TokenData, collect
from dialgym.datasets.collect import CollectOptions
from dialgym.registry import Environment, entry_of
from dialgym.rollouts.episodes import episode_seed
from dialgym.rollouts.player import Source

BLOCK = 1024
"""Dialogues of a block, unless others are asked for."""


class DialogueStream:
    """New dialogues of a policy in each epoch, in the place of a dataset.

    An epoch is a block of dialogues, which `dialgym.collect` plays when the epoch begins; no other
    is kept. Block k follows from the seed and k alone, so that a resumed run reads the same ones.

    Args:
        env_id: an environment, as of `collect`.
        policy: that plays, as of `collect`; or a generator, of whose episodes as many dialogues are
            drawn as there are episodes.
        episodes: of a block.
        seed: a whole number from 0.
        options: further arguments of `collect`, see `CollectOptions`.
    """

    def __init__(
        self,
        env_id: Environment,
        policy: Source,
        episodes: int = BLOCK,
        seed: int = 0,
        **options: Unpack[CollectOptions],
    ) -> None:
        self.env_id, self.policy = env_id, policy
        self.episodes, self.seed, self.options = episodes, seed, options

    def __len__(self) -> int:
        return self.episodes

    def __repr__(self) -> str:
        given = {"episodes": self.episodes, "seed": self.seed, **self.options}
        settings = ", ".join(f"{name}={value!r}" for name, value in given.items())
        return f"DialogueStream({entry_of(self.env_id).id!r}, {self.policy!r}, {settings})"

    def environment(self) -> tuple[str, dict[str, Any]]:
        """The id and settings of the environment, as `Dataset.environment` gives them."""
        return entry_of(self.env_id).id, dict(self.options.get("env_kwargs") or {})

    def block(self, number: int) -> Dataset:
        """Play the dialogues of a block, counted from 0.

        Raises:
            ValueError: as of `collect`, or there are fewer dialogues than episodes.
        """
        seed = episode_seed(self.seed, number)
        played = collect(self.env_id, self.policy, self.episodes, seed, **self.options)
        if len(played) < self.episodes:
            raise ValueError(
                f"{self!r}: expected at least {self.episodes} dialogues, got {len(played)}"
            )
        chosen = np.random.default_rng([self.seed, number]).permutation(len(played))
        return played.select(np.sort(chosen[: self.episodes]))


class StreamedData:
    """The dialogues of a stream as arrays, one after the other without end.

    Args:
        stream: of N dialogues a block; dialogue i is the (i mod N)-th of block i // N.
        convert: a block to `TokenData`, or its like on act views.
    """

    endless = True

    def __init__(self, stream: DialogueStream, convert: Callable[[Dataset], Any]) -> None:
        self.stream, self.convert = stream, convert
        self.number, self.at_hand = 0, convert(stream.block(0))

    def __len__(self) -> int:
        return len(self.stream)

    @property
    def layout(self) -> Any:
        """The layout of `TokenData`, the same in all blocks."""
        return self.at_hand.layout

    def block(self, number: int) -> Any:
        """The arrays of a block; that of the last call is kept."""
        if number != self.number:
            self.number, self.at_hand = number, self.convert(self.stream.block(number))
        return self.at_hand

    def batch(
        self, rows: Sequence[int] | np.ndarray, gamma: float = 1.0, trim: bool = False
    ) -> TokenBatch:
        """The dialogues `rows` of one block; see `TokenData.batch`."""
        numbers, places = np.divmod(np.asarray(rows, np.int64), len(self))
        found: TokenBatch = self.block(int(numbers[0])).batch(places, gamma, trim)
        return found


def known_dialogues(data: TokenData | StreamedData) -> TokenData:
    """The data itself; of a stream its first block."""
    if isinstance(data, StreamedData):
        first: TokenData = data.block(0)
        return first
    return data
