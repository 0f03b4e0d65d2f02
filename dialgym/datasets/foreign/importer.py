"""From files or rows of any form to a folder of dialogues, and to a `Dataset`."""

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np

from dialgym.archives import SPLITS, Part, parts_of
from dialgym.datasets.foreign.conversations import Conversation, conversation_of
from dialgym.datasets.foreign.report import Report
from dialgym.datasets.foreign.sizes import BPE, sized
from dialgym.datasets.foreign.speakers import Dialogue, dialogues_of, is_rated
from dialgym.datasets.foreign.tables import columns_of, conversations_in, outcomes_of
from dialgym.datasets.packing import layout_of
from dialgym.datasets.schema import FOLDER, Origin, Recorder, arrow, write_table
from dialgym.errors import whole_number
from dialgym.files import parse_json, write_folder_atomically, write_text
from dialgym.registry import entry_of, settings_beside
from dialgym.rollouts.played import Played, Turns
from dialgym.sources import FORMATS, Row, locate, rows_of
from dialgym.tasks.base import SYSTEM
from dialgym.tasks.logged.corpus import CARD

LOGGED = "dialgym/Logged-v0"
TABLE = "dialogues.parquet"
Source = str | PathLike[str] | Iterable[Any]


@dataclass(frozen=True)
class Choices:
    """What an import goes by; whatever is None is told from the data.

    Attributes:
        reward: the column of the reward, with dots into what is nested (``outcome.reward``); a
            mapping of numbers counts by its mean, a list by turn. ``none`` for no rewards.
        system: the speaker who is the system.
        text, speaker, dialogue: columns of a table with a row for each utterance; `text` and
            `speaker` are keys of a turn where a row has turns.
        outcomes: a table of rewards, by the dialogue's name.
        where: what other columns of it must have in a row that counts.
        split: take dialogues of one split alone.
        task: the environment whose dialogues they are; None for `dialgym/Logged-v0`.
        settings: of that environment.
        tokenizer: as of ``gym.make``; None makes one of the dialogues.
        vocabulary: tokens of one that is made, at most.
        utterance_tokens: most tokens of an utterance.
        window: most tokens of a dialogue.
    """

    reward: str | None = None
    system: str | None = None
    text: str | None = None
    speaker: str | None = None
    dialogue: str | None = None
    outcomes: str | PathLike[str] | None = None
    where: Mapping[str, Any] = field(default_factory=dict)
    split: str | None = None
    task: str | None = None
    settings: Mapping[str, Any] = field(default_factory=dict)
    tokenizer: str | None = None
    vocabulary: int = 2048
    utterance_tokens: int = 96
    window: int = 512

    def __post_init__(self) -> None:
        whole_number("vocabulary", self.vocabulary, "import", 128)
        whole_number("utterance_tokens", self.utterance_tokens, "import", 4)
        whole_number("window", self.window, "import", 2 * self.utterance_tokens + 2)


def import_dialogues(
    source: Source | Sequence[Source], out: str | PathLike[str], choices: Choices | None = None
) -> Report:
    """Read dialogues of any form, and write them into a new folder.

    Args:
        source: a file, folder or zip of JSONL, JSON, CSV, TSV or Parquet, or ``hf:NAME``; or rows,
            each a mapping or a list of utterances. Several files are given as a list of paths.
        out: the folder: `load_dataset` and ``--data`` take it.
        choices: what to go by where the data does not tell.

    Returns:
        What was understood, and what was left out and why.

    Raises:
        ValueError: nothing there is a dialogue, a choice does not fit it, or the folder is in use.
        OSError: the folder cannot be written.
        ImportError: pyarrow or tokenizers is not installed.
    """
    arrow()
    choices, folder, report = choices or Choices(), Path(out), Report()
    if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
        raise ValueError(
            f"import: {str(folder)!r} holds something already. Choose another folder, or remove it."
        )
    conversations = _conversations(source, choices, report)
    rated = choices.reward != "none" and any(map(is_rated, conversations))
    dialogues = list(dialogues_of(conversations, choices.system, rated, report))
    if not dialogues:
        raise ValueError(f"import: no dialogue is left of the data.\n{report.to_text()}")
    write_folder_atomically(folder, lambda new: _write(new, dialogues, choices, report))
    if not rated:
        report.say("rewards", "none: every return is 0 (name a column with --reward)")
    return report


# Reading


