"""Parquet files that claim to be small: how much one would be in memory, before it is read.

Repeated values are kept once in such a file, so that ten kilobytes can hold a text of 100 kB a
million times over. What each column expands to is told by its dictionary, which is read alone.
"""

from collections.abc import Iterator
from pathlib import PurePath
from typing import Any

import numpy as np

from dialgym.io.archives import VARIABLE, limits
from dialgym.optional import require

LEAST = 4
"""Bytes of a value in memory, at least."""
RATIO = 20
"""How many times the size of the file its content may be, where that is more than the limit."""


def check_parquet(source: Any, name: str, size: int, ratio: int = RATIO) -> int:
    """How many rows a Parquet file has, which was looked at and not read.

    Args:
        source: a path, or a file that is open.
        name: of the file, for messages.
        size: of the file, in bytes.
        ratio: in the place of `RATIO`, for what is mapped into memory rather than read.

    Raises:
        ValueError: it would be more in memory than its size and the limit of archives allow.
        pyarrow.ArrowException, OSError: it is no Parquet file.
    """
    parquet = require("pyarrow.parquet", "data", name)
    most = max(limits().expanded, ratio * size)
    file = parquet.ParquetFile(source)
    groups = [file.metadata.row_group(i) for i in range(file.num_row_groups)]
    columns = [[group.column(i) for i in range(group.num_columns)] for group in groups]
    found = sum(
        max(column.total_uncompressed_size, LEAST * column.num_values)
        for group in columns
        for column in group
    )
    _check(found, name, most)
    texts = {c.path_in_schema for group in columns for c in group if _is_text(c)}
    by_dictionary = parquet.ParquetFile(source, read_dictionary=sorted(texts))
    for number, group in enumerate(columns):
        for column in group:
            if column.path_in_schema in texts:
                read = by_dictionary.read_row_group(number, columns=[column.path_in_schema])
                found += sum(_length(leaf) for leaf in _leaves(read.column(0).chunks))
                _check(found, name, most)
    rows: int = file.metadata.num_rows
    return rows


def _is_text(column: Any) -> bool:
    return str(column.physical_type) == "BYTE_ARRAY"


def _leaves(arrays: list[Any]) -> Iterator[Any]:
    """The values at the bottom of lists and structs of one column."""
    pyarrow = require("pyarrow", "data", "Parquet")
    for array in arrays:
        if pyarrow.types.is_struct(array.type):
            yield from _leaves([array.field(0)])
        elif pyarrow.types.is_map(array.type):
            yield from _leaves([array.keys, array.items])
        elif pyarrow.types.is_nested(array.type):
            yield from _leaves([array.flatten()])
        else:
            yield array


def _length(leaf: Any) -> int:
    """The bytes of texts in memory."""
    compute = require("pyarrow.compute", "data", "Parquet")
    pyarrow = require("pyarrow", "data", "Parquet")
    if not pyarrow.types.is_dictionary(leaf.type):
        return int(leaf.nbytes)
    sizes = compute.binary_length(leaf.dictionary).fill_null(0).to_numpy(zero_copy_only=False)
    used = leaf.indices.drop_null().to_numpy(zero_copy_only=False)
    if len(used) and not 0 <= used.min() <= used.max() < len(sizes):
        raise pyarrow.ArrowInvalid("values that its dictionary does not have")
    return int(np.bincount(used, minlength=len(sizes)).astype(np.float64) @ sizes)


def _check(found: int, name: str, most: int) -> None:
    if found > most:
        raise ValueError(
            f"{PurePath(name).name}: it would be more than {most:,} bytes in memory, out of all "
            f"proportion to its size. If you trust whoever made it, set {VARIABLE}EXPANDED."
        )
