"""A domain, its ontology and database: built in or read from PyDial's files, and checked."""

import json
import os
import re
import warnings
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cache
from importlib.resources import files
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np

from dialgym.errors import did_you_mean, unknown
from dialgym.io.files import files_in
from dialgym.io.files import read_yaml as yaml_of
from dialgym.tasks.corpora import BUILT_IN
from dialgym.tasks.slot_filling.domain.database import (
    MISSING,
    EntityDatabase,
    of_columns,
    read_database,
)
from dialgym.tasks.slot_filling.domain.goals import GoalGenerator
from dialgym.tasks.slot_filling.domain.ontology import (
    NAME,
    TYPE,
    Ontology,
    parse_ontology,
    read_ontology,
)
from dialgym.tasks.slot_filling.domain.unified import ONTOLOGIES, ZIP, read_unified

RULES, ROWS, YAML = "-rules.json", "-dbase.db", (".yml", ".yaml")
COUNTERPARTS = {
    "CamRestaurants": "Restaurants",
    "SFRestaurants": "CityRestaurants",
    "Laptops11": "Laptops",
    "Laptops6": "Notebooks",
    "CamHotels": "Hotels",
    "SFHotels": "CityHotels",
    "CamAttractions": "Attractions",
    "CamShops": "Shops",
    "CamTransport": "Transport",
    "TV": "Televisions",
}
"""The built-in domain of the size of each of PyDial's."""
PYDIAL = "DIALGYM_PYDIAL"
"""The environment variable that names the folder of PyDial's domains."""


@dataclass(frozen=True)
class Domain:
    """The subject of dialogues: an ontology and its database.

    Attributes:
        ontology: the slots and their values; ``ontology.domain`` is the domain's own name.
        database: the rows.
        source: where both come from: a path without its ending, or ``built-in``.
        stands_for: the name of PyDial's domain that a built-in one takes the place of, if any.
    """

    ontology: Ontology
    database: EntityDatabase
    source: str
    stands_for: str | None = None

    @property
    def played(self) -> str:
        """Name by which `load_domain` knows this domain: a path, or that of a built-in one."""
        built_in = self.source == BUILT_IN
        return self.ontology.domain if built_in else str(Path(self.source).absolute())


def load_domain(domain: str | PathLike[str]) -> Domain:
    """The domain of a name or a path.

    A path is ``path/to/CamRestaurants``, either of its two files, or your own YAML file with
    the keys of the first and ``rows``, mappings of slots to texts; or a folder or zip of ConvLab's
    CamRest, see `read_unified`. A name of PyDial's is looked
    for in the folder that ``$DIALGYM_PYDIAL`` names; where it is not there, or there is no such
    variable, the built-in domain of the same size takes its place, as its `source` and its
    ontology's name say; it `stands_for` that of PyDial's.

    Raises:
        ValueError: the name is unknown, there are no such files, or their content is no domain.
    """
    folder = pydial_folder()
    path = _path_of(domain, folder)
    if path is not None:
        try:
            return read_domain(path)
        except ValueError as error:
            raise ValueError(f"{error}{_elsewhere(path, folder)}") from error
    name = str(domain)
    known = (*COUNTERPARTS.values(), *COUNTERPARTS)
    if name not in known:
        hint = " Or give the path of its files, such as path/to/CamRestaurants."
        raise ValueError(f"{unknown('domain', name, known)}{hint}")
    if name in COUNTERPARTS:
        return replace(builtin_domain(COUNTERPARTS[name]), stands_for=name)
    return builtin_domain(name)


def domain_files(domain: str | PathLike[str]) -> tuple[Path, ...]:
    """Files that `load_domain` reads a domain from, absolute; nothing for a built-in one."""
    path = _path_of(domain, pydial_folder())
    if path is None:
        return ()
    stem = _stem(path)
    names = [str(path)] if str(path).endswith((*YAML, ZIP)) else [stem + RULES, stem + ROWS]
    if _lies_in_folder(path):
        names = [str(file) for file in files_in(path)]
    return tuple(Path(name).absolute() for name in names)


def _lies_in_folder(path: Path) -> bool:
    """Return True for a folder, unless PyDial's files of that name lie beside it."""
    return path.is_dir() and not Path(_stem(path) + RULES).exists()


