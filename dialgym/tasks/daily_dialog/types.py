"""The state of an everyday dialogue, and where it stands in the one that people had."""

from dataclasses import dataclass, field

from dialgym.language import Utterance


@dataclass(slots=True)
class DailyDialogState:
    """A dialogue that began as people's did."""

    dialogue: int  # index into the corpus
    turn: int  # the utterance of the people's dialogue in whose place the next one stands
    said: int = 0  # utterances of the system, without those it began with
    answered: int = 0  # utterances of the user since
    gained: float = 0.0  # the system's return so far
    lines: list[Utterance] = field(default_factory=list)  # what both have heard
    over: bool = False

    def copy(self) -> "DailyDialogState":
        """An independent copy."""
        return DailyDialogState(
            self.dialogue,
            self.turn,
            self.said,
            self.answered,
            self.gained,
            self.lines.copy(),
            self.over,
        )
