"""Arrow tables and Parquet files."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from dialgym.files import write_atomically
from dialgym.optional import require

PURPOSE = "storing dialogues"


def arrow() -> Any:
    """The package pyarrow."""
    return require("pyarrow", "data", PURPOSE)


def write_table(file: Path, table: Any) -> None:
    """Write a table as a Parquet file, whole or not at all."""
    write_atomically(
        file, lambda temporary: parquet().write_table(table, temporary, compression="zstd")
    )


def read_tables(files: Sequence[Path]) -> Any:
    """The rows of Parquet files, one after the other, in memory."""
    return arrow().concat_tables([parquet().read_table(file) for file in files])


def parquet() -> Any:
    """The module pyarrow.parquet."""
    return require("pyarrow.parquet", "data", PURPOSE)
