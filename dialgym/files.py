"""Atomic writing of files and folders."""

import os
import shutil
from collections.abc import Callable
from pathlib import Path
from secrets import token_hex


def write_atomically(path: Path, write: Callable[[Path], object]) -> None:
    """Let `write` fill a temporary file beside `path`, then move it into place.

    The temporary file keeps the suffix of `path`. It is removed when `write` fails.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    temporary = path.with_name(f".{path.stem}-{token_hex(4)}{path.suffix}")
    try:
        write(temporary)
        os.replace(temporary, path)
    finally:
        temporary.unlink(missing_ok=True)


def write_text(path: Path, text: str) -> None:
    """Write a text file atomically, in UTF-8."""
    write_atomically(path, lambda temporary: temporary.write_text(text, "utf-8"))


def write_folder_atomically(path: Path, write: Callable[[Path], object]) -> None:
    """Let `write` fill a temporary folder beside `path`, then move it into place.

    A folder that is there already leaves as a whole. The temporary one is removed when `write`
    fails.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    temporary, old = (path.with_name(f".{path.name}-{token_hex(4)}") for _ in range(2))
    temporary.mkdir()
    try:
        write(temporary)
        if path.exists():
            os.replace(path, old)
        os.replace(temporary, path)
    finally:
        for rest in (temporary, old):
            shutil.rmtree(rest, ignore_errors=True)