def _conversations(
    source: Source | Sequence[Source], choices: Choices, report: Report
) -> list[Conversation]:
    """All that is found; a ValueError where there is nothing."""
    found: list[Conversation] = []
    if isinstance(source, str | PathLike):
        source = [source]
    rows = list(source)
    if rows and all(isinstance(part, str | PathLike) for part in rows):
        for part in rows:
            found += _in_file(str(part), choices, report)
    else:
        given = [(f"row {n}", _as_row(row)) for n, row in enumerate(rows)]
        found += _in_rows(given, choices, report, "the rows")
    if not found:
        raise ValueError(
            "import: no dialogues were found. Expected rows with a list of turns (messages, turns, "
            "dialogue ...), a table with a row for each utterance (name its columns with "
            "--dialogue, --speaker and --text), or prompts with responses. "
            + "; ".join(report.left_out)
        )
    return found


def _as_row(row: Any) -> Row:
    if isinstance(row, Mapping):
        return row
    return {"turns": list(row)} if isinstance(row, list | tuple) else {"turns": row}


def _in_file(name: str, choices: Choices, report: Report) -> list[Conversation]:
    place = locate(name, "an import", built_in=False)
    parts = [part for part in parts_of(place) if part.suffix in FORMATS]
    if not parts:
        raise ValueError(f"import: {name!r} has no files of rows ({', '.join(FORMATS)}).")
    if choices.split:
        wanted = SPLITS.get(choices.split, choices.split)
        parts = [part for part in parts if part.split in (None, wanted)]
    found = []
    for part in parts:
        rows = [(str(where), row) for where, row in _rows(part)]
        if choices.split:
            rows = [(w, r) for w, r in rows if _split_of(r, part) in (None, wanted)]
        fresh = _in_rows(rows, choices, report, part.name)
        if fresh:
            report.say("read", part.name, len(fresh))
        found += fresh
    return found


def _split_of(row: Row, part: Part) -> str | None:
    own = row.get("split") or row.get("data_split")
    return SPLITS.get(str(own), str(own)) if own else part.split


def _rows(part: Part) -> Iterable[tuple[Any, Row]]:
    """The rows of a file; those of JSON may stand under names, or under one heading."""
    if part.suffix != ".json":
        yield from rows_of(part)
        return
    content = parse_json(part.text(), part.name)
    if isinstance(content, Mapping):
        lists = [value for value in content.values() if isinstance(value, list)]
        tables = [rows for rows in lists if rows and all(isinstance(r, Mapping) for r in rows)]
        rows = list(content.values())
        if rows and all(isinstance(row, Mapping) for row in rows):
            content = [{"name": name, **row} for name, row in content.items()]
        else:
            content = tables[0] if len(tables) == 1 else [content]
    for number, row in enumerate(content if isinstance(content, list) else []):
        yield f"{part.name}, row {number + 1}", _as_row(row)


def _in_rows(
    rows: Sequence[tuple[Any, Row]], choices: Choices, report: Report, where: str
) -> list[Conversation]:
    """The conversations in rows of one file: in each, or in many together."""
    if not rows:
        return []
    found: list[Conversation] = []
    names: list[str] = []
    silent: list[str] = []
    if not choices.dialogue or choices.outcomes:
        for place, row in rows:
            one = conversation_of(
                row, str(place), choices.reward if choices.outcomes is None else "none",
                choices.text, choices.speaker, report,
            )  # fmt: skip
            if one is not None:
                found.append(one)
                names.append(str(row.get(choices.dialogue or "name")))
            else:
                silent.append(place)
    if not found:
        columns = columns_of(
            [row for _, row in rows], choices.dialogue, choices.text, choices.speaker
        )
        if columns is None:
            shown = ", ".join(map(str, list(rows[0][1])[:12]))
            report.leave_out(f"{where} has no utterances in its columns {shown}")
            return []
        reward = "none" if choices.outcomes is not None else choices.reward
        pairs = list(conversations_in(rows, columns, reward, report))
        names, found = [name for name, _ in pairs], [one for _, one in pairs]
    else:
        for place in silent:
            report.leave_out("rows without utterances", place)
    return _with_outcomes(names, found, choices, report)


def _with_outcomes(
    names: Sequence[str], found: list[Conversation], choices: Choices, report: Report
) -> list[Conversation]:
    if choices.outcomes is None:
        return found
    place = locate(str(choices.outcomes), "outcomes", built_in=False)
    rows = [row for part in parts_of(place) if part.suffix in FORMATS for _, row in _rows(part)]
    only = {name: str(value) for name, value in choices.where.items()}
    column = _shared_column(rows, names, choices.dialogue)
    known = outcomes_of(rows, column, choices.reward, only)
    report.say("rewards", f"{choices.reward} of {place.name}, at the end")
    return [one._replace(reward=known.get(name)) for name, one in zip(names, found)]


