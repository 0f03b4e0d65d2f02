"""Files or rows of any form as conversations: which rows, which splits, which outcomes."""

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from os import PathLike
from typing import Any

from dialgym.datasets.foreign.columns import columns_of, conversations_in, outcomes_of
from dialgym.datasets.foreign.conversations import ImportedConversation, conversation_of, has_turns
from dialgym.datasets.foreign.import_report import ImportReport
from dialgym.datasets.foreign.negotiations import are_negotiations, negotiations_in
from dialgym.errors import whole_number
from dialgym.io.archives import SPLITS, ArchiveMember, parts_of
from dialgym.io.files import parse_json
from dialgym.io.tables import FORMATS, Row, locate, rows_of
from dialgym.language.text import UNKNOWN

SURROGATES = re.compile("[\ud800-\udfff]")
Source = str | PathLike[str] | Iterable[Any]
PAIRS = "KEY=VALUE"
"""Type of an option that is a mapping, at the command line."""


def _option(help: str, metavar: str | None = None, default: Any = None, **more: Any) -> Any:
    """A field of `Choices`, with the option of `dialgym import` as metadata."""
    metadata = {"help": help, "metavar": metavar, "takes": str if default is None else int, **more}
    if metadata["takes"] == PAIRS:
        return field(default_factory=dict, metadata=metadata)
    return field(default=default, metadata=metadata)


@dataclass(frozen=True)
class Choices:
    """Options of an import; those that are None are derived from the data.

    Attributes:
        reward: the column of the reward, with dots into what is nested (``outcome.reward``); a
            mapping of numbers counts by its mean, a list by turn. ``none`` for no rewards.
        system: the speaker who is the system.
        text, speaker, dialogue: columns of a table with a row for each utterance; `text` and
            `speaker` are keys of a turn where a row has turns.
        outcomes: a table of rewards, by the dialogue's name.
        where: values of its other columns in rows that count.
        split: take dialogues of one split alone.
        task: the environment whose dialogues they are; None for `dialgym/Logged-v0`.
        settings: of that environment.
        tokenizer: as of ``gym.make``; None makes one of the dialogues.
        vocabulary: tokens of one that is made, at most.
        utterance_tokens: most tokens of an utterance.
        window: most tokens of a dialogue.
    """

    reward: str | None = _option(
        "The reward, by turn or of the whole: rating, outcome.reward; none for none.", "COLUMN"
    )
    system: str | None = _option("The speaker who is the system, which learns.", "SPEAKER")
    text: str | None = _option("The texts.", "COLUMN")
    speaker: str | None = _option("The speakers.", "COLUMN")
    dialogue: str | None = _option("The dialogue's name, in a table of utterances.", "COLUMN")
    outcomes: str | PathLike[str] | None = _option(  # noqa: RUF009
        "A table of rewards, by the dialogue's name.", "FILE"
    )
    where: Mapping[str, Any] = _option(
        "Rows of the outcomes that count.", "COLUMN=VALUE", takes=PAIRS
    )
    split: str | None = _option("One split alone: train, validation, test ...")
    task: str | None = _option("Environment of the dialogues; by default dialgym/Logged-v0.", "ID")
    settings: Mapping[str, Any] = _option(
        "A setting of the environment.", takes=PAIRS, flag="--set,-s"
    )
    tokenizer: str | None = _option("char, bpe, bpe:PATH, hf:NAME; by default one is made.")
    vocabulary: int = _option("Tokens of one that is made.", default=2048)
    utterance_tokens: int = _option("Most tokens of an utterance.", default=96)
    window: int = _option("Most tokens of a dialogue.", default=512)

    def __post_init__(self) -> None:
        whole_number("vocabulary", self.vocabulary, "import", 128)
        whole_number("utterance_tokens", self.utterance_tokens, "import", 4)
        whole_number("window", self.window, "import", 2 * self.utterance_tokens + 2)


def read_conversations(
    source: Source | Sequence[Source], choices: Choices, report: ImportReport
) -> list[ImportedConversation]:
    """All that is found; a ValueError where there is nothing."""
    conversations: list[ImportedConversation] = []
    rows = _listed(source)
    if rows and all(isinstance(part, str | PathLike) for part in rows):
        for part in rows:
            conversations += _in_file(str(part), choices, report)
    else:
        given = [(f"row {n}", _as_row(row)) for n, row in enumerate(rows)]
        conversations += _in_rows(given, choices, report, "the rows")
    if not conversations:
        raise ValueError(
            "import: no dialogues were found. Expected rows with a list of turns (messages, turns, "
            "dialogue ...), a table with a row for each utterance (name its columns with "
            "--dialogue, --speaker and --text), or prompts with responses. "
            + "; ".join(report.left_out)
        )
    return [_whole(conversation, report) for conversation in conversations]


