"""Boards of a king with one or two pieces against a king: moves and attacks, many at once.

Squares are numbered from 0, a1, to 63, h8, rank by rank. A position is (4,) squares: white's king,
black's king, and two pieces of white; one that is not there stands on the king's square, which it
neither blocks nor attacks from. Of two bishops that of the light squares comes first. `kinds` are
those of the pieces: ABSENT, BISHOP, ROOK or QUEEN.
"""

import re
from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import NamedTuple

import numpy as np

from dialgym.io.cache import LRU

NONE = -1
ABSENT, BISHOP, ROOK, QUEEN = range(4)
KING = 0
"""As the kind of what is moved."""
LETTERS = "KBRQ"
ENDINGS: Mapping[str, tuple[int, int]] = {
    "rook": (ROOK, ABSENT),
    "queen": (QUEEN, ABSENT),
    "bishops": (BISHOP, BISHOP),
}
"""Kinds of white's pieces by ending."""
NAMES = tuple(f"{file}{rank}" for rank in "12345678" for file in "abcdefgh")
PLACE = {name: at for at, name in enumerate(NAMES)}
_FILE, _RANK = np.arange(64) & 7, np.arange(64) >> 3
LIGHT = (_FILE + _RANK) & 1 == 1
BITS = np.uint64(1) << np.arange(64, dtype=np.uint64)


def _lines() -> tuple[np.ndarray, np.ndarray]:
    """LINES (4, 64, 64) bool, what a piece of a kind attacks on an empty board; and BETWEEN."""
    lines, between = np.zeros((4, 64, 64), bool), np.zeros((64, 64), np.uint64)
    for start in range(64):
        for right, up in ((x, y) for x in (-1, 0, 1) for y in (-1, 0, 1) if x or y):
            passed, file, rank = np.uint64(0), start & 7, start >> 3
            while 0 <= (file := file + right) < 8 and 0 <= (rank := rank + up) < 8:
                end = 8 * rank + file
                lines[[BISHOP if right and up else ROOK, QUEEN], start, end] = True
                between[start, end] = passed
                passed |= BITS[end]
    return lines, between


LINES, BETWEEN = _lines()
"""BETWEEN: (64, 64) uint64, the squares between two that are in line, as bits."""
STEPS = LINES[QUEEN] & (BETWEEN == 0)
"""(64, 64) bool, the squares that a king attacks."""


def occupied(squares: np.ndarray) -> np.ndarray:
    """(k,) uint64, the squares (k, m) as bits."""
    bits: np.ndarray = np.bitwise_or.reduce(BITS[squares], 1)
    return bits


def _reach(kind: np.ndarray, square: np.ndarray, blocked: np.ndarray) -> np.ndarray:
    """(k, 64) bool: what pieces attack, those that block them included."""
    reached: np.ndarray = LINES[kind, square] & ((BETWEEN[square] & blocked[:, None]) == 0)
    return reached


def white_moves(kinds: np.ndarray, squares: np.ndarray) -> np.ndarray:
    """(3, k, 64) bool: where white's king, its first and its second piece can go.

    White captures nothing, so that these are the squares that they can have come from, too.
    """
    bits = occupied(squares)
    free = (BITS & bits[:, None]) == 0
    king = STEPS[squares[:, 0]] & ~STEPS[squares[:, 1]]
    pieces = [_reach(kinds[:, at], squares[:, 2 + at], bits) for at in (0, 1)]
    moves: np.ndarray = np.stack([king, *pieces]) & free
    return moves


def attacked(kinds: np.ndarray, squares: np.ndarray) -> np.ndarray:
    """(k, 64) bool: the squares on which white would capture the black king."""
    bits = occupied(squares[:, [0, 2, 3]])
    found = STEPS[squares[:, 0]]
    for at in (0, 1):
        found |= _reach(kinds[:, at], squares[:, 2 + at], bits)
    return found


