"""A row of data as a conversation, whatever its columns are called.

Known are messages with roles as chat models have them (``messages``, ``conversations``; ``role``
and ``content``, ``from`` and ``value``), turns as ConvLab has them (``turns``; ``speaker`` and
``utterance``), logs of events (``events``; ``agent``, ``action`` and ``data``), LMRL-Gym's
sequences and conversations (`lmrl_gym`), lists of texts, pairs of speaker and text, lists of lists
of messages, and a prompt with its response.
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from dialgym.datasets.foreign.import_report import ImportReport
from dialgym.datasets.foreign.lmrl_gym import lmrl_row
from dialgym.io.archives import SPLITS
from dialgym.io.files import parse_json
from dialgym.io.tables import Row, first

TURNS = (
    *("messages", "turns", "dialogue", "dialog", "conversation", "conversations", "utterances"),
    *("log", "logs", "chat_logs", "chat", "events", "transcript", "history", "thread"),
)
TEXT = (
    *("content", "text", "utterance", "value", "message", "body", "sentence", "response", "data"),
)
SPEAKER = ("role", "speaker", "from", "sender", "agent", "party", "author", "name", "user", "id")
ACTION = ("action", "type", "event")
REWARD = ("reward", "rating", "score", "feedback")
OUTCOMES = (
    *("reward", "rewards", "return", "score", "scores", "rating", "ratings", "outcome.reward"),
    "feedback",
)
"""Columns that may hold the reward of a dialogue, or a list of those of its turns."""
SUCCESS = ("success", "is_success", "solved", "resolved")
WORDS = 3
"""Of an utterance, on average, where nothing else says that it is one."""
LEVELS = 4
"""Of lists of turns within one another, at most."""
PROMPTS = ("prompt", "instruction", "question", "query", "input", "context")
RESPONSES = ("response", "chosen", "completion", "output", "answer", "reply")


class Said(NamedTuple):
    """An utterance; the speaker is None where the data names none."""

    speaker: str | None
    text: str
    reward: float | None = None


class ImportedConversation(NamedTuple):
    """A dialogue as it was found.

    Attributes:
        said: the utterances.
        where: it was found, for messages.
        reward: of the whole of it, at its end; None where none is known.
        success: whether it was one; None where that is not known.
        split: ``train``, ``validation``, ``test`` or the data's own name; None where none is told.
        truncated: whether it was cut off before its end, as far as that is told.
    """

    said: Sequence[Said]
    where: str
    reward: float | None = None
    success: bool | None = None
    split: str | None = None
    truncated: bool = False


def conversation_of(
    row: Row,
    where: str,
    reward: str | None,
    text: str | None,
    speaker: str | None,
    report: ImportReport,
) -> ImportedConversation | None:
    """The conversation in a row; None where it has none.

    Args:
        row: its columns.
        where: it stands.
        reward: the column of the reward, with dots into what is nested; None for the usual names,
            ``none`` for no rewards.
        text, speaker: the keys of a turn's text and speaker; None for the usual names.
        report: is told what was understood.

    Raises:
        ValueError: there is no such reward.
    """
    try:
        row = lmrl_row(row) or row
    except ValueError as error:
        report.leave_out(str(error), where)
        return ImportedConversation((), where)
    name, turns = _turns_of(row)
    if not turns:
        return None
    said = list(_flattened(turns, text, speaker, where, report))
    report.add("turns", name)
    rewards = _rewards(row, reward, where, report)
    if isinstance(rewards, list):
        if len(rewards) != len(said):
            report.leave_out(
                f"dialogues with {len(rewards)} rewards for {len(said)} utterances", where
            )
            return ImportedConversation((), where)
        said = [line._replace(reward=value) for line, value in zip(said, rewards)]
        rewards = None
    elif reward is None and rewards is None and any(line.reward is not None for line in said):
        report.add("rewards", "by turn")
    success = first(row, SUCCESS)
    known = success if isinstance(success, bool) else None
    cut_off = row.get("truncated") is True
    return ImportedConversation(said, where, rewards, known, split_of(row), cut_off)


def split_of(row: Row) -> str | None:
    """The split that a row says it is of."""
    own = first(row, ("split", "data_split"))
    return SPLITS.get(own, own) if isinstance(own, str) and own else None


def has_turns(row: Row) -> bool:
    """Return True if a row has a list of turns under one of the usual names."""
    return any(_are_turns(listed(row.get(name)), least=1) for name in TURNS)


def _turns_of(row: Row) -> tuple[str, list[Any]]:
    """The column that holds the turns, and the turns."""
    for name in TURNS:
        if _are_turns(turns := listed(row.get(name)), least=1):
            return name, turns
    prompt, response = ([n for n in names if row.get(n)] for names in (PROMPTS, RESPONSES))
    if prompt and response:
        return f"{prompt[0]} and {response[0]}", [
            *_as_turns(row[prompt[0]], "user"),
            *_as_turns(row[response[0]], "assistant"),
        ]
    for name in row:
        if _are_turns(turns := listed(row[name]), least=2) and _talks(turns):
            return name, turns
    return "", []


def _as_turns(value: Any, role: str) -> list[Any]:
    turns = listed(value)
    return turns if isinstance(turns, list) else [{"role": role, "content": str(turns)}]


def _are_turns(value: Any, least: int, levels: int = LEVELS) -> bool:
    """Return True if a value is a list of utterances in one of the known forms."""
    if not isinstance(value, list) or len(value) < least or not levels:
        return False
    probe = value[: min(len(value), 8)]
    if all(isinstance(turn, str) for turn in probe):
        return True
    if all(isinstance(turn, Mapping) for turn in probe):
        return any(_text_in(turn, None) is not None for turn in probe)
    if all(isinstance(turn, list) for turn in probe):
        return all(_is_pair(turn) or _are_turns(turn, 1, levels - 1) for turn in probe)
    return False


def _talks(turns: Sequence[Any]) -> bool:
    """Return True if a list under an unknown name holds utterances and not words."""
    said = [_said(turn, None, None) for turn in turns if isinstance(turn, Mapping)]
    texts = [turn for turn in turns if isinstance(turn, str)]
    texts += [line.text for line in said if line is not None and line.speaker is not None]
    return len(texts) > 1 and sum(len(text.split()) for text in texts) >= WORDS * len(texts)


def _is_pair(turn: Any) -> bool:
    return isinstance(turn, list) and len(turn) == 2 and all(isinstance(p, str) for p in turn)


def listed(value: Any) -> Any:
    """A list that a table holds as JSON, an array as a list; all else as it is."""
    if isinstance(value, str) and value[:1] in ("[", "{"):
        try:
            return parse_json(value, "a cell")
        except ValueError:
            return value
    return value.tolist() if hasattr(value, "tolist") else value


def _flattened(
    turns: Sequence[Any],
    text: str | None,
    speaker: str | None,
    where: str,
    report: ImportReport,
    levels: int = LEVELS,
) -> Iterator[Said]:
    for turn in turns:
        if isinstance(turn, str):
            yield Said(None, turn)
        elif _is_pair(turn):
            yield Said(turn[0], turn[1])
        elif isinstance(turn, list) and levels > 1:
            yield from _flattened(turn, text, speaker, where, report, levels - 1)
        else:
            said = _said(turn, text, speaker)
            if said is None:
                kind = first(turn, ACTION) if isinstance(turn, Mapping) else None
                what = f"events {kind!r}" if kind else "turns"
                report.leave_out(f"{what} without words", where)
            else:
                rating(first(turn, REWARD), where, report)
                yield said


def _said(turn: Any, text: str | None, speaker: str | None) -> Said | None:
    if not isinstance(turn, Mapping):
        return None
    words = _text_in(turn, text) or _action(turn)
    if words is None:
        return None
    who = turn.get(speaker) if speaker else first(turn, SPEAKER)
    reward = number(first(turn, REWARD))
    return Said(None if who is None else str(who), words, reward)


def _text_in(turn: Mapping[str, Any], name: str | None) -> str | None:
    """The text of a message; parts of texts, as chat models have them, are joined."""
    for key in (name,) if name else TEXT:
        value = turn.get(key)  # type: ignore[arg-type]
        if isinstance(value, str):
            return value
        if isinstance(value, list) and value and all(isinstance(p, Mapping) for p in value):
            parts = [p["text"] for p in value if isinstance(p.get("text"), str)]
            if parts:
                return " ".join(parts)
    return None


def _action(turn: Mapping[str, Any]) -> str | None:
    """An action beside the words, in brackets: ``[offer price 243.0]``."""
    kind, data = first(turn, ACTION), turn.get("data")
    if not isinstance(kind, str) or not kind:
        return None
    more = data.items() if isinstance(data, Mapping) else ()
    shown = [f"{k} {v}" for k, v in more if isinstance(v, str | int | float) and v != ""]
    return f"[{' '.join([kind, *shown])}]"


# Rewards


def _rewards(
    row: Row, name: str | None, where: str, report: ImportReport
) -> float | list[float | None] | None:
    """The reward of a row, or a list of rewards of its turns; None where it has none."""
    if name == "none":
        return None
    for path in (name,) if name else OUTCOMES:
        value = listed(at(row, path))
        rewards = _reward_in(value, where, report)
        if rewards is not None:
            report.add("rewards", _described(path, value, rewards))
            return rewards
    return None


def _described(path: str, value: Any, rewards: float | list[float | None]) -> str:
    if isinstance(rewards, list):
        return f"{path}, by turn"
    if isinstance(value, Mapping | list):
        return f"the mean of {path}, at the end"
    return f"{path}, at the end"


def _reward_in(value: Any, where: str, report: ImportReport) -> float | list[float | None] | None:
    if isinstance(value, Mapping):
        parts = [rating(part, where, report) for part in value.values()]
        found = [part for part in parts if part is not None]
        return sum(found) / len(found) if found else None
    if isinstance(value, list):
        numbers = [rating(part, where, report) for part in value]
        return numbers if any(n is not None for n in numbers) else None
    return rating(value, where, report)


def at(row: Row, path: str) -> Any:
    """The value at a path such as ``outcome.reward``; None where there is none."""
    value: Any = row
    if path in row:
        return row[path]
    for part in path.split("."):
        value = listed(value)
        value = value.get(part) if isinstance(value, Mapping) else None
    return value


LIKED = {"up", "good", "like", "liked", "positive", "helpful", "yes", "true", "\N{THUMBS UP SIGN}"}
DISLIKED = {"down", "bad", "dislike", "disliked", "negative", "unhelpful", "no", "false"}
DISLIKED |= {"\N{THUMBS DOWN SIGN}"}


def rating(value: Any, where: Any, report: ImportReport) -> float | None:
    """The number of a rating; a text that is none, such as ``4/5``, goes to the report."""
    rated = number(value)
    if rated is None and isinstance(value, str) and value.strip():
        report.leave_out("ratings that are no numbers", f"{value[:40]!r} in {where}")
    return rated


def number(value: Any) -> float | None:
    """A finite number, or 1 and 0 for liked and disliked; None for all else."""
    if isinstance(value, str):
        word = value.strip().lower().removeprefix("thumb").lstrip("s_- ")
        if word in LIKED | DISLIKED:
            return float(word in LIKED)
    if isinstance(value, bool) or value is None:
        return float(value) if value is not None else None
    try:
        converted = float(value)
    except (TypeError, ValueError, OverflowError):
        return None
    return converted if abs(converted) < 1e30 else None  # NaN compares as False
