"""Loading datasets from files, from the Hugging Face hub, and from Minari."""

import warnings
from collections.abc import Callable, Iterator, Sequence, Set
from itertools import pairwise
from os import PathLike
from pathlib import Path
from typing import Any, Literal, overload

from dialgym.datasets.collector import SHARD
from dialgym.datasets.dataset import Dataset
from dialgym.datasets.minari import table_of_minari
from dialgym.datasets.schema import (
    arrow,
    check_table,
    parquet,
    read_tables,
    schema,
    with_folder,
)
from dialgym.io.archives import SPLITS, ArchiveMember
from dialgym.io.cache import cache_dir
from dialgym.io.checksums import SUFFIX
from dialgym.io.files import parse_json
from dialgym.io.hub import Repository, fetch, locate
from dialgym.optional import require
from dialgym.trust import allow

PARQUET = "*.parquet"
FOREIGN = (".jsonl", ".json", ".csv", ".tsv", ".txt", ".zip")
HERE = Path()
BESIDE = ("*.json",)
"""Files beside the dialogues that tell how to read them."""


class DialogueStream:
    """Dialogues read while they are looked at, never all in memory.

    Iterating gives rows as dicts.

    Args:
        tables: gives Arrow tables of so many rows each, from the beginning at each call.
        trust: as of `load_dataset`.
        folder: in which they lie, which settings may name.
    """

    def __init__(
        self,
        tables: Callable[[int], Iterator[Any]],
        trust: bool = False,
        folder: Path = HERE,
    ) -> None:
        self._tables, self._trust, self._folder = tables, trust, folder

    def __iter__(self) -> Iterator[dict[str, Any]]:
        for dataset in self.datasets(1024):
            yield from dataset

    def datasets(self, size: int) -> Iterator[Dataset]:
        """The dialogues as datasets of `size` each; the last one of a file may be smaller."""
        for table in self._tables(size):
            yield _dataset(table, "the stream", self._trust, self._folder)


@overload
def load_dataset(
    path_or_name: str | PathLike[str],
    streaming: Literal[False] = False,
    split: str | None = None,
    trust: bool = False,
) -> Dataset: ...


@overload
def load_dataset(
    path_or_name: str | PathLike[str],
    streaming: Literal[True],
    split: str | None = None,
    trust: bool = False,
) -> DialogueStream: ...


def load_dataset(
    path_or_name: str | PathLike[str],
    streaming: bool = False,
    split: str | None = None,
    trust: bool = False,
) -> Dataset | DialogueStream:
    """Dialogues from a folder or file of Parquet, or from the Hugging Face hub.

    Args:
        path_or_name: what `collect` or `Dataset.save` wrote; or ``hf:NAME`` or
            ``hf:NAME@REVISION``, whose files are fetched once.
        streaming: read while looked at; else the files are mapped into memory.
        split: ``train``, ``validation`` or ``test``, as the files' names or folders tell it; those
            that tell none are for training. None for the training split, or the only one.
        trust: their environment and its settings may name code (``module:Class``), which is
            imported where that environment is made again, as by `Dataset.tokens`. Else they may
            name what is registered, or what was named in Python or on the command line before.

    Returns:
        A `Dataset`, or a `DialogueStream`.

    Raises:
        FileNotFoundError: there is no such folder, file or dataset.
        ValueError: what is there are no dialogues, or a file is damaged.
        ImportError: the package datasets is not installed.
    """
    hf = require("datasets", "data", "loading datasets")
    place = locate(path_or_name, "load_dataset")
    files = _files(place, split) if isinstance(place, Path) else _from_hub(place, split)
    files = [file for file in files if check_table(file)]
    folder = files[0].parent if files else Path()
    if streaming:
        return DialogueStream(lambda size: _read(files, size), trust, folder)
    if not files:
        return Dataset(schema().empty_table())
    return _dataset(_map(hf, files), str(path_or_name), trust, folder)


def _dataset(table: Any, what: str, trust: bool, folder: Path) -> Dataset:
    dataset = Dataset(with_folder(conformed(table, what), folder))
    if trust:
        for column in ("env", "settings"):
            for text in dataset.table[column].unique().to_pylist():
                allow(text if column == "env" else parse_json(text, what))
    return dataset


