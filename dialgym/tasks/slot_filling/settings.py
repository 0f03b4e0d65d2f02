"""The six settings of the benchmark, settings of the system's side, and the options of reset."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from numbers import Integral
from types import MappingProxyType
from typing import Any, NamedTuple, TypedDict

from dialgym.errors import one_of, unknown
from dialgym.tasks.base import SYSTEM, USER
from dialgym.tasks.slot_filling.domain.goals import SlotFillingGoal
from dialgym.tasks.slot_filling.domain.ontology import DONTCARE, NAME, Ontology
from dialgym.tasks.slot_filling.user.state import SlotFillingUserState

ROOM = "dialgym.tasks.slot_filling"
POLICIES, EASY = f"{ROOM}.policies", f"{ROOM}.easy_users"
SPEAKERS: dict[str, dict[str, str]] = {
    USER: {
        "agenda": f"{POLICIES}:SlotAgendaPolicy",
        "random": f"{POLICIES}:random_user",
        "accepting": f"{EASY}:AcceptingUser",
        "hasty": f"{EASY}:HastyUser",
        "telling": f"{EASY}:TellingUser",
    },
    SYSTEM: {
        "handcrafted": f"{POLICIES}:HandcraftedSystem",
        "random": f"{POLICIES}:RandomSlotSystem",
    },
}
"""Scripted speakers of each party, its default first."""


class Setting(NamedTuple):
    """Settings of an environment of the benchmark.

    Attributes:
        error_rate: how often the best hypothesis is wrong.
        noise: statistics of the lists of hypotheses, or ``"single"`` for no lists.
        masks: whether rules restrict the summary acts.
        user: how the user behaves.
    """

    error_rate: float
    noise: str
    masks: bool
    user: str


SETTINGS: Mapping[int, Setting] = MappingProxyType(
    {
        1: Setting(0.0, "single", True, "standard"),
        2: Setting(0.0, "single", False, "standard"),
        3: Setting(0.15, "set1", True, "standard"),
        4: Setting(0.15, "set1", False, "standard"),
        5: Setting(0.15, "set1", True, "unfriendly"),
        6: Setting(0.30, "set3", True, "standard"),
    }
)


class Masks(NamedTuple):
    """Groups of summary acts that rules restrict; ``request_S`` is never one.

    Attributes:
        inform: ``inform``, ``inform_byname`` and ``inform_alternatives``.
        request: ``confirm_S``, ``select_S``, ``confreq_S_R`` and ``reqmore``.
        bye: ``bye``.
    """

    inform: bool = True
    request: bool = True
    bye: bool = True


@dataclass(frozen=True)
class SystemSettings:
    """Settings of the system's side.

    Attributes:
        masks: as of `SlotFilling`; None as of the benchmark's setting.
        inform_accepted: accepted slots from which on ``inform`` is allowed, and the handcrafted
            policy offers a row, although there is more to ask.
        inform_slots: most slots that one act tells of.
        tracker: see `own_settings.tracker_of`.
        confreq: acts that confirm a slot and request another.
        venue_count: these say how many rows there are, too.
    """

    masks: Any = None
    inform_accepted: int = 4
    inform_slots: int = 5
    tracker: Any = "focus"
    confreq: bool = False
    venue_count: bool = False


class SystemOptions(TypedDict, total=False):
    """The same by name."""

    masks: Any
    inform_accepted: int
    inform_slots: int
    tracker: Any
    confreq: bool
    venue_count: bool


def setting(env: int) -> Setting:
    """A setting by its number.

    Raises:
        ValueError: it is not 1 to 6.
    """
    one_of("env", env, SETTINGS, "slot filling")
    return SETTINGS[env]


def fixed_goal(
    ontology: Ontology, options: Mapping[str, Any], drawn: SlotFillingGoal
) -> SlotFillingGoal:
    """The goal of the options, and what they leave open from the one drawn.

    Raises:
        ValueError: a slot or value is not the ontology's, or an option is of another type.
    """
    constraints, requests = options.get("constraints"), options.get("requests")
    if constraints is None:
        constraints = drawn.constraints
    else:
        for slot, value in _mapping(constraints).items():
            _check_constraint(ontology, slot, value)
    if requests is None:
        return SlotFillingGoal(dict(constraints), drawn.requests)
    for slot in _sequence(requests):
        if slot not in ontology.requestable:
            raise unknown("slot", slot, ontology.requestable, "option 'requests'")
    return SlotFillingGoal(dict(constraints), tuple(dict.fromkeys((NAME, *requests))))


def _mapping(constraints: Any) -> Mapping[str, Any]:
    if isinstance(constraints, Mapping):
        return constraints
    raise ValueError(
        "option 'constraints' of SlotFilling: expected a mapping of slots to values, such as "
        f"{{'area': 'north'}}; got {constraints!r}."
    )


def _sequence(requests: Any) -> Sequence[Any]:
    if isinstance(requests, Sequence) and not isinstance(requests, str):
        return requests
    raise ValueError(
        "option 'requests' of SlotFilling: expected a sequence of slots, such as ['phone']; "
        f"got {requests!r}."
    )


def _check_constraint(ontology: Ontology, slot: str, value: Any) -> None:
    if slot not in ontology.system_requestable:
        raise unknown("slot", slot, ontology.system_requestable, "option 'constraints'")
    known = (*ontology.informable[slot], DONTCARE)
    if value not in known:
        raise unknown("value", value, known, f"option 'constraints', slot {slot!r}")


def fixed_patience(user: SlotFillingUserState, options: Mapping[str, Any]) -> SlotFillingUserState:
    """The user's state with the patience of the options.

    Raises:
        ValueError: it is not a whole number from 1.
    """
    patience = options.get("patience")
    if patience is None:
        return user
    if not isinstance(patience, Integral) or isinstance(patience, bool) or patience < 1:
        raise ValueError(
            f"option 'patience' of SlotFilling: expected a whole number from 1; got {patience!r}."
        )
    user.patience = user.full_patience = int(patience)
    return user