def _shared_column(rows: Sequence[Row], names: Sequence[str], given: str | None) -> str | None:
    """The column of outcomes whose values are the names of dialogues."""
    wanted = set(names)
    if given or not rows:
        return given
    shared = {name: sum(str(row.get(name)) in wanted for row in rows) for name in rows[0]}
    best = max(shared, key=lambda name: shared[name])
    return best if shared[best] else None


# Writing


def _write(folder: Path, dialogues: Sequence[Dialogue], choices: Choices, report: Report) -> None:
    """Fill a folder with dialogues and with what says how to read them."""
    if choices.task is not None:
        _write_table(folder, *_for_task(dialogues, choices, report), report)
        return
    found = sized(
        dialogues, choices.tokenizer, choices.vocabulary, choices.utterance_tokens, choices.window,
        report,
    )  # fmt: skip
    if found.bpe is not None:
        write_text(folder / BPE, found.bpe)
    write_text(folder / CARD, json.dumps(found.sizes.to_json(), indent=1) + "\n")
    report.say("window", f"{found.window} tokens, most of {found.sizes.turns} turns of the system")
    settings = {"data": FOLDER, "window": found.window}
    _write_table(folder, found.dialogues, Origin(LOGGED, settings, SYSTEM, "logged"), report)


def _for_task(
    dialogues: Sequence[Dialogue], choices: Choices, report: Report
) -> tuple[list[Dialogue], Origin]:
    """The dialogues that a task's own layout has room for."""
    entry = entry_of(choices.task)  # type: ignore[arg-type]
    settings = {**settings_beside(entry), **choices.settings}
    layout = layout_of(entry, **settings)
    kept = []
    for dialogue in dialogues:
        turns = [turn._replace(text=" ".join(turn.text.split())) for turn in dialogue.turns]
        texts = np.array([turn.text for turn in turns], np.str_)
        sizes = layout.tokenizer.encode_many(texts)[1]
        room = [layout.limit(turn.party) for turn in turns]
        if sum(1 + np.minimum(sizes + 1, room)) > layout.window:
            report.leave_out(f"dialogues longer than the window of {entry.id}", dialogue.where)
            continue
        kept.append(dialogue._replace(turns=turns))
    if not kept:
        raise ValueError(
            f"import: no dialogue fits into {entry.id}, whose window is {layout.window} tokens. "
            "Give it a larger one (--set window=...), or leave --task out."
        )
    return kept, Origin(entry.id, settings, layout.party, "logged")


def _write_table(
    folder: Path, dialogues: Sequence[Dialogue], origin: Origin, report: Report
) -> None:
    recorder = Recorder(origin)
    recorder.add(played(dialogues, replayed=origin.env == LOGGED))
    write_table(folder / TABLE, recorder.table())
    report.kept = len(dialogues)
    returns = [sum(turn.reward for turn in dialogue.turns) for dialogue in dialogues]
    report.say("returns", f"{min(returns):g} to {max(returns):g}, mean {np.mean(returns):.3f}")


def played(dialogues: Sequence[Dialogue], replayed: bool) -> Played:
    """Imported dialogues as ones that were played.

    A success is what the data calls one, else a return in the upper half of the data's.

    Args:
        dialogues: of the parties, in turns.
        replayed: whether an option of reset begins each of them.
    """
    turns = Turns()
    for dialogue in dialogues:
        own = [i for i, turn in enumerate(dialogue.turns) if turn.party == SYSTEM]
        lines = [(turn.party, turn.text, False) for turn in dialogue.turns]
        turns.add(lines, own, [dialogue.turns[i].reward for i in own])
    returns = np.array([sum(turn.reward for turn in d.turns) for d in dialogues])
    middle = (returns.min() + returns.max()) / 2
    known = [d.success if d.success is not None else r > middle for d, r in zip(dialogues, returns)]
    count = len(dialogues)
    return Played(
        seeds=list(range(count)),
        episodes=list(range(count)),
        returns=returns,
        lengths=np.array([sum(t.party == SYSTEM for t in d.turns) for d in dialogues]),
        success=np.array(known, bool),
        terminated=np.ones(count, bool),
        truncated=np.zeros(count, bool),
        turns=turns,
        options=[{"dialogue": i} if replayed else {} for i in range(count)],
    )
