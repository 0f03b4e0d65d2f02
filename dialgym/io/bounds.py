"""Bounds of files from strangers: sizes, counts and depths; see `docs/security.md`."""

import os

BOUNDS = {"members": 20_000, "archives": 100, "depth": 3, "expanded": 2**29}
"""One file of data may hold so many files and archives, archives so deep within one another, and
expand to so many bytes. ``DIALGYM_ARCHIVE_EXPANDED`` and the like set each."""
VARIABLE = "DIALGYM_ARCHIVE_"
UNITS = {"expanded": "bytes", "depth": "archives within one another"}
PARQUET_RATIO = 20
"""A Parquet file may expand to so many times its size, where that is more than the bound."""
DEEPEST = 100
"""Values within one another that JSON and YAML may have: what reads them may recurse."""
MOST_ALIASED = 100_000
"""Values that the aliases of a text of YAML may repeat, in all."""


def bound(name: str) -> int:
    """Look up one of `BOUNDS`, as the environment of this process sets it.

    Raises:
        ValueError: it is set to no whole number from 1.
    """
    variable = VARIABLE + name.upper()
    text = os.environ.get(variable, str(BOUNDS[name]))
    if not text.isdecimal() or int(text) < 1:
        raise ValueError(f"{variable} must be a whole number from 1; got {text!r}.")
    return int(text)


def check_bound(file: str, name: str, count: int, least: int = 0) -> None:
    """Raise a ValueError if a file has more than its bound, and more than `least`, of something."""
    most = max(bound(name), least)
    if count > most:
        raise ValueError(
            f"{file}: it holds more than {most:,} {UNITS.get(name, name)}, as far as one file of "
            f"data may. Unpack it yourself, or set {VARIABLE}{name.upper()} if you trust whoever "
            "made it."
        )
