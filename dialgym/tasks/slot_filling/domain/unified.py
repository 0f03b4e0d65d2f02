"""Domains in ConvLab's forms: an ontology and a database in JSON, in a folder or zip.

``ontology.json`` is that of ConvLab-3's unified data; ``CamRestOTGY.json`` that of the CamRest676
corpus as its authors gave it out. The database, ``CamRestDB.json``, is the same in both.
"""

import re
from collections.abc import Mapping, Sequence
from pathlib import Path, PurePosixPath
from typing import Any

from dialgym.io.archives import ArchiveMember, parts_of
from dialgym.io.files import parse_json
from dialgym.tasks.slot_filling.domain.database import EntityDatabase, of_columns
from dialgym.tasks.slot_filling.domain.ontology import NAME, Ontology, parse_ontology

ZIP, ONTOLOGIES, ROWS = ".zip", ("ontology.json", "CamRestOTGY.json"), "db.json"
OUTSIDE = ("id", "location", "type")
"""Columns that no act names."""


def read_unified(path: Path) -> tuple[Ontology, EntityDatabase]:
    """Read a domain of a folder or zip; its name is that of the database's file, ``CamRest``.

    The slots of the ontology's state are informable and asked for by the system, their values those
    of the ontology and of the rows. Users may request them and all other columns of the rows.

    Raises:
        ValueError: there are no such files, or they hold no domain, or several.
    """
    try:
        parts = parts_of(path)
    except FileNotFoundError as error:
        raise ValueError(f"domain {str(path)!r}: expected a folder or zip; got no file.") from error
    schema = _content(path, parts, lambda name: name in ONTOLOGIES, " or ".join(ONTOLOGIES))
    file, rows = _content(path, parts, lambda name: name.lower().endswith(ROWS), "a file *DB.json")
    if not isinstance(rows, list) or not all(isinstance(row, dict) for row in rows):
        raise _bad(file, "a list of rows", rows)
    kind, known = _slots(*schema)
    rows = [{_known(column, known): cell for column, cell in row.items()} for row in rows]
    columns = list(dict.fromkeys(slot for row in rows for slot in row))
    for slot in known:
        if slot not in columns:
            raise _bad(file, f"a column for the slot {slot!r}", ", ".join(columns))
    content = {**_keys(columns, rows, known), "type": kind}
    ontology = parse_ontology(PurePosixPath(file).name[: -len(ROWS)], content)
    return ontology, of_columns(columns, [[row.get(s) for s in columns] for row in rows], ontology)


def _keys(
    columns: Sequence[str], rows: Sequence[Mapping[str, Any]], known: Mapping[str, Sequence[Any]]
) -> dict[str, Any]:
    """Slots and values under the keys of PyDial's ontology files."""
    values = {
        slot: _values(known.get(slot, ()), (row.get(slot) for row in rows))
        for slot in (*known, NAME)
    }
    told = [slot for slot in columns if slot not in (*OUTSIDE, NAME)]
    return {
        "informable": values,
        "system_requestable": list(known),
        "requestable": [NAME, *told],
    }


def _content(path: Path, parts: Sequence[ArchiveMember], fits: Any, what: str) -> tuple[str, Any]:
    """Name and content of the one part whose file name fits."""
    found = [part for part in parts if fits(PurePosixPath(part.name).name)]
    if len(found) != 1:
        names = ", ".join(part.name for part in found or parts[:8]) or "nothing"
        raise ValueError(
            f"domain {str(path)!r}: expected {what} of one domain, as in ConvLab-3's data of "
            f"camrest; got {names}. Several domains are a city: world={str(path)!r} of MultiWOZ."
        )
    return found[0].name, parse_json(found[0].text(), found[0].name)


def _slots(name: str, content: Any) -> tuple[str, Mapping[str, Sequence[Any]]]:
    """Type of the rows, and the listed values of each slot that users constrain."""
    if not isinstance(content, Mapping):
        raise _bad(name, "an ontology", content)
    if isinstance(content.get("informable"), Mapping):
        return "restaurant", content["informable"]
    domains, states = content.get("domains"), content.get("state")
    if not isinstance(domains, Mapping) or not isinstance(states, Mapping) or len(domains) != 1:
        raise _bad(name, "one domain under 'domains', and its slots under 'state'", domains)
    [(kind, domain)] = domains.items()
    slots = domain.get("slots") if isinstance(domain, Mapping) else None
    state = states.get(kind)
    if not isinstance(slots, Mapping) or not isinstance(state, Mapping):
        raise _bad(name, f"slots of {kind!r} under 'domains' and 'state'", domain)
    asked = [slot for slot in state if slot != NAME]
    values = {slot: slots.get(slot, {}).get("possible_values", ()) for slot in asked}
    return kind, {_column(slot): listed for slot, listed in values.items()}


def _column(slot: str) -> str:
    """Name of a slot in the database: ``price range`` is the column ``pricerange``."""
    return re.sub(r"[\s_]", "", slot)


def _known(column: str, known: Mapping[str, Any]) -> str:
    """Name of a column, that of its slot where it is written otherwise: ``price range``."""
    return _column(column) if _column(column) in known else column


def _values(listed: Sequence[Any], cells: Any) -> list[Any]:
    """Values as the ontology lists them, and after them what rows have besides."""
    known = {str(value).lower() for value in listed}
    more = sorted({str(cell) for cell in cells if cell not in (None, "")})
    return [*listed, *(cell for cell in more if cell.lower() not in known)]


def _bad(name: str, expected: str, got: Any) -> ValueError:
    return ValueError(f"domain, {name}: expected {expected}; got {str(got)[:60]!r}. Mend the file.")
