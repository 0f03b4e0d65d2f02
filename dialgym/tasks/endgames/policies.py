"""Scripted players of endgames, for either party: they choose in many dialogues at once."""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from dialgym.errors import share
from dialgym.tasks.endgames.board import (
    STEPS,
    after_black,
    after_white,
    attacked,
    captures,
    legal_moves,
)
from dialgym.tasks.endgames.tablebase import plies_to_mate
from dialgym.tasks.endgames.task import Endgames, position
from dialgym.tasks.endgames.types import EndgameState
from dialgym.tasks.generators import Leg, Relay, by_halves

Generator = np.random.Generator
CAPTURE, STALEMATE, LOSS = -300, 900, 800


class Moves(NamedTuple):
    """All legal moves (m,) in k positions with the same party to move."""

    black: bool
    bounds: list[int]  # k + 1 places in m: those of a position are from one to the next
    codes: np.ndarray  # (m,)
    kinds: np.ndarray  # (m, 2) of the position
    squares: np.ndarray  # (m, 4)


def moves_of(states: Sequence[EndgameState]) -> Moves:
    """The legal moves in some dialogues."""
    positions = [position(state) for state in states]
    codes = [legal.moves for legal in legal_moves(positions)]
    counts = [len(own) for own in codes]
    kinds, squares = ([place[at] for place in positions] for at in (0, 1))
    return Moves(
        positions[0][2],
        [0, *np.cumsum(counts).tolist()],
        np.array([code for own in codes for code in own], np.int64),
        np.repeat(np.array(kinds), counts, 0),
        np.repeat(np.array(squares), counts, 0),
    )


class ChessPlayer:
    """Chooses the legal move of the least rank; ties are broken at random.

    Args:
        smart: with what probability; else any legal move.
    """

    def __init__(self, smart: float = 1.0) -> None:
        self.smart = share(f"smart of {type(self).__name__}", smart)

    def ranks(self, moves: Moves) -> np.ndarray:
        """(m,) ranks of moves."""
        raise NotImplementedError

    def choose(self, states: Sequence[EndgameState], rngs: Sequence[Generator]) -> list[int]:
        """Moves of k dialogues in which the same party is to move."""
        moves = moves_of(states)
        ranks, chosen = self.ranks(moves), []
        for start, end, rng in zip(moves.bounds, moves.bounds[1:], rngs):
            own = ranks[start:end]
            if self.smart < 1.0 and rng.random() >= self.smart:
                own = np.zeros_like(own)
            best = np.flatnonzero(own == own.min())
            chosen.append(int(moves.codes[start + best[rng.integers(len(best))]]))
        return chosen

    def act(self, task: Endgames, state: EndgameState, rng: Generator) -> int:
        """See `dialgym.tasks.ActPolicy`."""
        code = self.choose([state], [rng])[0]
        return code if state.black else int(np.searchsorted(task.codes, code))

    def reply(self, task: Endgames, state: EndgameState, rng: Generator) -> str:
        return task.text(state, self.choose([state], [rng])[0])

    def reply_many(
        self, task: Endgames, states: Sequence[EndgameState], rngs: Sequence[Generator]
    ) -> Sequence[str]:
        """See `dialgym.simulators.BatchSpeaker`."""
        if not len(states):
            return []
        return [task.text(*each) for each in zip(states, self.choose(states, rngs))]


class RandomMove(ChessPlayer):
    """Any legal move, all equally likely."""

    def __init__(self) -> None:
        super().__init__()

    def ranks(self, moves: Moves) -> np.ndarray:
        return np.zeros(len(moves.codes), np.int64)


class Exact(ChessPlayer):
    """Mates soonest as white, resists longest as black, by the tablebase; or captures a piece."""

    def ranks(self, moves: Moves) -> np.ndarray:
        kind, target = np.divmod(moves.codes, 64)
        if not moves.black:
            then = after_white(moves.kinds, moves.squares, kind, target)
            return plies_to_mate(moves.kinds, then, True)
        taken, ranks = captures(moves.squares, target), np.full(len(target), CAPTURE)
        then = after_black(moves.squares[~taken], target[~taken])
        ranks[~taken] = -plies_to_mate(moves.kinds[~taken], then, False)
        return ranks


class SometimesRandom(Exact):
    """With probability `smart` what `Exact` does, else any legal move."""

    def __init__(self, smart: float = 0.5) -> None:
        super().__init__(smart)


class Greedy(ChessPlayer):
    """White as beginners play: mates at once if it can, neither stalemates nor leaves a piece to
    be captured, and else leaves the black king least squares, coming near with its own.
    """

    def ranks(self, moves: Moves) -> np.ndarray:
        then = after_white(moves.kinds, moves.squares, *np.divmod(moves.codes, 64))
        hit, king = attacked(moves.kinds, then), then[:, 1]
        replies = STEPS[king] & ~hit
        rows, left = np.arange(len(then)), replies.sum(1)
        lost = replies[rows, then[:, 2]] | replies[rows, then[:, 3]]
        apart = np.abs(np.array([then[:, 0] & 7, then[:, 0] >> 3]) - [king & 7, king >> 3]).max(0)
        ranks = np.where(lost, LOSS, 10 * left + apart)
        return np.where(left > 0, ranks, np.where(hit[rows, king], -1, STALEMATE))


def graded(poor: float = 0.25, mixed: float = 0.75) -> Relay:
    """Dialogues of three players, each from beginning to end: poor, mixed, expert.

    Args:
        poor, mixed: the share of the moves of these that are best; the others are random.
    """
    players = {"poor": SometimesRandom(poor), "mixed": SometimesRandom(mixed), "expert": Exact()}
    return Relay({name: (Leg(player),) for name, player in players.items()})


halves = by_halves(Exact, RandomMove)
