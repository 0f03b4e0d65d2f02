"""The agenda user: a stack of acts to say, changed by what the system says."""

from dataclasses import dataclass, field
from typing import NamedTuple


class Item(NamedTuple):
    """One act on the agenda, by names of the database: ``hotel``, ``inform``, ``area`` ..."""

    domain: str
    intent: str
    slot: str
    value: str


@dataclass(slots=True)
class UserState:
    """The agenda and what the user has been told. The goal itself never changes."""

    stack: list[Item]  # the last is said next
    answers: dict[tuple[str, str], str] = field(default_factory=dict)  # (domain, slot) -> value
    booked: frozenset[str] = frozenset()  # domains in which it takes itself to have booked
    retired: frozenset[str] = frozenset()  # domains whose fail_info it no longer asks for
    pushed: int = 0  # acts put on the stack since it spoke last
    domain: str = ""  # the one that is talked about

    def copy(self) -> "UserState":
        """An independent copy."""
        return UserState(
            self.stack.copy(),
            self.answers.copy(),
            self.booked,
            self.retired,
            self.pushed,
            self.domain,
        )
