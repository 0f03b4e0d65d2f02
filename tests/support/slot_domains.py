"""Small domains for the tests of slot filling."""

import json
import sqlite3
from pathlib import Path

from hypothesis import strategies as st

from dialgym.tasks.slot_filling.domain.database import MISSING, EntityDatabase
from dialgym.tasks.slot_filling.domain.ontology import Ontology

VALUES = {
    "food": ("thai", "greek", "cafe"),
    "area": ("north", "south"),
    "parking": ("0", "1"),
    "price": ("ten", "twenty"),
}
REQUESTABLE = ("name", "food", "area", "phone", "addr")
ASKED = ("food", "area", "parking")


def ontology_of(names) -> Ontology:
    informable = {**VALUES, "name": tuple(names)}
    return Ontology("Toy", "restaurant", informable, REQUESTABLE, ASKED)


def row_of(place: int, **cells) -> dict[str, str]:
    usual = {"food": "thai", "area": "north", "parking": "1", "price": "ten"}
    return {"name": f"venue {place}", "phone": f"{place:04}", "addr": "1 a road", **usual, **cells}


def database_of(*rows) -> EntityDatabase:
    """One row for each dict of cells; the rest of a row is as in `row_of`."""
    cells = [row_of(place, **row) for place, row in enumerate(rows)]
    return EntityDatabase(cells, ontology_of(dict.fromkeys(row["name"] for row in cells)))


def five_slots() -> EntityDatabase:
    """Two rows that differ only in the fifth of the slots that the system asks for."""
    more = {"pets": ("0", "1"), "stars": ("3", "4")}
    informable = {**VALUES, **more, "name": ("venue 0", "venue 1")}
    ontology = Ontology("Toy", "restaurant", informable, REQUESTABLE, (*ASKED, *more))
    return EntityDatabase(
        [row_of(i, pets="1", stars=stars) for i, stars in enumerate("34")], ontology
    )


def databases(most: int = 12) -> st.SearchStrategy[EntityDatabase]:
    cells = {slot: st.sampled_from([*values, MISSING]) for slot, values in VALUES.items()}
    rows = st.lists(st.fixed_dictionaries(cells), min_size=1, max_size=most)
    return rows.map(lambda found: database_of(*found))


def constraints() -> st.SearchStrategy[dict[str, str]]:
    choices = {slot: st.sampled_from([*values, "dontcare"]) for slot, values in VALUES.items()}
    return st.fixed_dictionaries({}, optional=choices)


def write_domain(
    folder: Path, rules: dict | str, rows: list[dict] | bytes, domain="Toy", table=None
):
    """The two files of a domain; text and bytes are written as they are."""
    text = rules if isinstance(rules, str) else json.dumps(rules)
    (folder / f"{domain}-rules.json").write_text(text, encoding="utf-8")
    path = folder / f"{domain}-dbase.db"
    if isinstance(rows, bytes):
        path.write_bytes(rows)
    else:
        _write_rows(path, rows, table or domain)
    return folder / domain


def rules_of(**changes) -> dict:
    """The rules of `ontology_of` for two venues, with `changes` of the top level."""
    informable = {**VALUES, "name": ("venue 0", "venue 1")}
    rules = {"type": "restaurant", "informable": informable, "requestable": REQUESTABLE}
    return {**rules, "system_requestable": ASKED, **changes}


def write_bakeries(folder: Path, slot: str) -> str:
    """The file of your own domain, one of whose slots is called `slot`."""
    rows = [
        {"name": name, "kind": kind, slot: value}
        for name, kind, value in zip("abcd", ["bread", "bread", "cake", "cake"], "nsns")
    ]
    informable = {"name": list("abcd"), "kind": ["bread", "cake"], slot: ["n", "s"]}
    asked = ["kind", slot]
    rules = {"type": "bakery", "requestable": ["name", *asked], "system_requestable": asked}
    file = folder / f"{slot}.yml"
    file.write_text(json.dumps({**rules, "informable": informable, "rows": rows}), "utf-8")
    return str(file)


def _write_rows(path: Path, rows: list[dict], table: str) -> None:
    columns = list(rows[0]) if rows else ["id", *row_of(0)]
    with sqlite3.connect(path) as connection:
        connection.execute(f'CREATE TABLE "{table}" ({", ".join(columns)})')
        marks = ", ".join("?" * len(columns))
        cells = [tuple(row.values()) for row in rows]
        connection.executemany(f'INSERT INTO "{table}" VALUES ({marks})', cells)
    connection.close()