def slots(kinds: np.ndarray, kind: np.ndarray, target: np.ndarray) -> np.ndarray:
    """(k,) the place in a position of the piece of a kind that moves to `target`."""
    return np.where(kind == KING, 0, 2 + ((kinds[:, 1] == kind) & ~LIGHT[target]))


def slot(kinds: Sequence[int], kind: int, target: int) -> int:
    """The same of one move."""
    return 0 if kind == KING else 2 + (kinds[1] == kind and not LIGHT[target])


def after_white(
    kinds: np.ndarray, squares: np.ndarray, kind: np.ndarray, target: np.ndarray
) -> np.ndarray:
    """(k, 4) the positions after moves of pieces of a kind."""
    then = squares.copy()
    then[np.arange(len(then)), slots(kinds, kind, target)] = target
    return with_absent(kinds, then)


def after_black(squares: np.ndarray, target: np.ndarray) -> np.ndarray:
    """(k, 4) the positions after moves of the black king that capture nothing."""
    then = squares.copy()
    then[:, 1] = target
    return then


def with_absent(kinds: np.ndarray, squares: np.ndarray) -> np.ndarray:
    """The positions, changed: a piece that is not there stands on its king's square."""
    absent = kinds[:, 1] == ABSENT
    squares[absent, 3] = squares[absent, 0]
    return squares


def captures(squares: np.ndarray, target: np.ndarray) -> np.ndarray:
    """(k,) bool: whether the black king captures a piece on `target`."""
    hit: np.ndarray = (squares[:, 2:] == target[:, None]).any(1)
    return hit


class Legal(NamedTuple):
    """Legal moves of who is to move, as 64 times the piece's kind and the target; and check."""

    moves: tuple[int, ...]
    check: bool


Position = tuple[tuple[int, int], tuple[int, ...], bool]
"""Kinds, squares, and whether black is to move."""
_LEGAL: LRU[Legal] = LRU(2**15)


def legal_moves(positions: Sequence[Position]) -> list[Legal]:
    """Legal moves of positions, remembered: those of many are found at once."""

    def found(places: list[int]) -> list[Legal]:
        legal: dict[int, Legal] = {}
        for black in (False, True):
            own = [place for place in places if positions[place][2] == black]
            if own:
                kinds = np.array([positions[place][0] for place in own])
                squares = np.array([positions[place][1] for place in own])
                legal |= dict(zip(own, (_of_black if black else _of_white)(kinds, squares)))
        return [legal[place] for place in places]

    return _LEGAL.get_many(positions, found)


def legal_of(position: Position) -> Legal:
    """The same of one position."""
    return _LEGAL.get(position) or legal_moves([position])[0]


def _of_white(kinds: np.ndarray, squares: np.ndarray) -> list[Legal]:
    moves = white_moves(kinds, squares)
    board = np.zeros((len(squares), 4, 64), bool)
    board[:, KING] = moves[0]
    rows = np.arange(len(squares))
    for at in (0, 1):
        board[rows, kinds[:, at]] |= moves[1 + at]
    return [Legal(tuple(np.flatnonzero(row).tolist()), False) for row in board.reshape(-1, 256)]


def _of_black(kinds: np.ndarray, squares: np.ndarray) -> list[Legal]:
    hit, king = attacked(kinds, squares), squares[:, 1]
    checks = hit[np.arange(len(squares)), king].tolist()
    boards = STEPS[king] & ~hit
    return [Legal(tuple(np.flatnonzero(b).tolist()), c) for b, c in zip(boards, checks)]


# Notation

_MOVE = re.compile(
    r"(?:\d+\.+)?(?:(?P<piece>[kqrb])x?(?P<to>[a-h][1-8])|(?P<start>[a-h][1-8])-?(?P<end>[a-h][1-8]))[+#!?.]*"
)


