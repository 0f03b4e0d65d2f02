"""A city to talk about, its database and values: read from the files of MultiWOZ."""

import json
import os
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from os import PathLike
from pathlib import Path
from typing import Any

from dialgym.sources import fingerprint
from dialgym.tasks.multiwoz.database import Database, Taxis
from dialgym.tasks.multiwoz.ontology import DOMAINS

MULTIWOZ = "DIALGYM_MULTIWOZ"
"""The environment variable that names the folder of MultiWOZ's files."""
Values = Mapping[str, Mapping[str, tuple[str, ...]]]
"""Domain -> slot -> values, in the file's order."""


@dataclass(frozen=True)
class World:
    """What dialogues are about. Immutable and shared; a pickle says only where it is from.

    Attributes:
        database: the rows of all domains.
        values: the values that each slot is known to have.
        source: the folder.
    """

    database: Database
    values: Values
    source: str

    def __reduce__(self) -> tuple[Any, ...]:
        return load_world, (self.source,)


def load_world(source: str | PathLike[str] | None = None) -> World:
    """The world of a folder; None for that which ``$DIALGYM_MULTIWOZ`` names.

    Raises:
        ValueError: there is no such folder, or its content is no world.
    """
    folder = Path(source or os.environ[MULTIWOZ]).resolve()
    return _read(str(folder), fingerprint(folder))


@lru_cache(maxsize=8)
def _read(folder: str, stamp: str) -> World:
    where = Path(folder)
    files = {d: json.loads((where / "db" / f"{d}_db.json").read_text("utf-8")) for d in DOMAINS}
    taxi = files.pop("taxi")
    tables = {domain: [_cells(row) for row in rows] for domain, rows in files.items()}
    taxis = Taxis(tuple(taxi["taxi_colors"]), tuple(taxi["taxi_types"]))
    values = json.loads((where / "value_set.json").read_text("utf-8"))
    known = {d: {s: tuple(v) for s, v in slots.items()} for d, slots in values.items()}
    return World(Database(tables, taxis), known, folder)


def _cells(row: Mapping[str, Any]) -> dict[str, str]:
    return {slot: value for slot, value in row.items() if isinstance(value, str)}
