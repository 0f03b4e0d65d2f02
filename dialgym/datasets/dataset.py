"""The `Dataset` of stored dialogues: rows, returns, filters, splits, saving."""

from collections.abc import Callable, Iterator, Sequence
from html import escape
from os import PathLike
from pathlib import Path
from secrets import token_hex
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np

from dialgym.datasets.act_data import ActData, act_data
from dialgym.datasets.describe import DatasetSummary, describe
from dialgym.datasets.export import export
from dialgym.datasets.foreign import Choices, ImportReport, import_dialogues
from dialgym.datasets.foreign.importer import beside, copy_beside, relative
from dialgym.datasets.minari import to_minari
from dialgym.datasets.packing import layout_of
from dialgym.datasets.readme import dataset_card
from dialgym.datasets.schema import arrow, read_tables, with_folder, write_table
from dialgym.datasets.tokens import TokenData, pack
from dialgym.errors import unknown, with_settings
from dialgym.io.cache import cache_dir
from dialgym.io.files import parse_json, write_text
from dialgym.io.html_tables import html_table
from dialgym.io.hub import publish
from dialgym.optional import require
from dialgym.registry import check_id
from dialgym.trust import allow, check_names

WHERE = "the dataset"
HEAD = ("environment", "policy", "seed", "return", "what was said")
SHOWN, CUT = 10, 200
"""Dialogues, and characters of each, that a notebook shows."""


class UnknownColumn(KeyError, ValueError):
    """A column that a dataset has not: a `KeyError`, as mappings have it."""

    def __str__(self) -> str:
        return str(self.args[0])