@lru_cache(2**14)
def read_move(text: str) -> tuple[int, int, int]:
    """Kind, square that is left, and target of a move in SAN or UCI; what is not said is NONE.

    Spaces, capitals, a move's number and marks such as ``+`` do not matter.
    """
    found = _MOVE.fullmatch("".join(text.split()).lower())
    if found is None:
        return NONE, NONE, NONE
    piece, to, start, end = found.group("piece", "to", "start", "end")
    if piece:
        return LETTERS.index(piece.upper()), NONE, PLACE[to]
    return NONE, PLACE[start], PLACE[end]


def listed(kinds: Sequence[int], squares: Sequence[int]) -> str:
    """``white Kd4 Rh1 black Kd6``."""
    pieces = [(LETTERS[kind], at) for kind, at in zip(kinds, squares[2:]) if kind]
    own = " ".join(f"{letter}{NAMES[at]}" for letter, at in [("K", squares[0]), *pieces])
    return f"white {own} black K{NAMES[squares[1]]}"


def fen(kinds: Sequence[int], squares: Sequence[int], moves: int) -> str:
    """The position in FEN, white to move, after so many moves of both."""
    board = [["1"] * 8 for _ in range(8)]
    for kind, at in [*zip(kinds, squares[2:]), (KING, squares[0])]:
        board[at >> 3][at & 7] = LETTERS[kind]
    board[squares[1] >> 3][squares[1] & 7] = "k"
    rows = "/".join("".join(row) for row in board[::-1])
    placed = re.sub("1+", lambda run: str(len(run[0])), rows)
    return f"{placed} w - - {2 * moves} {moves + 1}"


def read_position(text: str) -> tuple[tuple[int, int], list[int]]:
    """Kinds and squares of a position in FEN, or as `listed` writes it.

    Raises:
        ValueError: it is neither, or of no ending that there is.
    """
    placed = _from_fen(text) if "/" in text else _from_list(text)
    white = sorted((LETTERS.find(letter), at) for letter, at in placed if letter.isupper())
    black = [at for letter, at in placed if letter == "k"]
    first, second, *_ = *(kind for kind, _ in white[1:]), ABSENT, ABSENT
    kinds = (first, second)
    known = white and white[0][0] == KING and kinds in ENDINGS.values() and len(white) < 4
    if not known or len(black) != 1 or len(placed) != len(white) + 1:
        raise ValueError("of none of the endings")
    pieces = [at for _, at in white[1:]]
    pieces = sorted(pieces, key=lambda at: not LIGHT[at]) if len(pieces) == 2 else [
        *pieces, white[0][1]]  # fmt: skip
    return kinds, [white[0][1], black[0], *pieces]


def check_position(kinds: tuple[int, int], squares: Sequence[int]) -> None:
    """Raise a ValueError where pieces share a square, bishops a colour, or black is in check."""
    pieces = squares if kinds[1] else squares[:3]
    many = np.array([kinds]), np.array([squares])
    if len({*pieces}) < len(pieces) or attacked(*many)[0, squares[1]]:
        raise ValueError("pieces on one square, or black is in check")
    if kinds[1] and LIGHT[squares[2]] == LIGHT[squares[3]]:
        raise ValueError("two bishops of one colour")


def _from_fen(text: str) -> list[tuple[str, int]]:
    squares, *fields = text.split()
    rows = re.sub(r"\d", lambda run: "." * int(run[0]), squares).split("/")
    if [len(row) for row in rows] != [8] * 8 or fields[:1] not in ([], ["w"]):
        raise ValueError("not of eight ranks of eight squares, white to move")
    cells = "".join(rows[::-1])
    return [(letter, at) for at, letter in enumerate(cells) if letter != "."]


def _from_list(text: str) -> list[tuple[str, int]]:
    white, _, black = text.removeprefix("white ").partition(" black ")
    own = [(word[:1], PLACE.get(word[1:], NONE)) for word in white.split()]
    other = [(word[:1].lower(), PLACE.get(word[1:], NONE)) for word in black.split()]
    if any(at == NONE for _, at in [*own, *other]):
        raise ValueError("not a list of pieces and squares")
    return [*own, *other]
