"""Everything that is shown of a grid's results, written beside them."""

from __future__ import annotations

from pathlib import Path

from agents.grid.results import Results
from agents.grid.tables import markdown
from dialgym.files import write_text

TABLES = "tables.md"


def write_report(folder: Path) -> list[Path]:
    """Write the tables and plots of the results in a folder.

    Raises:
        ValueError: there are none.
    """
    results = Results.load(folder)
    write_text(folder / TABLES, markdown(results))
    return [folder / TABLES]
