"""Zip files of named sections, each JSON and the arrays that it refers to.

`settings` becomes `settings.json` and, where it has arrays, `settings.safetensors`. `manifest.json`
says what the file is, and has the checksum of every member.
"""

from __future__ import annotations

import hashlib
import io
import json
import warnings
import zipfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import IO, Any

from safetensors import SafetensorError
from safetensors.torch import load as load_arrays
from safetensors.torch import save as save_arrays
from torch import Tensor

import agents.storage.spaces  # noqa: F401  (adds the kinds of values that spaces are)
from agents.storage.values import Packer, Unpacker
from dialgym.io.archives import UNREADABLE
from dialgym.io.files import parse_json, write_atomically
from dialgym.io.hub import SourceError, hub_hint

MODEL, CHECKPOINT = "model", "checkpoint"
"""Kinds of files: of a model alone, and of the whole state of a run."""
FORMAT = 1
MANIFEST = "manifest.json"
WRITTEN = (1980, 1, 1, 0, 0, 0)
"""Date of each member, so that equal content gives equal bytes."""
READABLE = 0o600
COMPRESSIONS = (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED)
FIELDS = ("what", "format", "sections", "sha256")
LARGEST, LARGEST_JSON = 2**28, 2**25
"""Bytes that all members, and those of JSON, expand to at most: JSON takes many times as much."""
RATIO = 20
"""They may expand to so many times their size, where that is more."""
SMALL_ARRAYS = 2**20
"""Bytes of arrays that are compressed, as JSON is."""
SMALL_TABLES = 2**27
"""The same of a model's settings: their tables of grammar and masks are mostly zeros."""
Place = str | Path | IO[bytes]
DAMAGED = (*UNREADABLE, RuntimeError, OverflowError)
"""Errors of reading a damaged zip."""
MALFORMED = (SafetensorError, LookupError, TypeError, AttributeError, RecursionError, RuntimeError)
"""Errors of values that nobody packed."""


def write_archive(place: Place, what: str, sections: Mapping[str, Any]) -> None:
    """Write values to a file, atomically, or into an open one.

    Args:
        place: the path, or a file open for writing.
        what: the file is, such as "model".
        sections: values by name; see `agents.storage.values` for what they may be.

    Raises:
        TypeError: a value has no form in a file.
    """
    _write(place, what, list(sections), _packed(sections))


def copy_archive(source: Path, target: Path, what: str, changes: Mapping[str, Any]) -> None:
    """Copy a file of `write_archive` with other sections; the rest stay byte for byte.

    Args:
        source, target: the files.
        what: as of `write_archive`.
        changes: the new value of each such section; one that is None is left out.

    Raises:
        FileNotFoundError, ValueError: as of `Archive`.
    """
    archive = Archive(source, what)
    kept = [name for name in archive.sections if changes.get(name, ...) is not None]
    same = archive.members_of([name for name in kept if name not in changes])
    new = _packed({name: changes[name] for name in kept if name in changes})
    _write(target, what, kept, {**new, **same})


def _packed(sections: Mapping[str, Any]) -> dict[str, bytes]:
    """The members of the zip that sections become, by name."""
    members = {}
    for name, value in sections.items():
        packer = Packer()
        members[f"{name}.json"] = json.dumps(packer.pack(value)).encode()
        if packer.arrays:
            members[f"{name}.safetensors"] = _arrays_to_bytes(packer.arrays)
    return members


def _write(place: Place, what: str, sections: list[str], members: Mapping[str, bytes]) -> None:
    """Write members, and before them the manifest that has their checksums."""
    sums = {name: hashlib.sha256(member).hexdigest() for name, member in members.items()}
    manifest = {"what": what, "format": FORMAT, "sections": sections, "sha256": sums}
    members = {MANIFEST: json.dumps(manifest, indent=1).encode(), **members}
    if isinstance(place, str | Path):
        write_atomically(Path(place), lambda part: _write_members(part, members))
    else:
        _write_members(place, members)


def _write_members(place: Path | IO[bytes], members: Mapping[str, bytes]) -> None:
    with zipfile.ZipFile(place, "w") as archive:
        for name, member in members.items():
            info = zipfile.ZipInfo(name, WRITTEN)
            limit = SMALL_TABLES if name.startswith("settings.") else SMALL_ARRAYS
            small = name.endswith(".json") or len(member) <= limit
            info.compress_type = zipfile.ZIP_DEFLATED if small else zipfile.ZIP_STORED
            info.external_attr = READABLE << 16
            archive.writestr(info, member)


def _arrays_to_bytes(arrays: Mapping[str, Tensor]) -> bytes:
    """A safetensors file; tensors that share their memory are written once."""
    own: dict[str, Tensor] = {}
    first: dict[tuple[Any, ...], str] = {}
    alike: dict[str, str] = {}
    for name, tensor in arrays.items():
        identity = tensor.data_ptr(), tensor.shape, tensor.stride(), tensor.dtype
        known = first.setdefault(identity, name) if tensor.numel() else name
        if known == name:
            own[name] = tensor.cpu().contiguous().clone()
        else:
            alike[name] = known
    return save_arrays(own, {"alike": json.dumps(alike)})


def _arrays_from_bytes(data: bytes) -> dict[str, Tensor]:
    arrays = load_arrays(data)
    header = json.loads(data[8 : 8 + int.from_bytes(data[:8], "little")])
    for name, known in json.loads(header.get("__metadata__", {}).get("alike", "{}")).items():
        arrays[name] = arrays[known]
    return arrays


