"""Tables of plain cells, as Markdown and for the terminal."""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from rich.table import Table

WIDE = 110
"""Columns of a terminal from which intervals stand beside their values."""
Rows = Sequence[Sequence[str]]


def markdown_table(rows: Rows) -> str:
    """Format rows of cells, each of which stays one, as Markdown; the first row is the head."""
    lines = [rows[0], ["---"] * len(rows[0]), *rows[1:]]
    return "".join("| " + " | ".join(map(_cell, line)) + " |\n" for line in lines)


def _cell(text: str) -> str:
    return " ".join(text.splitlines()).replace("|", "\\|")


def rich_table(
    head: Sequence[str],
    sections: Mapping[str, Rows],
    caption: str,
    width: int | None = None,
    left: int = 0,
) -> "Table":
    """Format rows of cells for the terminal, those of each section below its name.

    Where `width`, by default the terminal's, is less than `WIDE`, intervals go below their values.

    Args:
        head: names of the columns.
        sections: rows by name; a name may be empty.
        caption: of the table.
        width: of the terminal, in characters.
        left: the column of names, which may be wrapped; the others are figures.
    """
    import rich
    from rich.box import SIMPLE_HEAD
    from rich.table import Table
    from rich.text import Text

    wide = (width or rich.get_console().width) >= WIDE
    table = Table(box=SIMPLE_HEAD, padding=(0, 1, 0, 0), pad_edge=False, show_edge=False)
    table.caption, table.caption_justify = Text(caption), "left"
    for i, name in enumerate(head):
        kind = {"overflow": "fold"} if i == left else {"justify": "right", "no_wrap": True}
        table.add_column(Text(name), **kind)  # type: ignore[arg-type]
    for section, rows in sections.items():
        if section:
            table.add_section()
            table.add_row(*[""] * left, Text(section, "bold"))
        for cells in rows:
            lines = cells if wide else [c.replace(" [", "\n[").replace(", ", ",") for c in cells]
            shown = [("  " if section and i == left else "") + c for i, c in enumerate(lines)]
            table.add_row(*map(Text, shown))
    return table