def _path_of(domain: Any, folder: Path | None) -> Path | None:
    """The path that a domain is read from, that of either file or of both; None: built in."""
    if not isinstance(domain, str | PathLike) or not str(domain):
        raise ValueError(
            f"domain: expected the name of a domain, such as 'Restaurants', or the path of its "
            f"files; got {domain!r}."
        )
    if is_path(domain):
        return Path(domain)
    if folder and (folder / f"{domain}{RULES}").exists():
        return folder / str(domain)
    return None


def _stem(path: str | PathLike[str]) -> str:
    return str(path).removesuffix(RULES).removesuffix(ROWS)


def pydial_folder() -> Path | None:
    """The folder of PyDial's domains that the environment names, or None.

    Raises:
        ValueError: it names something else than a folder.
    """
    named = os.environ.get(PYDIAL)
    if named and not Path(named).is_dir():
        raise ValueError(
            f"${PYDIAL}: expected the folder of PyDial's domains; got {named!r}, which is none. "
            "Mend the variable, or unset it to use the built-in domains."
        )
    return Path(named) if named else None


def _elsewhere(path: Path, folder: Path | None) -> str:
    """A hint for dialogues that were held where the files lay in another place."""
    name = path.name.removesuffix(RULES).removesuffix(ROWS)
    if folder and folder != path.parent and (folder / f"{name}{RULES}").exists():
        return f" ${PYDIAL} has a domain of that name: domain={name!r} plays it."
    return ""


def is_path(domain: str | PathLike[str]) -> bool:
    """True if `domain` is meant as a path: it has a folder or an ending, or the files are here."""
    text = str(domain)
    if not isinstance(domain, str) or text.endswith((RULES, ROWS)):
        return True
    if text.endswith((*YAML, ZIP)) or any(Path(text, name).exists() for name in ONTOLOGIES):
        return True
    return any(sep in text for sep in "/\\") or Path(text + RULES).exists()


def read_domain(path: str | PathLike[str]) -> Domain:
    """The domain of ``<path>-rules.json`` and ``<path>-dbase.db``; either file stands for both.

    Or that of another of the paths that `load_domain` takes.

    Raises:
        ValueError: a file cannot be read, or its content is no ontology, no database, or not that
            of one domain.
    """
    if str(path).endswith(YAML):
        return read_yaml(Path(path))
    if str(path).endswith(ZIP) or _lies_in_folder(Path(path)):
        return Domain(*read_unified(Path(path)), str(path))
    stem = _stem(path)
    ontology = read_ontology(stem + RULES)
    return Domain(ontology, read_database(stem + ROWS, ontology), stem)


def read_yaml(path: Path) -> Domain:
    """The domain of a YAML file; see `load_domain`.

    Raises:
        ValueError: the file cannot be read, or its content is no domain.
    """
    try:
        content = yaml_of(path)
    except (OSError, ValueError) as error:
        said = " ".join(str(error).split())
        raise ValueError(f"domain: expected YAML at {str(path)!r}; got {said}") from error
    rows = content.get("rows") if isinstance(content, dict) else None
    if not isinstance(rows, list) or not all(isinstance(row, dict) for row in rows):
        raise ValueError(
            f"domain {str(path)!r}: expected type, requestable, system_requestable, informable and "
            f"rows, a list of mappings; got {rows!r} under 'rows'. Mend the file."
        )
    ontology = parse_ontology(path.stem, content)
    cells = [(i, slot, cell) for i, row in enumerate(rows, 1) for slot, cell in row.items()]
    for number, slot, cell in cells:
        if not isinstance(cell, str):
            raise ValueError(
                f"domain {str(path)!r}: expected texts in rows; got {cell!r} for {slot!r} in row "
                f"{number}. Put it in quotes."
            )
    columns = (slot for row in rows for slot in row)
    slots = list(dict.fromkeys((*ontology.informable, *ontology.requestable, *columns)))
    table = [[row.get(slot) for slot in slots] for row in rows]
    return Domain(ontology, of_columns(slots, table, ontology), str(path))


@cache
def builtin_domain(name: str) -> Domain:
    """A domain of invented names and rows, made by ``scripts/build_domains.py``."""
    file = files("dialgym.tasks.slot_filling.domain") / "builtin" / f"{name}.json"
    content = json.loads(file.read_text("utf-8"))
    ontology = parse_ontology(name, content)
    rows = (dict(zip(content["columns"], cells)) for cells in content["rows"])
    return Domain(ontology, EntityDatabase(rows, ontology), BUILT_IN)


