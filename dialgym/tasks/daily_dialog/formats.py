"""Reading everyday dialogues from the formats that DailyDialog comes in."""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from importlib.resources import files
from itertools import zip_longest
from pathlib import Path
from typing import Any, NamedTuple

from dialgym.io.archives import ArchiveMember, parts_of
from dialgym.io.files import parse_json
from dialgym.io.strict_reader import StrictReader
from dialgym.io.tables import Row, RowLocation, all_rows, first
from dialgym.language.text import plain

ACTS = ("inform", "question", "directive", "commissive")
"""Acts of the data's numbers 1-4."""
EMOTIONS = ("no emotion", "anger", "disgust", "fear", "happiness", "sadness", "surprise")
"""Emotions of the data's numbers 0-6."""
TURNS = ("dialog", "dialogue", "utterances", "turns")
BUILTIN = files("dialgym.tasks.daily_dialog") / "everyday.jsonl.gz"

EXPECTED = "dialogues.json, dialogues_text.txt or files of rows"

_ORIGINAL = re.compile(r"(?:.*/)?dialogues(?:_text)?(_[a-z]+)?\.txt")
_EOU = "__eou__"


class LoggedDialogue(NamedTuple):
    """A dialogue; acts and emotions are empty strings where they are not known."""

    split: str
    turns: Sequence[str]
    acts: Sequence[str]
    emotions: Sequence[str]


def read_dialogues(place: Path) -> Iterator[LoggedDialogue]:
    """All dialogues of a file, folder or zip, such as one that was fetched from the hub.

    Raises:
        ValueError: nothing there holds dialogues, or something is broken; the message says where.
    """
    parts = parts_of(place)
    texts = _original(parts)
    by_name = {part.name: part for part in parts}
    for part in texts:
        yield from _read_original(part, by_name)
    if not texts:
        named = [part for part in parts if Path(part.name).name.startswith("dialogues")]
        for where, split, row in all_rows(place, named or parts, EXPECTED):
            yield _dialogue(row, split, where)


def _original(parts: Sequence[ArchiveMember]) -> list[ArchiveMember]:
    """The texts of the original release: those by split, where there are any."""
    texts = [part for part in parts if _ORIGINAL.fullmatch(part.name)]
    return [part for part in texts if part.split] or texts


def _read_original(
    text: ArchiveMember, parts: Mapping[str, ArchiveMember]
) -> Iterator[LoggedDialogue]:
    split = text.split or "train"
    lines = _lines(text)
    acts = _beside(text, "act", parts)
    emotions = _beside(text, "emotion", parts)
    pairs = zip_longest(lines, acts or [], emotions or [])
    for number, (line, act, emotion) in enumerate(pairs, 1):
        where = RowLocation(text.name, number)
        if line is None or (act is None and acts) or (emotion is None and emotions):
            raise ValueError(f"{where}: texts, acts and emotions have not equally many lines.")
        turns = [turn for turn in line.split(_EOU) if turn.strip()]
        labels = {"act": (act or "").split(), "emotion": (emotion or "").split()}
        yield _dialogue({"dialog": turns, **labels}, split, where)


def _beside(text: ArchiveMember, what: str, parts: Mapping[str, ArchiveMember]) -> list[str] | None:
    """The lines of the file of acts or emotions that belongs to a text, if there is one."""
    folder, _, name = text.name.rpartition("/")
    own = name.replace("_text", "").replace("dialogues", f"dialogues_{what}")
    found = parts.get(f"{folder}/{own}" if folder else own)
    return None if found is None else _lines(found)


def _lines(part: ArchiveMember) -> list[str]:
    return [line for _, line in part.lines()]


def _dialogue(row: Row, split: str, where: RowLocation) -> LoggedDialogue:
    """A dialogue from a row of any of the formats."""
    turns = _listed(first(row, TURNS))
    if not isinstance(turns, Iterable) or isinstance(turns, str) or not turns:
        raise ValueError(
            f"{where}: expected utterances as {' or '.join(TURNS)}; got {turns!r:.80}."
        )
    turns = list(turns)
    texts = [_text(turn, where) for turn in turns]
    acts = _labels(row, turns, ("act", "acts"), ("", *ACTS), where)
    emotions = _labels(row, turns, ("emotion", "emotions"), EMOTIONS, where)
    return LoggedDialogue(split, texts, acts, emotions)


def _listed(value: Any) -> Any:
    """A list that a table holds as JSON; all else as it is."""
    try:
        return parse_json(value, "a cell") if isinstance(value, str) else value
    except ValueError:
        return value


def _text(turn: Any, where: RowLocation) -> str:
    text = first(turn, ("utterance", "text")) if isinstance(turn, Mapping) else turn
    if not isinstance(text, str):
        raise ValueError(f"{where}: expected text as an utterance; got {text!r}.")
    return plain(text)


def _labels(
    row: Row, turns: Sequence[Any], names: Sequence[str], known: Sequence[str], where: RowLocation
) -> list[str]:
    """A label for each turn, from lists of the row or from the turns themselves."""
    values = _listed(first(row, names))
    if not values:
        values = [_own_label(turn, names, where) for turn in turns]
    if not isinstance(values, Sequence) or isinstance(values, str):
        raise ValueError(f"{where}: expected a list of labels as {names[0]}; got {values!r}.")
    if len(values) != len(turns):
        raise ValueError(f"{where}: {len(turns)} utterances, but {len(values)} of {names[0]}.")
    return [_label(value, known, names[0], where) for value in values]


def _own_label(turn: Any, names: Sequence[str], where: RowLocation) -> Any:
    """The label of a turn that is an object; the first of ConvLab's binary acts."""
    if not isinstance(turn, Mapping):
        return ""
    if "act" in names and isinstance(turn.get("dialogue_acts"), Mapping):
        acts = StrictReader(f"{where}, dialogue_acts", turn["dialogue_acts"]).get(
            "binary", list, None
        )
        return StrictReader(f"{where}, binary", acts[0]).get("intent", str, "") if acts else ""
    return first(turn, names) or ""


def _label(value: Any, known: Sequence[str], name: str, where: RowLocation) -> str:
    """A label by its name, from a name or a number."""
    if isinstance(value, str) and not value.isdigit():
        return " ".join(value.split())
    try:
        return known[range(len(known)).index(int(value))]
    except (TypeError, ValueError, OverflowError):
        raise ValueError(
            f"{where}: expected {name} from 0 to {len(known) - 1}; got {value!r}."
        ) from None
