"""Prompts that have the seed of their dialogue: whoever is given the same begins alike."""

from collections.abc import Mapping, Sequence
from typing import Any

from dialgym.language.messages import Message
from dialgym.registry import Environment
from dialgym.views.chat import Chat

SEED = "seed"
"""The key of the first message beside ``role`` and ``content``; chat templates do not read it."""


def seeded_rows(
    id_or_task: Environment, count: int, seed: int = 0, **settings: Any
) -> list[dict[str, Any]]:
    """Rows of training data: dialogues to begin, those of `seed` and on.

    Args:
        id_or_task, settings: as of `dialgym.Chat`.
        count: rows.

    Returns:
        For each its ``prompt``, the messages before the first turn, its ``seed`` and ``env_id``.

    Raises:
        ValueError: there is no such id or setting.
    """
    chat, rows = Chat(id_or_task, **settings), []
    for number in range(seed, seed + count):
        brief, *others = chat.reset(number)
        prompt = [{**brief, SEED: number}, *others]
        rows.append({"prompt": prompt, "seed": number, "env_id": chat.env_id})
    return rows


def seed_of(prompt: Any, maker: str) -> int:
    """The seed in a prompt.

    Args:
        prompt: of `seeded_rows`.
        maker: the function that makes such prompts, by name, for the message of the error.

    Raises:
        ValueError: it has none.
    """
    first = prompt[0] if prompt else None
    seed = first.get(SEED) if isinstance(first, Mapping) else None
    if seed is None:
        raise ValueError(
            f"prompt: expected a first message with the {SEED} of its dialogue; got "
            f"{prompt!r:.80}. Make the data by {maker}."
        )
    return int(seed)


def check_same(prompt: Sequence[Mapping[str, Any]], opening: Sequence[Message], maker: str) -> None:
    """Raise a ValueError where a dialogue begins otherwise than its prompt says."""
    if [message["content"] for message in prompt] != [each["content"] for each in opening]:
        raise ValueError(
            f"prompt: the dialogue of seed {prompt[0].get(SEED)} begins otherwise. Give the same "
            f"id and settings here and to {maker}."
        )
