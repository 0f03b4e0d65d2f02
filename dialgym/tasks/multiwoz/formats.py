"""MultiWOZ's files: the tables of its domains, the values of slots and the goal model, checked."""

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path, PurePosixPath
from types import MappingProxyType
from typing import Any, NamedTuple

from dialgym.errors import did_you_mean
from dialgym.io.archives import ArchiveMember, parts_of
from dialgym.io.files import files_in, parse_json
from dialgym.tasks.multiwoz.database import AFTER, BY, Taxis, clock
from dialgym.tasks.multiwoz.goal_model import GoalModel, parse_goal_model
from dialgym.tasks.multiwoz.goal_pickle import FILE as PICKLE
from dialgym.tasks.multiwoz.goal_pickle import read_goal_pickle
from dialgym.tasks.multiwoz.ontology import DAYS, DOMAINS, INFORMABLE

FILES = ("*_db.json", "value_set.json", "goal_model.json", PICKLE)
"""The names of MultiWOZ's files that are read, in whatever folders."""
Rows = Sequence[Mapping[str, str]]
NEEDED = {**INFORMABLE, "police": ("name", "phone"), "train": (*INFORMABLE["train"], "trainID")}
"""Slots that each row of a domain must have; others may be missing."""


class Tables(NamedTuple):
    """The rows of all domains, but taxis, and what taxis can be."""

    rows: Mapping[str, Rows]
    taxis: Taxis

    @staticmethod
    def of_columns(content: Mapping[str, Any]) -> "Tables":
        """The tables of the built-in file: lists of cells, under their columns."""
        rows = {
            domain: [dict(zip(table["columns"], cells)) for cells in table["rows"]]
            for domain, table in content["tables"].items()
        }
        return Tables(rows, Taxis(*map(tuple, content["taxis"])))


def find_files(place: Path) -> list[ArchiveMember]:
    """MultiWOZ's files in a folder or zip, and in the folders within."""
    if not place.is_dir():
        return parts_of(place)
    found = [file for file in files_in(place) if any(file.match(name) for name in FILES)]
    return [ArchiveMember(file.relative_to(place).as_posix(), file.read_bytes) for file in found]


def read_tables(parts: Sequence[ArchiveMember], source: str) -> Tables:
    """The tables of ``<domain>_db.json`` of all domains, wherever they lie among the parts.

    Cells that are no text or number (coordinates, prices by room) are left out.

    Raises:
        ValueError: a file is missing or malformed, or a row lacks what its domain needs.
    """
    found = {domain: _part(parts, f"{domain}_db.json") for domain in DOMAINS}
    lacking = [f"{domain}_db.json" for domain, part in found.items() if part is None]
    if lacking:
        got = ", ".join(part.name for part in parts[:8]) or "none of such a name"
        raise ValueError(
            f"MultiWOZ {source!r}: expected a file {lacking[0]} (in it, or in db/); got {got}. "
            "Give the folder of the database's JSON files."
        )
    rows = {d: _rows(d, part) for d, part in found.items() if part is not None and d != "taxi"}
    assert found["taxi"] is not None
    return Tables(rows, _taxis(found["taxi"]))


def read_values(
    parts: Sequence[ArchiveMember],
) -> Mapping[str, Mapping[str, tuple[str, ...]]] | None:
    """Domain -> slot -> values, of ``value_set.json``; None where there is none.

    Raises:
        ValueError: it is malformed.
    """
    part = _part(parts, "value_set.json")
    if part is None:
        return None
    content = parse_json(part.text(), part.name)
    if not isinstance(content, Mapping) or not all(
        isinstance(slots, Mapping) and all(_are_texts(v) for v in slots.values())
        for slots in content.values()
    ):
        raise _bad(part.name, "domain -> slot -> list of texts", repr(content)[:60])
    for domain in content:
        if domain not in DOMAINS:
            raise _bad(part.name, f"some of {', '.join(DOMAINS)}", _hinted(domain, DOMAINS))
    return _frozen({d: {s: tuple(v) for s, v in slots.items()} for d, slots in content.items()})


