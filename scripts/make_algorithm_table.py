"""The table of algorithms in the documentation, from `agents.registry`.

Run ``python scripts/make_algorithm_table.py`` after a row changes; a test holds the two equal.
"""

from pathlib import Path

from agents.registry import ALGORITHMS
from dialgym.io.files import write_text

PAGE = Path(__file__).parents[1] / "docs" / "training.md"
BEGIN, END = "<!-- algorithms: made by scripts/make_algorithm_table.py -->\n", "<!-- end -->"


def table() -> str:
    """The rows as Markdown."""
    lines = ["| name | class | learns from | what it is |", "|---|---|---|---|"]
    for row in ALGORITHMS.values():
        module, _, name = row.home.partition(":")
        package = module.partition(".")[0]
        kind = " and ".join(row.kind)
        lines.append(f"| `{row.name}` | `{package}.{name}` | {kind} | {row.summary} |")
    return "\n".join([*lines, ""])


def with_table(page: str) -> str:
    """A page with the table in its place."""
    before, _, rest = page.partition(BEGIN)
    _, _, after = rest.partition(END)
    return f"{before}{BEGIN}{table()}{END}{after}"


if __name__ == "__main__":
    write_text(PAGE, with_table(PAGE.read_text("utf-8")))
