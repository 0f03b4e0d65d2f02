"""The evaluator: what was told and booked, and how well that meets the goal."""

from dataclasses import dataclass, field


@dataclass(slots=True)
class Record:
    """What the evaluator remembers of a dialogue; updated once a turn."""

    domain: str = ""  # the one that either party named last
    informed: frozenset[tuple[str, str]] = frozenset()  # (domain, slot) told in the right form
    malformed: int = 0  # values told in a wrong form
    booked: dict[str, int] = field(default_factory=dict)  # domain -> row of its table
    booked_by: dict[str, dict[str, str]] = field(default_factory=dict)  # domain -> slot -> value
    rewarded: frozenset[str] = frozenset()  # domains whose bonus was given

    def copy(self) -> "Record":
        """An independent copy."""
        return Record(
            self.domain,
            self.informed,
            self.malformed,
            self.booked.copy(),
            self.booked_by.copy(),
            self.rewarded,
        )
