"""A domain: its ontology and its database, from files of PyDial's form."""

from dataclasses import dataclass
from os import PathLike
from pathlib import Path

from dialgym.tasks.slot_filling.database import Database, read_database
from dialgym.tasks.slot_filling.ontology import Ontology, read_ontology

RULES, ROWS = "-rules.json", "-dbase.db"


@dataclass(frozen=True)
class Domain:
    """What a dialogue is about.

    Attributes:
        ontology: the slots and their values.
        database: the rows.
        source: where both come from: a path, or ``built-in``.
    """

    ontology: Ontology
    database: Database
    source: str


def load_domain(domain: str | PathLike[str]) -> Domain:
    """The domain of a path, ``path/to/CamRestaurants`` or either of its two files.

    Raises:
        ValueError: there are no such files, or their content is no domain.
    """
    return read_domain(domain)


def read_domain(path: str | PathLike[str]) -> Domain:
    """The domain of ``<path>-rules.json`` and ``<path>-dbase.db``; either file stands for both.

    Raises:
        ValueError: a file cannot be read, or its content is no ontology, no database, or not that
            of one domain.
    """
    stem = str(path).removesuffix(RULES).removesuffix(ROWS)
    ontology = read_ontology(Path(stem + RULES))
    return Domain(ontology, read_database(Path(stem + ROWS), ontology), stem)
