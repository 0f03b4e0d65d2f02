"""What `reset(options=...)` fixes of a dialogue."""

from collections.abc import Mapping, Sequence
from numbers import Integral
from typing import Any

from dialgym.errors import unknown
from dialgym.tasks.slot_filling.goals import Goal
from dialgym.tasks.slot_filling.ontology import DONTCARE, NAME, Ontology
from dialgym.tasks.slot_filling.types import Mind


def fixed_goal(ontology: Ontology, options: Mapping[str, Any], drawn: Goal) -> Goal:
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
        return Goal(dict(constraints), drawn.requests)
    for slot in _sequence(requests):
        if slot not in ontology.requestable:
            raise unknown("slot", slot, ontology.requestable, "option 'requests'")
    return Goal(dict(constraints), tuple(dict.fromkeys((NAME, *requests))))


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


def fixed_patience(mind: Mind, options: Mapping[str, Any]) -> Mind:
    """A mind with the patience of the options.

    Raises:
        ValueError: it is not a whole number from 1.
    """
    patience = options.get("patience")
    if patience is None:
        return mind
    if not isinstance(patience, Integral) or isinstance(patience, bool) or patience < 1:
        raise ValueError(
            f"option 'patience' of SlotFilling: expected a whole number from 1; got {patience!r}."
        )
    mind.patience = mind.full_patience = int(patience)
    return mind
