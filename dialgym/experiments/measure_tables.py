"""Tables of language measures: of all rows in each environment, and of two rows' differences.

A measure is compared in one way of playing: greedy replies are of fewer words, and more alike,
than drawn ones.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from html import escape

import numpy as np

from dialgym.experiments.panel import Place
from dialgym.experiments.ranking import Board, Contestant, Part, difference, labelled
from dialgym.experiments.row import RETURN
from dialgym.experiments.row_checks import WAYS
from dialgym.experiments.statistics import format_estimate, format_interval, mean_difference
from dialgym.experiments.tables import markdown_table
from dialgym.io.html_tables import html_table

DIGITS = {RETURN: 2, "words": 1, "sacrebleu": 4}
USUAL = 3
"""Digits that are shown of a measure."""


def measured_as(row: Contestant, place: Place, name: str, way: str) -> Contestant | None:
    """A row with a measure, played one way in one environment, in place of the metric.

    None where its runs have not been measured so.
    """
    own = sorted((one for one in row.rows if one.id == place.id), key=lambda one: one.seed)
    found = [one.measure(name, way) for one in own]
    known = [values for values in found if values is not None]
    if not known or len(known) < len(found):
        return None
    part = Part(tuple(one.seed for one in own), np.array(known))
    return Contestant(row.name, way, {place.id: part})


def measures_as_markdown(board: Board) -> str:
    """The tables of all environments that have measures; nothing where none has."""
    parts = [f"### {title}\n\n{markdown_table(rows)}" for title, rows in _tables(board)]
    return "\n".join([*parts, *([NOTE] if parts else [])])


def measures_as_html(board: Board) -> str:
    """The same, as HTML."""
    parts = [f"<h3>{escape(title)}</h3>{html_table(rows)}" for title, rows in _tables(board)]
    note = escape(NOTE.replace("`", ""))
    return "".join([*parts, f'<p class="note">{note}</p>' if parts else ""])


NOTE = """\
Measures of the replies that rows are scored by; in brackets the 95 % interval of a bootstrap of the
runs (of the replies, where there is one run). `judge` is the share of replies that are good to a
judge which pays no reward; `distinct2` and `sacrebleu` are of all replies of a run together.
"""


def _tables(board: Board) -> Iterator[tuple[str, list[list[str]]]]:
    """Of each environment with measures the title and the cells, the head first."""
    for place in filter(lambda place: place.measures, board.panel.environments):
        rows = [
            [labelled(row.name, way), *cells]
            for row in board.rows
            for way in WAYS
            if (cells := [_cell(row, place, name, way) for name in (RETURN, *place.measures)])
            and any(cells)
        ]
        if rows:
            head = ["policy", RETURN, *place.measures]
            yield f"{board.title}: {place.short}", [head, *rows]


def _cell(row: Contestant, place: Place, name: str, way: str) -> str:
    found = measured_as(row, place, name, way)
    return "" if found is None else format_estimate(found.estimate, _digits(name))


def _digits(name: str) -> int:
    return DIGITS.get(name, USUAL)


def compare_measures(board: Board, first: str, second: str) -> str:
    """The differences of two rows in each measure, as Markdown; nothing where there are none."""
    rows = list(_differences(board, board[first], board[second]))
    if not rows:
        return ""
    head = ["environment", "measure", "played", first, second, "difference", "over replies", "%"]
    return f"{markdown_table([head, *rows])}\n{ABOUT_DIFFERENCES}"


ABOUT_DIFFERENCES = """\
Differences with 95 % intervals: of Student's t over runs, in pairs where the seeds are the same;
over replies: of a bootstrap of the replies of these runs, each with that of the other policy in the
same dialogue. Per cent: of the second row's figure.
"""


def _differences(board: Board, a: Contestant, b: Contestant) -> Iterator[list[str]]:
    for place in filter(lambda place: place.measures, board.panel.environments):
        for way, other in _ways(a, b):
            for name in (RETURN, *place.measures):
                one, two = measured_as(a, place, name, way), measured_as(b, place, name, other)
                if one is None or two is None:
                    continue
                found = difference(one, two)
                assert found is not None
                pair = one.parts[place.id], two.parts[place.id]
                base, digits = two.estimate.value, _digits(name)
                yield [
                    place.short,
                    name,
                    way if way == other else f"{way}, {other}",
                    format_estimate(one.estimate, digits),
                    format_estimate(two.estimate, digits),
                    format_estimate(found, digits),
                    format_interval(over_replies(*pair), digits),
                    f"{100 * found.value / abs(base):+.1f}" if base else "-",
                ]


def _ways(a: Contestant, b: Contestant) -> Sequence[tuple[str, str]]:
    """Ways of playing in which two rows are compared: the same one where both have it."""
    if "scripted" in (a.way, b.way):
        return [(a.way, b.way)]
    return [(way, way) for way in WAYS[:2]]


def over_replies(one: Part, other: Part) -> tuple[float, float] | None:
    """The interval of the difference if other replies of the same runs had been drawn.

    None where single replies are not known, or the dialogues were others.
    """
    if one.seeds != other.seeds or one.values.shape != other.values.shape:
        return None
    if one.values.shape[1] < 2:
        return None
    return mean_difference(one.values, other.values).interval
