"""The state of an agenda user, and the probabilities of its choices, drawn for each dialogue.

The ranges are those of PyDial's benchmark (Casanueva et al. 2017, arXiv 1711.11023).
"""

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from types import MappingProxyType

import numpy as np

from dialgym.language.acts import NULL, Act, SlotValue
from dialgym.tasks.slot_filling.domain.ontology import NAME, NONE

Range = tuple[float, float]

STANDARD: Mapping[str, Range] = MappingProxyType(
    {
        "greet": (0.3, 0.7),
        "combine_informs": (0.2, 0.7),
        "combine_affirm": (0.2, 0.7),
        "affirm_with_agenda": (0.01, 0.2),
        "omit_slot": (0.7, 0.9),
        "name_in_request": (0.01, 0.2),
        "request_more": (0.2, 0.4),
        "repeat_constraint": (0.1, 0.4),
        "no_preference": (0.1, 0.4),
        "correct_by_negate": (0.3, 0.5),
        "correct_by_deny": (0.3, 0.5),
        "overrule_correction": (0.01, 0.2),
        "confirm_unsaid": (0.01, 0.3),
        "confirm_informs": (0.01, 0.2),
        "alternative": (0.01, 0.3),
        "alternative_goal": (0.01, 0.3),
        "relax": (0.5, 0.8),
        "tell_change": (0.4, 0.6),
        "give_up": (0.2, 0.5),
        "thank": (0.01, 0.2),
        "acknowledge": (0.01, 0.2),
        "agenda_first": (0.4, 0.6),
        "no_more": (0.8, 0.9),
        "yes_more": (0.2, 0.3),
    }
)
UNFRIENDLY: Mapping[str, Range] = MappingProxyType(
    {
        **STANDARD,
        "greet": (0.1, 0.4),
        "combine_informs": (0.0, 0.4),
        "combine_affirm": (0.0, 0.4),
        "relax": (0.2, 0.5),
        "tell_change": (0.2, 0.4),
    }
)
USERS: Mapping[str, Mapping[str, Range]] = MappingProxyType(
    {"standard": STANDARD, "unfriendly": UNFRIENDLY}
)


@dataclass(frozen=True)
class SlotUserBehaviour:
    """Distribution of a user's traits, drawn as a dialogue begins.

    Attributes:
        ranges: lowest and highest probability of each choice.
        patience: lowest and highest number of repeated acts that the user puts up with.
    """

    ranges: Mapping[str, Range]
    patience: tuple[int, int] = (4, 5)

    def draw(self, rng: np.random.Generator) -> tuple[Mapping[str, float], int]:
        """Probabilities by name, and patience."""
        names, low, span = self._table
        *drawn, last = rng.random(len(names) + 1).tolist()
        least, most = self.patience
        probabilities = {name: a + d * u for name, a, d, u in zip(names, low, span, drawn)}
        return probabilities, least + int(last * (most - least + 1))

    @cached_property
    def _table(self) -> tuple[tuple[str, ...], list[float], list[float]]:
        low = [a for a, _ in self.ranges.values()]
        return tuple(self.ranges), low, [b - a for a, b in self.ranges.values()]


@dataclass(slots=True)
class SlotFillingUserState:
    """The goal, the agenda and the memory of one user."""

    constraints: list[SlotValue]  # what the row must be like; on `name` there may be several
    requests: dict[str, str | None]  # slot -> what the system has told of it
    agenda: list[Act]  # a stack; the last is said next
    probabilities: Mapping[str, float]  # of each choice, see `behaviour`; never changed
    full_patience: int
    patience: int
    used: dict[str, frozenset[str]] = field(default_factory=dict)  # values it has asked for
    heard: Act | None = None  # what the system said last
    said: Act | None = None  # what the user said last
    repeatable: Act = NULL  # what it says again when it has not understood
    relaxing: bool = False  # there is nothing as it wants it
    offered: bool = False  # a row has been offered before
    told_none: bool = False  # the system knew what it wanted, and had nothing
    row_of: dict[str, str | None] = field(default_factory=dict)  # slot -> row it was told of

    def copy(self) -> "SlotFillingUserState":
        """An independent copy."""
        return SlotFillingUserState(
            self.constraints.copy(),
            self.requests.copy(),
            self.agenda.copy(),
            self.probabilities,
            self.full_patience,
            self.patience,
            self.used.copy(),
            self.heard,
            self.said,
            self.repeatable,
            self.relaxing,
            self.offered,
            self.told_none,
            self.row_of.copy(),
        )

    def wanted(self, slot: str) -> str | None:
        """The value that a slot must have, if any."""
        for item in self.constraints:
            if item.slot == slot and not item.negated:
                return item.value
        return None

    def unwanted(self, slot: str) -> list[str | None]:
        """The values that a slot must not have."""
        return [item.value for item in self.constraints if item.slot == slot and item.negated]

    def constrains(self, slot: str) -> bool:
        """Return True if anything is asked of a slot."""
        return any(item.slot == slot for item in self.constraints)

    def open_requests(self) -> list[str]:
        """The slots that the system has not told yet."""
        return [slot for slot, value in self.requests.items() if value is None]

    def take_answers(self, told: Mapping[str, str | None], restated: Collection[str] = ()) -> None:
        """Note what was told of slots, with the row of which it was told.

        Those `restated` say what was looked for, and nothing of any row (``none``).
        """
        self.requests.update(told)
        row = self.requests.get(NAME)
        self.row_of.update({slot: NONE if slot in restated else row for slot in told})

    def forget_answers(self) -> None:
        """Begin the requests again, because another row is talked about."""
        self.requests = dict.fromkeys(self.requests)
