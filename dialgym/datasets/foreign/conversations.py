"""A row of data as a conversation, whatever its columns are called.

Known are messages with roles as chat models have them (``messages``, ``conversations``; ``role``
and ``content``, ``from`` and ``value``), turns as ConvLab has them (``turns``; ``speaker`` and
``utterance``), logs of events (``events``; ``agent``, ``action`` and ``data``), LMRL-Gym's
sequences and conversations (`lmrl_gym`), lists of texts, pairs of speaker and text or of question
and answer, lists of lists of messages, and a prompt with its response (`prompts`).
"""

from collections.abc import Iterator, Mapping, Sequence
from itertools import islice
from typing import Any, NamedTuple

from dialgym.datasets.foreign.import_report import ImportReport
from dialgym.datasets.foreign.lmrl_gym import lmrl_row
from dialgym.datasets.foreign.prompts import (
    HISTORIES,
    REJECTED,
    chosen_turns,
    is_pair,
    listed,
    prompted_turns,
    with_chosen,
)
from dialgym.datasets.foreign.roles import are_names, folded, is_role
from dialgym.io.archives import SPLITS
from dialgym.io.tables import Row, first

TURNS = (
    *("messages", "turns", "dialogue", "dialog", "conversation", "conversations", "utterances"),
    *("log", "logs", "chat_logs", "chat", "events", "transcript", "history", "thread"),
)
TEXT = (
    *("content", "text", "utterance", "value", "message", "body", "sentence", "response", "data"),
)
SPEAKER = ("role", "speaker", "from", "sender", "agent", "party", "author")
NAMES = ("name", "user", "id")
"""Keys of a speaker where no other says who speaks."""
SPEAKERS = ("speakers", "speaker", "roles")
"""Columns with the speaker of each turn."""
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
LABEL = "label"
"""The column of prompts with responses that calls an answer a good or a bad one."""


class Said(NamedTuple):
    """An utterance; the speaker is None where the data names none, the text empty where a turn
    has no words."""

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
        rejected: whether its answer was rejected, for that of the dialogue before.
    """

    said: Sequence[Said]
    where: str
    reward: float | None = None
    success: bool | None = None
    split: str | None = None
    truncated: bool = False
    rejected: bool = False


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
    name, turns, answers, unread = _turns_of(row)
    if not turns:
        return None
    report.add("turns", name)
    if unread:
        report.leave_out("further answers to a prompt, after the first", where, unread)
    rewards = _rewards(row, reward, where, report)
    if rewards is None and reward is None and answers:
        rewards = _labelled(row, report)
    by_turn = _keys_of_rewards(reward) if rewards is None else ()
    said = list(_flattened(turns, Keys(text, speaker, by_turn), where, report))
    said = _named(said, row, (speaker,) if speaker else SPEAKERS)
    if any(line.reward is not None for line in said):
        report.add("rewards", f"{reward}, by turn" if reward else "by turn")
    if isinstance(rewards, list):
        said, rewards = _with_rewards(said, rewards, where, report), None
    cut_off = row.get("truncated") is True
    return ImportedConversation(said, where, rewards, success_of(row), split_of(row), cut_off)


def success_of(row: Row) -> bool | None:
    """Return True or False for a success that is told as such, as 1 and 0 or in words."""
    told = number(listed(first(row, SUCCESS)))
    return bool(told) if told in (0, 1) else None


def split_of(row: Row) -> str | None:
    """The split that a row says it is of."""
    own = first(row, ("split", "data_split"))
    return SPLITS.get(own, own) if isinstance(own, str) and own else None


def has_turns(row: Row) -> bool:
    """Return True if a row has a list of turns under one of the usual names."""
    return any(_are_turns(listed(row.get(name)), least=1) for name in TURNS)


class _Turns(NamedTuple):
    """The column that holds turns, these, whether they answer a prompt, and further answers."""

    name: str
    turns: Sequence[Any]
    answers: bool = False
    unread: int = 0


def _turns_of(row: Row) -> _Turns:
    prompted = prompted_turns(row)
    for name in TURNS:
        if prompted and name in HISTORIES:
            break
        if _are_turns(turns := listed(row.get(name)), least=1):
            return _Turns(*with_chosen(row, name, turns))
    if prompted:
        return _Turns(prompted.name, prompted.turns, True, prompted.unread)
    if chosen := chosen_turns(row):
        return _Turns(*chosen)
    for name in row:
        turns = listed(row[name])
        if name != REJECTED and _are_turns(turns, least=2) and _talks(turns):
            return _Turns(name, turns)
    return _Turns("", [])


def _are_turns(value: Any, least: int, levels: int = LEVELS) -> bool:
    """Return True if a value is a list of utterances in one of the known forms."""
    if not isinstance(value, list) or len(value) < least or not levels:
        return False
    probe = list(islice((turn for turn in value if turn is not None), 8))
    if probe and all(isinstance(turn, str) for turn in probe):
        return True
    if all(isinstance(turn, Mapping) for turn in probe):
        return any(_text_in(turn, None) is not None for turn in probe)
    if all(isinstance(turn, list) for turn in probe):
        return bool(probe) and all(
            is_pair(turn) or _are_turns(turn, 1, levels - 1) for turn in probe
        )
    return False


def _talks(turns: Sequence[Any]) -> bool:
    """Return True if a list under an unknown name holds utterances and not words."""
    said = [_said(turn, Keys()) for turn in turns if isinstance(turn, Mapping)]
    texts = [turn for turn in turns if isinstance(turn, str)]
    texts += [line.text for line in said if line.text and line.speaker is not None]
    return len(texts) > 1 and sum(len(text.split()) for text in texts) >= WORDS * len(texts)


class Keys(NamedTuple):
    """Keys of a turn's text and speaker, None for the usual names, and of its reward."""

    text: str | None = None
    speaker: str | None = None
    rewards: Sequence[str] = ()


