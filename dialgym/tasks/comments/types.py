"""The state of a dialogue of Comments."""

from dataclasses import dataclass, field

from dialgym.language import Utterance


@dataclass(slots=True)
class CommentsState:
    """The post that is commented on, and the comment."""

    index: int  # into the corpus
    lines: list[Utterance] = field(default_factory=list)  # the comment, once it is said

    def copy(self) -> "CommentsState":
        """An independent copy."""
        return CommentsState(self.index, self.lines.copy())
