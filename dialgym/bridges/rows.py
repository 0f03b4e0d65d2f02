"""Rows of training data: dialogues that begin by their seeds, and the chats that play them."""

import json
from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import Any

from dialgym.errors import whole_number
from dialgym.language.messages import Message
from dialgym.registry import Environment
from dialgym.views.chat import Chat, speaking_entry
from dialgym.views.making import settings_of_entry

KEPT = 32
"""Chats whose rules are kept, to begin further dialogues without being made again."""


def rows_of(
    id_or_task: Environment, count: int, seed: int = 0, **settings: Any
) -> list[dict[str, Any]]:
    """Rows of training data: dialogues to begin, those of `seed` and on.

    Args:
        id_or_task, settings: as of `dialgym.Chat`; settings must be plain values.
        count: rows.

    Returns:
        For each its ``prompt``, the messages before the first turn; ``seed``; ``env_id``; and
        ``settings`` as JSON, since a Parquet file has no column of empty mappings.

    Raises:
        ValueError: there is no such id or setting, or one is no plain value.
    """
    chat = Chat(id_or_task, **settings)
    settings = {**_own_settings(id_or_task), **settings}
    more = {"env_id": chat.env_id, "settings": _as_json(settings)}
    count = whole_number("count", count, chat.env_id)
    seeds = range(seed, seed + count)
    return [{"prompt": chat.reset(number), "seed": number, **more} for number in seeds]


def _own_settings(id_or_task: Environment) -> dict[str, Any]:
    """Settings of an object that stands for an id, by which its row finds them elsewhere."""
    if isinstance(id_or_task, str):
        return {}
    return settings_of_entry(speaking_entry(id_or_task))


def chat_of(row: Mapping[str, Any]) -> Chat:
    """A new chat for the dialogue of a row.

    Args:
        row: of `rows_of`, or by hand: ``env_id``, and where wanted ``settings``, a mapping or JSON.

    Raises:
        ValueError: the row has no ``env_id``, or there is no such id or setting.
    """
    if "env_id" not in row:
        raise ValueError(
            f"row of a dialogue: expected an 'env_id' among its columns; got {sorted(row)}. "
            "The function of the door that makes its training data makes such rows."
        )
    settings = row.get("settings") or {}
    return _kept(
        row["env_id"], settings if isinstance(settings, str) else _as_json(settings)
    ).clone()


def begin(chat: Chat, row: Mapping[str, Any]) -> list[Message]:
    """Begin the dialogue of a row: by its ``seed``, and its ``options`` of the task.

    Returns:
        The messages before the first turn.

    Raises:
        ValueError: an option is impossible.
    """
    seed = row.get("seed")
    return chat.reset(None if seed is None else int(seed), row.get("options"))


@lru_cache(KEPT)
def _kept(env_id: str, settings: str) -> Chat:
    return Chat(env_id, **json.loads(settings))


def _as_json(settings: Mapping[str, Any]) -> str:
    try:
        return json.dumps(settings)
    except TypeError as error:
        raise ValueError(
            f"settings of a row: expected plain values, as of JSON; got {settings!r:.80}. Register "
            "an id with these settings, and give that."
        ) from error


def with_seed(row: Mapping[str, Any]) -> dict[str, Any]:
    """A row whose prompt tells the seed in its first message, for a trainer that gives no more.

    Chat templates read ``role`` and ``content`` alone.
    """
    brief, *others = row["prompt"]
    return {**row, "prompt": [{**brief, "seed": row["seed"]}, *others]}


def seed_of(prompt: Any, maker: str) -> int:
    """The seed in a prompt of `with_seed`.

    Args:
        prompt: messages.
        maker: the function that makes such prompts, by name, for the message of the error.

    Raises:
        ValueError: it has none.
    """
    first = prompt[0] if prompt else None
    seed = first.get("seed") if isinstance(first, Mapping) else None
    if seed is None:
        raise ValueError(
            "prompt: expected a first message with the seed of its dialogue; got "
            f"{prompt!r:.80}. Make the data by {maker}."
        )
    return int(seed)


def check_same(prompt: Sequence[Mapping[str, Any]], opening: Sequence[Message], maker: str) -> None:
    """Raise a ValueError where a dialogue begins otherwise than its prompt says."""
    if [message["content"] for message in prompt] != [each["content"] for each in opening]:
        raise ValueError(
            f"prompt: the dialogue of seed {prompt[0].get('seed')} begins otherwise. Give the same "
            f"id and settings here and to {maker}."
        )
