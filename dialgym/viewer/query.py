"""Query of a request: its values, checked with one clear error each.

Requests name registered ids or inputs of the viewer, never code, paths or names of the hub.
"""

from collections.abc import Callable, Iterable, Mapping
from typing import Any, TypeVar

from dialgym.errors import finite_number, one_of, whole_number
from dialgym.registry import RegistryEntry, entry_of, is_registered


class NotHereError(LookupError):
    """A request names something that is not there."""


MOST_CHARACTERS = 20_000  # of one text
MOST_NUMBER = 2**53 - 1  # up to which browsers know whole numbers
T = TypeVar("T")


class Query:
    """The parts of a request: of its path and query, which are texts, and of its JSON.

    Args:
        values: by name.
    """

    def __init__(self, values: Mapping[str, Any]) -> None:
        self.values = values

    def __contains__(self, name: str) -> bool:
        return self.values.get(name) not in (None, "")

    def integer(
        self, name: str, default: int | None = None, least: int = 0, most: int = MOST_NUMBER
    ) -> int:
        """A whole number."""
        value = self._value(name, default)
        if isinstance(value, str):
            value = _number(value, int)
        return whole_number(name, value, "the request", least, most)

    def number(self, name: str) -> float:
        """A finite number."""
        value = self._value(name, None)
        if isinstance(value, str):
            value = _number(value, float)
        return finite_number(name, value)

    def text(self, name: str, default: str | None = None) -> str:
        """A text."""
        value = self._value(name, default)
        if not isinstance(value, str):
            raise ValueError(f"{name} of the request must be a text; got {value!r}.")
        if len(value) > MOST_CHARACTERS:
            raise ValueError(f"{name} of the request has more than {MOST_CHARACTERS:,} characters.")
        return value

    def entry(self, name: str) -> RegistryEntry:
        """A registered environment; nothing is imported for a request."""
        env_id = self.text(name)
        if ":" in env_id and not is_registered(env_id):
            raise ValueError(
                f"{name} of the request: expected a registered id; got {env_id[:80]!r}. An "
                "environment of your own is named where the viewer starts: dialgym view --env "
                "MODULE:CLASS."
            )
        return entry_of(env_id)

    def choice(self, name: str, known: Iterable[str], default: str | None = None) -> str:
        """One of the texts that are known."""
        value = self._value(name, default)
        one_of(name, value, known, "the request")
        return str(value)

    def flag(self, name: str) -> bool:
        """A truth value; False by default."""
        return self.values.get(name) in (True, "true", "1")

    def nested(self, name: str) -> "Query":
        """A mapping within the query, as a query."""
        value = self._value(name, {})
        if not isinstance(value, Mapping):
            raise ValueError(f"{name} of the request must be an object; got {value!r}.")
        return Query(value)

    def texts(self, name: str) -> list[str]:
        """A list of texts."""
        value = self._value(name, [])
        if not isinstance(value, list) or not all(isinstance(part, str) for part in value):
            raise ValueError(f"{name} of the request must be a list of texts; got {value!r}.")
        return value

    def _value(self, name: str, default: Any) -> Any:
        value = self.values.get(name) if name in self else default
        if value is None:
            raise ValueError(f"the request lacks {name!r}.")
        return value


def _number(text: str, kind: Callable[[str], T]) -> T | str:
    """A text as a number; as it is where it spells none, for the error that follows."""
    try:
        return kind(text)
    except ValueError:
        return text