def read_goal_model(parts: Sequence[ArchiveMember]) -> GoalModel | None:
    """The goal model of ``goal_model.json``, or of ConvLab-2's pickle; None where there is none.

    Raises:
        ValueError: it is malformed.
    """
    part = _part(parts, "goal_model.json")
    if part is not None:
        return parse_goal_model(parse_json(part.text(), part.name), part.name)
    part = _part(parts, PICKLE)
    if part is not None:
        return parse_goal_model(read_goal_pickle(part.read(), part.name), part.name)
    return None


def values_of(tables: Tables) -> Mapping[str, Mapping[str, tuple[str, ...]]]:
    """Domain -> slot -> values, as the rows have them."""
    found: dict[str, dict[str, tuple[str, ...]]] = {}
    for domain, rows in tables.rows.items():
        slots = dict.fromkeys(slot for row in rows for slot in row)
        found[domain] = {
            slot: tuple(dict.fromkeys(row[slot] for row in rows if slot in row)) for slot in slots
        }
    found["taxi"] = {"types": tables.taxis.types, "colors": tables.taxis.colors}
    return _frozen(found)


def _frozen(
    values: Mapping[str, Mapping[str, tuple[str, ...]]],
) -> Mapping[str, Mapping[str, tuple[str, ...]]]:
    return MappingProxyType({d: MappingProxyType(dict(slots)) for d, slots in values.items()})


def _part(parts: Iterable[ArchiveMember], name: str) -> ArchiveMember | None:
    """The file of that name in the fewest folders."""
    same = [part for part in parts if PurePosixPath(part.name.removesuffix(".gz")).name == name]
    return min(same, key=lambda part: part.name.count("/"), default=None)


def _rows(domain: str, part: ArchiveMember) -> Rows:
    content = parse_json(part.text(), part.name)
    if not isinstance(content, list):
        raise _bad(part.name, "a list of rows", type(content).__name__)
    return [_row(domain, row, f"{part.name}, row {place}") for place, row in enumerate(content, 1)]


def _row(domain: str, row: Any, where: str) -> Mapping[str, str]:
    if not isinstance(row, Mapping):
        raise _bad(where, "an object of slots and values", repr(row)[:60])
    cells = {slot: _text(cell) for slot, cell in row.items()}
    for slot in NEEDED[domain]:
        if not isinstance(row.get(slot), str):
            got = repr(row[slot])[:60] if slot in row else f"no such slot.{did_you_mean(slot, row)}"
            raise _bad(where, f"a text under {slot!r}", got)
    if domain == "train":
        for slot in (AFTER, BY):
            if clock(cells[slot]) is None:
                raise _bad(where, f"a time such as 09:30 under {slot!r}", repr(cells[slot]))
        if cells["day"] not in DAYS:
            raise _bad(where, "a weekday under 'day'", _hinted(cells["day"], DAYS))
    return {slot: text for slot, text in cells.items() if text is not None}


def _text(cell: Any) -> str | None:
    if isinstance(cell, str):
        return cell
    return str(cell) if isinstance(cell, int | float) and not isinstance(cell, bool) else None


def _taxis(part: ArchiveMember) -> Taxis:
    content = parse_json(part.text(), part.name)
    if isinstance(content, list) and len(content) == 1:
        content = content[0]
    kinds = [content.get(f"taxi_{k}") if isinstance(content, Mapping) else None for k in _TAXIS]
    if not all(_are_texts(kind) and kind for kind in kinds):
        raise _bad(part.name, "lists of texts 'taxi_colors' and 'taxi_types'", repr(content)[:60])
    return Taxis(*(tuple(kind) for kind in kinds if kind))


_TAXIS = ("colors", "types")


def _are_texts(values: Any) -> bool:
    return isinstance(values, list) and all(isinstance(value, str) for value in values)


def _hinted(name: Any, known: Iterable[str]) -> str:
    return f"{name!r}.{did_you_mean(name, known)}"


def _bad(where: str, expected: str, got: str) -> ValueError:
    got = got.rstrip(".")
    return ValueError(f"MultiWOZ {where}: expected {expected}; got {got}. Mend the file.")
