"""Atomic writing of files and folders; JSON and YAML that are read with clear errors."""

import errno
import json
import os
import re
import shutil
import stat
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from functools import cache
from importlib.resources import files
from pathlib import Path
from secrets import token_hex
from typing import Any

import yaml

DEEPEST = 100
"""Values within one another that JSON and YAML may have: what reads them may recurse."""
MOST_ALIASED = 100_000
"""Values that the aliases of a text of YAML may repeat, in all."""

REMEDIES = {
    errno.ENOSPC: "the disk is full; make room, or choose a folder on another disk",
    errno.EDQUOT: "the quota of disk space is used up; make room, or choose another folder",
    errno.EFBIG: "the file would be larger than is allowed here; choose a folder on another disk",
    errno.EROFS: "the file system is read-only; choose another folder",
    errno.EACCES: "there is no permission to write there; choose another folder",
    errno.EPERM: "there is no permission to write there; choose another folder",
    errno.ENOTDIR: "a file is where a folder should be; choose another folder",
    errno.EISDIR: "a folder is where the file should be; choose another name",
    errno.EEXIST: "a file is where a folder should be; choose another folder",
    errno.EBUSY: "it is the current folder, or a disk is mounted there; choose another folder",
}
"""Remedies by the error of writing a file."""


def files_in(folder: Path) -> list[Path]:
    """List all files in a folder and the folders within, sorted; links to folders are followed.

    A folder is visited once, so that links into itself end.
    """
    listed: list[Path] = []
    seen = {folder.resolve(), *folder.resolve().parents}
    for base, folders, names in os.walk(folder, followlinks=True):
        reached = {Path(base, name).resolve(): name for name in sorted(folders, reverse=True)}
        folders[:] = [name for real, name in sorted(reached.items()) if real not in seen]
        seen.update(reached)
        listed += [file for name in names if (file := Path(base, name)).is_file()]
    return sorted(listed)


def write_atomically(path: Path, write: Callable[[Path], object]) -> None:
    """Let `write` fill a temporary file beside `path`, then move it into place.

    Its content, and then its name, are on the disk when this returns (`fsync`). The temporary file
    keeps the suffix of `path`. It is removed when `write` fails.

    Raises:
        OSError: the file cannot be written; the message says what to do.
    """
    with explained(path):
        path.parent.mkdir(parents=True, exist_ok=True)
        temporary = _temporary(path.parent, path.stem, path.suffix)
        try:
            write(temporary)
            sync(temporary)
            os.replace(temporary, path)
        finally:
            temporary.unlink(missing_ok=True)
        sync(path.parent)


def write_text(path: Path, text: str) -> None:
    """Write a text file atomically, in UTF-8."""
    write_atomically(path, lambda temporary: temporary.write_text(text, "utf-8"))


def save_figure(figure: Any, path: Path) -> None:
    """Write a picture of matplotlib atomically, as PNG where the name has no suffix."""
    kind = path.suffix[1:] or "png"  # matplotlib would add the suffix that is missing
    write_atomically(path, lambda file: figure.savefig(file, dpi=160, format=kind))


def write_folder_atomically(path: Path, write: Callable[[Path], object]) -> None:
    """Let `write` fill a temporary folder beside `path`, then move it into place.

    A folder that is there already is replaced as a whole, behind a link too. When anything fails it
    stays, and the temporary one is removed.

    Raises:
        OSError: the folder cannot be written; the message says what to do.
    """
    with explained(path):
        if path.is_symlink():
            path = path.resolve()
        if path.is_file():
            raise NotADirectoryError(errno.ENOTDIR, os.strerror(errno.ENOTDIR), str(path))
        path.parent.mkdir(parents=True, exist_ok=True)
        temporary, old = (_temporary(path.parent, path.name) for _ in range(2))
        temporary.mkdir()
        try:
            write(temporary)
            for part in (*temporary.rglob("*"), temporary):
                sync(part)
            if path.exists():
                os.replace(path, old)
            os.replace(temporary, path)
        finally:
            if old.exists() and not path.exists():
                os.replace(old, path)
            for rest in (temporary, old):
                shutil.rmtree(rest, ignore_errors=True)
        sync(path.parent)


