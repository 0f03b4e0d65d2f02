"""Tables of things and questions: the built-in ones, and any that a file holds."""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from os import PathLike
from typing import Any

import numpy as np

from dialgym.errors import whole_number
from dialgym.io.archives import ArchiveMember, parts_of
from dialgym.io.tables import Row, RowLocation, all_rows, locate, rows_of
from dialgym.language.text import plain
from dialgym.tasks.posterior import entropy
from dialgym.tasks.twenty_questions.types import NO, UNCLEAR, YES

BUILT_IN = ("things", "animals", "cities")
CELLS = {
    **dict.fromkeys(("1", "1.0", "yes", "y", "true"), YES),
    **dict.fromkeys(("0", "0.0", "no", "n", "false"), NO),
    **dict.fromkeys(("", "?", "none", "nan", "unknown"), UNCLEAR),
}
"""Texts of a cell, in upper or lower case."""
ARTICLES = ("a", "an", "the", "some")
_SUBJECTS = ("it", "they")
_AUXILIARIES = {"is": "is it", "can": "can it", "has": "does it have", "does": "does it"}


@dataclass(frozen=True, eq=False)
class AnswerTable:
    """K things, A questions with an answer of yes or no, and what is true.

    Attributes:
        names: of each thing; the first is how it is called, with its article if it has one.
        questions: wordings of each question; the first is how it is asked by default.
        truth: (K, A) int8 of NO, YES and UNCLEAR.
    """

    names: tuple[tuple[str, ...], ...]
    questions: tuple[tuple[str, ...], ...]
    truth: np.ndarray

    @property
    def guesses(self) -> list[str]:
        """Guess of each thing: ``is it a cat?``."""
        return [f"is it {names[0]}?" for names in self.names]

    def only(self, items: int | None, questions: int | None, task: str) -> "AnswerTable":
        """The first things, and the questions that tell most about which one it is.

        Questions are taken one by one, each so that all of them together tell most. Without a
        number all are taken; of fewer things those that split them, each split once.

        Raises:
            ValueError: there are not so many of them.
        """
        if items is None and questions is None:
            return self
        count = len(self.names)
        kept = count if items is None else whole_number("items", items, task, 2, count)
        columns = _informative(self.truth[:kept])
        if questions is not None:
            most = len(columns)
            wanted = whole_number("questions", questions, task, 1, most)
            columns = sorted(_most_telling(self.truth[:kept], columns, wanted))
        chosen = tuple(self.questions[column] for column in columns)
        return AnswerTable(self.names[:kept], chosen, self.truth[:kept, columns])


def _informative(truth: np.ndarray) -> list[int]:
    """The columns that are neither the same throughout nor equal to an earlier one."""
    first: dict[bytes, int] = {}
    for place, column in enumerate(truth.T):
        if len(np.unique(column)) > 1:
            first.setdefault(column.tobytes(), place)
    return list(first.values())


def _most_telling(truth: np.ndarray, columns: Sequence[int], count: int) -> list[int]:
    """Greedily the columns whose answers together leave the least doubt."""
    chosen: list[int] = []
    groups = np.zeros(len(truth), np.int64)  # things that the chosen ones do not tell apart
    while len(chosen) < count:
        left = [column for column in columns if column not in chosen]
        splits = [np.unique(3 * groups + truth[:, c], return_inverse=True)[1] for c in left]
        told = [entropy(np.bincount(split) / len(truth)) for split in splits]
        best = int(np.argmax(told))
        chosen.append(left[best])
        groups = splits[best]
    return chosen


def load_table(source: str | PathLike[str], task: str) -> AnswerTable:
    """A built-in table by its name, or that of a file of rows or of the hub's ``hf:NAME``.

    A row is a thing, a column a question. The things' names are in the column ``name``, or else in
    the first one. A cell is 1 or 0, yes or no, true or false, or empty where it cannot be told.
    Both names and questions may have other wordings after a semicolon. A column that is no question
    becomes one: ``can fly``, ``has wings``, ``is alive`` and ``red`` are ``can it fly?``,
    ``does it have wings?``, ``is it alive?`` and ``is it red?``; ``is it alive`` gets its mark.

    Raises:
        ValueError: it cannot be read, or is no such table; the message says where.
    """
    return built_in(str(source)) if source in BUILT_IN else _read(_rows(source, task), str(source))


