"""Examples for reward models: replies with scores, or pairs of a better and a worse one."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from hashlib import sha256
from os import PathLike
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from dialgym.datasets import Dataset, load_dataset
from dialgym.io.tables import read_rows

Source = Dataset | str | PathLike[str]
SCORES, PREFERENCES, LABELS = "scores", "preferences", "labels"
COLUMNS = {
    SCORES: ("context", "reply", "score"),
    PREFERENCES: ("context", "chosen", "rejected"),
}


class Example(NamedTuple):
    """One line of the data."""

    context: str  # utterances joined by "\n"
    replies: tuple[str, ...]  # the one that is scored; or the better and the worse one
    score: float  # NaN where replies are compared
    group: str  # examples of one group are never on both sides of a split


@dataclass(frozen=True)
class Examples:
    """Examples for a reward model.

    Attributes:
        kind: "scores", "preferences", or "labels", scores of 0 and 1.
        items: the examples.
    """

    kind: str
    items: Sequence[Example]

    def __len__(self) -> int:
        return len(self.items)

    @property
    def scores(self) -> np.ndarray:
        """(n,) float64, NaN where replies are compared."""
        return np.array([item.score for item in self.items])

    def labelled(self, threshold: float) -> Examples:
        """The same, with scores above the threshold as 1 and others as 0.

        Raises:
            ValueError: replies are compared, or all scores are on one side.
        """
        if self.kind != SCORES:
            raise ValueError("reward model: threshold is for scores, got preferences; leave it out")
        labels = (self.scores > threshold).astype(float)
        if np.ptp(labels) == 0:
            side = "above" if labels[0] else "at or below"
            raise ValueError(
                f"reward model: expected scores on both sides of threshold={threshold:g}, got all "
                f"{len(self)} {side} it, from {self.scores.min():g} to {self.scores.max():g}"
            )
        items = [item._replace(score=float(label)) for item, label in zip(self.items, labels)]
        return Examples(LABELS, items)

    def digest(self) -> str:
        """Tells these examples from others."""
        return sha256(repr((self.kind, list(self.items))).encode()).hexdigest()[:16]

    def split(self, share: float, seed: int) -> tuple[Examples, Examples]:
        """All but about `share` of the groups, and those; at least one on each side.

        Raises:
            ValueError: there is only one group.
        """
        groups = sorted({item.group for item in self.items})
        if len(groups) < 2:
            raise ValueError(
                "reward model: expected examples of at least two contexts, to hold some out, got "
                f"{len(self)} of one; give more data"
            )
        order = np.random.default_rng(seed).permutation(len(groups))
        count = min(max(round(share * len(groups)), 1), len(groups) - 1)
        out = {groups[i] for i in order[:count]}
        sides = [[item for item in self.items if (item.group in out) == side] for side in (0, 1)]
        return Examples(self.kind, sides[0]), Examples(self.kind, sides[1])


def read_examples(data: Source | Sequence[Source]) -> Examples:
    """The examples of files, or of stored dialogues.

    Args:
        data: JSONL, JSON, CSV or TSV with the columns context, reply, score, or context, chosen,
            rejected; the context is a string, or (in JSON) a list of utterances. Or a `Dataset` or
            the folder of one: its learner's turns, each with the turns before and the reward that
            it earned. Or several of these, of one kind.

    Raises:
        FileNotFoundError: there is no such file.
        ValueError: other columns, a line that cannot be, no examples, or nothing to tell them by.
    """
    sources = [data] if isinstance(data, Dataset | str | PathLike) else data
    found = [part for source in sources for part in _read(source)]
    kinds = {kind for kind, _ in found}
    if not found:
        raise ValueError(
            f"reward model: no examples in {_names(sources)}; expected lines with "
            f"{' or '.join(', '.join(columns) for columns in COLUMNS.values())}"
        )
    if len(kinds) > 1:
        raise ValueError(
            f"reward model: expected scores or preferences, got both in {_names(sources)}; "
            "train on one kind"
        )
    examples = Examples(kinds.pop(), [example for _, example in found])
    if examples.kind == SCORES and np.ptp(examples.scores) == 0:
        raise ValueError(
            f"reward model: expected replies of different scores, got {len(examples)} of "
            f"{examples.scores[0]:g} alone; there is nothing to learn"
        )
    return examples


def _names(sources: Sequence[Source]) -> str:
    return ", ".join(repr(s if isinstance(s, Dataset) else str(s)) for s in sources)


def _read(source: Source) -> Iterator[tuple[str, Example]]:
    if isinstance(source, Dataset):
        return _of_dialogues(source, repr(source))
    path = Path(source)
    if path.is_dir() or path.suffix == ".parquet":
        return _of_dialogues(load_dataset(path), str(path))
    if not path.is_file():
        raise FileNotFoundError(
            f"reward model: no data at {str(path)!r}: expected a JSONL or CSV file, or a folder of "
            "stored dialogues. Check the path."
        )
    return (_example(row, str(place)) for place, row in read_rows(path))


def _of_dialogues(dataset: Dataset, name: str) -> Iterator[tuple[str, Example]]:
    for number, row in enumerate(dataset):
        seen: list[str] = []
        for turn in row["turns"]:
            if turn["said"]:
                score = _score(turn["reward"], f"{name}, dialogue {number}")
                group = f"{row['env']} {row['settings']} {row['seed']}"  # branches of a game too
                yield SCORES, Example("\n".join(seen), (turn["text"],), score, group)
            seen.append(turn["text"])


def _example(line: Mapping[str, Any], where: str) -> tuple[str, Example]:
    kind = next((k for k, columns in COLUMNS.items() if set(columns) <= line.keys()), None)
    if kind is None:
        expected = " or ".join(", ".join(columns) for columns in COLUMNS.values())
        got = ", ".join(map(str, line)) or "none"
        raise ValueError(f"{where}: expected the columns {expected}; got {got}. Rename them.")
    context = _context(line["context"], where)
    if kind == SCORES:
        score = _score(line["score"], where)
        return kind, Example(context, (_text(line["reply"], "reply", where),), score, context)
    better, worse = (_text(line[name], name, where) for name in ("chosen", "rejected"))
    if better == worse:
        raise ValueError(f"{where}: chosen and rejected are the same, {better!r}; leave it out")
    return kind, Example(context, (better, worse), math.nan, context)


def _context(value: Any, where: str) -> str:
    if isinstance(value, list):
        return "\n".join(_text(part, "context", where) for part in value)
    return _text(value, "context", where)


def _text(value: Any, name: str, where: str) -> str:
    if isinstance(value, str):
        return value
    raise ValueError(f"{where}: expected a text as {name}, got {value!r}")


def _score(value: Any, where: str) -> float:
    try:
        score = float(value)
    except (TypeError, ValueError):
        score = math.nan
    if not math.isfinite(score):
        raise ValueError(f"{where}: expected a finite number as score, got {value!r}")
    return score
