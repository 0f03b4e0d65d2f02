"""Data from elsewhere: files, folders, zips within zips, and data sets of the Hugging Face hub."""

import csv
import gzip
import io
import json
import re
import zlib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from hashlib import sha256
from pathlib import Path, PurePosixPath
from typing import Any, NamedTuple, Protocol, TypeVar
from zipfile import ZipFile, is_zipfile

import numpy as np

from dialgym.cache import cached_arrays
from dialgym.errors import unknown
from dialgym.optional import require

Row = Mapping[str, Any]
Corpus = TypeVar("Corpus")


class InSplit(Protocol):
    """What was read, and which split it is of."""

    @property
    def split(self) -> str: ...


Written = TypeVar("Written", bound=InSplit)
SPLITS = {"train": "train", "training": "train", "test": "test", "testing": "test"} | dict.fromkeys(
    ("validation", "valid", "val", "dev", "development"), "validation"
)
"""What data calls its splits, and what they are called here."""
FORMATS = (".jsonl", ".json", ".csv", ".parquet")
_HUB = re.compile(r"[\w-][\w.-]*(/[\w.-]+)?")


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


class Place(NamedTuple):
    """Where a row stands, for messages."""

    part: str
    line: int  # from 1

    def __str__(self) -> str:
        return f"{self.part}, row {self.line}"


def parts_of(path: Path) -> list[Part]:
    """All files of a file, folder or zip, sorted by name; zips within it are opened."""
    if path.is_dir():
        files = sorted(file for file in path.rglob("*") if file.is_file())
        return [part for file in files for part in _opened(_file(file, path))]
    return _opened(_file(path, path.parent))


def _file(path: Path, base: Path) -> Part:
    name = str(PurePosixPath(path.relative_to(base)))
    return Part(name, gunzipped(path.read_bytes, name))


def gunzipped(read: Callable[[], bytes], name: str) -> Callable[[], bytes]:
    """What reads a file of that name, uncompressed where it ends in ``.gz``."""
    return (lambda: _gunzip(read(), name)) if name.endswith(".gz") else read


def _gunzip(content: bytes, name: str) -> bytes:
    try:
        return gzip.decompress(content)
    except (OSError, EOFError, zlib.error) as error:
        raise ValueError(f"{name}: expected a file of gzip, whole ({error}).") from error


def _opened(part: Part) -> list[Part]:
    """The part itself, or what is in it where it is a zip."""
    if not part.name.endswith(".zip"):
        return [part]
    content = part.read()
    if not is_zipfile(io.BytesIO(content)):
        raise ValueError(f"{part.name}: expected a zip; it is none, or broken. Fetch it again.")
    archive, folder = ZipFile(io.BytesIO(content)), part.name.removesuffix(".zip")
    names = sorted(name for name in archive.namelist() if not name.endswith("/"))
    inner = [Part(f"{folder}/{name}", gunzipped(_reader(archive, name), name)) for name in names]
    return [found for part in inner for found in _opened(part)]


def _reader(archive: ZipFile, name: str) -> Callable[[], bytes]:
    return lambda: archive.read(name)


def rows_of(part: Part) -> Iterator[tuple[Place, Row]]:
    """The rows of a JSONL, JSON, CSV or Parquet file.

    Raises:
        ValueError: the file, or a row of it, cannot be read; the message says which.
    """
    readers = {".jsonl": _jsonl, ".json": _json, ".csv": _csv, ".parquet": _parquet}
    for line, row in enumerate(readers[part.suffix](part), 1):
        place = Place(part.name, line)
        if not isinstance(row, Mapping):
            raise ValueError(f"{place}: expected an object with names; got {str(row)[:60]!r}.")
        yield place, row


def _jsonl(part: Part) -> Iterator[Any]:
    for number, line in part.lines():
        try:
            yield json.loads(line)
        except json.JSONDecodeError as error:
            raise ValueError(f"{part.name}, line {number}: expected JSON ({error}).") from error


def _json(part: Part) -> Iterator[Any]:
    try:
        content = json.loads(part.text())
    except json.JSONDecodeError as error:
        raise ValueError(f"{part.name}: expected JSON ({error}).") from error
    if not isinstance(content, list):
        raise ValueError(f"{part.name}: expected a list of rows; got {type(content).__name__}.")
    yield from content


def _csv(part: Part) -> Iterator[Any]:
    try:
        yield from csv.DictReader(io.StringIO(part.text(), newline=""))
    except csv.Error as error:
        raise ValueError(f"{part.name}: expected CSV ({error}). JSONL takes any text.") from error


def _parquet(part: Part) -> Iterator[Any]:
    pyarrow = require("pyarrow", "data", part.name)
    parquet = require("pyarrow.parquet", "data", part.name)
    try:
        yield from parquet.read_table(io.BytesIO(part.read())).to_pylist()
    except pyarrow.ArrowException as error:
        raise ValueError(f"{part.name}: expected a Parquet file ({error}).") from error


