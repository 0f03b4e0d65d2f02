"""Imported dialogues: the sizes that a folder declares, and what was said in them."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from importlib.resources import files
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np

from dialgym.errors import one_of
from dialgym.io.archives import SPLITS, parts_of
from dialgym.io.files import read_json
from dialgym.io.tables import fingerprint, locate, rows_of
from dialgym.tasks.base import SYSTEM, USER
from dialgym.tasks.corpora import Consecutive, cached, from_bytes, to_bytes

CARD = "logged.json"
"""The file of a folder of imported dialogues that declares their sizes."""
FORM = 1
"""Of the card."""
BUILTIN = files("dialgym.tasks.logged") / "sample"
FETCHED = ("*.parquet", "*.json", "*.md")
"""The files that a data set of the hub is asked for."""
TABLES = (".parquet", ".jsonl")
VERSION = 1
"""Of the form in which dialogues are kept in the cache."""


@dataclass(frozen=True)
class Sizes:
    """Description that a folder of imported dialogues has of them.

    Attributes:
        charset: the characters that they are made of.
        turns: most utterances of the system in one dialogue.
        heard: most utterances of each party in one dialogue.
        longest: characters in the longest utterance of each party.
        pieces: most tokens of an utterance of each party, ``<end>`` included.
        tokenizer: as `dialgym.language.make_tokenizer` takes it; ``bpe:tokenizer.json`` lies in the
            folder.
    """

    charset: str
    turns: int
    heard: Mapping[str, int]
    longest: Mapping[str, int]
    pieces: Mapping[str, int]
    tokenizer: str = "bpe"

    def to_json(self) -> dict[str, Any]:
        """Fields of the card."""
        return {"form": FORM, **vars(self)}

    @classmethod
    def read(cls, folder: Path) -> "Sizes":
        """Card of a folder.

        Raises:
            ValueError: there is no card, or it is not one.
        """
        file = folder / CARD
        if not file.is_file():
            raise ValueError(
                f"data {str(folder)!r}: expected a folder of imported dialogues, with {CARD}; "
                "there is none. `dialgym import FILE --out FOLDER` makes one."
            )
        found = read_json(file, "the sizes of imported dialogues")
        try:
            if found["form"] != FORM:
                raise ValueError(f"it is of form {found['form']}")
            sizes = cls(**{name: found[name] for name in cls.__annotations__})
            sizes._check()
        except (KeyError, TypeError, ValueError) as error:
            raise ValueError(
                f"{str(file)!r}: expected the sizes of imported dialogues ({error!r}). Import them "
                "again."
            ) from error
        return sizes

    def _check(self) -> None:
        """Raise a ValueError where a value is none that could be."""
        counts = [self.turns, *self.pieces.values(), *self.longest.values(), *self.heard.values()]
        tables = (self.heard, self.longest, self.pieces)
        if not all(set(table) == {SYSTEM, USER} for table in tables):
            raise ValueError(f"expected numbers of {SYSTEM} and {USER}")
        if not all(isinstance(count, int) and count >= 1 for count in counts):
            raise ValueError("expected whole numbers from 1")
        if not isinstance(self.charset, str) or not isinstance(self.tokenizer, str):
            raise ValueError("expected text as charset and tokenizer")


@dataclass(frozen=True, eq=False)
class LoggedCorpus(Consecutive):
    """N dialogues of T utterances in all, the parties in turns.

    Attributes:
        texts: (T,) the utterances, dialogue after dialogue.
        own: (T,) bool, said by the system.
        offsets: (N+1,) int64; dialogue i is the utterances from ``offsets[i]`` to
            ``offsets[i+1]``.
    """

    texts: Sequence[str]
    own: np.ndarray
    offsets: np.ndarray

    @cached_property
    def said(self) -> list[int]:
        """Indices of the system's utterances in `texts`."""
        found: list[int] = np.flatnonzero(self.own).tolist()
        return found

    def turns(self, dialogue: int) -> range:
        """Indices of a dialogue's utterances in `texts`."""
        return range(self.starts[dialogue], self.starts[dialogue + 1])

    def first(self, dialogue: int) -> int:
        """Index in `texts` of the system's first utterance in a dialogue."""
        return next(turn for turn in self.turns(dialogue) if self.own[turn])

    def goes_on(self, dialogue: int, turn: int) -> bool:
        """Return True if the system speaks in a dialogue at that turn or later."""
        return bool(self.own[turn : self.starts[dialogue + 1]].any())


def folder_of(data: Any) -> Path:
    """The folder that `data` names; None is the built-in one.

    Raises:
        ValueError: there is none.
    """
    if data is None:
        return Path(str(BUILTIN))
    place = locate(data, "Logged", patterns=FETCHED)
    return place if place.is_dir() else place.parent


def check_split(split: Any) -> str | None:
    """The split, if there may be such a one; None for all."""
    known = tuple(dict.fromkeys(SPLITS.values()))
    one_of("split", split, (None, *known), "Logged")
    return None if split is None else str(split)


def load_corpus(folder: Path, split: str | None = None) -> LoggedCorpus:
    """The dialogues of a folder, or of a split of it; shared by all who ask in this process.

    Raises:
        ValueError: there are none, or a file is damaged.
    """
    return _load(folder, split, fingerprint(folder))


@lru_cache(maxsize=4)
def _load(folder: Path, split: str | None, version: str) -> LoggedCorpus:
    name = f"logged-{VERSION}-{split or 'all'}"
    arrays = cached(name, folder, lambda: _to_arrays(_dialogues(folder, split), folder))
    return LoggedCorpus(from_bytes(arrays["texts"]), arrays["own"], arrays["offsets"])


def _dialogues(folder: Path, split: str | None) -> Iterable[Sequence[Mapping[str, Any]]]:
    """The turns of each dialogue of a split, or of all.

    Of those of the same options, a chosen answer and a rejected one, it is the first.
    """
    for part in parts_of(folder):
        if part.suffix in TABLES and split in (None, part.split or "train"):
            begun: set[str] = set()
            for number, (where, row) in enumerate(rows_of(part)):
                start = str(row.get("options", number))
                if start in begun:
                    continue
                begun.add(start)
                turns = row.get("turns")
                if not isinstance(turns, list) or not turns:
                    raise ValueError(f"{where}: expected a dialogue with turns; got {turns!r}.")
                yield turns


def _to_arrays(
    dialogues: Iterable[Sequence[Mapping[str, Any]]], folder: Path
) -> dict[str, np.ndarray]:
    texts: list[str] = []
    own: list[bool] = []
    sizes: list[int] = []
    for turns in dialogues:
        texts += [" ".join(str(turn["text"]).split()) for turn in turns]
        parties = [turn["party"] for turn in turns]
        if SYSTEM not in parties or any(a == b for a, b in pairwise(parties)):
            raise ValueError(
                f"data {str(folder)!r}: expected dialogues of the parties in turns, in which the "
                f"system speaks; dialogue {len(sizes)} has {', '.join(parties)}. Import it again."
            )
        own += [party == SYSTEM for party in parties]
        sizes.append(len(turns))
    if not sizes:
        raise ValueError(f"data {str(folder)!r} has no dialogues. Import them again.")
    return {
        "texts": to_bytes(texts),
        "own": np.array(own, bool),
        "offsets": np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64),
    }
