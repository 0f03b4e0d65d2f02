"""Tablebases of the endings by retrograde analysis: plies to mate, both sides playing best.

White captures nothing and black has a king alone, so white's moves can be taken back as they are
made. From the mates the analysis goes back, ply by ply: white wins in d + 1 where it can move to a
position that black loses in d; black loses in d + 2 where its last legal move leads to a position
that white wins in d + 1, which a count of its moves tells (Thompson 1986, "Retrograde analysis of
certain endgames").

Positions that are mirrored left to right or top to bottom are one: the black king stands on one of
16 squares, a1 to d4. No square is its own image, so no move is counted twice.
"""

from collections.abc import Iterator
from functools import cache
from typing import NamedTuple

import numpy as np

from dialgym.io.cache import cached_arrays
from dialgym.tasks.endgames.board import (
    BISHOP,
    ENDINGS,
    LIGHT,
    STEPS,
    after_black,
    attacked,
    white_moves,
    with_absent,
)
from dialgym.tasks.splits import SPLITS

UNKNOWN, STALEMATE = 254, 255
"""In place of plies: no mate can be forced; black has no move and is not in check."""
CHUNK = 2**12
_LIGHT, _DARK = np.flatnonzero(LIGHT), np.flatnonzero(~LIGHT)
_MIRRORS = np.array([0, 7, 56, 63])
"""A square's number by exclusive or with one of them is that of its image."""


def mirrored(kinds: tuple[int, int], squares: np.ndarray, image: np.ndarray) -> np.ndarray:
    """(k, 4) one of the four images of each position; bishops change colours, and places."""
    seen = squares ^ _MIRRORS[image][:, None]
    if kinds[1] == BISHOP:
        swapped = ~LIGHT[seen[:, 2]]
        seen[swapped, 2:] = seen[swapped, :1:-1]
    return seen


def encode(kinds: tuple[int, int], squares: np.ndarray) -> np.ndarray:
    """(k,) the numbers of positions (k, 4)."""
    black = squares[:, 1]
    seen = mirrored(kinds, squares, ((black & 4) >> 2) | ((black & 32) >> 4))
    white, black, first, second = seen.astype(np.int64).T
    number = ((black >> 3) * 4 + (black & 7)) * 64 + white
    if kinds[1] == BISHOP:
        return (number * 32 + (first >> 1)) * 32 + (second >> 1)
    return number * 64 + first


def decode(kinds: tuple[int, int], numbers: np.ndarray) -> np.ndarray:
    """(k, 4) int64, the positions of these numbers."""
    if kinds[1] == BISHOP:
        rest, first = numbers >> 10, _LIGHT[numbers >> 5 & 31]
        second = _DARK[numbers & 31]
    else:
        rest, first = numbers >> 6, numbers & 63
        second = rest & 63
    king = rest >> 6
    return np.stack([rest & 63, (king >> 2) * 8 + (king & 3), first, second], 1)


class Tablebase(NamedTuple):
    """Plies to mate of the N positions of an ending; UNKNOWN where none can be forced.

    Attributes:
        kinds: of the ending.
        white: (N,) uint8, with white to move: odd; UNKNOWN where that is impossible, too.
        black: (N,) uint8, with black to move: even; STALEMATE where it is one.
    """

    kinds: tuple[int, int]
    white: np.ndarray
    black: np.ndarray

    def plies(self, squares: np.ndarray, black: bool) -> np.ndarray:
        """(k,) int64: plies to mate of positions (k, 4), with white or black to move."""
        table = self.black if black else self.white
        return table[encode(self.kinds, squares)].astype(np.int64)


@cache
def tablebase(ending: str) -> Tablebase:
    """The tablebase of an ending: made in a second or two, and kept in the cache of arrays."""
    kinds = ENDINGS[ending]

    def solved() -> dict[str, np.ndarray]:
        white, black = solve(kinds)
        return {"white": white, "black": black}

    arrays = cached_arrays(f"endgames-{ending}-1", solved)
    return Tablebase(kinds, arrays["white"], arrays["black"])


