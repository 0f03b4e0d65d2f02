"""Files or rows of any form as conversations: which rows, which splits, which outcomes."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import islice
from os import PathLike
from pathlib import Path
from typing import Any

from dialgym.datasets.foreign.columns import (
    DIALOGUE,
    PROBED,
    columns_of,
    conversations_in,
    outcomes_of,
)
from dialgym.datasets.foreign.conversations import (
    NAMES,
    SPEAKER,
    WORDS,
    ImportedConversation,
    conversation_of,
    has_turns,
)
from dialgym.datasets.foreign.import_report import ImportReport
from dialgym.datasets.foreign.negotiations import are_negotiations, negotiations_in
from dialgym.datasets.foreign.prompts import (
    CHOSEN,
    has_rejected,
    prompted_turns,
    with_roles_swapped,
)
from dialgym.errors import whole_number
from dialgym.io.archives import SPLITS, ArchiveMember, parts_of, split_in
from dialgym.io.dataset_card import parts_on_card
from dialgym.io.files import paired, parse_json
from dialgym.io.tables import FORMATS, Row, first, locate, rows_of
from dialgym.language.text import UNKNOWN

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
        rejected: keep the rejected answers of preferences too, each as a dialogue that begins as
            that of the chosen one does. Chosen ones have a return of 1 and rejected ones of 0, or
            `reward` is the column of the chosen one's (``score_chosen`` beside
            ``score_rejected``). An answer with no rejected one and no reward is a chosen one.
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
    rejected: bool = _option(
        "Keep rejected answers, beside the chosen ones, for DPO.", default=False, takes=bool
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
        named = self.reward is None or CHOSEN in self.reward
        if self.rejected and not (named and self.outcomes is None):
            raise ValueError(
                "import: rejected answers have the reward 0, chosen ones 1, or each its own; "
                "expected a reward such as 'score_chosen', of columns named after both, and no "
                f"outcomes; got reward={self.reward!r}, outcomes={self.outcomes!r}. Leave them out."
            )


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
        found = _in_rows(given, choices, report, "the rows")
        conversations += _of_split(found, _wanted(choices))
    if not conversations:
        raise ValueError(
            "import: no dialogues were found. Expected rows with a list of turns (messages, turns, "
            "dialogue ...), a table with a row for each utterance (name its columns with "
            "--dialogue, --speaker and --text), or prompts with responses. "
            + "; ".join(report.left_out)
        )
    return [_whole(_with_split(one), report) for one in conversations]


def _with_split(conversation: ImportedConversation) -> ImportedConversation:
    """A conversation whose split has its name here: ``train`` for ``Train`` and ``train_sft``."""
    split = conversation.split
    return conversation._replace(split=split and (split_in(split) or split))


def _whole(conversation: ImportedConversation, report: ImportReport) -> ImportedConversation:
    """A conversation with `UNKNOWN` for the halves of characters that JSON can name."""
    said = [
        line._replace(text=paired(line.text), speaker=line.speaker and paired(line.speaker))
        for line in conversation.said
    ]
    if broken := sum(line.text.count(UNKNOWN) for line in said):
        report.leave_out("broken characters (lone surrogates, U+FFFD)", conversation.where, broken)
    return conversation._replace(said=said)


def _listed(source: Any) -> list[Any]:
    """Files, or rows; those of a table of pandas, under names, and of splits of Hugging Face's."""
    if isinstance(source, str | PathLike):
        return [source]
    if hasattr(source, "to_dict") and hasattr(source, "columns"):
        return list(source.to_dict("records"))
    if not isinstance(source, Mapping):
        return list(source)
    if all(hasattr(rows, "column_names") for rows in source.values()):
        return [{"split": name, **row} for name, rows in source.items() for row in rows]
    return list(source.values())


def _as_row(row: Any) -> Row:
    if isinstance(row, Mapping):
        return row
    return {"turns": list(row)} if isinstance(row, list | tuple) else {"turns": row}


def _in_file(name: str, choices: Choices, report: ImportReport) -> list[ImportedConversation]:
    path = locate(name, "an import", built_in=False)
    chosen, splits = _on_card(path, name, report)
    parts = [part for part in chosen if _has_rows(part)]
    if not parts:
        raise ValueError(f"import: {name!r} has no files of rows ({', '.join(FORMATS)}).")
    wanted = _wanted(choices)
    conversations = []
    for part in parts:
        told = splits.get(part.name) or part.split
        if not _is_of(told, wanted):
            continue
        rows = [(str(where), row) for where, row in _rows(part)]
        fresh = [one._replace(split=one.split or told)
                 for one in _in_rows(rows, choices, report, part.name)]  # fmt: skip
        fresh = _of_split(fresh, wanted)
        if fresh:
            report.add("read", part.name, len(fresh))
        conversations += fresh
    return conversations


def _has_rows(part: ArchiveMember) -> bool:
    return part.suffix in FORMATS or are_negotiations(part)


def _on_card(
    path: Path, name: str, report: ImportReport
) -> tuple[list[ArchiveMember], dict[str, str]]:
    """The files of a folder that its card names, and their splits; all of them without a card."""
    parts = parts_of(path)
    chosen, splits = parts_on_card(parts, name)
    for part in parts:
        if _has_rows(part) and part not in chosen:
            report.leave_out("files of rows that the card (README.md) does not name", part.name)
    return chosen, splits


def _wanted(choices: Choices) -> str | None:
    return SPLITS.get(choices.split.lower(), choices.split) if choices.split else None


def _of_split(found: list[ImportedConversation], wanted: str | None) -> list[ImportedConversation]:
    """The conversations of the wanted split, which is the only one then; None is all."""
    if wanted is None:
        return found
    return [one._replace(split=None) for one in found if _is_of(one.split, wanted)]


