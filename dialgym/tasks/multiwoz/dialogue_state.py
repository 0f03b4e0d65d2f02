"""State of one multi-domain dialogue on acts: goal, user, belief and record."""

from dataclasses import dataclass

from dialgym.tasks.multiwoz.agenda import MultiWOZUserState
from dialgym.tasks.multiwoz.evaluator import Record
from dialgym.tasks.multiwoz.types import MultiWOZBelief, MultiWOZGoal


@dataclass(slots=True)
class MultiWOZState:
    """One dialogue."""

    goal: MultiWOZGoal  # never changed
    user: MultiWOZUserState  # its agenda and what it was told; kept whoever plays the user
    belief: MultiWOZBelief  # what the system has understood, with the last acts of both
    record: Record  # the evaluator's
    turns: int = 0  # utterances of the system
    user_speaks: bool = True
    ended: bool = False

    def copy(self) -> "MultiWOZState":
        """An independent copy."""
        return MultiWOZState(
            self.goal,
            self.user.copy(),
            self.belief.copy(),
            self.record.copy(),
            self.turns,
            self.user_speaks,
            self.ended,
        )
