"""Run the tutorials and keep what they print and draw.

python scripts/run_notebooks.py                        all of docs/tutorials
python scripts/run_notebooks.py docs/tutorials/X.ipynb
"""

import sys
from pathlib import Path

import nbformat
from nbclient import NotebookClient

from dialgym.io.files import write_text

TUTORIALS = Path(__file__).parents[1] / "docs" / "tutorials"


def executed(path: Path, timeout: int = 600) -> nbformat.NotebookNode:
    """The notebook with its outputs, run from the top in a fresh kernel.

    Raises:
        nbclient.exceptions.CellExecutionError: a cell has failed.
    """
    book = nbformat.read(path, as_version=4)
    NotebookClient(book, timeout=timeout, resources={"metadata": {"path": path.parent}}).execute()
    return book


def without_times(book: nbformat.NotebookNode) -> nbformat.NotebookNode:
    """The notebook without what differs in each run."""
    for cell in book.cells:
        cell.metadata.pop("execution", None)
    book.metadata.pop("language_info", None)
    return book


if __name__ == "__main__":
    for path in map(Path, sys.argv[1:] or sorted(TUTORIALS.glob("*.ipynb"))):
        print(path.name, flush=True)
        write_text(path, nbformat.writes(without_times(executed(path))) + "\n")
