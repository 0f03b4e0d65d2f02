"""Moves and tablebases against slow, obvious versions; against python-chess where it is there."""

import numpy as np
import pytest

from dialgym.tasks.endgames.board import (
    ENDINGS,
    LETTERS,
    NAMES,
    fen,
    legal_moves,
    listed,
    read_position,
)
from dialgym.tasks.endgames.tablebase import (
    STALEMATE,
    UNKNOWN,
    decode,
    encode,
    mirrored,
    solve,
    starts,
    tablebase,
)

LONGEST = {"rook": 16, "queen": 10, "bishops": 19}
STRAIGHT, DIAGONAL = ((1, 0), (-1, 0), (0, 1), (0, -1)), ((1, 1), (1, -1), (-1, 1), (-1, -1))
LINES = {"B": DIAGONAL, "R": STRAIGHT, "Q": STRAIGHT + DIAGONAL, "K": STRAIGHT + DIAGONAL}
FAST = ("rook", "queen", pytest.param("bishops", marks=pytest.mark.slow))


def rays(letter, at, taken):
    """Squares that a piece attacks, one step after the other."""
    for right, up in LINES[letter]:
        file, rank = at % 8 + right, at // 8 + up
        while 0 <= file < 8 and 0 <= rank < 8:
            yield 8 * rank + file
            if letter == "K" or 8 * rank + file in taken:
                break
            file, rank = file + right, rank + up


def pieces_of(kinds, squares):
    return [("K", squares[0]), *((LETTERS[k], at) for k, at in zip(kinds, squares[2:]) if k)]


def attacks(pieces, target, but=None):
    taken = {at for _, at in pieces}
    return any(target in rays(p, at, taken) for p, at in pieces if at != but)


def slow_white(kinds, squares):
    pieces, king = pieces_of(kinds, squares), squares[1]
    taken = {at for _, at in pieces} | {king}
    moves = [(p, to) for p, at in pieces for to in rays(p, at, taken) if to not in taken]
    near = set(rays("K", king, ()))
    return {f"{p}{NAMES[to]}" for p, to in moves if p != "K" or to not in near}


def slow_black(kinds, squares):
    pieces = pieces_of(kinds, squares)
    left = [to for to in rays("K", squares[1], ()) if not attacks(pieces, to, but=to)]
    return {f"K{NAMES[to]}" for to in left}


def drawn(ending, count, seed=0):
    """Positions of an ending with white to move, won or not."""
    kinds, rng = ENDINGS[ending], np.random.default_rng(seed)
    while count:
        number = rng.integers(len(tablebase(ending).white), size=1)
        squares = mirrored(kinds, decode(kinds, number), rng.integers(4, size=1))[0].tolist()
        pieces, king = pieces_of(kinds, squares), squares[1]
        if len({at for _, at in pieces} | {king}) > len(pieces) and not attacks(pieces, king):
            count -= 1
            yield kinds, squares


def names(legal):
    return {f"{LETTERS[code >> 6]}{NAMES[code & 63]}" for code in legal.moves}


def moved(kinds, squares, move):
    """The squares after a move of white."""
    at, before = NAMES.index(move[1:]), squares.copy()
    for place, kind in enumerate((0, 0, *kinds)):
        same = place != 1 and LETTERS[kind] == move[0] and (place < 2 or kind)
        if same and (kinds != ENDINGS["bishops"] or place == 0 or colour(squares[place], at)):
            before[place] = at
    return [*before[:3], before[0]] if not kinds[1] else before


def colour(one, other):
    return (one // 8 + one % 8 - other // 8 - other % 8) % 2 == 0


@pytest.mark.parametrize("ending", FAST)
def test_moves_and_plies_are_those_of_slow_rules(ending):
    base, won = tablebase(ending), 0
    for kinds, squares in drawn(ending, 40):
        white = legal_moves([(kinds, tuple(squares), False)])[0]
        assert names(white) == slow_white(kinds, squares)
        best = UNKNOWN
        for move in names(white):
            then = moved(kinds, squares, move)
            black = legal_moves([(kinds, tuple(then), True)])[0]
            assert names(black) == slow_black(kinds, then)
            assert black.check == attacks(pieces_of(kinds, then), then[1])
            worst = int(base.plies(np.array([then]), True)[0])
            assert worst == expected_black(base, kinds, then, black)
            best = min(best, worst)
        found = int(base.plies(np.array([squares]), False)[0])
        assert found == (best + 1 if best < UNKNOWN else UNKNOWN)
        won += found < UNKNOWN
    assert won > 10


def expected_black(base, kinds, squares, black):
    """Bellman's equation for black to move."""
    if not black.moves:
        return 0 if black.check else STALEMATE
    if any(to in squares[2:] for to in black.moves):
        return UNKNOWN
    then = [[squares[0], to, *squares[2:]] for to in black.moves]
    after = int(base.plies(np.array(then), False).max())
    return after + 1 if after < UNKNOWN else UNKNOWN


@pytest.mark.parametrize("ending", FAST)
def test_longest_mates_are_the_known_ones(ending):
    white, black = solve(ENDINGS[ending])
    assert (int(white[white < UNKNOWN].max()) + 1) // 2 == LONGEST[ending]
    assert set(np.unique(white[white < UNKNOWN]) % 2) == {1}
    assert set(np.unique(black[black < UNKNOWN]) % 2) == {0}


@pytest.mark.parametrize("ending", FAST)
def test_images_have_one_number(ending):
    for kinds, squares in drawn(ending, 30):
        seen = np.array([squares])
        number = encode(kinds, seen)
        for image in range(4):
            assert encode(kinds, mirrored(kinds, seen, np.array([image]))) == number
        assert encode(kinds, decode(kinds, number)) == number


def test_splits_share_nothing_and_lose_nothing():
    parts = [starts("queen", 50, split) for split in ("train", "validation", "test")]
    assert sorted(np.concatenate(parts)) == starts("queen", 50, None).tolist()
    assert [round(len(part) / sum(map(len, parts)), 2) for part in parts] == [0.7, 0.1, 0.2]


@pytest.mark.parametrize("ending", FAST)
def test_positions_are_read_as_they_are_written(ending):
    for kinds, squares in drawn(ending, 20):
        for text in (listed(kinds, squares), fen(kinds, squares, 3)):
            assert read_position(text) == (kinds, squares)


@pytest.mark.parametrize("ending", FAST)
def test_python_chess_agrees(ending):
    chess = pytest.importorskip("chess")
    for kinds, squares in drawn(ending, 60, seed=1):
        board = chess.Board(fen(kinds, squares, 0))
        assert board.is_valid()
        white = legal_moves([(kinds, tuple(squares), False)])[0]
        assert names(white) == {board.san(m)[:3] for m in board.legal_moves}
        for move in list(board.legal_moves):
            then = moved(kinds, squares, board.san(move)[:3])
            board.push(move)
            black = legal_moves([(kinds, tuple(then), True)])[0]
            assert names(black) == {board.san(m).replace("x", "") for m in board.legal_moves}
            assert black.check == board.is_check()
            board.pop()
