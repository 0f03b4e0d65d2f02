"""Prompts with their responses, as turns: instructions, histories, preferences.

A prompt is a text, or a list of messages. What stands beside an instruction (``input``,
``context``) belongs to it, and a ``history`` comes before it. Of preferences the ``chosen`` answer
is read; the ``rejected`` one, where it is wanted, is that of a row `with_roles_swapped`. A text
whose turns begin with ``Human:`` and ``Assistant:``, as in HH-RLHF, is these turns.
"""

import re
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from dialgym.datasets.foreign.roles import ASIDES, folded, is_role
from dialgym.io.files import parse_json
from dialgym.io.tables import Row, first

PROMPTS = ("prompt", "instruction", "question", "query")
BESIDE = ("input", "context")
"""Of a prompt: a text that belongs to it, or the prompt itself where there is no other."""
CHOSEN, REJECTED = "chosen", "rejected"
RESPONSES = ("response", CHOSEN, "completion", "output", "answer", "reply")
HISTORIES = ("history", "chat_history")
MESSAGE = ("content", "value", "text")
ROLE_KEYS = ("role", "from", "type")


class Prompted(NamedTuple):
    """The columns of a prompt and its response, the turns in them, and further responses."""

    name: str
    turns: list[Any]
    unread: int = 0


def prompted_turns(row: Row) -> Prompted | None:
    """The columns of a prompt and its response, and the turns in them; None where one is missing.

    A response that begins with the prompt, as lists of messages do, is the whole dialogue. Of other
    lists of texts, which are alternatives, the first is read.
    """
    asked = [name for name in (*PROMPTS, *BESIDE) if is_filled(row.get(name))]
    answer = _response(row)
    if not asked or answer is None:
        return None
    names, prompt = _prompt(row, asked)
    response = _as_turns(row[answer], "assistant")
    if _begins_with(response, prompt):
        return Prompted(answer, response)
    options = _alternatives(row[answer])
    response = [_message("assistant", options[0])] if options else response
    unread = len(options[1:])
    history = next((name for name in HISTORIES if is_filled(row.get(name))), None)
    if history is None:
        return Prompted(f"{names} and {answer}", [*prompt, *response], unread)
    before = _exchanges(_as_turns(row[history], "assistant"))
    turns = [*before, *prompt, *response]
    return Prompted(f"{history}, {names} and {answer}", turns, unread)


def chosen_turns(row: Row) -> tuple[str, list[Any]] | None:
    """The chosen one of two dialogues, whose prompt stands in it; None where there is none."""
    turns = listed(row.get(CHOSEN))
    turns = _marked(turns) if isinstance(turns, str) else turns
    if isinstance(turns, list) and len(turns) > 1 and all(isinstance(t, Mapping) for t in turns):
        return CHOSEN, turns
    return None


def with_chosen(row: Row, name: str, turns: list[Any]) -> tuple[str, list[Any]]:
    """The column of messages and these, with the chosen answer to them if that stands beside."""
    if not is_filled(row.get(CHOSEN)) or not has_rejected(row):
        return name, turns
    answer, other = (_as_turns(row[column], "assistant") for column in (CHOSEN, REJECTED))
    if (last := _text(turns[-1])) in (None, _text(answer[-1])):
        return name, turns
    if last == _text(other[-1]):  # the chosen answer comes in its place
        turns = turns[: -len(other)]
    if not turns or _begins_with(answer, turns):
        return CHOSEN, answer
    return f"{name} and {CHOSEN}", [*turns, *answer]


def has_rejected(row: Row) -> bool:
    """Return True if a row has an answer that was rejected."""
    value = listed(row.get(REJECTED))
    return isinstance(value, str | list | Mapping) and is_filled(value)


def with_roles_swapped(row: Row) -> Row:
    """A row in which all that is said of the rejected answer is said of the chosen one.

    So it is for other columns named after them: ``score_chosen`` and ``score_rejected``.
    """
    other = {CHOSEN: REJECTED, REJECTED: CHOSEN}
    return {_ANSWERS.sub(lambda found: other[found[0]], str(name)): row[name] for name in row}


_ANSWERS = re.compile(f"{CHOSEN}|{REJECTED}")


def is_filled(value: Any) -> bool:
    """Return True if a cell holds something: no missing number, no empty text or list."""
    value = listed(value)
    if isinstance(value, str):
        return bool(value.strip())
    if isinstance(value, int | float) and not isinstance(value, bool):
        return value == value  # NaN, of tables, differs from itself
    return bool(value)