@cache
def built_in(name: str) -> AnswerTable:
    """A table of the package, made by ``scripts/build_questions.py``."""
    file = files("dialgym.tasks.twenty_questions") / "tables" / f"{name}.csv"
    return _read(rows_of(ArchiveMember(f"{name}.csv", file.read_bytes)), name)


def _rows(source: Any, task: str) -> Iterator[tuple[RowLocation, Row]]:
    place = locate(source, task)
    parts = parts_of(place)
    for where, _, row in all_rows(place, parts, "a table of things"):
        yield where, row


def _read(rows: Iterator[tuple[RowLocation, Row]], source: str) -> AnswerTable:
    found = list(rows)
    if len(found) < 2 or not found[0][1]:
        raise ValueError(
            f"table {source!r}: expected a row for each of some things; got {found!r:.80}."
        )
    columns = list(found[0][1])
    key = "name" if "name" in columns else columns[0]
    asked = [column for column in columns if column != key]
    here = f"table {source!r}"
    questions = tuple(tuple(map(_question, _wordings(here, column))) for column in asked)
    names = tuple(tuple(map(with_article, _wordings(where, row.get(key)))) for where, row in found)
    truth = np.array([[_cell(where, row, c) for c in asked] for where, row in found], np.int8)
    table = AnswerTable(names, questions, truth)
    _check(table, source)
    return table


def _wordings(where: RowLocation | str, text: Any) -> tuple[str, ...]:
    words = (plain(part) for part in str(text or "").split(";"))
    found = tuple(dict.fromkeys(word for word in words if word))
    if not found:
        raise ValueError(
            f"{where}: expected a name or question in Latin letters; got {text!r}. Transcribe it."
        )
    return found


def with_article(name: str) -> str:
    """A name as it is said: ``a cat``, ``an owl``; as it is if it has an article, is a proper
    name (a capital) or a plural."""
    first = name.split()[0]
    plural = name.endswith("s") and not name.endswith(("ss", "us", "is"))
    if first in ARTICLES or name[0].isupper() or plural:
        return name
    vowel = name[0] in "aeiou" and not name.startswith(("uni", "use", "uku", "eu", "one"))
    return f"{'an' if vowel else 'a'} {name}"


def _question(column: str) -> str:
    if column.endswith("?"):
        return column
    first, _, rest = column.partition(" ")
    if rest.partition(" ")[0] in _SUBJECTS:  # "was it made by man": only the mark is missing
        return f"{column}?"
    if rest and first in _AUXILIARIES:
        return f"{_AUXILIARIES[first]} {rest}?"
    return f"is it {column}?"


def _cell(where: RowLocation, row: Mapping[Any, Any], column: str) -> int:
    if column not in row:
        raise ValueError(f"{where}: expected a cell for each of the first row's columns.")
    value = "" if row[column] is None else str(row[column]).strip().lower()
    if value not in CELLS:
        raise ValueError(
            f"{where}, column {column!r}: expected 1 or 0, yes or no, or nothing where it cannot "
            f"be told; got {row[column]!r}. Make a column of yes and no for each value."
        )
    return CELLS[value]


def normal(text: str) -> str:
    """Words in lower case with single spaces, without punctuation: what texts are compared by."""
    return " ".join(re.findall(r"[a-z0-9']+", text.lower()))


def _check(table: AnswerTable, source: str) -> None:
    """Raise a ValueError where two things or questions could be asked in the same words."""
    if not table.questions:
        raise ValueError(f"table {source!r}: expected columns of questions; got names only.")
    guesses = [[f"is it {name}" for name in names] for names in table.names]
    owner: dict[str, int] = {}
    for place, wordings in enumerate([*table.questions, *guesses]):
        for wording in wordings:
            if owner.setdefault(normal(wording), place) != place:
                raise ValueError(
                    f"table {source!r}: {wording!r} would be two different questions. Give each "
                    "thing and each column wordings of its own."
                )
