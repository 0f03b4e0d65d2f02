"""A city to talk about: database, values and goals, built in or read from MultiWOZ's files."""

import gzip
import json
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache, cached_property, lru_cache
from hashlib import sha256
from importlib.resources import files
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np

from dialgym.io.hub import PREFIX, pinned
from dialgym.io.tables import fingerprint, locate
from dialgym.tasks.corpora import BUILT_IN
from dialgym.tasks.multiwoz import goals
from dialgym.tasks.multiwoz.database import CityDatabase
from dialgym.tasks.multiwoz.formats import (
    FILES,
    Tables,
    find_files,
    read_goal_model,
    read_tables,
    read_values,
    values_of,
)
from dialgym.tasks.multiwoz.goal_model import GoalModel, parse_goal_model, suited
from dialgym.tasks.multiwoz.ontology import DOMAINS
from dialgym.tasks.multiwoz.types import MultiWOZGoal

MULTIWOZ = "DIALGYM_MULTIWOZ"
"""The environment variable that names the folder of MultiWOZ's files."""
Values = Mapping[str, Mapping[str, tuple[str, ...]]]
"""Domain -> slot -> values, in the file's order."""


@dataclass(frozen=True, eq=False)
class World:
    """World that dialogues are about. Immutable and shared; a pickle says only where it is from.

    Attributes:
        database: the rows of all domains.
        values: the values that each slot is known to have.
        goal_model: how goals are distributed.
        source: what `load_world` finds it by: a path, ``hf:NAME@COMMIT``, or ``built-in``.
    """

    database: CityDatabase
    values: Values
    goal_model: GoalModel
    source: str

    def __reduce__(self) -> tuple[Any, ...]:
        return load_world, (self.source,)

    @property
    def stand_in(self) -> bool:
        """Return True if this is the city that is built in, of invented names."""
        return self.source == BUILT_IN

    @cached_property
    def hash(self) -> str:
        """Fingerprint of its rows and goal model: 16 digits."""
        rows = {d: [dict(sorted(row.items())) for row in self.database.rows(d)] for d in DOMAINS}
        content = [rows, self.database.taxis, self.goal_model.content]  # its order counts
        return sha256(json.dumps(content).encode()).hexdigest()[:16]

    def draw_goal(
        self, rng: np.random.Generator, domains: Sequence[str] | None = None
    ) -> MultiWOZGoal:
        """A goal of its users, about these domains in this order if any are given; see `goals`."""
        return goals.draw_goal(self.goal_model, self.database, rng, domains)


def load_world(source: str | PathLike[str] | None = None) -> World:
    """The world of a folder or zip of MultiWOZ's files, or of a data set of the hub that has them.

    That is ``attraction_db.json`` and so on for all domains, and if there are any of ConvLab-2
    ``value_set.json`` and ``goal_model.json`` or ``new_goal_model.pkl``. Values that are not given
    are those of the rows, and so are those of goals, which are then distributed as in the city
    that is built in, without the domains that have no rows. None is the folder that
    ``$DIALGYM_MULTIWOZ`` names, or, where there is no such variable, the city that is built in.

    Raises:
        ValueError: there is no such data, or it is not such a world.
    """
    name = _named() if source is None else str(source)
    if name == BUILT_IN:
        return builtin_world()
    place = locate(name, "MultiWOZ", patterns=FILES)
    return _read(pinned(name, place), place, fingerprint(place))


def _named() -> str:
    """World that the environment names, or the city that is built in."""
    named = os.environ.get(MULTIWOZ)
    if named and not named.startswith(PREFIX) and not Path(named).expanduser().exists():
        raise ValueError(
            f"${MULTIWOZ}: expected the folder of MultiWOZ's files; got {named!r}, which is none. "
            "Mend the variable, or unset it to play in the city that is built in."
        )
    return named or BUILT_IN


@lru_cache(maxsize=8)
def _read(source: str, place: Path, stamp: str) -> World:
    """The world of a place, kept as long as its files do not change."""
    parts = find_files(place)
    tables = read_tables(parts, source)
    database = CityDatabase(tables.rows, tables.taxis, (_database, (source,)))
    values = read_values(parts) or values_of(tables)
    model = read_goal_model(parts) or suited(builtin_world().goal_model, database)
    for domain in model.domains:
        if domain != "taxi" and not database.rows(domain):
            raise ValueError(
                f"MultiWOZ {source!r}: expected rows in {domain}_db.json, which the goal model "
                "asks for; got none. Add rows, or put a goal_model.json beside it whose "
                f"domain_ordering leaves {domain} out."
            )
    return World(database, values, model, source)


@cache
def builtin_world() -> World:
    """A city of invented names, of MultiWOZ's size; made by ``scripts/build_multiwoz.py``."""
    file = files("dialgym.tasks.multiwoz") / "builtin" / "city.json.gz"
    content = json.loads(gzip.decompress(file.read_bytes()))
    tables = Tables.of_columns(content)
    model = parse_goal_model(content["goal_model"])
    database = CityDatabase(tables.rows, tables.taxis, (_database, (BUILT_IN,)))
    return World(database, values_of(tables), model, BUILT_IN)


def _database(source: str) -> CityDatabase:
    return load_world(source).database
