"""Tables of the algorithms and of a training's options in the documentation.

Run ``python scripts/make_algorithm_table.py`` after a row of `agents.registry`, or a field of
`agents.TrainConfig`, changes; a test holds them equal.
"""

from dataclasses import fields
from pathlib import Path

from agents.registry import ALGORITHMS
from agents.training.config import TrainConfig
from dialgym.io.files import write_text

PAGE = Path(__file__).parents[1] / "docs" / "training.md"
BEGIN, END = "<!-- algorithms: made by scripts/make_algorithm_table.py -->\n", "<!-- end -->"
OPTIONS = "<!-- options: made by scripts/make_algorithm_table.py -->\n"
END_OF_OPTIONS = "<!-- end of options -->"


def algorithms() -> str:
    """The rows of the table of algorithms as Markdown."""
    lines = ["| name | class | learns from | what it is |", "|---|---|---|---|"]
    for row in ALGORITHMS.values():
        module, _, name = row.home.partition(":")
        package = module.partition(".")[0]
        kind = " and ".join(row.kind)
        lines.append(f"| `{row.name}` | `{package}.{name}` | {kind} | {row.summary} |")
    return "\n".join([*lines, ""])


def options() -> str:
    """The fields of a training as Markdown."""
    lines = ["| option | `agents.train` | what it sets | same when resumed |", "|---|---|---|---|"]
    for one in fields(TrainConfig):
        flags = ", ".join(f"`{flag}`" for flag in (one.metadata["flag"] or "").split(",") if flag)
        same = "yes" if one.metadata["identity"] else ""
        lines.append(f"| {flags} | `{one.name}` | {one.metadata['help']} | {same} |")
    return "\n".join([*lines, ""])


def with_table(page: str) -> str:
    """A page with the tables in their places."""
    page = _replaced(page, BEGIN, algorithms(), END)
    return _replaced(page, OPTIONS, options(), END_OF_OPTIONS)


def _replaced(page: str, begin: str, table: str, end: str) -> str:
    before, _, rest = page.partition(begin)
    _, _, after = rest.partition(end)
    return f"{before}{begin}{table}{end}{after}"


if __name__ == "__main__":
    write_text(PAGE, with_table(PAGE.read_text("utf-8")))
