"""Comments of the data with their parents, scores and toxicity; read once per process."""

import warnings
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from importlib.resources import files
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from dialgym.io import tables as sources
from dialgym.io.archives import parts_of
from dialgym.io.tables import RowLocation
from dialgym.language.text import plain
from dialgym.tasks import corpora
from dialgym.tasks.comments.indices import rows_by_index

VERSION = 4
"""Of the form in which comments are kept in the cache."""
BUILTIN = files("dialgym.tasks.comments") / "comments.jsonl.gz"
EXPECTED = "files of rows with a comment each"
PARENTS = ("parent", "title", "prompt", "parent_text")
COMMENTS = ("comment", "selftext", "body", "text")
SCORES = ("score", "ups", "upvotes")
COLUMNS = {"parent": PARENTS, "score": SCORES, "toxicity": ("toxicity",)}
"""Columns that a row may have beside its comment, and their names."""
GONE = ("", "[deleted]", "[removed]")
UNKNOWN_LABEL = -1


@dataclass(frozen=True, eq=False)
class CommentCorpus:
    """N comments.

    Attributes:
        parents, comments: (N,) texts; a parent may be empty.
        scores: (N,) float64, NaN where not known.
        toxicity: (N,) int8, 0 to 2, -1 where not known.
    """

    parents: Sequence[str]
    comments: Sequence[str]
    scores: np.ndarray
    toxicity: np.ndarray

    def __len__(self) -> int:
        return len(self.comments)


class LoggedComment(NamedTuple):
    """A comment as it is read."""

    split: str
    parent: str
    comment: str
    score: float
    toxicity: int


def load_corpus(data: Any, split: str) -> CommentCorpus:
    """The comments of one split of the data; None is the built-in data.

    Raises:
        ValueError: the data is not there, empty or broken, or has no such split.
    """
    return corpora.split_of(load_splits(data), split, data, "comments")


def load_splits(data: Any) -> Mapping[str, CommentCorpus]:
    """All splits of the data, by name; shared by all who ask in this process."""
    place = Path(str(BUILTIN)) if data is None else sources.locate(data, "Comments")
    return _load(place, sources.fingerprint(place))


@lru_cache(maxsize=4)
def _load(place: Path, version: str) -> Mapping[str, CommentCorpus]:
    arrays = corpora.cached(f"comments-{VERSION}", place, lambda: _to_arrays(place))
    if empty := corpora.from_bytes(arrays["empty"]):
        warnings.warn(
            f"data {str(place)!r}: no row has a value in the column {', '.join(empty)}. Check how "
            "the data was written.",
            stacklevel=4,
        )
    return dict(_from_arrays(arrays))


def _to_arrays(place: Path) -> dict[str, np.ndarray]:
    filled: dict[str, bool] = {}
    splits = corpora.by_split(_read(place, filled), str(place), "comments")
    arrays = {"empty": corpora.to_bytes(name for name, found in filled.items() if not found)}
    for split, found in splits.items():
        arrays[f"{split}/parents"] = corpora.to_bytes(row.parent for row in found)
        arrays[f"{split}/comments"] = corpora.to_bytes(row.comment for row in found)
        arrays[f"{split}/scores"] = np.array([row.score for row in found], np.float64)
        arrays[f"{split}/toxicity"] = np.array([row.toxicity for row in found], np.int8)
    return arrays


def _from_arrays(arrays: Mapping[str, np.ndarray]) -> Iterator[tuple[str, CommentCorpus]]:
    for split in corpora.splits_of(arrays, "comments"):
        parents = corpora.from_bytes(arrays[f"{split}/parents"])
        comments = corpora.from_bytes(arrays[f"{split}/comments"])
        scores, toxicity = arrays[f"{split}/scores"], arrays[f"{split}/toxicity"]
        yield split, CommentCorpus(parents, comments, scores, toxicity)


def _read(place: Path, filled: dict[str, bool]) -> Iterator[LoggedComment]:
    """The comments of all rows but for those that are empty or gone.

    Notes in `filled`, for each of `COLUMNS` that rows have, whether one has a value there.
    """
    for where, split, row in rows_by_index(place, parts_of(place), EXPECTED):
        values = {name: sources.first(row, names) for name, names in COLUMNS.items()}
        for name, names in COLUMNS.items():
            if not filled.get(name) and any(own in row for own in names):
                filled[name] = values[name] is not None
        comment = sources.first(row, COMMENTS)
        if not any(name in row for name in COMMENTS):
            raise ValueError(f"{where}: expected a comment as {' or '.join(COMMENTS)}; got {row}.")
        text = plain(str(comment or ""))
        if text not in GONE:
            parent = plain(str(values["parent"] or ""))
            score, label = _score(values["score"], where), _label(values["toxicity"], where)
            yield LoggedComment(split, parent, text, score, label)


def _score(value: Any, where: RowLocation) -> float:
    try:
        return np.nan if value is None else float(value)
    except (TypeError, ValueError):
        raise ValueError(f"{where}: expected a number as score; got {value!r}.") from None


def _label(value: Any, where: RowLocation) -> int:
    if value is None:
        return UNKNOWN_LABEL
    if str(value).removesuffix(".0") not in ("0", "1", "2"):
        raise ValueError(f"{where}: expected a toxicity of 0, 1 or 2; got {value!r}.")
    return int(float(value))