class Archive:
    """The content of a file that `write_archive` wrote.

    Args:
        place: the path, or an open file.
        what: it should be, or several things of which it is one.
        trust: import classes that it names and that are in no table.

    Raises:
        FileNotFoundError: there is no such file.
        ForeignFile: another program wrote it.
        ValueError: it is damaged, of a newer format, or something else.
    """

    def __init__(self, place: Place, what: str | Sequence[str], trust: bool = False) -> None:
        kinds = (what,) if isinstance(what, str) else tuple(what)
        self.name = repr(str(place)) if isinstance(place, str | Path) else "the file"
        self.trust = trust
        if isinstance(place, str | Path) and not Path(place).is_file():
            raise SourceError(
                f"no saved {kinds[0]} at {self.name}: expected a zip file there."
                f"{hub_hint(str(place))}"
            )
        try:
            self._members = _read_members(place)
        except DAMAGED as error:
            if _begins_as_ours(place):
                raise ValueError(f"{self.name} is damaged: {error}.") from error
            raise ForeignFile(f"{self.name} is no saved {kinds[0]}: expected a zip file") from error
        self._check(kinds)

    def _check(self, kinds: tuple[str, ...]) -> None:
        if MANIFEST not in self._members:
            raise ForeignFile(f"{self.name} is no {kinds[0]} that dialgym saved")
        manifest = parse_json(self._members[MANIFEST], f"{self.name}, {MANIFEST}")
        if not (
            isinstance(manifest, dict)
            and manifest.keys() >= {*FIELDS}
            and isinstance(manifest["sha256"], dict)
            and isinstance(manifest["sections"], list)
        ):
            raise ValueError(f"{self.name}: expected {MANIFEST} to have {', '.join(FIELDS)}")
        if manifest["format"] not in range(FORMAT + 1) or manifest["what"] not in kinds:
            raise ValueError(
                f"{self.name}: expected a {kinds[0]} of format {FORMAT}, got a "
                f"{manifest['what']} of format {manifest['format']}"
            )
        for name, expected in manifest["sha256"].items():
            found = hashlib.sha256(self._members.get(name, b"")).hexdigest()
            if found != expected:
                raise ValueError(f"{self.name} is damaged: {name} is not what was written.")
        self.what: str = manifest["what"]
        self.sections: list[str] = manifest["sections"]

    def members_of(self, sections: list[str]) -> dict[str, bytes]:
        """The members of the zip that some sections consist of, by name."""
        return {k: v for k, v in self._members.items() if k.rpartition(".")[0] in sections}

    def read(self, section: str, entries: Sequence[str] = ()) -> Any:
        """The value of a section; where `entries` are given, a mapping that has these at least.

        Raises:
            ValueError: there is none of that name, it holds a class that is in no table, or what no
                file of ours holds.
        """
        arrays = self._members.get(f"{section}.safetensors")
        value = self.read_packed(section)
        try:
            found = {} if arrays is None else _arrays_from_bytes(arrays)
            unpacked = Unpacker(found, self.trust, self.name).unpack(value)
            for entry in entries:
                unpacked[entry]
            return unpacked
        except MALFORMED as error:
            raise ValueError(
                f"{self.name}: {section} holds what dialgym does not write ({error!r})."
            ) from error

    def read_packed(self, section: str) -> Any:
        """The JSON of a section, as `agents.storage.values.Packer` made it.

        Raises:
            ValueError: there is none of that name, or it is no JSON.
        """
        member = self._members.get(f"{section}.json", b"")
        return parse_json(member, f"{self.name}, {section}")


def model_archive(place: Place, trust: bool = False) -> Archive:
    """The archive of a model: a file of its own, or within the checkpoint of a run."""
    archive = Archive(place, (MODEL, CHECKPOINT), trust)
    if archive.what == MODEL:
        return archive
    model = Archive(io.BytesIO(archive.read(MODEL)["file"]), MODEL, trust)
    model.name = archive.name
    packed = model.read_packed("settings")  # whose classes may be of modules that nobody has loaded
    learned = Unpacker({}).unpack(packed["attributes"]["num_timesteps"])
    warnings.warn(
        f"{archive.name} is the checkpoint of a run: its model has learned for {learned:,} "
        "timesteps; `dialgym train --resume FOLDER` goes on to the end",
        stacklevel=4,
    )
    return model


def _read_members(place: Place) -> dict[str, bytes]:
    """The members of a zip by name, which expand to no more than is read."""
    with zipfile.ZipFile(place) as archive:
        members = archive.infolist()
        if members and members[0].header_offset:
            raise zipfile.BadZipFile("it is cut short")  # and ends with a file that it holds
        if any(member.compress_type not in COMPRESSIONS for member in members):
            raise zipfile.BadZipFile("it is compressed in another way")
        for ending, most in (("", LARGEST), (".json", LARGEST_JSON)):
            chosen = [member for member in members if member.filename.endswith(ending)]
            size = sum(member.file_size for member in chosen)
            if size > max(most, RATIO * sum(member.compress_size for member in chosen)):
                raise zipfile.BadZipFile(f"its members *{ending} would be {size:,} bytes")
        return {member.filename: archive.read(member) for member in members}


def _begins_as_ours(place: Place) -> bool:
    """Return True if a file that cannot be read begins as those of `write_archive` do."""
    if isinstance(place, str | Path):
        with Path(place).open("rb") as file:
            return _begins_as_ours(file)
    place.seek(0)
    return MANIFEST.encode() in place.read(64)


class ForeignFile(ValueError):
    """A file that is no archive of ours."""


def to_bytes(what: str, sections: Mapping[str, Any]) -> bytes:
    """The bytes of the file that `write_archive` writes."""
    buffer = io.BytesIO()
    write_archive(buffer, what, sections)
    return buffer.getvalue()