def _whole(conversation: ImportedConversation, report: ImportReport) -> ImportedConversation:
    """A conversation with `UNKNOWN` for the halves of characters that JSON can name."""
    said = [
        line._replace(text=_paired(line.text), speaker=line.speaker and _paired(line.speaker))
        for line in conversation.said
    ]
    if broken := sum(line.text.count(UNKNOWN) for line in said):
        report.leave_out("broken characters (lone surrogates, U+FFFD)", conversation.where, broken)
    return conversation._replace(said=said)


def _paired(text: str) -> str:
    """A text in which two surrogates that belong together are a character, one alone `UNKNOWN`."""
    if text.isascii():
        return text
    paired = text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "surrogatepass")
    return SURROGATES.sub(UNKNOWN, paired)


def _listed(source: Any) -> list[Any]:
    """Files, or rows; those of a table of pandas, and under the names of a mapping."""
    if isinstance(source, str | PathLike):
        return [source]
    if hasattr(source, "to_dict") and hasattr(source, "columns"):
        return list(source.to_dict("records"))
    return list(source.values() if isinstance(source, Mapping) else source)


def _as_row(row: Any) -> Row:
    if isinstance(row, Mapping):
        return row
    return {"turns": list(row)} if isinstance(row, list | tuple) else {"turns": row}


def _in_file(name: str, choices: Choices, report: ImportReport) -> list[ImportedConversation]:
    path = locate(name, "an import", built_in=False)
    parts = [part for part in parts_of(path) if part.suffix in FORMATS or are_negotiations(part)]
    if not parts:
        raise ValueError(f"import: {name!r} has no files of rows ({', '.join(FORMATS)}).")
    wanted = SPLITS.get(choices.split, choices.split) if choices.split else None
    conversations = []
    for part in parts:
        if wanted and part.split not in (None, wanted):
            continue
        rows = [(str(where), row) for where, row in _rows(part)]
        fresh = [one._replace(split=one.split or part.split)
                 for one in _in_rows(rows, choices, report, part.name)]  # fmt: skip
        if wanted:
            fresh = [one._replace(split=None) for one in fresh if one.split in (None, wanted)]
        if fresh:
            report.add("read", part.name, len(fresh))
        conversations += fresh
    return conversations


def _rows(part: ArchiveMember) -> Iterable[tuple[Any, Row]]:
    """The rows of a file; those of JSON may stand under names, or under one heading."""
    if part.suffix != ".json":
        yield from negotiations_in(part) if part.suffix == ".txt" else rows_of(part)
        return
    content = parse_json(part.text(), part.name)
    if isinstance(content, Mapping) and has_turns(content):
        content = [content]
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
    rows: Sequence[tuple[Any, Row]], choices: Choices, report: ImportReport, where: str
) -> list[ImportedConversation]:
    """The conversations in rows of one file: in each, or in many together."""
    if not rows:
        return []
    conversations: list[ImportedConversation] = []
    names: list[str] = []
    silent: list[str] = []
    if not choices.dialogue or choices.outcomes:
        for location, row in rows:
            one = conversation_of(
                row, str(location), choices.reward if choices.outcomes is None else "none",
                choices.text, choices.speaker, report,
            )  # fmt: skip
            if one is not None:
                conversations.append(one)
                names.append(str(row.get(choices.dialogue or "name")))
            else:
                silent.append(location)
    if not conversations:
        columns = columns_of(
            [row for _, row in rows], choices.dialogue, choices.text, choices.speaker
        )
        if columns is None:
            shown = ", ".join(map(str, list(rows[0][1])[:12]))
            report.leave_out(f"{where} has no utterances in its columns {shown}")
            return []
        reward = "none" if choices.outcomes is not None else choices.reward
        pairs = list(conversations_in(rows, columns, reward, report))
        names, conversations = [name for name, _ in pairs], [one for _, one in pairs]
    else:
        for location in silent:
            report.leave_out("rows without utterances", location)
    return _with_outcomes(names, conversations, choices, report)


def _with_outcomes(
    names: Sequence[str],
    conversations: list[ImportedConversation],
    choices: Choices,
    report: ImportReport,
) -> list[ImportedConversation]:
    if choices.outcomes is None:
        return conversations
    path = locate(str(choices.outcomes), "outcomes", built_in=False)
    rows = [row for part in parts_of(path) if part.suffix in FORMATS for _, row in _rows(part)]
    only = {name: str(value) for name, value in choices.where.items()}
    column = _shared_column(rows, names, choices.dialogue)
    known = outcomes_of(rows, column, choices.reward, only, report)
    report.add("rewards", f"{choices.reward} of {path.name}, at the end")
    return [one._replace(reward=known.get(name)) for name, one in zip(names, conversations)]


def _shared_column(rows: Sequence[Row], names: Sequence[str], given: str | None) -> str | None:
    """The column of outcomes whose values are the names of dialogues."""
    wanted = set(names)
    if given or not rows:
        return given
    shared = {name: sum(str(row.get(name)) in wanted for row in rows) for name in rows[0]}
    best = max(shared, key=lambda name: shared[name])
    return best if shared[best] else None
