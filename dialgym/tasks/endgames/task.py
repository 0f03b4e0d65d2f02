"""The rules of endgames."""

from collections.abc import Mapping, Sequence
from functools import cached_property
from typing import Any

import numpy as np

from dialgym.errors import one_of, whole_number
from dialgym.io.objects import load
from dialgym.language import AnyText, Constraint, Utterance, WordTrie
from dialgym.language.text import CHARSET
from dialgym.simulators import Speaker
from dialgym.tasks.base import SYSTEM, USER, Facts, Outcome, Task
from dialgym.tasks.batch import DialogueBatch
from dialgym.tasks.briefs import turns_sentence
from dialgym.tasks.endgames import board
from dialgym.tasks.endgames.board import ENDINGS, KING, LETTERS, LINES, NAMES, NONE, QUEEN, STEPS
from dialgym.tasks.endgames.tablebase import (
    UNKNOWN,
    decode,
    mirrored,
    plies_to_mate,
    starts,
    tablebase,
)
from dialgym.tasks.endgames.types import EndgameState
from dialgym.tasks.splits import SPLITS

ROOM = "dialgym.tasks.endgames"
POLICIES = f"{ROOM}.policies"
BOARD = "board"
ILLEGAL = Utterance(BOARD, "illegal")
LONGEST = 8  # characters of a move that are looked at
_PIECES = {"rook": "a rook", "queen": "a queen", "bishops": "two bishops"}