def is_pair(turn: Any) -> bool:
    """Return True for two texts, of which one may be missing."""
    if not isinstance(turn, list) or len(turn) != 2 or turn == [None, None]:
        return False
    return all(part is None or isinstance(part, str) for part in turn)


def listed(value: Any) -> Any:
    """A list that a table holds as JSON, an array as a list; all else as it is."""
    if isinstance(value, str) and value[:1] in ("[", "{"):
        try:
            return parse_json(value, "a cell")
        except ValueError:
            return value
    return value.tolist() if hasattr(value, "tolist") else value


def _response(row: Row) -> str | None:
    names = [name for name in RESPONSES if is_filled(row.get(name))]
    if CHOSEN in names and has_rejected(row):
        return CHOSEN
    return names[0] if names else None


def _prompt(row: Row, names: Sequence[str]) -> tuple[str, list[Any]]:
    """The columns of a prompt, and its turns: texts that belong together are lines of one."""
    main, *_ = names
    turns = _as_turns(row[main], "user")
    if not isinstance(row[main], str) or turns != [_message("user", row[main])]:
        return main, turns
    text, used = row[main], [main]
    for name in (name for name in names if name in BESIDE and name != main):
        if isinstance(row[name], str) and row[name].strip() not in text:
            text, used = f"{text}\n{row[name]}", [*used, name]
    return " with ".join(used), [{"role": "user", "content": text}]


def _alternatives(value: Any) -> list[str]:
    """The texts of a list of texts, but for empty ones."""
    texts = [] if isinstance(value, str) else listed(value)
    if not isinstance(texts, list) or not all(isinstance(text, str | None) for text in texts):
        return []
    return [text for text in texts if text and text.strip()]


def _as_turns(value: Any, role: str) -> list[Any]:
    """A text as the turn of a role; a list of texts as turns of which the last is the role's."""
    turns = listed(value)
    if isinstance(turns, Mapping):
        turns = [turns]
    if not isinstance(turns, list):
        return _marked(str(turns)) or [_message(role, turns)]
    if isinstance(value, str) and not (all(map(_has_role, turns)) and any(map(_text, turns))):
        return [_message(role, value)]  # a text in brackets, code, or JSON that was asked for
    if all(isinstance(turn, str) or turn is None for turn in turns):
        other = "user" if role == "assistant" else "assistant"
        count = len(turns)
        return [_message((other, role)[(count - n) % 2], t or "") for n, t in enumerate(turns)]
    return turns


def _has_role(turn: Any) -> bool:
    return isinstance(turn, Mapping) and any(
        is_role(turn.get(key)) for key in (*ROLE_KEYS, "speaker")
    )


def _marked(text: str) -> list[Any]:
    """The turns of a text in which each has a mark; empty where it does not begin with one."""
    before, *parts = _MARKS.split(text)
    said = [] if before else zip(parts[::2], parts[1::2])
    return [_message(_MARKED[mark], words.strip()) for mark, words in said if words.strip()]


_MARKED = {"Human": "user", "Assistant": "assistant"}
_MARKS = re.compile(rf"(?:\A\s*|\n\n)({'|'.join(_MARKED)}):")


def _exchanges(turns: list[Any]) -> list[Any]:
    """Pairs of a question and its answer as messages; pairs of a role and its text as they are."""
    if not all(map(is_pair, turns)) or any(is_role(one) for one, _ in turns):
        return turns
    roles = ("user", "assistant")
    return [_message(role, text or "") for pair in turns for role, text in zip(roles, pair)]


def _message(role: str, text: Any) -> dict[str, str]:
    return {"role": role, "content": str(text)}


def _text(turn: Any) -> str | None:
    """The words of a message, without regard to spaces; None where it is none."""
    text = first(turn, MESSAGE) if isinstance(turn, Mapping) else None
    return " ".join(text.split()) if isinstance(text, str) else None


def _begins_with(turns: Sequence[Any], prompt: Sequence[Any]) -> bool:
    """Return True if messages begin with those of the prompt, without regard to asides."""
    said, asked = ([_text(t) for t in some if not _is_aside(t)] for some in (turns, prompt))
    count = len(asked)
    return count > 0 and None not in asked and len(said) > count and said[:count] == asked


def _is_aside(turn: Any) -> bool:
    role = first(turn, ROLE_KEYS) if isinstance(turn, Mapping) else None
    return folded(role) in ASIDES
