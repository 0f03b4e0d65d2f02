"""The columns of a stored dialogue as an Arrow schema; tables as Parquet files."""

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import gymnasium as gym
import numpy as np

from dialgym.io.checksums import check, write_checked
from dialgym.io.files import check_regular
from dialgym.io.tables import check_parquet
from dialgym.language import Tokenizer
from dialgym.optional import require
from dialgym.registry import RegistryEntry, entries, entry_of, make_task
from dialgym.rollouts import EpisodeBatch
from dialgym.rollouts.episode_batch import Decisions, RecordedTurns, Role
from dialgym.views.dialogue import Dialogue
from dialgym.views.making import settings_of_entry

PURPOSE = "storing dialogues"
IMPORTED = "logged"
"""The policy of dialogues that were imported."""
FOLDER = "{folder}"
"""Stands in stored settings for the folder in which the dialogues lie, wherever that is."""
ROWS = 1024
"""Rows that are validated together."""
RATIO = 1000
"""Largest ratio of a file's size in memory to that on disk: beliefs and masks compress well."""


def arrow() -> Any:
    """The package pyarrow."""
    return require("pyarrow", "data", PURPOSE)


def write_table(file: Path, table: Any) -> None:
    """Write a table as a Parquet file, whole or not at all, and its checksum."""
    write_checked(
        file, lambda temporary: parquet().write_table(table, temporary, compression="zstd")
    )


def read_tables(files: Sequence[Path]) -> Any:
    """The rows of Parquet files, one after the other, in memory.

    Raises:
        ValueError: one is damaged, or no Parquet file; the message names it.
    """
    for file in files:
        check_table(file)
    return arrow().concat_tables([parquet().read_table(file) for file in files])


def check_table(file: Path) -> int:
    """Check a Parquet file and count its rows.

    Raises:
        ValueError: it is damaged, or no Parquet file; the message names it.
    """
    check_regular(file)
    summed = check(file)
    try:
        rows = check_parquet(file, str(file), file.stat().st_size, RATIO)
        if not summed:  # nothing else tells whether what is in it can be read
            for batch in parquet().ParquetFile(file).iter_batches(ROWS):
                batch.validate(full=True)
    except (arrow().ArrowException, OSError, UnicodeDecodeError) as error:
        raise ValueError(
            f"{str(file)!r}: expected a Parquet file; it is none, or broken ({error}). "
            "Write it again; a collection that `collect` makes again has the missing rows."
        ) from error
    return rows


def parquet() -> Any:
    """The module pyarrow.parquet."""
    return require("pyarrow.parquet", "data", PURPOSE)


def schema() -> Any:
    """The Arrow schema of a dataset: a row a dialogue.

    ``turns`` is a list of what the learner has seen, in order: ``party``, ``text``, ``said`` (an
    utterance of the learner, not one that it heard or was told), ``reward`` (what that earned
    until its next turn; else 0) and ``tokens`` (the ids that the learner emitted, ``<end>``
    included where it said one; null where it spoke in text).

    The dialogue is that of ``gym.make(env, **settings).reset(seed=seed, options=options)`` in
    which ``learner`` says its turns; `settings` and `options` are JSON. ``vocabulary`` tells
    whose token ids are logged. ``kind``, ``source`` and ``branch`` are a generator's: the role
    of the dialogue, and, where it goes on from another of the same episode, the place of that one
    among the episode's dialogues (else -1), and how many of the learner's utterances they share.

    Where the learner chose acts, T of them, ``observations`` (T+1, the last at the end of the
    dialogue) are what it knew or believed, ``actions`` (T) what it chose, the index of an act or a
    vector of 0 and 1, and ``action_masks`` (T+1) what could be chosen; ``acts`` tells which acts
    they are. Elsewhere the three are null.
    """
    pa = arrow()
    turn = pa.struct(
        [
            ("party", pa.string()),
            ("text", pa.string()),
            ("said", pa.bool_()),
            ("reward", pa.float64()),
            ("tokens", pa.list_(pa.int32())),
        ]
    )
    return pa.schema(
        [
            ("turns", pa.list_(turn)),
            ("terminated", pa.bool_()),
            ("truncated", pa.bool_()),
            ("success", pa.bool_()),
            ("env", pa.string()),
            ("settings", pa.string()),
            ("options", pa.string()),
            ("learner", pa.string()),
            ("policy", pa.string()),
            ("vocabulary", pa.string()),
            ("seed", pa.uint64()),
            ("episode", pa.int64()),
            ("kind", pa.string()),
            ("source", pa.int64()),
            ("branch", pa.int64()),
            ("acts", pa.string()),
            ("observations", pa.list_(pa.list_(pa.float32()))),
            ("actions", pa.list_(pa.list_(pa.int16()))),
            ("action_masks", pa.list_(pa.list_(pa.bool_()))),
        ]
    )


@dataclass(frozen=True)
class Origin:
    """Columns that all dialogues of one collection share; see `schema`."""

    env: str
    settings: Mapping[str, Any]
    learner: str
    policy: str
    vocabulary: str = ""
    acts: str = ""


