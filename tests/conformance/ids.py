"""Which ids are tried in full at once, and which are variants of them.

Rows of the registry that share task and view differ in settings alone. The first of each is tried
in full by `make test`; the others are smoke-tested there, and tried in full by `make nightly`.
"""

from typing import Any

import pytest

from dialgym.registry import RegistryEntry, entries

KINDS = {
    "DailyDialog": ("turns",),
    "MultiWOZ": ("acts",),
    "SlotFilling": ("domain",),
    "TwentyQuestions": ("noise",),
    "VisualDialogue": ("mode", "constraint"),
    "Wordle": ("hard_mode", "host", "feedback"),
}
"""Settings that change a task's rules or sizes, rather than its numbers; each value counts."""


def first_of_each(view: str | None = None) -> dict[str, bool]:
    """All ids (of a view), and whether each is the first of its kind."""
    seen: set[Any] = set()
    first = {}
    for entry in entries().values():
        if view in (None, entry.view):
            first[entry.id] = (kind := _kind(entry)) not in seen
            seen.add(kind)
    return first


def _kind(entry: RegistryEntry) -> tuple[Any, ...]:
    row = entry.row
    settings = KINDS.get(row.task.partition(":")[2], ())
    return (row.task, entry.view, *(row.settings.get(name) for name in settings))


def in_full(*views: str | None) -> list[Any]:
    """Parameters for tests in full: ids, those of variants marked slow."""
    ids = {id: first for view in views or (None,) for id, first in first_of_each(view).items()}
    return [pytest.param(id, marks=() if first else pytest.mark.slow) for id, first in ids.items()]


def variants() -> list[str]:
    """The ids that `make test` does not try in full."""
    return [id for id, first in first_of_each().items() if not first]