def check_writable(folder: Path) -> None:
    """Make a folder if there is none, and check that a file can be written there.

    Raises:
        OSError: it cannot; the message says what to do.
    """
    with explained(folder):
        folder.mkdir(parents=True, exist_ok=True)
        temporary = _temporary(folder, "writable")
        try:
            temporary.touch()
        finally:
            temporary.unlink(missing_ok=True)


def sync(path: Path) -> None:
    """Flush a file or folder to the disk (`fsync`), as far as the system can."""
    try:
        descriptor = os.open(path, os.O_RDONLY)
    except OSError:  # Windows opens no folders
        return
    try:
        os.fsync(descriptor)
    except OSError as error:
        if error.errno in (errno.EIO, errno.ENOSPC, errno.EDQUOT):  # it is not there
            raise
    finally:
        os.close(descriptor)


def _temporary(folder: Path, name: str, suffix: str = "") -> Path:
    """A name that nothing else has."""
    return folder / f".{name}-{token_hex(8)}{suffix}"


@contextmanager
def explained(path: Path) -> Iterator[None]:
    """Explain errors of writing in the block: name `path` and the remedy."""
    try:
        yield
    except OSError as error:
        remedy = REMEDIES.get(error.errno or 0)
        if remedy is None or remedy in str(error):
            raise
        raise OSError(error.errno, f"cannot be written: {remedy}", str(path)) from error


# Reading


def read_file(path: Path) -> bytes:
    """Read the content of a regular file, see `check_regular`."""
    check_regular(path)
    return path.read_bytes()


def check_regular(path: Path) -> None:
    """Refuse pipes, devices and sockets, which may keep a reader waiting for ever.

    Raises:
        ValueError: it is a pipe, a device or a socket.
        OSError: there is no such file, or it is a folder.
    """
    mode = path.stat().st_mode
    if stat.S_ISDIR(mode):
        raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), str(path))
    if not stat.S_ISREG(mode):
        kind = next((name for is_kind, name in _SPECIAL if is_kind(mode)), "special file")
        raise ValueError(
            f"{str(path)!r}: expected a regular file; it is a {kind}. Copy its content into a file."
        )


_SPECIAL = (
    (stat.S_ISFIFO, "pipe"), (stat.S_ISSOCK, "socket"),
    (stat.S_ISCHR, "device"), (stat.S_ISBLK, "device"),
)  # fmt: skip


# JSON

_TOO_DEEP = f"more than {DEEPEST} values within one another"


def read_json(path: Path, what: str = "JSON") -> Any:
    """Read the value in a file of JSON.

    Raises:
        FileNotFoundError: there is no such file.
        ValueError: it holds no JSON; the message calls what was expected `what`.
    """
    return parse_json(read_file(path), repr(str(path)), what)


def paired(text: str) -> str:
    """A text with surrogate pairs joined, and lone surrogates replaced by U+FFFD."""
    if text.isascii():
        return text
    return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")


def parse_json(text: str | bytes, name: str, what: str = "JSON") -> Any:
    """Parse a text of JSON.

    Raises:
        ValueError: it spells none, or one nested too deeply; the message begins with `name`.
    """
    try:
        value = json.loads(text)
        _check_depth(text, value)
    except (ValueError, RecursionError) as error:  # UnicodeDecodeError is a ValueError
        got = _TOO_DEEP if isinstance(error, RecursionError) else str(error)
        got = got if text.strip() else "nothing"
        raise ValueError(f"{name}: expected {what} ({got}).") from error
    return value


def _check_depth(text: str | bytes, value: Any) -> None:
    """Raise a RecursionError where more than `DEEPEST` values are within one another."""
    marks = ("[", "{") if isinstance(text, str) else (b"[", b"{")
    if sum(map(text.count, marks)) <= DEEPEST:  # type: ignore[arg-type]  # most texts are small
        return
    level = [value]
    for _ in range(DEEPEST):
        parts = (one.values() if type(one) is dict else one for one in level if one)
        level = [one for part in parts for one in part if type(one) in (dict, list)]
        if not level:
            return
    raise RecursionError


# YAML


def read_yaml(path: Path) -> Any:
    """Read the value in a file of YAML: plain values, lists and mappings, and nothing else.

    Raises:
        OSError: there is no such file.
        ValueError: as of `parse_yaml`.
    """
    return parse_yaml(read_file(path), repr(str(path)))


