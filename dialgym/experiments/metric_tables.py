"""Tables of what tasks measure beside success and return, with intervals."""

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from dialgym.experiments.result import PREFIX, Result, labels
from dialgym.experiments.statistics import Estimate, format_estimate
from dialgym.experiments.tables import Rows, markdown_table, rich_table

if TYPE_CHECKING:
    from rich.table import Table

NOTE = "Measured of each dialogue, where there was something to measure; 95 % bootstrap intervals."


def metric_tables(results: Sequence[Result]) -> Iterator[tuple[str, list[list[str]]]]:
    """Tables by environment: a row for each measure, a column for each policy.

    The first row is the head. Environments without measures are left out, and so are measures
    that no dialogue has.
    """
    for env_id, label in labels(results):
        own = [r for r in results if env_id in r.by_id and r.label(env_id) == label]
        measured = [r.by_id[env_id].measured for r in own]
        names = dict.fromkeys(name for each in measured for name in each)
        rows = [[name, *(_cell(each.get(name)) for each in measured)] for name in names]
        rows = [cells for cells in rows if any(cell != "-" for cell in cells[1:])]
        if rows:
            yield label.removeprefix(PREFIX), [["measure", *(r.name for r in own)], *rows]


def _cell(estimate: Estimate | None) -> str:
    return format_estimate(estimate, 3)


def metrics_as_markdown(results: Sequence[Result]) -> str:
    """Format the tables as Markdown; empty without measures."""
    parts = [f"{label}\n\n{markdown_table(rows)}" for label, rows in metric_tables(results)]
    return "\n".join(["", *parts, f"{NOTE}\n"]) if parts else ""


def metrics_as_tables(results: Sequence[Result], width: int | None = None) -> Iterator["Table"]:
    """Format the tables for the terminal."""
    for label, (head, *rows) in metric_tables(results):
        sections: dict[str, Rows] = {label: rows}
        yield rich_table(head, sections, NOTE, width)