def _flattened(
    turns: Sequence[Any], keys: Keys, where: str, report: ImportReport, levels: int = LEVELS
) -> Iterator[Said]:
    """The utterances of turns in order; one without words keeps its place."""
    spoken = are_names([turn[0] for turn in turns if is_pair(turn)])
    for turn in turns:
        if isinstance(turn, str):
            yield Said(None, turn)
        elif is_pair(turn):
            one, other = (part or "" for part in turn)
            yield from (
                [Said(one, other)] if spoken else [Said("user", one), Said("assistant", other)]
            )
        elif isinstance(turn, list) and levels > 1:
            yield from _flattened(turn, keys, where, report, levels - 1)
        else:
            yield _reported(turn, _said(turn, keys), keys, where, report)


def _reported(turn: Any, said: Said, keys: Keys, where: str, report: ImportReport) -> Said:
    """Take down turns without words, and ratings that are none."""
    fields = turn if isinstance(turn, Mapping) else {}
    if not said.text:
        kind = first(fields, ACTION)
        what = f"events {kind!r}" if kind and not is_role(kind) else "turns"
        report.leave_out(f"{what} without words", where)
    else:
        rating(_turn_reward(fields, keys), where, report)
    return said


def _said(turn: Any, keys: Keys) -> Said:
    if not isinstance(turn, Mapping):
        return Said(None, "")
    words = _text_in(turn, keys.text) or _action(turn) or ""
    who = turn.get(keys.speaker) if keys.speaker else _speaker(turn)
    return Said(None if who is None else str(who), words, number(_turn_reward(turn, keys)))


def _speaker(turn: Mapping[str, Any]) -> Any:
    """The speaker of a turn; a ``type`` is one where it is a role, as LangChain has it."""
    who = first(turn, SPEAKER)
    if who is None and is_role(turn.get("type")):
        who = turn["type"]
    return first(turn, NAMES) if who is None else who


def _turn_reward(turn: Mapping[str, Any], keys: Keys) -> Any:
    return next((v for path in keys.rewards if (v := at(turn, path)) is not None), None)


def _named(said: list[Said], row: Row, columns: Sequence[str]) -> list[Said]:
    """Utterances with the speakers of a column that has one for each, if no turn names its own."""
    found = (listed(row.get(name)) for name in columns)
    speakers = next((s for s in found if isinstance(s, list) and len(s) == len(said)), None)
    if speakers is None or any(line.speaker is not None for line in said):
        return said
    names = [None if speaker is None else str(speaker) for speaker in speakers]
    return [line._replace(speaker=name) for line, name in zip(said, names)]


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
    data = turn.get("data")
    if isinstance(data, Mapping) and is_role(turn.get("type")):
        return _text_in(data, name)
    return None


def _action(turn: Mapping[str, Any]) -> str | None:
    """An action beside the words, in brackets: ``[offer price 243.0]``; no role is one."""
    kind, data = first(turn, ACTION), turn.get("data")
    if not isinstance(kind, str) or not kind or is_role(kind):
        return None
    more = data.items() if isinstance(data, Mapping) else ()
    shown = [f"{k} {v}" for k, v in more if isinstance(v, str | int | float) and v != ""]
    return f"[{' '.join([kind, *shown])}]"


# Rewards


def _keys_of_rewards(name: str | None) -> Sequence[str]:
    """Keys of the reward of a turn: the one that was named, else the usual ones."""
    return REWARD if name is None else () if name == "none" else (name,)


def _labelled(row: Row, report: ImportReport) -> float | None:
    """The reward of an answer by its label, true or false; None where it has none."""
    label = listed(row.get(LABEL))
    if isinstance(label, bool) or (isinstance(label, str) and folded(label) in ("true", "false")):
        report.add("rewards", f"{LABEL} (1 for true, 0 for false), at the end")
        return number(label)
    return None


def _with_rewards(
    said: Sequence[Said], rewards: Sequence[float | None], where: str, report: ImportReport
) -> list[Said]:
    """Utterances with a list of rewards: one for each turn, or for each with words."""
    spoken = [place for place, line in enumerate(said) if line.text.strip()]
    for places in (range(len(said)), spoken):
        if len(places) == len(rewards):
            own = dict(zip(places, rewards))
            return [line._replace(reward=own.get(place)) for place, line in enumerate(said)]
    report.leave_out(f"dialogues with {len(rewards)} rewards for {len(said)} utterances", where)
    return []


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