def parse_yaml(text: str | bytes, name: str) -> Any:
    """Parse a text of YAML; tags that would make objects are refused.

    Raises:
        ValueError: it spells none, one nested too deeply, one with a key twice, or one whose
            aliases of aliases stand for too many values; the message begins with `name`.
    """
    loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
    try:
        plain = text.decode("utf-8-sig") if isinstance(text, bytes) else text
        _check_size(yaml.parse(plain, Loader=loader))
        return _loaded(loader(plain))
    except (yaml.YAMLError, ValueError) as error:  # UnicodeDecodeError is a ValueError
        reason = " ".join(str(error).split())[:300]
        raise ValueError(f"{name}: expected YAML ({reason}).") from error


def parse_setting(text: str, name: str) -> tuple[str, Any]:
    """The key of ``KEY=VALUE``, and its value as YAML.

    Raises:
        ValueError: the text has no key or no ``=``, or its value is no YAML.
    """
    key, equals, value = text.partition("=")
    try:
        if key and equals:
            return key.strip(), _as_power(parse_yaml(value, name))
    except ValueError:
        pass
    raise ValueError(f"{name}: expected KEY=VALUE, such as words=50; got {text!r}.")


def _as_power(value: Any) -> Any:
    """The value with numbers such as 1e-4, which YAML 1.1 reads as text, as floats."""
    if isinstance(value, dict):
        return {key: _as_power(part) for key, part in value.items()}
    if isinstance(value, list):
        return [_as_power(part) for part in value]
    is_power = isinstance(value, str) and re.fullmatch(r"[-+]?\d+(\.\d*)?[eE][-+]?\d+", value)
    return float(value) if is_power else value


def _loaded(loader: Any) -> Any:
    """As `yaml.load`, but for keys that come twice."""
    try:
        node = loader.get_single_node()
        _check_keys(node)
        return None if node is None else loader.construct_document(node)
    finally:
        loader.dispose()


def _check_keys(root: Any) -> None:
    """Raise a ValueError where a mapping has a key twice, of which YAML would keep the last."""
    left, met = [root], set()
    while left:
        node = left.pop()
        if id(node) in met or not isinstance(node, yaml.CollectionNode):
            continue
        met.add(id(node))  # aliases lead to the same node
        if not isinstance(node, yaml.MappingNode):
            left += node.value
            continue
        left += [value for _, value in node.value]
        keys = [key for key, _ in node.value if isinstance(key, yaml.ScalarNode)]
        counts = Counter((key.tag, key.value) for key in keys)
        twice = [name for (_, name), count in counts.items() if count > 1 and name != "<<"]
        if twice:
            line = node.start_mark.line + 1
            raise ValueError(
                f"the key {twice[0]!r} twice in the mapping that begins at line {line}"
            )


def _check_size(events: Iterable[Any]) -> None:
    """Raise a ValueError where aliases or depth are too many, before any value is made."""
    sizes: dict[str, int] = {}  # of what each anchor stands for
    open_nodes: list[tuple[str | None, int]] = []  # anchors, and how much came before
    total = repeated = 0
    for event in events:
        if isinstance(event, yaml.AliasEvent):
            if event.anchor not in sizes:
                raise ValueError(f"the alias {event.anchor!r} stands for nothing, or for itself")
            total += sizes[event.anchor]
            repeated += sizes[event.anchor]
        elif isinstance(event, yaml.CollectionEndEvent):
            anchor, before = open_nodes.pop()
            if anchor:
                sizes[anchor] = total - before
        elif isinstance(event, yaml.NodeEvent):
            total += 1
            if isinstance(event, yaml.CollectionStartEvent):
                open_nodes.append((event.anchor, total - 1))
            elif event.anchor:
                sizes[event.anchor] = 1
        if repeated > MOST_ALIASED:
            raise ValueError(f"its aliases repeat more than {MOST_ALIASED:,} values")
        if len(open_nodes) > DEEPEST:
            raise ValueError(_TOO_DEEP)


@cache
def read_registry() -> Mapping[str, Any]:
    """Read envs_registry.yaml of the installed package, else of the source tree."""
    inside = files("dialgym") / "envs_registry.yaml"
    path = inside if inside.is_file() else Path(__file__).parents[2] / "envs_registry.yaml"
    loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
    return yaml.load(path.read_text("utf-8"), Loader=loader)
