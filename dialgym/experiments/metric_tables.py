"""Tables of what tasks measure beside success and return, with intervals."""

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING

from dialgym.experiments.statistics import Estimate, format_estimate
from dialgym.experiments.tables import Rows, markdown_table, rich_table

if TYPE_CHECKING:
    from rich.table import Table

NOTE = "Measured of each dialogue, where there was something to measure; 95 % bootstrap intervals."
Measured = Mapping[str, Mapping[str, Mapping[str, Estimate | None]]]
"""By environment, policy and measure."""


def metric_tables(measured: Measured) -> Iterator[tuple[str, list[list[str]]]]:
    """Tables by environment: a row for each measure, a column for each policy.

    The first row is the head. Environments without measures are left out, and so are measures
    that no dialogue has.
    """
    for label, own in measured.items():
        names = dict.fromkeys(name for each in own.values() for name in each)
        rows = [
            [name, *(format_estimate(each.get(name), 3) for each in own.values())]
            for name in names
            if any(each.get(name) for each in own.values())
        ]
        if rows:
            yield label, [["measure", *own], *rows]


def metrics_as_markdown(measured: Measured) -> str:
    """Format the tables as Markdown; empty without measures."""
    parts = [f"{label}\n\n{markdown_table(rows)}" for label, rows in metric_tables(measured)]
    return "\n".join(["", *parts, f"{NOTE}\n"]) if parts else ""


def metrics_as_tables(measured: Measured, width: int | None = None) -> Iterator["Table"]:
    """Format the tables for the terminal."""
    for label, (head, *rows) in metric_tables(measured):
        sections: dict[str, Rows] = {label: rows}
        yield rich_table(head, sections, NOTE, width)