def all_rows(
    place: Path | str, parts: Sequence[Part], expected: str
) -> Iterator[tuple[Place, str, Row]]:
    """Place, split and row of all that data holds; its files are `parts`, the hub's has none.

    A row may name its split as ``split`` or ``data_split``, else the file's name or folder does,
    else it is ``train``.

    Raises:
        ValueError: there is no file of rows, which `expected` describes; or one is broken.
    """
    if isinstance(place, str):
        yield from _hub_rows(place)
        return
    tables = [part for part in parts if part.suffix in FORMATS]
    if not tables:
        got = ", ".join(part.name for part in parts[:5]) or "nothing"
        endings = ", ".join(FORMATS)
        raise ValueError(f"data {str(place)!r}: expected {expected} ({endings}); got {got}.")
    for part in tables:
        for where, row in rows_of(part):
            own = row.get("split") or row.get("data_split") or part.split or "train"
            yield where, SPLITS.get(str(own), str(own)), row


def first(row: Row, names: Sequence[str]) -> Any:
    """The value of the first of the names that the row has; None where it has none."""
    return next((row[name] for name in names if row.get(name) is not None), None)


def _hub_rows(name: str) -> Iterator[tuple[Place, str, Row]]:
    """Place, split and row of all of a data set of Hugging Face's, by hub name or local folder.

    Raises:
        ValueError: it cannot be loaded.
    """
    datasets = require("datasets", "agents", f"the data set {name!r}")
    try:
        found = datasets.load_dataset(name)
    except Exception as error:  # the library and its network layer have no common error
        raise ValueError(
            f"data {name!r}: neither a file or folder, nor a data set that could be loaded "
            f"({error}). Check the name, the path and the network."
        ) from error
    for split, rows in found.items():
        for line, row in enumerate(rows, 1):
            yield Place(f"{name} {split}", line), SPLITS.get(split, split), row


def locate(data: Any, what: str) -> Path | str:
    """Where data lies: an existing path, or the name of a data set on the hub.

    Args:
        data: a path, a hub name, or ``hf:NAME_OR_FOLDER``.
        what: the task, for messages.

    Raises:
        ValueError: there is no such file or folder.
    """
    name = str(data)
    if name.startswith("hf:"):
        return name.removeprefix("hf:")
    path = Path(name).expanduser()
    if path.exists():
        return path.resolve()
    ending = path.suffix.lower() in (*FORMATS, ".gz", ".zip", ".txt")
    if ending or not _HUB.fullmatch(name):
        raise ValueError(
            f"data of {what}: there is no file or folder {name!r}. Check the path, or leave it "
            "out for the built-in data."
        )
    return name


def stamp(place: Path | str) -> str:
    """What tells one state of the data from another: path, and times and sizes of its files."""
    if isinstance(place, str):
        return place
    files = sorted(place.rglob("*")) if place.is_dir() else [place]
    stats = [(str(file), (s := file.stat()).st_mtime_ns, s.st_size) for file in files]
    return sha256(repr((str(place), stats)).encode()).hexdigest()[:24]


def kept(
    name: str, place: Path | str, read: Callable[[], Mapping[str, np.ndarray]]
) -> Mapping[str, np.ndarray]:
    """What `read` makes of the data, kept in the cache for as long as the data is the same.

    Data of the hub is not: its library has a cache of its own.
    """
    return read() if isinstance(place, str) else cached_arrays(f"{name}-{stamp(place)}", read)


def to_bytes(lines: Iterable[str]) -> np.ndarray:
    """Texts as bytes (n,) uint8; no text has a line break in it, see `plain`."""
    return np.frombuffer("".join([f"{line}\n" for line in lines]).encode(), np.uint8)


def from_bytes(content: np.ndarray) -> list[str]:
    """The texts that `to_bytes` was given."""
    return content.tobytes().decode().split("\n")[:-1]


def split_of(splits: Mapping[str, Corpus], name: str, data: Any, what: str) -> Corpus:
    """The split of that name; `data` None is the built-in data.

    Raises:
        ValueError: the data has none.
    """
    if name not in splits:
        raise unknown("split", name, splits, f"the {what}" if data is None else str(data))
    return splits[name]


def by_split(found: Iterable[Written], where: str, what: str) -> dict[str, list[Written]]:
    """What was read, by the `split` of each.

    Raises:
        ValueError: nothing was.
    """
    splits: dict[str, list[Written]] = {}
    for one in found:
        splits.setdefault(one.split, []).append(one)
    if not splits:
        raise ValueError(f"data {where!r} has no {what}. Give data that has at least one.")
    return splits


def training_split(splits: Mapping[str, Corpus], data: Any, learner: str) -> Corpus:
    """The split that `learner` may learn from; never another.

    Raises:
        ValueError: the data has none.
    """
    if "train" in splits:
        return splits["train"]
    raise ValueError(
        f"{learner} learns from the split 'train'; the data {str(data)!r} has {', '.join(splits)} "
        "alone. Give data with that split too, or other rewards."
    )


def splits_of(arrays: Mapping[str, np.ndarray], column: str) -> list[str]:
    """The splits whose arrays are called ``SPLIT/COLUMN``, the known ones first."""
    found = [name.removesuffix(f"/{column}") for name in arrays if name.endswith(f"/{column}")]
    order = ("train", "validation", "test", *found)
    return sorted(found, key=order.index)
