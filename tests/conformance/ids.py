"""Choice of the ids that are tried in full at once.

Rows of the registry that share task and view differ in settings alone. The first of each is tried
in full by `make test`; the others are smoke-tested there, and tried in full by `make nightly`.
"""

from typing import Any

import pytest

from dialgym.registry import entries


def first_of_each(view: str | None = None) -> dict[str, bool]:
    """All ids (of a view), and True for the first of each task and view."""
    seen: set[Any] = set()
    first = {}
    for entry in entries().values():
        if view in (None, entry.view):
            kind = entry.row.task, entry.view
            first[entry.id] = kind not in seen
            seen.add(kind)
    return first


def in_full(*views: str | None) -> list[Any]:
    """Parameters for tests in full: ids, those of variants marked slow."""
    ids = {id: first for view in views or (None,) for id, first in first_of_each(view).items()}
    return [pytest.param(id, marks=() if first else pytest.mark.slow) for id, first in ids.items()]


def variants() -> list[str]:
    """The ids that `make test` does not try in full."""
    return [id for id, first in first_of_each().items() if not first]
