"""The state of a logged dialogue, and where it stands in the one that was logged."""

from dataclasses import dataclass, field

from dialgym.language import Utterance


@dataclass(slots=True)
class LoggedState:
    """A dialogue that begins as a logged one did."""

    dialogue: int  # index into the corpus
    turn: int  # the logged utterance in whose place the next one stands
    said: int = 0  # utterances of the system
    gained: float = 0.0  # the system's return so far
    lines: list[Utterance] = field(default_factory=list)  # what both have heard
    over: bool = False

    def copy(self) -> "LoggedState":
        """An independent copy."""
        lines = self.lines.copy()
        return LoggedState(self.dialogue, self.turn, self.said, self.gained, lines, self.over)