class Endgames(Task):
    """Mate a lone king with a king and a rook, a queen, or two bishops.

    The `system` is white and moves first, the `user` is black. Both say moves, in SAN (``Kd4``,
    ``Rh1``) or UCI (``e1d1``), whatever the notation of the settings. The `board` is shown at first
    and before each of white's moves. A mate from each beginning can be forced within the turns.

    The dialogue is over (terminated) with mate, which is a success; with stalemate; when black
    captures a piece; and when who is to move has spoken `turns` times: all of these are draws. The
    default of 50 is the fifty-move rule, for nothing else is captured and there are no pawns.

    Text that is no legal move is answered by ``illegal``, which its speaker alone sees; it takes
    one of the turns, and who spoke is still to move.

    Rewards: for mate 1 to the system and -1 to the user, as the component ``mate``; -1 for each
    text that is no legal move, to who says it (``illegal``). Draws are worth 0.

    Acts: a piece and the square it goes to (the two bishops are told apart by its colour), with
    masks of legal moves; the observation has the squares of each kind of piece, and the turns.

    Args:
        ending: ``rook``, ``queen``, ``bishops``, or ``all``, of which one is drawn.
        within: beginnings are drawn from those that mate in so many moves, at most, from 2; None
            for all.
        turns: utterances of white, and of black, in a dialogue.
        shown: before white's moves the ``board`` as a list of pieces (``white Kd4 Rh1 black Kd6``),
            ``fen``, or nothing, so that the ``moves`` so far have to do.
        notation: ``san`` or ``uci``: that of constraints, acts and black's moves.
        constraint: what action masks allow: ``legal`` moves; ``moves``, legal or not; None, any
            text.
        split: beginnings of ``train``, ``validation`` or ``test``, mirrored ones in the same; None
            for all.

    Options of reset: ``position``, in FEN or as a list of pieces, with white to move.

    Versions:
        v0: the first, of dialgym 0.1.

    Raises:
        ValueError: a setting is not one of the above.

    Source: the task of LMRL-Gym (Abdulhai et al., 2023), with its rewards; there 400 moves, and an
    engine as black. Rules and tablebases are our own; longest mates are the known ones, of 16 moves
    with a rook, 10 with a queen and 19 with two bishops.
    """

    name = "Endgames"
    how_to_play = {  # noqa: RUF012
        SYSTEM: "You play white in a chess endgame, and are to mate the black king.",
        USER: "You play black in a chess endgame: you have a lone king. Avoid mate as long as you "
        "can; it is a draw if you are stalemated or capture a piece.",
    }
    verbs = {SYSTEM: "move(move)", USER: "move(move)"}  # noqa: RUF012
    sources = (BOARD,)
    options = ("position",)
    tokenizer = "word"
    speakers = {  # noqa: RUF012
        USER: {
            "best": f"{POLICIES}:Exact",
            "weak": f"{POLICIES}:SometimesRandom",
            "random": f"{POLICIES}:RandomMove",
        },
        SYSTEM: {
            "optimal": f"{POLICIES}:Exact",
            "greedy": f"{POLICIES}:Greedy",
            "random-mixture": f"{POLICIES}:SometimesRandom",
            "random": f"{POLICIES}:RandomMove",
        },
    }
    generators = {  # noqa: RUF012
        "graded": f"{POLICIES}:graded",
        "halves": f"{POLICIES}:halves",
    }
    act_classes = {  # noqa: RUF012
        SYSTEM: f"{ROOM}.party_acts:WhiteActs",
        USER: f"{ROOM}.party_acts:BlackActs",
    }
    best_responses = {name: {"name": "optimal"} for name in speakers[USER]}  # noqa: RUF012
    """By partner, the policy that nobody surpasses with it: it mates within the turns, always."""

    def __init__(
        self,
        ending: str = "rook",
        within: int | None = None,
        turns: int = 50,
        shown: str = "board",
        notation: str = "san",
        constraint: str | None = "legal",
        split: str | None = None,
    ) -> None:
        one_of("ending", ending, (*ENDINGS, "all"), self.name)
        one_of("shown", shown, ("board", "fen", "moves"), self.name)
        one_of("notation", notation, ("san", "uci"), self.name)
        one_of("constraint", constraint, ("legal", "moves", None), self.name)
        one_of("split", split, (*SPLITS, None), self.name)
        self.turns = whole_number("turns", turns, self.name, 2)
        self.within = self.turns
        if within is not None:
            self.within = min(whole_number("within", within, self.name, 2), self.turns)
        self.endings = tuple(ENDINGS) if ending == "all" else (ending,)
        self.shown, self.notation, self.limited, self.split = shown, notation, constraint, split
        if shown == "fen":
            self.tokenizer = "char"  # type: ignore[misc]
        self.kinds = (KING, *sorted({k for name in self.endings for k in ENDINGS[name] if k}))
        self.codes = np.concatenate([np.arange(64) + 64 * kind for kind in self.kinds])
        """(A,) white's moves: 64 times the kind of a piece, and its target."""
        self.facts = self._facts()

    def _facts(self) -> Facts:
        turns = self.turns
        lines = {SYSTEM: turns, USER: turns, BOARD: turns + 1}
        longest = {SYSTEM: LONGEST, USER: LONGEST, BOARD: 40}
        words = {SYSTEM: 1, USER: 1, BOARD: 6}
        return Facts(
            turn_limit=turns,
            longest=longest,
            heard={SYSTEM: lines, USER: {**lines, BOARD: 2 * turns + 1}},
            returns={SYSTEM: (-float(turns), 1.0), USER: (-float(turns), 0.0)},
            charset=CHARSET,
            may_end=self.parties,
            words=dict.fromkeys(self.parties, words),
            components=dict.fromkeys(self.parties, ("mate", "illegal")),
            metrics=("legal", "efficiency"),
        )

    @cached_property
    def starts(self) -> Mapping[str, np.ndarray]:
        """By ending, the numbers of its beginnings in the tablebase."""
        return {name: starts(name, self.within, self.split) for name in self.endings}

    def __getstate__(self) -> dict[str, Any]:
        """Without the beginnings, which another process finds in the cache."""
        return {key: value for key, value in self.__dict__.items() if key != "starts"}

    def initial(
        self, rng: np.random.Generator, options: Mapping[str, Any] | None = None
    ) -> EndgameState:
        position = self.check_options(options).get("position")
        if position is None:
            kinds, squares, moves = self._draw(rng)
        else:
            kinds, squares = self._read_position(position)
            moves = self.mate_in(kinds, squares)
        state = EndgameState(kinds, squares, [], [], moves)
        self._show(state)
        if self.shown == "moves":
            self._note(state, board.listed(kinds, squares))
        return state

    def _draw(self, rng: np.random.Generator) -> tuple[tuple[int, int], list[int], int]:
        """Draw an ending where there are several, a position, and one of its images."""
        ending = self.endings[int(rng.integers(len(self.endings)))]
        numbers, base = self.starts[ending], tablebase(ending)
        at, image = divmod(int(rng.integers(4 * len(numbers))), 4)
        own = numbers[[at]]
        squares = mirrored(base.kinds, decode(base.kinds, own), np.array([image]))
        return base.kinds, squares[0].tolist(), (int(base.white[own[0]]) + 1) // 2

    def _read_position(self, position: Any) -> tuple[tuple[int, int], list[int]]:
        try:
            kinds, squares = board.read_position(position)
            if kinds not in [ENDINGS[name] for name in self.endings]:
                raise ValueError(f"not of {' or '.join(self.endings)}")
            board.check_position(kinds, squares)
        except (ValueError, AttributeError, TypeError) as error:
            raise ValueError(
                f"option 'position' of {self.name}: expected a position with white to move, such "
                f"as 'white Kd4 Rh1 black Kd6' or its FEN; got {position!r} ({error})."
            ) from error
        return kinds, squares

    def mate_in(self, kinds: tuple[int, int], squares: Sequence[int]) -> int:
        """Moves to mate, with white to move; 0 where it cannot be forced."""
        plies = int(plies_to_mate(np.array([kinds]), np.array([squares]), False)[0])
        return 0 if plies == UNKNOWN else (plies + 1) // 2

    def best_return(self, state: EndgameState) -> float:
        """The most that white can still get from a best defence; white is to move."""
        moves = self.mate_in(state.kinds, state.squares)
        return float(0 < moves <= self.turns - state.spoken[0])

    def hypotheses(self, state: EndgameState) -> int:
        """One, for nothing is hidden; see `dialgym.tasks.ExactPosterior`."""
        return 1

    def posterior(self, state: EndgameState) -> np.ndarray:
        """(1,) float64 of 1."""
        return np.ones(1)

    def truth(self, state: EndgameState) -> int:
        """0."""
        return 0

    def suppose(self, state: EndgameState, place: int) -> EndgameState:
        """A copy."""
        return state.copy()

    def speaker(self, state: EndgameState) -> str:
        return USER if state.black else SYSTEM

    def transcript(self, state: EndgameState, party: str) -> Sequence[Utterance]:
        return state.lines if party == SYSTEM else state.black_lines

    def notes(self, state: EndgameState, party: str) -> int:
        """The board at first."""
        return 1

    def conditions(self, party: str) -> Sequence[str]:
        """The pieces, how moves are said, and what is no move."""
        pieces = " or ".join(_PIECES[name] for name in self.endings)
        example = "e1d1" if self.notation == "uci" else "Kd4"
        return [
            f"White has a king and {pieces}, black a lone king.",
            f"Say a move, such as {example}, and nothing else; what is no legal move costs 1.",
            f"{turns_sentence(self, party)} Then it is a draw.",
        ]

    def speak(self, state: EndgameState, text: str, rng: np.random.Generator) -> Outcome:
        party = int(state.black)
        line, own = Utterance(self.parties[party], text), (state.lines, state.black_lines)[party]
        code = self.read(state, text)
        state.spoken[party] += 1
        if code == NONE:
            state.illegal[party] += 1
            own += (line, ILLEGAL)
        else:
            state.lines.append(line)
            state.black_lines.append(line)
            self._move(state, code)
        state.over |= state.spoken[state.black] == self.turns
        if party and code != NONE and not state.over:
            self._show(state)
        return _OUTCOMES[party, code == NONE, state.over, state.mate]

    def _move(self, state: EndgameState, code: int) -> None:
        """Change a state by a legal move."""
        state.over = state.black and code % 64 in state.squares[2:]
        state.squares = after(state, code)
        state.black = not state.black
        if state.black:
            replies = legal(state)
            state.over = not replies.moves
            state.mate = state.over and replies.check

    def _show(self, state: EndgameState) -> None:
        if self.shown == "board":
            self._note(state, board.listed(state.kinds, state.squares))
        elif self.shown == "fen":
            moves = state.spoken[0] - state.illegal[0]
            self._note(state, board.fen(state.kinds, state.squares, moves))

    def _note(self, state: EndgameState, text: str) -> None:
        line = Utterance(BOARD, text)
        state.lines.append(line)
        state.black_lines.append(line)

    def read(self, state: EndgameState, text: str) -> int:
        """The legal move that a text says, as 64 times the kind of the piece and the target."""
        kind, start, target = board.read_move(text)
        if start != NONE:
            places = state.squares[1:2] if state.black else [state.squares[0], *state.squares[2:]]
            at = places.index(start) if start in places else NONE
            kind = (KING, *state.kinds)[at] if at != NONE else NONE
        code = 64 * kind + target
        return code if kind != NONE and code in legal(state).moves else NONE

    def text(self, state: EndgameState, code: int) -> str:
        """The text of a move of who is to move."""
        kind, target = divmod(code, 64)
        if self.notation == "uci" and kind in (KING, *state.kinds):
            at = 1 if state.black else board.slot(state.kinds, kind, target)
            return NAMES[state.squares[at]] + NAMES[target]
        capture = "x" if state.black and target in state.squares[2:] else ""
        return f"{LETTERS[kind]}{capture}{NAMES[target]}"

    def situation(self, state: EndgameState, party: str) -> Any:
        """The position and the turns; not how they came about."""
        spoken, illegal = state.spoken, state.illegal[self.parties.index(party)]
        return state.kinds, state.squares, state.black, spoken, illegal, state.over

    def metrics(self, state: EndgameState) -> Mapping[str, float]:
        """Share of white's utterances that were legal; of a mate, the least moves by its moves."""
        legal = 1.0 - state.illegal[0] / max(state.spoken[0], 1)
        if not state.mate or not state.moves:
            return {"legal": legal, "efficiency": -1.0}
        return {"legal": legal, "efficiency": min(state.moves / state.spoken[0], 1.0)}

    def batch(self, size: int, learner: str, simulator: Speaker) -> DialogueBatch | None:
        """A form that finds the moves of all dialogues at once, with either party by rules."""
        player: Any = load(f"{POLICIES}:ChessPlayer", f"batch of {self.name}")
        if not isinstance(simulator, player):
            return None
        form: Any = load(f"{ROOM}.batch:EndgamesBatch", f"batch of {self.name}")
        batch: DialogueBatch = form(self, size, learner, simulator)
        return batch

    def static_constraint(self, party: str) -> Constraint | None:
        if self.limited == "legal":
            return None
        return self._tries[party] if self.limited else AnyText()

    def union_constraint(self, party: str) -> Constraint:
        return self.static_constraint(party) or self._tries[party]

    def constraint(self, state: EndgameState, party: str) -> Constraint:
        static = self.static_constraint(party)
        # who is not to move says nothing: any of its moves will do
        if static is None and self.speaker(state) == party and not state.over:
            return WordTrie(self.text(state, code) for code in legal(state).moves)
        return self.union_constraint(party)

    @cached_property
    def _tries(self) -> Mapping[str, WordTrie]:
        """By party, the moves that it has on some board."""
        return {party: WordTrie(self._moves(party)) for party in self.parties}

    def _moves(self, party: str) -> list[str]:
        if self.notation == "uci":
            pairs = np.argwhere(STEPS if party == USER else LINES[QUEEN]).tolist()
            return [NAMES[start] + NAMES[end] for start, end in pairs]
        names = [LETTERS[kind] for kind in self.kinds] if party == SYSTEM else ["K", "Kx"]
        return [name + square for name in names for square in NAMES]

    def words(self) -> Sequence[str]:
        """Moves of both, pieces with their squares, and what else the board says."""
        pieces = [LETTERS[kind] + square for kind in self.kinds for square in NAMES]
        moves = [move for party in self.parties for move in self._moves(party)]
        return tuple(dict.fromkeys(["white", "black", ILLEGAL.text, *pieces, *moves]))

    def picture(self, state: EndgameState) -> np.ndarray:
        from dialgym.tasks.endgames.picture import drawn

        return drawn(state.kinds, state.squares)


