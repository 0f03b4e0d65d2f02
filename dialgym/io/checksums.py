"""Checksums of files: written beside them, checked where they are opened.

The checksum of ``NAME`` lies in ``NAME.sha256``, in the form of coreutils: ``sha256sum -c`` checks
it, too. Where a file is replaced, both sums stand there until the new one is in place, so that a
kill at any moment leaves a file with its sum. An object in JSON has its checksum in itself.
"""

import hashlib
import json
from collections.abc import Callable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

from dialgym.io.files import check_regular, read_json, write_atomically, write_text

SUFFIX = ".sha256"
ENTRY = "sha256"
"""Of an object in JSON: the checksum of the others, written without spaces."""


class DamagedFile(ValueError):
    """A file whose content is not what was written."""


def write_checked(path: Path, write: Callable[[Path], object]) -> None:
    """Write a file as `dialgym.io.files.write_atomically` does, and its checksum beside it.

    Raises:
        OSError: it cannot be written; the message says what to do.
    """
    replaced = path.exists()

    def fill(temporary: Path) -> None:
        write(temporary)
        sums.append(checksum(temporary))
        _write_sums(path, [*(_sums(path)[-1:] if replaced else []), *sums])

    sums: list[str] = []
    write_atomically(path, fill)
    if replaced:
        _write_sums(path, sums)


def check(path: Path, required: bool = False) -> bool:
    """Compare a file with its checksum.

    Args:
        path: the file.
        required: one without a checksum counts as damaged; else it is not checked.

    Returns:
        True if it has one.

    Raises:
        FileNotFoundError: there is no such file.
        DamagedFile: it is not what was written.
    """
    expected = _sums(path)
    if (expected or required) and checksum(path) not in expected:
        raise DamagedFile(
            f"{str(path)!r} is damaged: its content is not what was written"
            f" (sha256 in {path.name}{SUFFIX}). Make it again; or, if you changed it yourself, "
            f"delete {path.name}{SUFFIX}."
        )
    return bool(expected)


def write_sums(folder: Path) -> None:
    """Write the checksum of each file of a folder beside it, once the folder is complete."""
    for path in sorted(folder.rglob("*")):
        if path.is_file() and path.suffix != SUFFIX:
            _write_sums(path, [checksum(path)])


def check_folder(folder: Path) -> None:
    """Compare the files of a folder with those checksums that lie beside them.

    Raises:
        DamagedFile: a file is not what was written, or is missing.
    """
    for sums in sorted(folder.rglob(f"*{SUFFIX}")):
        path = sums.with_name(sums.name.removesuffix(SUFFIX))
        if not path.is_file():
            raise DamagedFile(
                f"{str(path)!r} is missing, and {sums.name} says that it was there. Make the "
                "folder again, or copy all of it."
            )
        check(path)


def checksum(path: Path) -> str:
    """The SHA-256 of a file, in hexadecimal."""
    check_regular(path)
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def remove_checked(path: Path) -> None:
    """Remove a file and its checksum, if they exist."""
    path.unlink(missing_ok=True)
    _beside(path).unlink(missing_ok=True)


def write_json_checked(path: Path, values: Mapping[str, Any], indent: int | None = None) -> None:
    """Write an object as JSON, atomically, with the checksum of its entries as the last of them.

    Raises:
        OSError: it cannot be written; the message says what to do.
    """
    separators = (",", ":") if indent is None else None
    whole = {**values, ENTRY: _checksum_of(values)}
    write_text(path, json.dumps(whole, indent=indent, separators=separators) + "\n")


def read_json_checked(path: Path, what: str) -> Any:
    """Read an object of `write_json_checked`, without the checksum; without one, it is not checked.

    Raises:
        FileNotFoundError: there is no such file.
        ValueError: it holds no JSON; the message calls what was expected `what`.
        DamagedFile: it is not what was written.
    """
    return read_json_sealed(path, what)[0]


def read_json_sealed(path: Path, what: str) -> tuple[Any, bool]:
    """As `read_json_checked`, and True if a checksum shows that nobody has changed it."""
    values = read_json(path, what)
    if not isinstance(values, dict) or ENTRY not in values:
        return values, False
    expected = values.pop(ENTRY)
    if _checksum_of(values) != expected:
        raise DamagedFile(
            f"{str(path)!r} is damaged: its content is not what was written (its entry {ENTRY!r}). "
            "Make it again; or, if you changed it yourself, delete that entry."
        )
    return values, True


def _checksum_of(values: Mapping[str, Any]) -> str:
    return hashlib.sha256(json.dumps(values, separators=(",", ":")).encode()).hexdigest()


def _beside(path: Path) -> Path:
    return path.with_name(path.name + SUFFIX)


def _sums(path: Path) -> list[str]:
    """The checksums that the file may have; none if none was written."""
    with suppress(FileNotFoundError):
        lines = _beside(path).read_text("utf-8", "replace").splitlines()
        return [line.split()[0] for line in lines if line.strip()] or [""]
    return []


def _write_sums(path: Path, sums: list[str]) -> None:
    write_text(_beside(path), "".join(f"{digits}  {path.name}\n" for digits in sums))
