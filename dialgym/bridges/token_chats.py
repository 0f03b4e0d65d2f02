"""Chats of a model that samples token ids, many at once: in rounds, and only ever appended to."""

from collections.abc import Sequence
from typing import Any

from dialgym.language.chat_tokens import ChatTokens, Completion
from dialgym.language.messages import USER, Message
from dialgym.registry import Environment
from dialgym.views.chat import ChatReply
from dialgym.views.chat_batch import ChatBatch

Rows = Sequence[Sequence[Any]]


class TokenChats:
    """Dialogues of one task as texts and as ids; row i begins by the i-th seed.

    A dialogue whose completion has no room for an id more ends there, with what it has earned.

    Args:
        id_or_task, settings: as of `dialgym.Chat`.
        seeds: of the dialogues.
        tokenizer: with a chat template.
        max_length: ids of a completion, those of others included; None for no bound.
        max_new_tokens: ids of a turn; None for what is left of the completion.

    Attributes:
        openings: of each row, the messages before its first turn.
        tokens: of each row, its ids.
        replies: of each row, the answers to its turns.

    Raises:
        ValueError: there is no such id or setting, or neither length has a bound.
    """

    def __init__(
        self,
        id_or_task: Environment,
        seeds: Sequence[int],
        tokenizer: Any,
        max_length: int | None = None,
        max_new_tokens: int | None = None,
        **settings: Any,
    ) -> None:
        self._bounds = max_length, max_new_tokens
        if self._bounds == (None, None):
            raise ValueError(
                "token chats: expected a bound on the ids of a turn, max_new_tokens, or of a "
                "completion (TRL: max_completion_length); both are None."
            )
        self._chats = ChatBatch(id_or_task, len(seeds), **settings)
        self.openings = self._chats.reset([*seeds])
        self.tokens = [ChatTokens(tokenizer, messages) for messages in self.openings]
        self.replies: list[list[ChatReply]] = [[] for _ in seeds]

    def room(self) -> dict[int, int]:
        """By row under way, the ids that its next turn may have; rows without any are left out."""
        bounds = {row: self._room(row) for row in self._chats.open}
        return {row: bound for row, bound in bounds.items() if bound > 0}

    def _room(self, row: int) -> int:
        length, turn = self._bounds
        used = len(self.tokens[row].ids) - self.tokens[row].prompt_length
        bounds = [turn, None if length is None else length - used]
        return min(bound for bound in bounds if bound is not None)

    def say(self, rows: Sequence[int], ids: Rows, logprobs: Rows) -> None:
        """Let each of the rows say a turn, and append what it hears.

        Args:
            rows: some that have room.
            ids: of each turn; more than it has room for are cut off.
            logprobs: of each id.
        """
        texts = {}
        for row, turn, chances in zip(rows, ids, logprobs, strict=True):
            most = self._room(row)
            texts[row] = self.tokens[row].say(turn[:most], chances[:most])
        for row, reply in self._chats.step(texts).items():
            self.replies[row].append(reply)
            if not reply.over:
                self.tokens[row].hear([Message(role=USER, content=reply.text)])

    def outcomes(self) -> dict[str, list[Any]]:
        """Columns of what the dialogues have earned, a value a row.

        Returns:
            ``returns``; ``turn_rewards`` and their ``components``, a list each; ``success``,
            ``terminated``, and ``truncated``, which a dialogue without more room is too; ``turns``.
        """
        rewards = [[reply.reward for reply in row] for row in self.replies]
        ended = [bool(row) and row[-1].terminated for row in self.replies]
        return {
            "returns": [sum(row) for row in rewards],
            "turn_rewards": rewards,
            "components": [[dict(reply.components) for reply in row] for row in self.replies],
            "success": [bool(row) and bool(row[-1].info["is_success"]) for row in self.replies],
            "terminated": ended,
            "truncated": [not end for end in ended],
            "turns": [len(row) for row in rewards],
        }

    def completions(self) -> list[Completion]:
        """Of each row, all from the model's first id to its last."""
        return [_to_last_own(tokens.completion) for tokens in self.tokens]


def _to_last_own(whole: Completion) -> Completion:
    """A completion without what follows the model's last id."""
    end = max((at + 1 for at, own in enumerate(whole.is_learner) if own), default=0)
    return Completion(*[part[:end] for part in whole])  # type: ignore[arg-type]
