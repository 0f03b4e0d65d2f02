"""The state of one endgame."""

from dataclasses import dataclass, field

from dialgym.language import Utterance


@dataclass(slots=True)
class EndgameState:
    """A game. Each party's lines begin with the board as it was at first."""

    kinds: tuple[int, int]  # of white's pieces; see `board`
    squares: list[int]
    lines: list[Utterance]  # seen by white
    black_lines: list[Utterance]  # seen by black
    moves: int  # to mate at first; 0 where none can be forced
    spoken: list[int] = field(default_factory=lambda: [0, 0])  # utterances of white and black
    illegal: list[int] = field(default_factory=lambda: [0, 0])  # of these
    black: bool = False  # to move
    over: bool = False
    mate: bool = False

    def copy(self) -> "EndgameState":
        """An independent copy."""
        return EndgameState(
            self.kinds,
            self.squares.copy(),
            self.lines.copy(),
            self.black_lines.copy(),
            self.moves,
            self.spoken.copy(),
            self.illegal.copy(),
            self.black,
            self.over,
            self.mate,
        )
