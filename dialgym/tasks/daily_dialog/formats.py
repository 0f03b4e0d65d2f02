"""Dialogues in the formats that DailyDialog comes in."""

import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from importlib.resources import files
from itertools import zip_longest
from pathlib import Path
from typing import Any, NamedTuple

from dialgym.language.text import plain
from dialgym.tasks.sources import FORMATS, Part, Place, Row, hub_rows, parts_of, rows_of

ACTS = ("inform", "question", "directive", "commissive")
"""What the data's numbers 1-4 mean."""
EMOTIONS = ("no emotion", "anger", "disgust", "fear", "happiness", "sadness", "surprise")
"""What the data's numbers 0-6 mean."""
TURNS = ("dialog", "dialogue", "utterances", "turns")
BUILTIN = files("dialgym.tasks.daily_dialog") / "everyday.jsonl.gz"

_ORIGINAL = re.compile(r"(?:.*/)?dialogues(?:_text)?(_[a-z]+)?\.txt")
_EOU = "__eou__"


class Talk(NamedTuple):
    """A dialogue; acts and emotions are empty strings where they are not known."""

    split: str
    turns: Sequence[str]
    acts: Sequence[str]
    emotions: Sequence[str]


def read_talks(place: Path | str) -> Iterator[Talk]:
    """All dialogues of a file, folder or zip, or of a data set on the hub.

    Raises:
        ValueError: nothing there holds dialogues, or something is broken; the message says where.
    """
    if isinstance(place, str):
        yield from (_talk(row, split, where) for where, split, row in hub_rows(place))
        return
    parts = parts_of(place)
    texts = _original(parts)
    if texts:
        by_name = {part.name: part for part in parts}
        for part in texts:
            yield from _read_original(part, by_name)
        return
    tables = _tables(parts)
    if not tables:
        raise ValueError(
            f"data {str(place)!r}: expected dialogues.json, dialogues_text.txt, or a file ending "
            f"in {', '.join(FORMATS)}; got {', '.join(p.name for p in parts[:5]) or 'nothing'}."
        )
    for part in tables:
        yield from (_talk(row, part.split or "train", where) for where, row in rows_of(part))


def _tables(parts: Sequence[Part]) -> list[Part]:
    """The files of rows: those called ``dialogues`` where there are any."""
    tables = [part for part in parts if part.suffix in FORMATS]
    named = [part for part in tables if Path(part.name).name.startswith("dialogues")]
    return named or tables


def _original(parts: Sequence[Part]) -> list[Part]:
    """The texts of the original release: those by split, where there are any."""
    texts = [part for part in parts if _ORIGINAL.fullmatch(part.name)]
    return [part for part in texts if part.split] or texts


def _read_original(text: Part, parts: Mapping[str, Part]) -> Iterator[Talk]:
    split = text.split or "train"
    lines = _lines(text)
    acts = _beside(text, "act", parts)
    emotions = _beside(text, "emotion", parts)
    pairs = zip_longest(lines, acts or [], emotions or [])
    for number, (line, act, emotion) in enumerate(pairs, 1):
        where = Place(text.name, number)
        if line is None or (act is None and acts) or (emotion is None and emotions):
            raise ValueError(f"{where}: texts, acts and emotions have not equally many lines.")
        turns = [turn for turn in line.split(_EOU) if turn.strip()]
        labels = {"act": (act or "").split(), "emotion": (emotion or "").split()}
        yield _talk({"dialog": turns, **labels}, split, where)


def _beside(text: Part, what: str, parts: Mapping[str, Part]) -> list[str] | None:
    """The lines of the file of acts or emotions that belongs to a text, if there is one."""
    folder, _, name = text.name.rpartition("/")
    own = name.replace("_text", "").replace("dialogues", f"dialogues_{what}")
    found = parts.get(f"{folder}/{own}" if folder else own)
    return None if found is None else _lines(found)


def _lines(part: Part) -> list[str]:
    return [line for line in part.text().splitlines() if line.strip()]


def _talk(row: Row, split: str, where: Place) -> Talk:
    """A dialogue from a row of any of the formats."""
    turns = _first(row, TURNS)
    turns = json.loads(turns) if isinstance(turns, str) and turns.startswith("[") else turns
    if not isinstance(turns, Iterable) or isinstance(turns, str) or not turns:
        raise ValueError(f"{where}: expected utterances as {' or '.join(TURNS)}; got {turns!r}.")
    turns = list(turns)
    texts = [_text(turn, where) for turn in turns]
    acts = _labels(row, turns, ("act", "acts"), ("", *ACTS), where)
    emotions = _labels(row, turns, ("emotion", "emotions"), EMOTIONS, where)
    split = str(_first(row, ("split", "data_split")) or split)
    return Talk(split, texts, acts, emotions)


def _first(row: Mapping[str, Any], names: Sequence[str]) -> Any:
    """The value of the first of the names that the row has."""
    return next((row[name] for name in names if row.get(name) is not None), None)


def _text(turn: Any, where: Place) -> str:
    text = _first(turn, ("utterance", "text")) if isinstance(turn, Mapping) else turn
    if not isinstance(text, str):
        raise ValueError(f"{where}: expected text as an utterance; got {text!r}.")
    return plain(text)


def _labels(
    row: Row, turns: Sequence[Any], names: Sequence[str], known: Sequence[str], where: Place
) -> list[str]:
    """A label for each turn, from lists of the row or from the turns themselves."""
    values = _first(row, names)
    if values is None or len(values) == 0:
        values = [_own_label(turn, names) for turn in turns]
    if len(values) != len(turns):
        raise ValueError(f"{where}: {len(turns)} utterances, but {len(values)} of {names[0]}.")
    return [_label(value, known, names[0], where) for value in values]


def _own_label(turn: Any, names: Sequence[str]) -> Any:
    """The label of a turn that is an object; the first of ConvLab's binary acts."""
    if not isinstance(turn, Mapping):
        return ""
    if "act" in names and isinstance(turn.get("dialogue_acts"), Mapping):
        acts = turn["dialogue_acts"].get("binary") or [{}]
        return acts[0].get("intent", "")
    return _first(turn, names) or ""


def _label(value: Any, known: Sequence[str], name: str, where: Place) -> str:
    """A label by its name, from a name or a number."""
    if isinstance(value, str) and not value.isdigit():
        return value
    if 0 <= int(value) < len(known):
        return known[int(value)]
    raise ValueError(f"{where}: expected {name} from 0 to {len(known) - 1}; got {value!r}.")
