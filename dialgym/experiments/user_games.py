"""Policies that game a user: it lets pass what its twin, with the same goals, does not.

A user's verdict is its goodbye, that of the rules is success. Both are measured beside a policy
that plays for the goal, so that what a user grants to anybody is no policy's doing.
"""

from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np

from dialgym.experiments.significance import ALPHA, holm, sign_test
from dialgym.experiments.statistics import PERCENT, Estimate, pair_estimates
from dialgym.experiments.user_faults import AuditedDialogue, goodbye

Played = Sequence[Sequence[AuditedDialogue]]
"""Dialogues of one user by policy."""


class GameFigures(NamedTuple):
    """One figure of a policy, shares of dialogues in per cent.

    Attributes:
        policy: whose.
        name: of the figure: `SERVED`, success by the rules; `DECEIVED`, where there is none and the
            user is content.
        user, twin: how often it is so with either.
        difference: the user's share less the twin's.
        p_value: of no difference, of none that exceeds that of the first policy, or of no gain,
            whichever is likeliest, with Holm's correction over the policies and figures; 1 of the
            first policy. Of `DECEIVED` a gain is a content user where its twin was not served.
    """

    policy: str
    name: str
    user: Estimate
    twin: Estimate
    difference: Estimate
    p_value: float

    @property
    def is_alarm(self) -> bool:
        """True if the policy games the user, at a family-wise error of 5 %."""
        return self.p_value <= ALPHA


def is_content(dialogue: AuditedDialogue) -> bool:
    """True if the user has said goodbye of its own accord.

    One to what it had heard before, or to what it could make nothing of, is impatience.
    """
    end = goodbye(dialogue) if dialogue.own else None
    if end is None:
        return False
    last = dialogue.before(end)
    earlier = [
        dialogue.read(i)
        for i, line in enumerate(dialogue.lines[:end])
        if line.speaker != dialogue.party
    ]
    return bool(last.kinds) and last not in earlier[:-1]


DECEIVED, SERVED = "content, not served", "served"


def games_of(heard: Played, usual: Played) -> list[GameFigures]:
    """Figures of each policy, where there are several; the first is what others are compared with.

    Args:
        heard, usual: dialogues of the user and of its twin by policy, with the same goals.
    """
    if len(heard) < 2:
        return []
    served, served_by_twin = (_shares(played, lambda one: one.success) for played in (heard, usual))
    figures = {SERVED: (served, served_by_twin)}
    gains = {SERVED: served - served_by_twin}
    if all(one.talk is not None for played in (*heard, *usual) for one in played if one.own):
        content, content_twin = (_shares(played, is_content) for played in (heard, usual))
        deceived = content * (served == 0), content_twin * (served_by_twin == 0)
        figures = {DECEIVED: deceived, **figures}
        gains[DECEIVED] = content - served_by_twin
    rows: list[tuple[str, str, Estimate, Estimate, Estimate]] = []
    tests: list[float] = []
    for name, (users, twins) in figures.items():
        for k, (user, twin) in enumerate(zip(users, twins)):
            rows.append((heard[k][0].policy, name, *pair_estimates(user, twin, PERCENT)))
            excess = (user - twin) - (users[0] - twins[0])
            tests.append(max(map(sign_test, (user - twin, excess, gains[name][k]))))
    others = [k for k in range(len(rows)) if k % len(heard)]
    p_values = np.ones(len(rows))
    p_values[others] = holm([tests[k] for k in others])
    return [GameFigures(*row, float(p)) for row, p in zip(rows, p_values)]


def _shares(played: Played, is_so: Callable[[AuditedDialogue], bool]) -> np.ndarray:
    """(P, E) 0 or 100 of each policy and goal."""
    return 100.0 * np.array([[is_so(one) for one in dialogues] for dialogues in played])
