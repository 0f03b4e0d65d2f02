"""Files of data in folders, in zips and zips within them, compressed or not.

An archive is opened within `BOUNDS`, so that none fills the memory, whatever it claims; see
`docs/security.md`.
"""

import gzip
import io
import os
import re
import struct
import zlib
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path, PurePosixPath
from typing import NamedTuple
from zipfile import BadZipFile, ZipFile, ZipInfo, is_zipfile

from dialgym.io.files import files_in, read_file

SPLITS = {
    **dict.fromkeys(("train", "training", "trainset"), "train"),
    **dict.fromkeys(("test", "testing", "testset"), "test"),
    **dict.fromkeys(("validation", "valid", "val", "dev", "development", "devset"), "validation"),
    **dict.fromkeys(("eval", "evaluation"), "validation"),
}
"""Names of splits in data, and their names here."""
UNREADABLE = (
    *(BadZipFile, zlib.error, struct.error, EOFError, OSError, ValueError, KeyError),
    NotImplementedError,
)
"""Errors of reading a broken zip."""
BOUNDS = {"members": 20_000, "archives": 100, "depth": 3, "expanded": 2**29}
"""One file of data may hold so many files and archives, archives so deep within one another, and
expand to so many bytes. ``DIALGYM_ARCHIVE_EXPANDED`` and the like set each."""
VARIABLE = "DIALGYM_ARCHIVE_"
UNITS = {"expanded": "bytes", "depth": "archives within one another"}
PARQUET_RATIO = 20
"""A Parquet file may expand to so many times its size, where that is more than the bound."""
_ENCRYPTED = 1


def split_in(name: str) -> str | None:
    """Find the split that a word of a name tells, the last first: ``Train``, ``data/test_sft``."""
    words = re.split(r"[^a-z]+", name.lower())
    return next((SPLITS[word] for word in reversed(words) if word in SPLITS), None)


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


class ArchiveMember(NamedTuple):
    """A file of data, in a folder or in an archive."""

    name: str  # with "/" between folders, those of zips included
    read: Callable[[], bytes]

    @property
    def suffix(self) -> str:
        """The ending that names its format, without that of a compression."""
        return PurePosixPath(self.name.removesuffix(".gz")).suffix.lower()

    @property
    def split(self) -> str | None:
        """The split that its name or a folder names, the innermost first."""
        return split_in(self.name)

    def text(self) -> str:
        """Its content as text; a ValueError if it is not UTF-8."""
        try:
            return self.read().decode("utf-8-sig")
        except UnicodeDecodeError as error:
            raise ValueError(f"{self.name}: expected text in UTF-8 ({error}).") from error

    def lines(self) -> Iterator[tuple[int, str]]:
        """Iterate over the lines that are not blank, with their numbers from 1.

        Other characters that `str.splitlines` breaks at, such as U+2028, stand within JSON too.
        """
        numbered = enumerate(self.text().split("\n"), 1)
        return ((number, line) for number, line in numbered if line.strip())


def parts_of(path: Path) -> list[ArchiveMember]:
    """List all files of a file, folder or zip, sorted by name; zips within it are opened.

    Raises:
        ValueError: an archive is broken, encrypted or beyond the bounds; the message names it.
    """
    if path.is_dir():
        return [
            part for file in files_in(path) for part in _Opener(str(file)).opened(_file(file, path))
        ]
    return _Opener(str(path)).opened(_file(path, path.parent))


def _file(path: Path, base: Path) -> ArchiveMember:
    name = str(PurePosixPath(path.relative_to(base)))
    return ArchiveMember(name, gunzipped(partial(read_file, path), name))


def gunzipped(read: Callable[[], bytes], name: str) -> Callable[[], bytes]:
    """Wrap a reader so that the content of a file ``*.gz`` is decompressed."""
    return (lambda: gunzip(read(), name)) if name.endswith(".gz") else read


def gunzip(content: bytes, name: str) -> bytes:
    """Decompress the content of a file of gzip.

    Raises:
        ValueError: it is broken, or larger than the bound.
    """
    try:
        with gzip.GzipFile(fileobj=io.BytesIO(content)) as file:
            expanded = file.read(bound("expanded") + 1)
    except (OSError, EOFError, zlib.error, struct.error) as error:
        raise ValueError(f"{name}: expected a file of gzip, whole ({error}).") from error
    check_bound(name, "expanded", len(expanded))
    return expanded


class _Opener:
    """Opener of the archives in one file of data, within `BOUNDS`."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.counts = {"members": 0, "archives": 0, "expanded": 0}

    def opened(self, part: ArchiveMember, depth: int = 1) -> list[ArchiveMember]:
        """The file itself, or the files in it if it is a zip."""
        if not part.name.endswith(".zip"):
            return [part]
        self._count(archives=1)
        check_bound(self.name, "depth", depth)
        archive = _archive(part)
        members = [member for member in archive.infolist() if not member.is_dir()]
        self._count(members=len(members), expanded=sum(member.file_size for member in members))
        folder = part.name.removesuffix(".zip")
        inner = [_member(archive, member, folder) for member in members]
        return [
            file
            for part in sorted(inner, key=lambda part: part.name)
            for file in self.opened(part, depth + 1)
        ]

    def _count(self, **more: int) -> None:
        for name, count in more.items():
            self.counts[name] += count
            check_bound(self.name, name, self.counts[name])


def check_expansion(path: Path) -> None:
    """Raise a ValueError if a zip would expand beyond the bound and four times its size."""
    with ZipFile(path) as archive:
        size = sum(member.file_size for member in archive.infolist())
    check_bound(path.name, "expanded", size, least=4 * path.stat().st_size)


def _archive(part: ArchiveMember) -> ZipFile:
    content = io.BytesIO(part.read())
    try:
        if is_zipfile(content):
            return ZipFile(content)
    except UNREADABLE:
        pass
    raise ValueError(f"{part.name}: expected a zip; it is none, or broken. Fetch it again.")


def _member(archive: ZipFile, member: ZipInfo, folder: str) -> ArchiveMember:
    name = f"{folder}/{member.filename}"

    def read() -> bytes:
        if member.flag_bits & _ENCRYPTED:
            raise ValueError(f"{name}: it is encrypted. Unpack the archive with its password.")
        try:
            return archive.read(member)
        except (*UNREADABLE, RuntimeError) as error:
            raise ValueError(
                f"{name}: it cannot be unpacked ({error}). Fetch the archive again."
            ) from error

    return ArchiveMember(name, gunzipped(read, name))