def _map(hf: Any, files: Sequence[Path]) -> Any:
    """The rows of Parquet files, kept once more as a file that is mapped into memory.

    Where that cannot be written, such as on a full disk, they are read into memory instead.
    """
    quiet = hf.utils.are_progress_bars_disabled()
    hf.disable_progress_bars()
    names, cache = [str(file) for file in files], str(cache_dir() / "datasets")
    try:  # load_dataset would ask the hub
        return hf.Dataset.from_parquet(names, cache_dir=cache).data.table
    except (OSError, hf.exceptions.DatasetGenerationError) as error:
        reason = error.__cause__ or error
        warnings.warn(
            f"load_dataset: the cache {cache!r} cannot be written ({reason}), so that the "
            "dialogues are read into memory. Make room, or name a folder elsewhere "
            "($DIALGYM_CACHE).",
            stacklevel=3,
        )
        return read_tables(files)
    finally:
        if not quiet:
            hf.enable_progress_bars()


def _read(files: Sequence[Path], size: int) -> Iterator[Any]:
    for file in files:
        for batch in parquet().ParquetFile(file).iter_batches(size):
            yield arrow().Table.from_batches([batch])


def _files(path: Path, split: str | None) -> Sequence[Path]:
    if path.is_dir():
        files = sorted(path.glob(PARQUET))
        if not files:
            raise FileNotFoundError(
                f"load_dataset: no Parquet files in {str(path)!r}. Check the path; `dialgym "
                "collect` writes such a folder, and `dialgym import` of dialogues in other forms."
            )
        _warn_of_lost(path, {file.name for file in files})
        return _of_split(files, path, split, str(path))
    if path.suffix.lower() in FOREIGN:
        raise ValueError(
            f"load_dataset: {str(path)!r} is no file of stored dialogues, which are Parquet. Make "
            f"a data set of it: `dialgym import {path} --out FOLDER`, or Dataset.from_dialogues."
        )
    return _of_split([path], path.parent.parent, split, str(path))  # its folder may tell it


def _warn_of_lost(folder: Path, names: Set[str]) -> None:
    """Say which files of a collection are not there, though later ones or their checksums are."""
    parts = sorted((int(m[1]), int(m[2])) for m in map(SHARD.fullmatch, names) if m)
    gaps = [
        f"episodes {stop} to {start - 1}"
        for (_, stop), (start, _) in pairwise([(0, 0), *parts])
        if stop < start
    ]
    summed = {file.name.removesuffix(SUFFIX) for file in folder.glob(f"{PARQUET}{SUFFIX}")}
    if lost := gaps or sorted(summed - names):
        warnings.warn(
            f"load_dataset: {str(folder)!r} is not whole: it lacks {', '.join(lost)}. The same "
            "collect makes what is missing.",
            stacklevel=4,
        )


def _from_hub(repository: Repository, split: str | None) -> Sequence[Path]:
    folder = fetch(repository, "load_dataset", (PARQUET, *BESIDE), "dataset")
    return _of_split(sorted(folder.rglob(PARQUET)), folder, split, str(repository))


def _of_split(files: Sequence[Path], folder: Path, split: str | None, where: str) -> list[Path]:
    """The files of a split; those whose names and folders tell none are for training."""
    names = {file: str(file.relative_to(folder)) for file in files}
    splits = {
        file: ArchiveMember(name, file.read_bytes).split or "train" for file, name in names.items()
    }
    known = sorted({*splits.values()})
    if split is None:
        split = known[0] if len(known) == 1 else "train"
    chosen = [file for file, own in splits.items() if own == SPLITS.get(split, split)]
    if not chosen:
        raise ValueError(
            f"load_dataset: {where!r} has no Parquet files of the split {split!r}; it "
            f"has {', '.join(known) or 'none at all'}."
        )
    return chosen


def conformed(table: Any, what: str) -> Any:
    """A table with the columns of `schema`, in order and of their types.

    Raises:
        ValueError: a column is missing, or of another type.
    """
    layout = schema()
    missing = [name for name in layout.names if name not in table.column_names]
    if missing:
        raise ValueError(
            f"{what}: expected dialogues with the columns {', '.join(layout.names)}; there is no "
            f"{missing[0]!r}. Was it written by dialgym?"
        )
    try:
        return table.select(layout.names).cast(layout)
    except (ValueError, TypeError, NotImplementedError) as error:
        raise ValueError(f"{what}: expected columns of {layout}; {error}.") from error


def from_minari(name: str) -> Dataset:
    """The dialogues of a Minari dataset of an utterance or act view.

    That of an act view has no words: its turns hold the names of the acts.

    Raises:
        ValueError: it is not a dataset of such a view, or lacks infos (success, masks of acts).
        FileNotFoundError: Minari has no such dataset.
        ImportError: Minari is not installed.
    """
    return Dataset(table_of_minari(name))
