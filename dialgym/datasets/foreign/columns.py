"""Tables with a row for each utterance, and outcomes that lie in a table of their own.

Columns go by their names, or by what is in them: a dialogue's name comes in one run of rows, a
speaker's is one of few and changes from row to row, and text is what is long.
"""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import groupby, pairwise
from typing import Any, NamedTuple

from dialgym.datasets.foreign.conversations import (
    REWARD,
    SUCCESS,
    TEXT,
    ImportedConversation,
    Said,
    at,
    number,
    rating,
    split_of,
    success_of,
)
from dialgym.datasets.foreign.import_report import ImportReport
from dialgym.errors import unknown
from dialgym.io.tables import Row, first

DIALOGUE = (
    *("dialogue_id", "dialog_id", "conversation_id", "conv_id", "chat_id", "session_id"),
    *("thread_id", "dialogue", "dialog", "conversation", "session", "episode"),
)
TURN = ("turn", "turn_id", "turn_index", "turn_idx", "turn_number", "utterance_idx", "utt_idx")
SPEAKERS = (
    *("speaker", "role", "sender", "from", "author", "party", "agent", "user", "who"),
    *("speaker_id", "speaker_idx", "sender_id", "author_id"),
)
NO_SPEAKERS = (*SUCCESS, *REWARD, "split", "data_split")
"""Columns of few values that are known to be something else."""
MOST_SPEAKERS = 4
PROBED = 2000
"""Rows that columns are guessed from."""


class Columns(NamedTuple):
    """Names of the columns of a table; None for a speaker or turn if there is none."""

    dialogue: str
    text: str
    speaker: str | None
    turn: str | None


def columns_of(
    rows: Sequence[Row], dialogue: str | None, text: str | None, speaker: str | None
) -> Columns | None:
    """Which columns of a table are which; None where it is no table of utterances.

    Raises:
        ValueError: a column that was named is not there.
    """
    names = list(rows[0])
    for given in filter(None, (dialogue, text, speaker)):
        if given not in names:
            raise unknown("column", given, names, "the table")
    probe = rows[:PROBED]
    text = text or _named(names, TEXT[:-1]) or _longest(probe, names)
    turn = _numbered(probe, [name for name in names if name not in (text, dialogue, speaker)])
    rest = [name for name in names if name not in (text, turn)]
    dialogue = dialogue or _named(rest, DIALOGUE) or _in_runs(probe, rest)
    if text is None or dialogue is None:
        return None
    rest = [name for name in rest if name != dialogue]
    return Columns(
        dialogue,
        text,
        speaker or _named(rest, SPEAKERS) or _alternating(probe, rest, dialogue),
        turn,
    )


def _named(names: Sequence[str], known: Sequence[str]) -> str | None:
    by_name = {str(name).strip().lower(): name for name in reversed(names)}
    return next((by_name[name] for name in known if name in by_name), None)


def _numbered(rows: Sequence[Row], names: Sequence[str]) -> str | None:
    """The column that numbers the utterances of a dialogue: by its name, and all of it numbers."""
    known = _named(names, TURN)
    if known is None or any(_place(row.get(known)) is None for row in rows):
        return None
    return known


def _place(value: Any) -> float | None:
    """The number of an utterance in its dialogue; None if it is no number."""
    return None if isinstance(value, bool) else number(value)


def _longest(rows: Sequence[Row], names: Sequence[str]) -> str | None:
    """The column of the longest texts, if those have words in them."""
    sizes = {n: sum(len(str(row.get(n) or "").split()) for row in rows) for n in names}
    best = max(sizes, key=lambda name: sizes[name], default=None)
    return best if best is not None and sizes[best] >= 2 * len(rows) else None


def _in_runs(rows: Sequence[Row], names: Sequence[str]) -> str | None:
    """The column whose values come in one run of rows each, the most values."""
    counts: dict[str, int] = {}
    for name in names:
        runs = [value for value, _ in groupby(str(row.get(name)) for row in rows)]
        if len(set(runs)) == len(runs) and 2 * len(runs) <= len(rows) and (counts or runs):
            counts[name] = len(runs)
    best = max(counts, key=lambda name: counts[name], default=None)
    return best if best is not None and counts[best] > 1 else None


def _alternating(rows: Sequence[Row], names: Sequence[str], dialogue: str) -> str | None:
    """The column of few values that changes the most from row to row of a dialogue."""
    changes: Counter[str] = Counter()
    for name in names:
        values = [str(row.get(name)) for row in rows]
        if str(name).strip().lower() not in NO_SPEAKERS and 2 <= len(set(values)) <= MOST_SPEAKERS:
            pairs = zip(pairwise(rows), pairwise(values))
            changes[name] = sum(
                a != b for (r, s), (a, b) in pairs if r.get(dialogue) == s.get(dialogue)
            )
    best = max(changes, key=lambda name: changes[name], default=None)
    return best if best is not None and changes[best] else None


class _Utterance(NamedTuple):
    """A row of a table."""

    place: float | None  # its number in the dialogue, if it has one
    said: Said
    success: bool | None  # of the dialogue, as far as the row tells
    where: Any


Named = tuple[str, str | None]
"""A dialogue's name, and the split in which it has that name."""