def find_faults(domain: Domain, shared_names: bool = False) -> list[str]:
    """One message for each thing that would mislead a dialogue; none where all is well.

    That is: slots that no act can name, values that differ in case alone, cells whose value the
    ontology does not list, names that several rows share (unless `shared_names` are wanted), and a
    database without goals.
    """
    found = [*_unsayable(domain), *_alike(domain), *_unlisted(domain)]
    if not shared_names:
        found += _shared(domain)
    try:
        GoalGenerator(domain.database)
    except ValueError as error:
        found.append(str(error))
    return found


def checked(domain: Domain) -> Domain:
    """The domain; warns of cells whose value the ontology does not list, as goals leave them out.

    Raises:
        ValueError: no act can name a slot.
    """
    if domain.source != BUILT_IN:
        for fault in _unsayable(domain):
            raise ValueError(fault)
        for fault in _unlisted(domain):
            warnings.warn(fault, stacklevel=4)
    return domain


def sizes(domain: Domain) -> dict[str, str]:
    """Size of a domain, by a name for each figure."""
    ontology, database = domain.ontology, domain.database
    counts = {slot: len(values) for slot, values in ontology.informable.items()}
    asked = ontology.system_requestable
    return {
        "domain": f"{ontology.domain} ({ontology.type})",
        "source": domain.source,
        "rows": str(len(database)),
        "slots that the system asks for": ", ".join(f"{slot} {counts[slot]}" for slot in asked),
        "other informable slots": ", ".join(
            f"{s} {n}" for s, n in counts.items() if s not in asked
        ),
        "requestable slots": str(len(ontology.requestable)),
        "values that no row has": _listing(_unused(domain)),
        f"cells {MISSING!r}": _listing(_missing(domain)),
    }


def _unsayable(domain: Domain) -> Iterator[str]:
    ontology = domain.ontology
    for slot in dict.fromkeys((*ontology.informable, *ontology.requestable)):
        if slot == TYPE or not _SLOT.fullmatch(slot):
            yield (
                f"ontology of {ontology.domain}: expected slots of letters, digits, '_', '-' and "
                f"'.', of which none is {TYPE!r}, the kind of all rows; got {slot!r}. No act, such "
                'as inform(food="thai"), can name it: rename the slot wherever it stands.'
            )


def _alike(domain: Domain) -> Iterator[str]:
    ontology = domain.ontology
    for slot, values in ontology.informable.items():
        first: dict[str, str] = {}
        for value in values:
            other = first.setdefault(value.lower(), value)
            if other != value:
                yield (
                    f"ontology of {ontology.domain}: expected values of {slot!r} that differ in "
                    f"more than case, as English is read in lower case; got {other!r} and "
                    f"{value!r}. Spell them alike wherever they stand."
                )


_SLOT = re.compile(r"[\w.-]+")


def _unlisted(domain: Domain) -> Iterator[str]:
    rows, codes = domain.database.rows, domain.database.codes
    for (slot, known), column in zip(domain.ontology.index.items(), codes.T):
        wrong = [r for r in np.flatnonzero(column < 0).tolist() if rows[r][slot] != MISSING]
        if wrong:
            value = rows[wrong[0]][slot]
            yield (
                f"database of {domain.ontology.domain}: expected values of {slot!r} that the "
                f"ontology lists, or {MISSING!r}; got {value!r} in row {wrong[0] + 1} "
                f"({len(wrong)} of {len(rows)} rows).{did_you_mean(value, known)} Mend the row, "
                f"or list the value under 'informable'."
            )


def _shared(domain: Domain) -> Iterator[str]:
    counts = Counter(row[NAME] for row in domain.database.rows)
    shared = {name: count for name, count in counts.items() if count > 1}
    if shared:
        name, count = next(iter(shared.items()))
        yield (
            f"database of {domain.ontology.domain}: expected a {NAME!r} of its own for each row; "
            f"got {name!r} in {count} rows (shared names: {len(shared)}). Users know a row by its "
            "name: give each another, or accept them with --shared-names."
        )


def _unused(domain: Domain) -> dict[str, int]:
    bits = domain.database.bits
    slots = domain.ontology.informable.items()
    return {slot: sum(not bits(slot, value) for value in values) for slot, values in slots}


def _missing(domain: Domain) -> dict[str, int]:
    bits = domain.database.bits
    return {slot: bits(slot, MISSING).bit_count() for slot in domain.ontology.informable}


def _listing(counts: dict[str, int]) -> str:
    return ", ".join(f"{slot} {count}" for slot, count in counts.items() if count) or "none"
