"""The ontology of a domain: slots, their values, and which party may ask for them."""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from os import PathLike
from pathlib import Path
from types import MappingProxyType
from typing import Any

from dialgym.errors import unknown
from dialgym.io.files import parse_json, read_file

NAME = "name"
"""The slot that says which row of the database is meant."""
DONTCARE = "dontcare"
"""The value of a constraint that any row meets."""
NONE = "none"
"""The name of no row."""
TYPE = "type"
"""The slot that says what kind of row is meant, such as a restaurant."""


@dataclass(frozen=True)
class Ontology:
    """The slots of a domain.

    Attributes:
        domain: its name, such as ``CamRestaurants``.
        type: what one row of its database is, such as ``restaurant``.
        informable: the values of each slot that the user can constrain, `name` among them, slots
            and values in the file's order.
        requestable: the slots that the user can ask for.
        system_requestable: the slots that the system can ask for; each is informable.
    """

    domain: str
    type: str
    informable: Mapping[str, tuple[str, ...]]
    requestable: tuple[str, ...]
    system_requestable: tuple[str, ...]

    def __post_init__(self) -> None:
        _check(self)
        informable = {slot: tuple(values) for slot, values in self.informable.items()}
        object.__setattr__(self, "informable", MappingProxyType(informable))
        object.__setattr__(self, "requestable", tuple(self.requestable))
        object.__setattr__(self, "system_requestable", tuple(self.system_requestable))

    def __reduce__(self) -> tuple[Any, ...]:
        informable = dict(self.informable)
        parts = (self.domain, self.type, informable, self.requestable, self.system_requestable)
        return Ontology, parts

    def __hash__(self) -> int:
        return hash((self.domain, self.type, tuple(self.informable.items())))

    @cached_property
    def index(self) -> Mapping[str, Mapping[str, int]]:
        """The place of each value among those of its slot."""
        return {s: {value: i for i, value in enumerate(v)} for s, v in self.informable.items()}

    @cached_property
    def binary(self) -> tuple[str, ...]:
        """The informable slots whose values are ``0`` and ``1``: a yes or no answers them."""
        return tuple(slot for slot, values in self.informable.items() if set(values) == {"0", "1"})

    @property
    def user_requests(self) -> tuple[str, ...]:
        """The slots that only the user can ask for, in order; `name` is one."""
        return tuple(slot for slot in self.requestable if slot not in self.system_requestable)

    def values(self, slot: str) -> tuple[str, ...]:
        """The values of an informable slot.

        Raises:
            ValueError: the slot is not informable.
        """
        if slot not in self.informable:
            raise unknown("slot", slot, self.informable, self.domain)
        return self.informable[slot]


def read_ontology(path: str | PathLike[str]) -> Ontology:
    """The ontology of a file in PyDial's form, ``<domain>-rules.json``.

    Raises:
        ValueError: the file cannot be read, is no JSON, or its content is no ontology.
    """
    path = Path(path)
    return parse_ontology(domain_of(path), _read_json(path))


def domain_of(path: Path) -> str:
    """The domain that a file is about, by its name."""
    return path.name.removesuffix(".json").removesuffix("-rules")


def parse_ontology(domain: str, content: Mapping[str, Any]) -> Ontology:
    """The ontology of a domain from the content of such a file; other keys are ignored.

    Raises:
        ValueError: the content is no ontology.
    """
    for key, kind in _KEYS.items():
        if not isinstance(content.get(key), kind):
            got = repr(content[key]) if key in content else "nothing"
            raise _bad(domain, f"a {_KINDS[kind]} under {key!r}", got)
    return Ontology(
        domain,
        content["type"],
        {slot: _texts(domain, slot, values) for slot, values in content["informable"].items()},
        _texts(domain, "requestable", content["requestable"]),
        _texts(domain, "system_requestable", content["system_requestable"]),
    )


_KEYS = {"type": str, "informable": dict, "requestable": list, "system_requestable": list}
_KINDS = {str: "text", dict: "table", list: "list"}


def _read_json(path: Path) -> Mapping[str, Any]:
    try:
        content = parse_json(read_file(path), repr(str(path)))
    except OSError as error:
        raise ValueError(
            f"ontology: expected a JSON file at {str(path)!r}; got {error.strerror}. "
            "Check the path."
        ) from error
    except ValueError as error:
        raise ValueError(f"ontology {error} Mend the file.") from error
    if not isinstance(content, dict):
        raise _bad(domain_of(path), "a JSON object", type(content).__name__)
    return content


def _texts(domain: str, where: str, values: Any) -> tuple[str, ...]:
    if not isinstance(values, list) or not all(isinstance(v, str) and v for v in values):
        raise _bad(domain, f"a list of texts under {where!r}", repr(values)[:60])
    return tuple(values)


def _bad(domain: str, expected: str, got: str) -> ValueError:
    return ValueError(
        f"ontology of {domain}: expected {expected}; got {got}. Mend the domain's file."
    )


def _check(ontology: Ontology) -> None:
    domain, informable, asked = ontology.domain, ontology.informable, ontology.system_requestable
    if NAME not in informable:
        raise _bad(domain, f"an informable slot {NAME!r}", ", ".join(informable) or "none")
    if NAME not in ontology.requestable:
        raise _bad(domain, f"{NAME!r} among the requestable slots", ", ".join(ontology.requestable))
    if not asked or NAME in asked:
        raise _bad(domain, f"system_requestable slots other than {NAME!r}", repr(list(asked)))
    for slot in asked:
        if slot not in informable:
            raise _bad(domain, f"values of the system_requestable slot {slot!r}", "none")
    for slot, values in informable.items():
        _check_texts(
            domain, slot, values, reserved=(DONTCARE, NONE) if slot == NAME else (DONTCARE,)
        )
    _check_texts(domain, "requestable", ontology.requestable)
    _check_texts(domain, "system_requestable", asked)


def _check_texts(
    domain: str, where: str, texts: tuple[str, ...], reserved: tuple[str, ...] = ()
) -> None:
    if not texts:
        raise _bad(domain, f"at least one entry under {where!r}", "none")
    seen: set[str] = set()
    for text in texts:
        if text in seen:
            raise _bad(domain, f"each entry under {where!r} once", f"{text!r} twice")
        if text in reserved:
            raise _bad(
                domain, f"no entry under {where!r} that has a meaning of its own", repr(text)
            )
        seen.add(text)
