"""Print the figures of the built-in corpora: sizes, variety, overlap of splits, balance.

python scripts/corpus_figures.py
"""

import gzip
import json
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any

import build_comments
import build_everyday
import numpy as np

Rows = Sequence[Mapping[str, Any]]


def read_rows(path: Path) -> list[dict[str, Any]]:
    """The rows of a corpus."""
    with gzip.open(path, "rt", encoding="utf-8") as lines:
        return [json.loads(line) for line in lines]


def of_texts(train: Sequence[str], others: Sequence[str], test: Sequence[str]) -> dict[str, float]:
    """Figures of utterances: words, variety, and what share of the test's is in training too."""
    texts, known = [*train, *others, *test], set(train)
    words = [text.split() for text in texts]
    singles = [word for row in words for word in row]
    pairs = [pair for row in words for pair in pairwise(row)]
    return {
        "texts": len(texts),
        "words": len(singles),
        "distinct texts": distinct(texts),
        "distinct-1": distinct(singles),
        "distinct-2": distinct(pairs),
        "test texts in train": float(np.mean([text in known for text in test])),
    }


def distinct(items: Sequence[Any]) -> float:
    """The share of items that are not repeats."""
    return len(set(items)) / len(items)


def shares(labels: Iterable[str]) -> dict[str, float]:
    """Share of each label, the commonest first."""
    counts = Counter(labels)
    return {label: count / counts.total() for label, count in counts.most_common()}


def of_dialogues(rows: Rows) -> dict[str, float]:
    """Figures of the everyday dialogues."""
    turns: dict[str, list[str]] = {"train": [], "validation": [], "test": []}
    for row in rows:
        turns[row["split"]] += row["turns"]
    return {
        "dialogues": len(rows),
        "topics": len({row["topic"] for row in rows}),
        **of_texts(*turns.values()),
        **shares(act for row in rows for act in row["acts"]),
        **shares(emotion for row in rows for emotion in row["emotions"]),
    }


def of_comments(rows: Rows) -> dict[str, float]:
    """Figures of the comments; the last is a correlation over all rows."""
    comments: dict[str, list[str]] = {"train": [], "validation": [], "test": []}
    for row in rows:
        comments[row["split"]].append(row["comment"])
    toxicity = np.array([row["toxicity"] for row in rows])
    score = np.array([row["score"] for row in rows])
    return {
        "parents": len({row["parent"] for row in rows}),
        **of_texts(*comments.values()),
        **{f"toxicity {k}": float(np.mean(toxicity == k)) for k in range(3)},
        **{f"score above 0 at {k}": float(np.mean(score[toxicity == k] > 0)) for k in range(3)},
        "score with toxicity": float(np.corrcoef(score, toxicity)[0, 1]),
    }


def main() -> None:
    """Print both tables."""
    dialogues, comments = read_rows(build_everyday.OUT), read_rows(build_comments.OUT)
    for figures in (of_dialogues(dialogues), of_comments(comments)):
        for name, value in figures.items():
            print(f"{name:24} {value:10,.3f}".removesuffix(".000"))
        print()


if __name__ == "__main__":
    main()
