"""Everyday dialogues of a split as flat arrays, read once per process; examples of acts."""

import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np

from dialgym.io.tables import fingerprint, locate
from dialgym.rewards import Reply
from dialgym.tasks.corpora import (
    Consecutive,
    by_split,
    cached,
    from_bytes,
    split_of,
    splits_of,
    to_bytes,
)
from dialgym.tasks.daily_dialog.formats import (
    ACTS,
    BUILTIN,
    EMOTIONS,
    LoggedDialogue,
    read_dialogues,
)

DAILYDIALOG = "DIALGYM_DAILYDIALOG"
VERSION = 3
"""Of the form in which dialogues are kept in the cache."""


@dataclass(frozen=True, eq=False)
class DailyDialogCorpus(Consecutive):
    """N dialogues of T utterances in all.

    Attributes:
        texts: (T,) the utterances, dialogue after dialogue.
        acts, emotions: (T,) int16, what each does and shows, into the names; 0 is not known.
        act_names, emotion_names: the first is the empty string.
        offsets: (N+1,) int64; dialogue i is the utterances from ``offsets[i]`` to
            ``offsets[i+1]``.
    """

    texts: Sequence[str]
    acts: np.ndarray
    emotions: np.ndarray
    act_names: Sequence[str]
    emotion_names: Sequence[str]
    offsets: np.ndarray

    def length(self, dialogue: int) -> int:
        """Number of utterances of a dialogue."""
        return self.starts[dialogue + 1] - self.starts[dialogue]

    def text(self, dialogue: int, turn: int) -> str:
        """One utterance."""
        return self.texts[self.starts[dialogue] + turn]

    def context(self, dialogue: int, turn: int, most: int) -> tuple[str, ...]:
        """The last utterances, at most that many, before a turn."""
        start = self.starts[dialogue]
        return tuple(self.texts[start + max(turn - most, 0) : start + turn])

    def labels(self, dialogue: int, turn: int) -> dict[str, str]:
        """Labels of an utterance: its `act` and `emotion`."""
        place = self.starts[dialogue] + turn
        found = {
            "act": self.act_names[self.acts[place]],
            "emotion": self.emotion_names[self.emotions[place]],
        }
        return {name: label for name, label in found.items() if label}

    def places(self, least: int, most: int | None = None) -> np.ndarray:
        """(P, 2) int64: dialogue and turn of all utterances with that many before them.

        Utterances that are empty, as text in another script becomes, are left out.
        """
        sizes = np.diff(self.offsets)
        dialogue = np.repeat(np.arange(len(self)), sizes)
        turn = np.arange(len(self.texts)) - self.offsets[dialogue]
        good = (turn >= least) & np.fromiter(map(bool, self.texts), bool, len(self.texts))
        if most is not None:
            good &= turn <= most
        return np.stack([dialogue[good], turn[good]], 1)


def data_named(data: Any) -> Any:
    """The data that a setting names; where it names none, what ``$DIALGYM_DAILYDIALOG`` does."""
    return data if data is not None else os.environ.get(DAILYDIALOG)


def load_corpus(data: Any, split: str) -> DailyDialogCorpus:
    """The dialogues of one split of the data; None is the built-in data.

    Raises:
        ValueError: the data is not there, empty or broken, or has no such split.
    """
    return split_of(load_splits(data), split, data, "dialogues")


def load_splits(data: Any) -> Mapping[str, DailyDialogCorpus]:
    """All splits of the data, by name; shared by all who ask in this process."""
    place = Path(str(BUILTIN)) if data is None else locate(data, "DailyDialog")
    return _load(place, fingerprint(place))


@lru_cache(maxsize=4)
def _load(place: Path, version: str) -> Mapping[str, DailyDialogCorpus]:
    def read() -> dict[str, np.ndarray]:
        return to_arrays(read_dialogues(place), str(place))

    return dict(_from_arrays(cached(f"dialogues-{VERSION}", place, read)))


def to_arrays(dialogues: Iterable[LoggedDialogue], where: str) -> dict[str, np.ndarray]:
    """Dialogues as arrays, the splits one after the other; text as bytes, lines between.

    Raises:
        ValueError: there are none.
    """
    splits = by_split(dialogues, where, "dialogues")
    acts, emotions = _Names(ACTS), _Names(EMOTIONS)
    arrays: dict[str, np.ndarray] = {}
    for split, found in splits.items():
        arrays[f"{split}/texts"] = to_bytes(t for dialogue in found for t in dialogue.turns)
        arrays[f"{split}/acts"] = acts.codes(a for dialogue in found for a in dialogue.acts)
        arrays[f"{split}/emotions"] = emotions.codes(
            e for dialogue in found for e in dialogue.emotions
        )
        sizes = [len(dialogue.turns) for dialogue in found]
        arrays[f"{split}/offsets"] = np.concatenate([[0], np.cumsum(sizes)])
    names = {"acts": to_bytes(acts.known), "emotions": to_bytes(emotions.known)}
    return {**arrays, **names}


def _from_arrays(arrays: Mapping[str, np.ndarray]) -> Iterator[tuple[str, DailyDialogCorpus]]:
    for split in splits_of(arrays, "texts"):
        yield (
            split,
            DailyDialogCorpus(
                texts=from_bytes(arrays[f"{split}/texts"]),
                acts=arrays[f"{split}/acts"],
                emotions=arrays[f"{split}/emotions"],
                act_names=from_bytes(arrays["acts"]),
                emotion_names=from_bytes(arrays["emotions"]),
                offsets=arrays[f"{split}/offsets"],
            ),
        )


class _Names:
    """Numbers for names: those known from the start, then others as they come."""

    def __init__(self, known: Iterable[str]) -> None:
        self.known = {name: number for number, name in enumerate(("", *known))}

    def codes(self, names: Iterable[str]) -> np.ndarray:
        known = self.known
        return np.array([known.setdefault(name, len(known)) for name in names], np.int16)


@dataclass(frozen=True)
class ActExamples:
    """All utterances of a split whose act is known.

    Attributes:
        data: see `DailyDialog`.
        context: most utterances before each.
        split: of the data.
    """

    data: Any
    context: int
    split: str = "train"

    def __call__(self) -> Sequence[tuple[Reply, str]]:
        """The utterances as replies, and their acts."""
        corpus = load_corpus(self.data, self.split)
        found = []
        for dialogue in range(len(corpus)):
            for turn in range(corpus.length(dialogue)):
                labels = corpus.labels(dialogue, turn)
                if labels.get("act"):
                    context = corpus.context(dialogue, turn, self.context)
                    reply = Reply(corpus.text(dialogue, turn), context, (), labels)
                    found.append((reply, labels["act"]))
        return found
