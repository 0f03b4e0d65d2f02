"""Tables of texts as HTML, for pages and for notebooks."""

from collections.abc import Sequence
from html import escape


def html_table(
    rows: Sequence[Sequence[str]],
    kind: str = "plain",
    left: int = 0,
    bars: tuple[int, Sequence[str]] | None = None,
) -> str:
    """Format rows of texts as HTML; the first row is the head.

    Args:
        rows: of cells.
        kind: class of the table.
        left: the column of names; the others are figures.
        bars: a column, and a drawing (HTML) to stand before the text of each of its cells.
    """
    head, *body = rows
    column, drawings = bars or (None, [""] * len(body))
    kinds = ["bar" if i == column else "" if i == left else "n" for i in range(len(head))]
    names = "".join(f"<th{_class(k)}>{_cell(name)}" for k, name in zip(kinds, head, strict=True))
    lines = []
    for cells, drawing in zip(body, drawings, strict=True):
        texts = [
            f"{drawing}<span>{_cell(text)}</span>" if k == "bar" else _cell(text)
            for k, text in zip(kinds, cells, strict=True)
        ]
        lines.append("<tr>" + "".join(f"<td{_class(k)}>{t}" for k, t in zip(kinds, texts)))
    return (
        f'<div class="scroll"><table class="{kind}"><thead><tr>{names}</tr></thead>'
        f"<tbody>{''.join(lines)}</tbody></table></div>"
    )


def _class(kind: str) -> str:
    return f' class="{kind}"' if kind else ""


def _cell(text: str) -> str:
    """The text of a cell: no line ends within an interval."""
    return escape(text).replace(", ", ",&nbsp;")