class Recorder:
    """Recorder of played dialogues as an Arrow table.

    Args:
        origin: what they have in common.
        options: of every reset.
    """

    def __init__(self, origin: Origin, options: Mapping[str, Any] | None = None) -> None:
        self.origin, self._options = origin, json.dumps(dict(options or {}))
        self._turns = RecordedTurns()
        self._rows: dict[str, list[Any]] = {name: [] for name in _BY_ROW}
        self._decisions: list[Decisions] = []

    def __len__(self) -> int:
        return len(self._turns.sizes)

    def add(self, played: EpisodeBatch) -> None:
        """Record dialogues that were played with ``record=True``."""
        assert played.turns is not None
        for name, column in vars(self._turns).items():
            column += getattr(played.turns, name)
        texts = [json.dumps(dict(options)) for options in played.options or ()]
        columns = {
            "terminated": played.terminated.tolist(),
            "truncated": played.truncated.tolist(),
            "success": played.success.tolist(),
            "options": texts or [self._options] * len(played),
            "seed": played.seeds,
            "episode": played.episodes,
            **dict(zip(Role._fields, zip(*(played.roles or [Role()] * len(played))))),
        }
        for name, values in self._rows.items():
            values += columns[name]
        self._decisions += played.decisions or ()

    def table(self) -> Any:
        """The dialogues so far as an Arrow table."""
        pa, layout, n = arrow(), schema(), len(self)
        fields = list(layout.field("turns").type.value_type)
        children = [pa.array(getattr(self._turns, f.name), f.type) for f in fields]
        turns = pa.StructArray.from_arrays(children, fields=fields)
        origin = self.origin
        same = {
            "env": origin.env,
            "settings": json.dumps(dict(origin.settings), sort_keys=True),
            "learner": origin.learner,
            "policy": origin.policy,
            "vocabulary": origin.vocabulary,
            "acts": origin.acts,
        }
        columns = {"turns": _lists(turns, self._turns.sizes)}
        columns |= {name: pa.repeat(pa.scalar(value), n) for name, value in same.items()}
        columns |= {
            name: pa.array(values, layout.field(name).type) for name, values in self._rows.items()
        }
        columns |= self._chosen(layout, n)
        return pa.table([columns[name] for name in layout.names], schema=layout)

    def _chosen(self, layout: Any, n: int) -> dict[str, Any]:
        """The columns of chosen acts; nulls where the learner chose none."""
        pa = arrow()
        if not self._decisions:
            return {name: pa.nulls(n, layout.field(name).type) for name in CHOSEN}
        return {
            name: _nested([getattr(d, field) for d in self._decisions], layout.field(name).type)
            for name, field in CHOSEN.items()
        }


CHOSEN = {"observations": "observations", "actions": "actions", "action_masks": "masks"}
"""Columns of chosen acts, with their names in `Decisions`."""
_BY_ROW = (
    *("terminated", "truncated", "success", "options"),
    *("seed", "episode", "kind", "source", "branch"),
)


def _nested(arrays: Sequence[np.ndarray], kind: Any) -> Any:
    """Arrays (T_i, ...) as a column of lists of lists, of type `kind`."""
    whole = np.concatenate([a.reshape(len(a), -1) for a in arrays])
    values = arrow().array(whole.ravel(), kind.value_type.value_type)
    inner = _lists(values, [whole.shape[1]] * len(whole))
    return _lists(inner, [len(array) for array in arrays])


def _lists(values: Any, sizes: Sequence[int]) -> Any:
    """An array of values as one of lists, of so many values each."""
    pa = arrow()
    return pa.ListArray.from_arrays(pa.array([0, *np.cumsum(sizes).tolist()], pa.int32()), values)


def played_settings(settings: Mapping[str, Any], dialogue: Dialogue) -> Mapping[str, Any]:
    """The settings that make an env's task again, or fail to, wherever they are read.

    What the surroundings decide is among them: the path of files, or what stood in for them.
    """
    task = dialogue.task
    given = task.made_with or {}
    surrounding = {name: value for name, value in task.played.items() if given.get(name) != value}
    return {**settings, **surrounding}


def settings_beside(entry: RegistryEntry) -> dict[str, Any]:
    """Settings of an entry that its id does not determine.

    Those of an unregistered task, and those of a spec that are not the registered ones.
    """
    whole = settings_of_entry(entry)
    if entry.id not in entries() and entry.id not in gym.registry:
        return whole
    registered = entry_of(entry.id)
    known = settings_of_entry(registered)
    if entry.row is not registered.row:  # a spec says what names were found to mean
        known |= make_task(registered, {}).played
    return {name: value for name, value in whole.items() if known.get(name, entry) != value}


def check_json(values: Mapping[str, Any], what: str) -> None:
    """Raise a ValueError where values are not plain ones that JSON can hold."""
    for name, value in values.items():
        try:
            json.dumps(value)
        except TypeError:
            raise ValueError(
                f"{what}: {name} is stored with the dialogues, so it must be a number, a string "
                f"or a list of them; got {value!r}. Give a name or a path instead of an object."
            ) from None


def with_folder(table: Any, folder: Path) -> Any:
    """A table whose settings name the folder that it was read from, where they mean that."""
    column = table["settings"]
    if not any(FOLDER in text for text in column.unique().to_pylist()):
        return table
    compute = require("pyarrow.compute", "data", PURPOSE)
    spelled = json.dumps(str(folder.resolve()))[1:-1]
    named = compute.replace_substring(column, FOLDER, spelled)
    return table.set_column(table.column_names.index("settings"), "settings", named)


def fingerprint(tokenizer: Tokenizer) -> str:
    """Short name of a vocabulary: equal for tokenizers with the same tokens at the same ids."""
    text = "\n".join(tokenizer.tokens)
    return f"{tokenizer.vocab_size}-{hashlib.sha256(text.encode()).hexdigest()[:12]}"


def acts_name(names: Sequence[str], size: int) -> str:
    """Short name of acts that are chosen by observations of a size: equal for the same of both."""
    digest = hashlib.sha256("\n".join(names).encode()).hexdigest()[:12]
    return f"{len(names)}-{size}-{digest}"