def legal(state: EndgameState) -> board.Legal:
    """Legal moves of who is to move."""
    return board.legal_of(position(state))


def position(state: EndgameState) -> board.Position:
    """The position of a state."""
    return state.kinds, tuple(state.squares), state.black


def after(state: EndgameState, code: int) -> list[int]:
    """The squares after a legal move."""
    squares, (kind, target) = state.squares.copy(), divmod(code, 64)
    squares[1 if state.black else board.slot(state.kinds, kind, target)] = target
    if not state.kinds[1]:
        squares[3] = squares[0]
    return squares


def _outcome(party: int, illegal: bool, over: bool, mate: bool) -> Outcome:
    components: dict[str, dict[str, float]] = {SYSTEM: {}, USER: {}}
    if illegal:
        components[(SYSTEM, USER)[party]]["illegal"] = -1.0
    if mate:
        components[SYSTEM]["mate"], components[USER]["mate"] = 1.0, -1.0
    return Outcome.of(components, terminated=over, success=mate if over else None)


_OUTCOMES = {
    (party, illegal, over, mate): _outcome(party, illegal, over, mate)
    for party in (0, 1)
    for illegal in (False, True)
    for over in (False, True)
    for mate in (False, True)
}
"""By who spoke, whether it was illegal, whether all is over, and whether it is mate."""
