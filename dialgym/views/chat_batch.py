"""Many chats of one task in rounds."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from dialgym.errors import whole_number
from dialgym.language import Utterance
from dialgym.language.messages import Message
from dialgym.registry import Environment
from dialgym.views.arguments import BEFORE, Options, reset_needed
from dialgym.views.chat import (
    ChatForm,
    ChatReply,
    check_turn,
    copied,
    note_turn,
    speaking_entry,
    warn_of,
    with_learner,
)
from dialgym.views.info import group_of, row_info
from dialgym.views.making import split_kwargs
from dialgym.views.utterance_vector_env import UtteranceVectorEnv


class ChatBatch:
    """N chats of one task; row i is a `Chat` with the seed of row i.

    In each round some rows that are open say a text each, and the others rest. Where a task has a
    vectorised form it is used, and a speaker that can be asked for many dialogues at once is.

    Args:
        id_or_task, learner, answer, settings: as of `Chat`.
        num_chats: N.

    Attributes:
        env: the batched utterance view.
        messages, said: of each row, as of `Chat`.
        open: the rows under way.

    Raises:
        ValueError: as of `Chat`, or the number is none.
    """

    def __init__(
        self,
        id_or_task: Environment,
        num_chats: int,
        learner: str | None = None,
        answer: str = "whole",
        **settings: Any,
    ) -> None:
        entry = speaking_entry(id_or_task)
        whole_number("num_chats", num_chats, entry.id)
        made = split_kwargs(entry, UtteranceVectorEnv, with_learner(settings, learner))
        self.env_id = entry.id
        self.env = UtteranceVectorEnv(num_envs=num_chats, **{**made, "autoreset_mode": "Disabled"})
        self.task, self.learner = self.env.task, self.env.learner
        warn_of(self.task, self.learner)
        limit = self.env.options.max_episode_steps
        self._form = ChatForm(self.task, self.learner, answer, limit)
        self.messages: list[list[Message]] = [[] for _ in range(num_chats)]
        self._said: list[list[int]] = [[] for _ in range(num_chats)]
        self.open: list[int] = []

    def __len__(self) -> int:
        return len(self.messages)

    def reset(
        self, seeds: int | Sequence[int | None] | None = None, options: Options | None = None
    ) -> list[list[Message]]:
        """Begin all dialogues.

        Args:
            seeds: N seeds; or one, of which row i takes s + i; None as in `Chat.reset`.
            options: of the task, those of all rows or N of them.

        Returns:
            Copies of the messages of each row before its first turn.

        Raises:
            ValueError: seeds or options are not N or impossible, or the learner never has the
                floor.
        """
        self.env.reset(seed=seeds, options=options)
        states = self.env.dialogues.states(np.arange(len(self)))
        lines = [self.env.dialogues.transcript(row) for row in range(len(self))]
        self.messages = [self._form.opening(*begun) for begun in zip(states, lines)]
        self._said = [[] for _ in self.messages]
        self.open = list(range(len(self)))
        return [copied(messages) for messages in self.messages]

    def step(self, texts: Mapping[int, str]) -> dict[int, ChatReply]:
        """Let some rows say a text each, and hear the answers; the others rest.

        Args:
            texts: by row, of those that are open.

        Returns:
            By row the reply.

        Raises:
            ResetNeeded: before the first reset.
            ValueError: a row is over or there is none of that number, or a text is no string.
        """
        self._check(texts)
        rows = np.array(sorted(texts), np.int64)
        said = [self._form.read(texts[row]) for row in rows.tolist()]
        _, rewards, terminated, truncated, info = self.env.say(rows, said)
        replies = {}
        for row, heard in self._heard(rows):
            note_turn(self.messages[row], self._said[row], texts[row])
            ends = bool(terminated[row]), bool(truncated[row])
            text = self._form.hear(self.messages[row], heard, any(ends))
            own = row_info(info, row)
            parts = group_of(own, "reward_components")
            replies[row] = ChatReply(text, float(rewards[row]), parts, *ends, own)
        self.open = [row for row in self.open if row not in replies or not replies[row].over]
        return replies

    def _heard(self, rows: np.ndarray) -> Iterator[tuple[int, list[Utterance]]]:
        """For each of the rows that have spoken, what its learner has heard."""
        outcome, parties = self.env.outcome, self.task.voices
        lines: dict[int, list[Utterance]] = {row: [] for row in rows.tolist()}
        owners = rows[outcome.heard_rows].tolist()
        speakers, texts = outcome.heard_parties.tolist(), outcome.heard_texts.tolist()
        for row, party, text in zip(owners, speakers, texts):
            lines[row].append(Utterance(parties[party], text))
        yield from lines.items()

    def _check(self, texts: Mapping[int, str]) -> None:
        if not self._said or not self.messages[0]:
            raise reset_needed(self.task.name, BEFORE)
        for row, text in texts.items():
            if row not in self.open:
                raise ValueError(
                    f"rows of {self.task.name}: expected some of those that are open, "
                    f"{self.open}; got {row!r}."
                )
            check_turn(text, self.task)

    @property
    def said(self) -> list[tuple[int, ...]]:
        """Positions of the messages that the learner of each row has said."""
        return [tuple(said) for said in self._said]

    def close(self) -> None:
        """Close the view."""
        self.env.close()