def conversations_in(
    rows: Iterable[tuple[Any, Row]], columns: Columns, reward: str | None, report: ImportReport
) -> Iterator[tuple[str, ImportedConversation]]:
    """The names of the dialogues of a table, and the dialogues, in the order of their beginnings.

    Names may begin anew in each split. Utterances come by the numbers in the column of turns, else
    as the rows do. A reward that is the same in all rows of a dialogue that have one, of both who
    speak or one row, in every dialogue, is that of the dialogue and counts once; else the rewards
    are those of the turns. A success is what the last row says that tells it.

    Args:
        rows: places and rows.
        columns: what they are called.
        reward: the column of each utterance's reward; None for the usual names, ``none`` for none.
        report: is told what was understood.
    """
    dialogues = _utterances(rows, columns, reward, report)
    spoken = f", speaker from {columns.speaker!r}" if columns.speaker else ", speakers in turns"
    order = f", order from {columns.turn!r}" if columns.turn else ""
    report.add("turns", f"a row each: text from {columns.text!r}{spoken}, "
                        f"dialogue from {columns.dialogue!r}{order}")  # fmt: skip
    said = [[one.said for one in found] for found in dialogues.values()]
    once = _are_of_dialogues(said)
    if any(line.reward is not None for lines in said for line in lines):
        told = "at the end, as each dialogue has one" if once else "by turn"
        report.add("rewards", f"{reward or 'rewards'}, {told}")
    for (name, split), found in dialogues.items():
        yield name, _conversation(found, once, split)


def _utterances(
    rows: Iterable[tuple[Any, Row]], columns: Columns, reward: str | None, report: ImportReport
) -> dict[Named, list[_Utterance]]:
    """The utterances of each dialogue, as the rows stand."""
    dialogues: dict[Named, list[_Utterance]] = {}
    splits: dict[str, str | None] = {}  # of the latest row with that name
    for where, row in rows:
        name, text = _name(row.get(columns.dialogue)), row.get(columns.text)
        if not isinstance(text, str) or not text.strip():
            report.leave_out("rows without text", where)
        elif name is None:
            report.leave_out("rows without a dialogue", where)
        else:
            splits[name] = split_of(row) or splits.get(name)
            who = None if columns.speaker is None else str(row.get(columns.speaker))
            line = Said(who, text, _reward(row, reward, where, report))
            turn = _place(row.get(columns.turn)) if columns.turn else None
            one = _Utterance(turn, line, success_of(row), where)
            dialogues.setdefault((name, splits[name]), []).append(one)
    return dialogues


def _name(value: Any) -> str | None:
    """The name of a dialogue; None if the cell is empty, which pandas calls NaN."""
    empty = value is None or value != value or not str(value).strip()
    return None if empty else str(value)


def _conversation(
    found: Sequence[_Utterance], once: bool, split: str | None
) -> ImportedConversation:
    ordered = _in_order(found)
    said = [one.said for one in ordered]
    success = next((one.success for one in reversed(ordered) if one.success is not None), None)
    whole = None
    if once:
        whole = next((line.reward for line in said if line.reward is not None), None)
        said = [line._replace(reward=None) for line in said]
    return ImportedConversation(said, str(found[0].where), whole, success, split)


def _are_of_dialogues(dialogues: Iterable[Sequence[Said]]) -> bool:
    """Return True if rewards rate dialogues: each has one value, and some in several rows.

    Several rows of one speaker alone, beside others, are turns of the one who learns.
    """
    several = False
    for said in dialogues:
        known = [line for line in said if line.reward is not None]
        several |= len(known) > 1
        speakers, rated = ({line.speaker for line in lines} for lines in (said, known))
        of_turns = len(known) > 1 and len(rated) < min(len(speakers), 2)
        if of_turns or len({line.reward for line in known}) > 1:
            return False
    return several


def _in_order(found: Sequence[_Utterance]) -> Sequence[_Utterance]:
    """Numbered utterances by their numbers, where all have one; equal ones as they came."""
    if any(one.place is None for one in found):
        return found
    return sorted(found, key=lambda one: one.place or 0.0)


def _reward(row: Row, name: str | None, where: Any, report: ImportReport) -> float | None:
    if name == "none":
        return None
    return rating(at(row, name) if name else first(row, REWARD), where, report)


# Outcomes in a table of their own


def outcomes_of(
    rows: Sequence[Row],
    dialogue: str | None,
    reward: str | None,
    only: Mapping[str, str],
    report: ImportReport,
) -> dict[str, float]:
    """The reward of each dialogue, by its name, from a table of outcomes.

    Args:
        rows: of the table.
        dialogue: the column that names the dialogue; None for the first one that does.
        reward: the column of the reward.
        only: what other columns must have in a row that counts: ``{"B4": "1"}``.
        report: is told of rewards that are no numbers.

    Raises:
        ValueError: a column is not there, or dialogues have several rows each.
    """
    names = list(rows[0]) if rows else []
    dialogue, reward = _outcome_columns(names, dialogue, reward, only)
    rewards: dict[str, float] = {}
    for row in rows:
        if any(str(row[name]) != wanted for name, wanted in only.items()):
            continue
        key = str(row[dialogue])
        value = rating(row[reward], f"the outcome of {key!r}", report)
        if value is None:
            continue
        if rewards.setdefault(key, value) != value:
            others = [name for name in names if name not in (dialogue, reward)]
            raise ValueError(
                f"outcomes: the dialogue {key!r} has several rows, with rewards {rewards[key]:g} "
                f"and {value:g}. Say which counts, by --where COLUMN=VALUE of {', '.join(others)}."
            )
    return rewards


def _outcome_columns(
    names: Sequence[str], dialogue: str | None, reward: str | None, only: Iterable[str]
) -> tuple[str, str]:
    """The columns of a dialogue's name and of its reward; all that were named are there."""
    dialogue = dialogue if dialogue in names else _named(names, DIALOGUE)
    reward = reward or _named(names, REWARD)
    if dialogue is None or reward is None or reward not in names:
        raise ValueError(
            f"outcomes: expected a column that names the dialogue and one of the reward; got "
            f"{', '.join(map(str, names))}. Name them with --dialogue and --reward."
        )
    for name in only:
        if name not in names:
            raise unknown("column", name, names, "the table of outcomes")
    return dialogue, reward
