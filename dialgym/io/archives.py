"""Files of data wherever they lie: in folders, in zips and zips within them, compressed or not.

An archive is opened within limits, so that none fills the memory or the disk, whatever it claims.
"""

import gzip
import io
import os
import re
import struct
import zlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass, fields
from functools import partial
from pathlib import Path, PurePosixPath
from typing import NamedTuple
from zipfile import BadZipFile, ZipFile, ZipInfo, is_zipfile

from dialgym.io.files import files_in, read_file

SPLITS = {"train": "train", "training": "train", "test": "test", "testing": "test"} | dict.fromkeys(
    ("validation", "valid", "val", "dev", "development"), "validation"
)
"""What data calls its splits, and what they are called here."""
VARIABLE = "DIALGYM_ARCHIVE_"
UNREADABLE = (
    *(BadZipFile, zlib.error, struct.error, EOFError, OSError, ValueError, KeyError),
    NotImplementedError,
)
"""What reading a broken zip leads to."""
_ENCRYPTED = 1


@dataclass
class Limits:
    """How much one file of data may be; ``DIALGYM_ARCHIVE_EXPANDED`` and the like set each.

    Attributes:
        members: files in it, those of the archives within it included.
        archives: archives, itself included.
        depth: of archives within one another.
        expanded: bytes of all files.
    """

    members: int = 20_000
    archives: int = 100
    depth: int = 3
    expanded: int = 2**29


def limits() -> Limits:
    """The limits that are set in this process's environment.

    Raises:
        ValueError: one is no whole number from 1.
    """
    found = Limits()
    for field in fields(found):
        name = VARIABLE + field.name.upper()
        text = os.environ.get(name, str(getattr(found, field.name)))
        if not text.isdecimal() or int(text) < 1:
            raise ValueError(f"{name} must be a whole number from 1; got {text!r}.")
        setattr(found, field.name, int(text))
    return found


class Part(NamedTuple):
    """A file of the data, wherever it lies."""

    name: str  # with "/" between folders, those of zips included
    read: Callable[[], bytes]

    @property
    def suffix(self) -> str:
        """The ending that says what is in it, whether it is compressed or not."""
        return PurePosixPath(self.name.removesuffix(".gz")).suffix.lower()

    @property
    def split(self) -> str | None:
        """The split that its name or folder tells, the innermost first."""
        words = re.split(r"[^a-z]+", self.name.lower())
        return next((SPLITS[word] for word in reversed(words) if word in SPLITS), None)

    def text(self) -> str:
        """Its content; a ValueError where that is not UTF-8."""
        try:
            return self.read().decode("utf-8-sig")
        except UnicodeDecodeError as error:
            raise ValueError(f"{self.name}: expected text in UTF-8 ({error}).") from error

    def lines(self) -> Iterator[tuple[int, str]]:
        """Its lines that are not blank, with their numbers from 1.

        Other characters that `str.splitlines` breaks at, such as U+2028, stand within JSON too.
        """
        numbered = enumerate(self.text().split("\n"), 1)
        return ((number, line) for number, line in numbered if line.strip())


def parts_of(path: Path) -> list[Part]:
    """All files of a file, folder or zip, sorted by name; zips within it are opened.

    Raises:
        ValueError: an archive is broken, encrypted or beyond the limits; the message names it.
    """
    if path.is_dir():
        return [
            part for file in files_in(path) for part in _Opener(str(file)).opened(_file(file, path))
        ]
    return _Opener(str(path)).opened(_file(path, path.parent))


def _file(path: Path, base: Path) -> Part:
    name = str(PurePosixPath(path.relative_to(base)))
    return Part(name, gunzipped(partial(read_file, path), name))


def gunzipped(read: Callable[[], bytes], name: str) -> Callable[[], bytes]:
    """What reads a file of that name, uncompressed where it ends in ``.gz``."""
    return (lambda: gunzip(read(), name)) if name.endswith(".gz") else read


def gunzip(content: bytes, name: str) -> bytes:
    """What gzip has compressed.

    Raises:
        ValueError: it is broken, or larger than the limit.
    """
    most = limits().expanded
    try:
        with gzip.GzipFile(fileobj=io.BytesIO(content)) as file:
            found = file.read(most + 1)
    except (OSError, EOFError, zlib.error, struct.error) as error:
        raise ValueError(f"{name}: expected a file of gzip, whole ({error}).") from error
    if len(found) > most:
        raise _beyond(name, "expanded", most)
    return found


def _beyond(name: str, what: str, most: int) -> ValueError:
    units = {"expanded": "bytes", "depth": "archives within one another"}
    return ValueError(
        f"{name}: it holds more than {most:,} {units.get(what, what)}, as far as one file of data "
        f"may. Unpack it yourself, or set {VARIABLE}{what.upper()} if you trust whoever made it."
    )


class _Opener:
    """Opens the archives in one file of data, as far as the limits allow."""

    def __init__(self, name: str) -> None:
        self.name, self.most = name, limits()
        self.members = self.archives = self.expanded = 0

    def opened(self, part: Part, depth: int = 0) -> list[Part]:
        """The part itself, or what is in it where it is a zip."""
        if not part.name.endswith(".zip"):
            return [part]
        self.archives += 1
        self._check(depth=depth + 1)
        archive = _archive(part)
        members = [member for member in archive.infolist() if not member.is_dir()]
        self.members += len(members)
        self.expanded += sum(member.file_size for member in members)
        self._check()
        folder = part.name.removesuffix(".zip")
        inner = [_member(archive, member, folder) for member in members]
        return [
            found
            for part in sorted(inner, key=lambda part: part.name)
            for found in self.opened(part, depth + 1)
        ]

    def _check(self, depth: int = 0) -> None:
        found = {"members": self.members, "archives": self.archives, "expanded": self.expanded}
        for what, count in {"depth": depth, **found}.items():
            if count > (most := getattr(self.most, what)):
                raise _beyond(self.name, what, most)


def check_expansion(path: Path) -> None:
    """Raise a ValueError where a zip would expand to far more than it is, and than the limit."""
    most = max(limits().expanded, 4 * path.stat().st_size)
    with ZipFile(path) as archive:
        if sum(member.file_size for member in archive.infolist()) > most:
            raise _beyond(path.name, "expanded", most)


def _archive(part: Part) -> ZipFile:
    content = io.BytesIO(part.read())
    try:
        if is_zipfile(content):
            return ZipFile(content)
    except UNREADABLE:
        pass
    raise ValueError(f"{part.name}: expected a zip; it is none, or broken. Fetch it again.")


def _member(archive: ZipFile, member: ZipInfo, folder: str) -> Part:
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

    return Part(name, gunzipped(read, name))
