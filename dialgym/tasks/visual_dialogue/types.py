"""The state of a visual dialogue."""

from dataclasses import dataclass

from dialgym.language import Utterance
from dialgym.tasks.base import SYSTEM, USER

QUESTIONER, ANSWERER = SYSTEM, USER
"""The parties: who learns asks, the one who sees the image answers."""
STOP = "<stop>"
"""By which a questioner ends a dialogue, where it may."""


@dataclass(slots=True)
class VisualState:
    """A dialogue. `percentiles` has the rank of the image by the caption, and after each answer."""

    image: int  # into the pool
    private: tuple[Utterance, ...]  # what the answerer alone is told of the image
    lines: list[Utterance]  # the caption, then questions and answers in turns
    percentiles: list[float]
    history: tuple[tuple[str, str], ...] = ()
    asked: str | None = None  # the question that waits for its answer
    over: bool = False

    def copy(self) -> "VisualState":
        """An independent copy."""
        return VisualState(
            self.image, self.private, self.lines.copy(), self.percentiles.copy(), self.history,
            self.asked, self.over,
        )  # fmt: skip