def solve(kinds: tuple[int, int]) -> tuple[np.ndarray, np.ndarray]:
    """Plies to mate (N,) uint8 with white, and with black to move; see `Tablebase`."""
    count = 16 * 64 * (32 * 32 if kinds[1] == BISHOP else 64)
    possible, checked = np.zeros(count, bool), np.zeros(count, bool)
    left = np.zeros(count, np.int64)  # black's moves that are not known to lose
    for numbers in np.split(np.arange(count), range(CHUNK, count, CHUNK)):
        squares = decode(kinds, numbers)
        many = _many(kinds, numbers)
        possible[numbers] = _distinct(kinds, squares) & ~STEPS[squares[:, 0], squares[:, 1]]
        hit = attacked(many, squares)
        checked[numbers] = hit[np.arange(len(squares)), squares[:, 1]]
        left[numbers] = (STEPS[squares[:, 1]] & ~hit).sum(1)
    white, black = np.full(count, UNKNOWN, np.uint8), np.full(count, UNKNOWN, np.uint8)
    black[possible & (left == 0)] = STALEMATE
    lost = np.flatnonzero(possible & checked & (left == 0))
    legal, depth = possible & ~checked, 0
    while len(lost):
        black[lost] = depth
        won = _marked(count, _before_white(kinds, lost)) & legal & (white == UNKNOWN)
        white[won] = depth + 1
        losing = _counted(count, _before_black(kinds, np.flatnonzero(won)))
        left -= losing
        lost = np.flatnonzero(possible & (losing > 0) & (left == 0))
        depth += 2
    return white, black


def _many(kinds: tuple[int, int], numbers: np.ndarray) -> np.ndarray:
    return np.broadcast_to(np.array(kinds), (len(numbers), 2))


def _distinct(kinds: tuple[int, int], squares: np.ndarray) -> np.ndarray:
    """(k,) bool: whether no two pieces share a square."""
    used = squares if kinds[1] == BISHOP else squares[:, :3]
    there = np.sort(used, 1)
    distinct: np.ndarray = (there[:, 1:] != there[:, :-1]).all(1)
    return distinct


def _marked(count: int, chunks: Iterator[np.ndarray]) -> np.ndarray:
    marks = np.zeros(count, bool)
    for numbers in chunks:
        marks[numbers] = True
    return marks


def _counted(count: int, chunks: Iterator[np.ndarray]) -> np.ndarray:
    return np.bincount(np.concatenate([*chunks, np.zeros(0, np.int64)]), minlength=count)


def _before_white(kinds: tuple[int, int], numbers: np.ndarray) -> Iterator[np.ndarray]:
    """Numbers of the positions from which white can move to these, in chunks."""
    for some in np.split(numbers, range(CHUNK, len(numbers), CHUNK)):
        squares = decode(kinds, some)
        for at, moves in zip((0, 2, 3), white_moves(_many(kinds, some), squares)):
            row, start = np.nonzero(moves)
            before = squares[row]
            before[:, at] = start
            yield encode(kinds, with_absent(_many(kinds, row), before))


def _before_black(kinds: tuple[int, int], numbers: np.ndarray) -> Iterator[np.ndarray]:
    """Numbers of the positions from which black can move to these, in chunks."""
    for some in np.split(numbers, range(CHUNK, len(numbers), CHUNK)):
        squares = decode(kinds, some)
        row, start = np.nonzero(STEPS[squares[:, 1]] & ~STEPS[squares[:, 0]])
        before = after_black(squares[row], start)
        yield encode(kinds, before[_distinct(kinds, before)])


def plies_to_mate(kinds: np.ndarray, squares: np.ndarray, black: bool) -> np.ndarray:
    """(k,) int64: those of positions of any endings; UNKNOWN where no mate can be forced."""
    found = np.full(len(squares), UNKNOWN)
    for ending, own in ENDINGS.items():
        rows = (kinds == own).all(1)
        if rows.any():
            found[rows] = tablebase(ending).plies(squares[rows], black)
    return found


@cache
def starts(ending: str, within: int, split: str | None) -> np.ndarray:
    """(n,) numbers of the positions, of a split, with white to move and mate in so many moves.

    Those that white can end by its first move, with mate or stalemate, are left out. A position's
    split is drawn by its number: 70 % train, 10 % validation, 20 % test.

    Raises:
        ValueError: there are none.
    """
    base = tablebase(ending)
    ends = np.flatnonzero((base.black == 0) | (base.black == STALEMATE))
    short = _marked(len(base.black), _before_white(base.kinds, ends))
    numbers = np.flatnonzero((base.white < min(2 * within, UNKNOWN)) & ~short)
    if split is not None:
        digits = (numbers * 2654435761 % 2**32 >> 16) % 10  # Knuth's multiplicative hash
        place = np.where(digits < 7, 0, np.where(digits == 7, 1, 2))
        numbers = numbers[place == SPLITS.index(split)]
    if not len(numbers):
        raise ValueError(
            f"beginnings of the ending {ending!r}: expected mates in 2 moves or more; none are "
            f"within {within} moves (split {split!r}). Raise within= and turns=."
        )
    return numbers