def _is_of(split: str | None, wanted: str | None) -> bool:
    """Return True if a split, as the data calls it, may be the wanted one; None may be any."""
    return wanted is None or split is None or wanted in (split, split_in(split))


def _rows(part: ArchiveMember) -> Iterable[tuple[Any, Row]]:
    """The rows of a file; those of JSON may stand under names, under one heading, or in lines."""
    if part.suffix in (".jsonl", ".json"):
        return _rows_of_lines(part) if _has_lines(part) else _rows_of_json(part)
    return negotiations_in(part) if part.suffix == ".txt" else rows_of(part)


def _has_lines(part: ArchiveMember) -> bool:
    """Return True for JSONL, which may be called JSON: its first line of several is a value."""
    if part.suffix == ".jsonl":
        return True
    lines = [line for _, line in islice(part.lines(), 2)]
    return len(lines) == 2 and _is_json(lines[0])


def _is_json(text: str) -> bool:
    try:
        parse_json(text, "a line")
    except ValueError:
        return False
    return True


def _rows_of_lines(part: ArchiveMember) -> Iterator[tuple[Any, Row]]:
    for number, line in part.lines():
        where = f"{part.name}, line {number}"
        yield where, _as_row(parse_json(line, where))


def _rows_of_json(part: ArchiveMember) -> Iterator[tuple[Any, Row]]:
    content = parse_json(part.text(), part.name)
    rows = _under_names(content) if isinstance(content, Mapping) else content
    for number, row in enumerate(rows if isinstance(rows, list) else []):
        yield f"{part.name}, row {number + 1}", _as_row(row)


def _under_names(content: Row) -> Sequence[Any]:
    """The rows of a JSON file that is a mapping, which may be a row itself."""
    lists = {name: value for name, value in content.items() if isinstance(value, list)}
    nested = [value for value in lists.values() if _are_dialogues(value)]
    if len(nested) == 1:
        return nested[0]
    if has_turns(content) or prompted_turns(content):
        return [content]
    if content and all(isinstance(row, Mapping) for row in content.values()):
        return [{"name": name, **row} for name, row in content.items()]
    tables = {name: rows for name, rows in lists.items() if _is_table(rows)}
    if tables and all(str(name).lower() in SPLITS for name in lists):
        return [{"split": name, **row} for name, rows in tables.items() for row in rows]
    talks = [name for name, turns in lists.items() if name not in tables and _is_talk(turns)]
    if len(talks) > 1:
        return [{"name": n, "turns": turns} for n, turns in lists.items() if n not in tables]
    tables = tables or {n: rows for n, rows in lists.items() if rows and _are_mappings(rows)}
    return next(iter(tables.values())) if len(tables) == 1 else [content]


def _are_mappings(rows: Sequence[Any]) -> bool:
    return all(isinstance(row, Mapping) for row in rows)


def _is_table(rows: Sequence[Any]) -> bool:
    """Return True if a list holds rows, not turns: dialogues, prompts, or utterances of several."""
    return bool(rows) and all(
        isinstance(row, Mapping)
        and (has_turns(row) or prompted_turns(row) or any(name in row for name in DIALOGUE))
        for row in rows[:PROBED]
    )


def _is_talk(turns: Sequence[Any]) -> bool:
    """Return True if a list under a name of its own is a dialogue: it has turns, not words."""
    words = [len(turn.split()) for turn in turns if isinstance(turn, str)]
    return len(turns) > 1 and has_turns({"turns": turns}) and sum(words) >= WORDS * len(words)


def _are_dialogues(value: Sequence[Any]) -> bool:
    """Return True if a list holds dialogues that are lists of turns, and is none itself.

    It is one itself if it has pairs, of speaker and text, or what each speaker said in a row.
    """
    if not value or not all(isinstance(one, list) and has_turns({"turns": one}) for one in value):
        return False
    if all(len(one) == 2 and all(isinstance(part, str) for part in one) for one in value):
        return False
    messages = [[turn for turn in one if isinstance(turn, Mapping)] for one in value]
    speakers = [{str(first(turn, (*SPEAKER, *NAMES))) for turn in one} for one in messages]
    return any(len(one) != 1 for one in speakers)


def _in_rows(
    rows: Sequence[tuple[Any, Row]], choices: Choices, report: ImportReport, where: str
) -> list[ImportedConversation]:
    """The conversations in rows of one file: in each, or in many together."""
    if not rows:
        report.leave_out(f"{where} has no rows")
        return []
    conversations: list[ImportedConversation] = []
    names: list[str] = []
    silent: list[str] = []
    if not choices.dialogue or choices.outcomes:
        for location, row in rows:
            if found := list(_in_row(row, str(location), choices, report)):
                conversations += found
                names += [str(row.get(choices.dialogue or "name"))] * len(found)
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


def _in_row(
    row: Row, where: str, choices: Choices, report: ImportReport
) -> Iterator[ImportedConversation]:
    """Yield the conversation in a row, then that of the rejected answer where it is wanted."""
    of_pair = choices.rejected and has_rejected(row)
    unrated = of_pair and choices.reward is None
    reward = "none" if unrated or choices.outcomes is not None else choices.reward
    keys = choices.text, choices.speaker
    one = conversation_of(row, where, reward, *keys, report)
    if one is None:
        return
    if not of_pair:
        if has_rejected(row):
            report.leave_out("rejected answers (--rejected keeps them, for DPO)", where)
        yield one
        return
    yield one._replace(reward=1.0 if unrated else one.reward, success=True)
    again = ImportReport()  # tells of the row what has been told
    other = conversation_of(with_roles_swapped(row), where, reward, *keys, again)
    if other is not None:
        earned = 0.0 if unrated else other.reward
        yield other._replace(reward=earned, success=False, rejected=True)


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