class Dataset:
    """Logged dialogues, a row each; see `dialgym.datasets.schema` for the columns.

    ``dataset[i]`` is a row as a dict, ``dataset["policy"]`` a column. What chooses rows returns
    another dataset and leaves this one as it is; no dialogue is copied until it is read.

    Args:
        table: an Arrow table with the columns of `dialgym.datasets.schema.schema`.

    Attributes:
        report: of an import, see `from_dialogues`; else None.
    """

    report: ImportReport | None = None

    def __init__(self, table: Any) -> None:
        self.table = table

    def __len__(self) -> int:
        return int(self.table.num_rows)

    def __getitem__(self, key: int | str) -> Any:
        if isinstance(key, str):
            if key not in self.table.column_names:
                raise UnknownColumn(str(unknown("column", key, self.table.column_names, "dataset")))
            return np.asarray(self.table[key].to_numpy(zero_copy_only=False))
        if not -len(self) <= key < len(self):
            raise IndexError(f"dialogue {key} of {len(self)}")
        return self.table.slice(key % len(self), 1).to_pylist()[0]

    def __iter__(self) -> Iterator[dict[str, Any]]:
        for batch in self.table.to_batches(max_chunksize=1024):
            yield from batch.to_pylist()

    def __add__(self, other: "Dataset") -> "Dataset":
        return concatenate([self, other])

    def __repr__(self) -> str:
        if not len(self):
            return "Dataset(0 dialogues)"
        policies, envs = (_few(np.unique(self[name].astype(str))) for name in ("policy", "env"))
        mean = f"mean return {self.returns.mean():.2f}"
        return f"Dataset({len(self):,} dialogues of {policies} in {envs}, {mean})"

    def _repr_html_(self) -> str:
        """A table for notebooks: the first dialogues, a row each."""
        first = self.select(range(min(SHOWN, len(self))))
        rows = [
            (row["env"], row["policy"], str(row["seed"]), f"{episode_return:g}", " · ".join(
                turn["text"] for turn in row["turns"])[:CUT])
            for row, episode_return in zip(first, first.returns)
        ]  # fmt: skip
        return escape(repr(self)) + html_table([HEAD, *rows])

    @property
    def returns(self) -> np.ndarray:
        """(N,) float64: the sum of each dialogue's rewards."""
        sizes, turns = self.turns()
        rewards = turns.field("reward").to_numpy(zero_copy_only=False)
        return np.bincount(np.repeat(np.arange(len(self)), sizes), rewards, len(self))

    @property
    def lengths(self) -> np.ndarray:
        """(N,) int64: the learner's utterances in each dialogue."""
        sizes, turns = self.turns()
        own = turns.field("said").to_numpy(zero_copy_only=False).astype(bool)
        return np.bincount(np.repeat(np.arange(len(self)), sizes)[own], minlength=len(self))

    def turns(self) -> tuple[np.ndarray, Any]:
        """(N,) turns of each dialogue, and the turns of all as one struct array."""
        column = self.table["turns"].combine_chunks()
        return np.diff(column.offsets.to_numpy()), column.flatten()

    def select(self, rows: Sequence[int] | np.ndarray) -> "Dataset":
        """The dialogues at `rows`, in that order."""
        return Dataset(self.table.take(arrow().array(np.asarray(rows, np.int64))))

    def filter(self, keep: np.ndarray | Callable[[dict[str, Any]], bool]) -> "Dataset":
        """The dialogues for which `keep`, an (N,) bool array or a function of a row, is true."""
        mask = np.array([keep(row) for row in self]) if callable(keep) else np.asarray(keep)
        if mask.shape != (len(self),) or (len(self) and mask.dtype != bool):
            raise ValueError(
                f"filter: expected a function of a row, or ({len(self)},) bool; "
                f"got {mask.dtype} {mask.shape}."
            )
        return self.select(np.flatnonzero(mask))

    def top(self, share: float) -> "Dataset":
        """The dialogues of greatest return, `share` of them (0-1]: the data of %BC.

        Among equal returns the earlier dialogue is taken; the order stays.

        Raises:
            ValueError: the share is no number above 0 and up to 1.
        """
        return self._first(share, -self.returns, "top")

    def bottom(self, share: float) -> "Dataset":
        """The dialogues of least return, `share` of them; else as `top`."""
        return self._first(share, self.returns, "bottom")

    def _first(self, share: float, order: np.ndarray, name: str) -> "Dataset":
        if not 0 < share <= 1:
            raise ValueError(f"{name}: share must be above 0 and at most 1; got {share!r}.")
        chosen = np.argsort(order, kind="stable")[: max(1, round(share * len(self)))]
        return self.select(np.sort(chosen))

    def at_least(self, value: float) -> "Dataset":
        """The dialogues whose return is `value` or more.

        Raises:
            ValueError: there is none.
        """
        found = self.filter(self.returns >= value)
        if not len(found):
            most = self.returns.max(initial=-np.inf)
            raise ValueError(
                f"at_least: expected dialogues with a return of {value:g} or more; the greatest "
                f"of {len(self):,} is {most:g}. Give a smaller number."
            )
        return found

    def split(self, share: float, seed: int = 0) -> tuple["Dataset", "Dataset"]:
        """Two datasets, about `share` and ``1 - share`` of the dialogues, drawn by `seed`.

        Dialogues with the same hidden state (a game and its branches) stay together, and a
        dialogue falls on the same side in every dataset that it is in.

        Raises:
            ValueError: the share is not between 0 and 1.
        """
        if not 0 < share < 1:
            raise ValueError(f"split: share must be between 0 and 1; got {share!r}.")
        first = _uniform(self["seed"].astype(np.uint64), seed) < share
        return self.filter(first), self.filter(~first)

    def pairs(self, kind: str | None = None) -> np.ndarray:
        """(M, 3) int64: a branch and where it came from.

        Columns: the row of the dialogue that it leaves, its own row, and how many of the learner's
        utterances they share. Branches whose source is not in the dataset are left out.

        Args:
            kind: of the branches; None for all.
        """
        keys = list(zip(self["env"], self["settings"], self["seed"], self["episode"]))
        branches = self["source"] >= 0
        source = {key: row for row, key in enumerate(keys) if not branches[row]}
        chosen = branches if kind is None else branches & (self["kind"] == kind)
        after = self["branch"]
        rows = [
            (source[keys[row]], row, after[row])
            for row in np.flatnonzero(chosen).tolist()
            if keys[row] in source
        ]
        return np.array(rows, np.int64).reshape(-1, 3)

    def tokens(self, reencode: bool = False, cache: bool | None = None, **kwargs: Any) -> TokenData:
        """The dialogues as token arrays, just as the token env shows them.

        Args:
            reencode: encode the text again where token ids of another vocabulary were logged.
            cache: keep the arrays, to be mapped into memory the next time; None: from 10,000
                dialogues on.
            kwargs: settings of the token env (``tokenizer=``, ``window=``) other than those that
                the dialogues were collected with.

        Raises:
            ValueError: the dialogues are of several environments, or they do not fit the settings
                (see `dialgym.datasets.tokens.pack`).
        """
        allow(kwargs)
        env, settings = self.environment()
        return pack(self, layout_of(env, **{**settings, **kwargs}), reencode, cache)

    def acts(self, gamma: float = 1.0) -> ActData:
        """Chosen acts as arrays, with observations and masks: for offline learning.

        Args:
            gamma: discount of the returns.

        Raises:
            ValueError: the learner chose no acts, or those of several kinds.
        """
        return act_data(self, gamma)

    def save(self, path: str | PathLike[str]) -> Path:
        """Write the dialogues as one Parquet file, whole or not at all; the file.

        `path` is a file that ends in ``.parquet``, else a folder for one; imported dialogues take
        what says how to read them into a folder with them.
        """
        file, table = Path(path), self.table
        if file.suffix != ".parquet":
            if (source := beside(table)) is not None:
                copy_beside(source, file)
                table = relative(table)
            file = file / "dialogues.parquet"
        write_table(file, table)
        return file

    def export(self, path: str | PathLike[str], form: str | None = None) -> int:
        """Write the dialogues for other tools: ``.jsonl`` of messages, or ``.csv`` of utterances.

        Args:
            path: the file.
            form: "lmrl-gym" for files as LMRL-Gym's loaders take them: ``.jsonl`` of Wordle,
                ``.json`` of twenty questions and cities.

        Returns:
            How many there are.

        Raises:
            ValueError: the ending is another one, or the form has none of these dialogues.
        """
        return export(self, Path(path), form)

    @classmethod
    def from_dialogues(
        cls, source: Any, out: str | PathLike[str] | None = None, **choices: Any
    ) -> "Dataset":
        """Import your own dialogues, from files or rows of any form.

        ``dataset.report`` tells what was read and what was left out and why. Of data with splits
        the result is the one to train on; `load_dataset` takes the others from the folder.

        Args:
            source: a file, folder or zip of JSONL, JSON, CSV, TSV or Parquet, ``hf:NAME``, or
                several; or rows: mappings with messages or turns (Hugging Face's data sets too), or
                lists of utterances.
            out: a new folder for them; None for one in the cache.
            choices: see `dialgym.datasets.foreign.Choices`: ``reward="rating"``,
                ``system="seller"``, ``task="dialgym/DailyDialog-v0"`` ...

        Raises:
            ValueError: nothing there is a dialogue, or a choice does not fit.
            ImportError: pyarrow or tokenizers is not installed.
        """
        made: Choices = with_settings(Choices, "from_dialogues", choices)
        folder = cache_dir() / "imported" / token_hex(8) if out is None else Path(out)
        report = import_dialogues(source, folder, made)
        dataset = cls(with_folder(read_tables([folder / report.files[0]]), folder))
        dataset.report = report
        return dataset

    def describe(self, plot: str | PathLike[str] | None = None) -> DatasetSummary:
        """Counts, distribution of returns, and lengths; `plot` is a PNG file to draw them into.

        Raises:
            ValueError: the dataset is empty.
            ImportError: matplotlib is not installed, where a plot is asked for.
        """
        return describe(self, plot)

    def push_to_hub(self, name: str, private: bool = False) -> str:
        """Publish the dialogues, with a card; `load_dataset` takes what is returned.

        Args:
            name: ``hf:NAME`` on the hub; or a path, for the same files in a new folder.
            private: make a new repository private.

        Returns:
            ``hf:NAME@COMMIT``, or the path.

        Raises:
            SourceError: they cannot be written there.
            ValueError: there are none, or the folder is in use.
        """
        text = dataset_card(self, name)
        with TemporaryDirectory() as folder:
            self.save(folder)
            write_text(Path(folder) / "README.md", text)
            return publish(Path(folder), name, "dialogues", "dataset", private)

    def to_hf(self) -> Any:
        """The dialogues as a `datasets.Dataset` of the same rows.

        Raises:
            ImportError: the package datasets is not installed.
        """
        return require("datasets", "data", "a Hugging Face dataset").Dataset(self.table)

    def to_minari(self, name: str, data_format: str = "hdf5", **metadata: Any) -> Any:
        """Store the dialogues as a Minari dataset; see `dialgym.datasets.minari.to_minari`."""
        return to_minari(self, name, data_format, **metadata)

    def environment(self) -> tuple[str, dict[str, Any]]:
        """The id and settings of the environment of all dialogues.

        Raises:
            ValueError: there are several, or no dialogue; or they name code (see `load_dataset`).
        """
        pairs = sorted({*zip(self["env"].tolist(), self["settings"].tolist())})
        if len(pairs) != 1:
            got = ", ".join(f"{env} {settings}" for env, settings in pairs) or "no dialogues"
            raise ValueError(
                f"dataset: expected dialogues of one environment; got {got}. Filter it first."
            )
        env_id, settings = pairs[0][0], parse_json(pairs[0][1], f"{WHERE}, settings")
        check_id(env_id, WHERE)
        check_names(settings, WHERE)
        return env_id, settings


def _few(names: np.ndarray) -> str:
    """Names in a line."""
    more = f" and {len(names) - 3} more" if len(names) > 3 else ""
    return ", ".join(name or "none" for name in names[:3].tolist()) + more


def concatenate(datasets: Sequence[Dataset]) -> Dataset:
    """All dialogues of several datasets, one after the other.

    Raises:
        ValueError: there is no dataset.
    """
    if not datasets:
        raise ValueError("concatenate: expected at least one dataset; got none.")
    return Dataset(arrow().concat_tables([dataset.table for dataset in datasets]))


def _uniform(keys: np.ndarray, seed: int) -> np.ndarray:
    """Numbers in [0, 1) that depend on each key and the seed only (SplitMix64's finaliser)."""
    salt = np.random.SeedSequence(seed).generate_state(1, np.uint64)[0]
    x = keys ^ salt
    for shift, factor in ((30, 0xBF58476D1CE4E5B9), (27, 0x94D049BB133111EB)):
        x = (x ^ (x >> np.uint64(shift))) * np.uint64(factor)
    return (x ^ (x >> np.uint64(31))) / 2.0**64
