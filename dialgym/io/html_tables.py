"""Tables of texts as HTML, for pages and for notebooks."""

from collections.abc import Sequence
from html import escape


def cell(text: str) -> str:
    """The text of a cell: no line ends within an interval."""
    return escape(text).replace(", ", ",&nbsp;")


def plain_table(rows: Sequence[Sequence[str]]) -> str:
    """A table of texts: the first row is its head, the first column names the others."""
    head, *body = ([cell(text) for text in cells] for cells in rows)
    lines = (
        f"<tr><td>{first}" + "".join(f'<td class="n">{c}' for c in rest) for first, *rest in body
    )
    names = f"<th>{head[0]}" + "".join(f'<th class="n">{name}' for name in head[1:])
    return (
        f'<div class="scroll"><table class="plain"><thead><tr>{names}</tr></thead>'
        f"<tbody>{''.join(lines)}</tbody></table></div>"
    )
