"""Dialogues of two policies on the same seeds, and the turns at which they part.

Two dialogues of one seed have the same beginning, until the policies say different things: there
the same situation has two replies, which people can compare.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import islice
from typing import Any, NamedTuple

import numpy as np

from dialgym.experiments.bootstrap import mean_difference
from dialgym.viewer.listing import Listing
from dialgym.viewer.query import NotHereError

MOST_LISTED = 2000
"""Pairs that are looked at one by one."""
MOST_COMPARED = 20_000
"""Pairs that statistics are made of; of more dialogues the first ones are compared."""


class Parting(NamedTuple):
    """The turn at which two dialogues part.

    Attributes:
        turn: its index, the same in both.
        context: what was said, heard and told before.
        replies: what the learner said in each.
    """

    turn: int
    context: tuple[str, ...]
    replies: tuple[str, str]


def parting(first: Mapping[str, Any], second: Mapping[str, Any]) -> Parting | None:
    """The first utterances of the learner that differ while all before is the same, if any.

    Args:
        first, second: rows of a dataset.
    """
    context: list[str] = []
    for index, (one, other) in enumerate(zip(first["turns"], second["turns"])):
        differ = one["text"] != other["text"]
        if one["said"] and other["said"] and differ:
            return Parting(index, tuple(context), (one["text"], other["text"]))
        if differ or one["said"] != other["said"]:
            return None
        context.append(one["text"])
    return None


@dataclass
class Side:
    """Dialogues of one policy.

    Attributes:
        name: what the page calls it.
        source: the number of the source.
        listing: the dialogues.
        rows: those of them that are compared.
    """

    name: str
    source: int
    listing: Listing
    rows: np.ndarray

    def by_key(self) -> dict[tuple[str, ...], int]:
        """The rows by what makes dialogues comparable: environment, settings and seed."""
        data = self.listing.dataset
        names = ("env", "settings", "seed", "options")
        columns = [data[name][self.rows] for name in names]
        row_of: dict[tuple[str, ...], int] = {}
        for row, *key in zip(self.rows.tolist(), *columns):
            env = str(key[0]).replace("-act-", "-").replace("-utterance-", "-")
            row_of.setdefault((env, *map(str, key[1:])), row)  # a game before its branches
        return row_of


class Comparison:
    """Two sides, seed by seed.

    Args:
        sides: the two.

    Raises:
        ValueError: they have no seed in common.
    """

    def __init__(self, sides: tuple[Side, Side]) -> None:
        self.sides = sides
        first, second = (side.by_key() for side in sides)
        pairs = ((row, second[key]) for key, row in first.items() if key in second)
        self.pairs = list(islice(pairs, MOST_COMPARED))
        if not self.pairs:
            raise ValueError(
                f"compare: {sides[0].name} and {sides[1].name} have no dialogue of the same "
                "environment, settings and seed. Collect both with the same --seed."
            )

    def shown(self) -> dict[str, Any]:
        """The table of the first `MOST_LISTED` pairs: seeds, returns, differences; and of all the
        mean difference, with its 95 % interval."""
        returns = [side.listing.returns for side in self.sides]
        rows = np.array(self.pairs, np.int64)
        returns_of_pairs = np.stack([r[rows[:, i]] for i, r in enumerate(returns)])
        differences = returns_of_pairs[1] - returns_of_pairs[0]
        estimate = mean_difference(returns_of_pairs[1][None], returns_of_pairs[0][None])
        wins = [int((differences < 0).sum()), int((differences > 0).sum())]
        return {
            "sides": [
                {
                    "name": side.name,
                    "source": side.source,
                    "mean": float(returns_of_pairs[i].mean()),
                    "success": float(side.listing.columns["success"][rows[:, i]].mean()),
                    "wins": wins[i],
                }
                for i, side in enumerate(self.sides)
            ],
            "ties": len(self.pairs) - sum(wins),
            "difference": estimate.value,
            "interval": list(estimate.interval),
            "count": len(self.pairs),
            "rows": list(self._rows(returns_of_pairs)),
        }

    def _rows(self, returns_of_pairs: np.ndarray) -> Iterator[dict[str, Any]]:
        seeds = self.sides[0].listing.columns["seed"]
        for number, pair in enumerate(self.pairs[:MOST_LISTED]):
            first, second = (float(value) for value in returns_of_pairs[:, number])
            yield {
                "rows": list(pair),
                "seed": str(seeds[pair[0]]),
                "returns": [first, second],
                "difference": second - first,
            }

    def dialogues(self, number: int) -> dict[str, Any]:
        """Both dialogues of a pair, and where they part.

        Raises:
            NotHereError: there is no such pair.
        """
        if not 0 <= number < len(self.partings):
            raise NotHereError(f"there is no pair {number}; there are {len(self.partings)}.")
        pair = self.pairs[number]
        both = [side.listing.dialogue(row) for side, row in zip(self.sides, pair)]
        parted = self.partings[number]
        return {
            "dialogues": both,
            "sources": [side.source for side in self.sides],
            "parts": None if parted is None else parted.turn,
        }

    @cached_property
    def partings(self) -> list[Parting | None]:
        """The turns at which the dialogues of the listed pairs part."""
        return [self._parting(number) for number in range(len(self.pairs[:MOST_LISTED]))]

    def _parting(self, number: int) -> Parting | None:
        data: Sequence[Mapping[str, Any]] = [
            side.listing.dataset[row] for side, row in zip(self.sides, self.pairs[number])
        ]
        return parting(data[0], data[1])
