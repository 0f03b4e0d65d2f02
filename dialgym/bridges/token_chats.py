"""A dialogue of a model that samples token ids: only ever appended to, within a length."""

import sys
from collections.abc import Sequence
from typing import Any

from dialgym.language.chat_tokens import ChatTokens, Completion
from dialgym.language.messages import USER, Message
from dialgym.views.chat import ChatReply


class TokenChat:
    """A dialogue as token ids, beside the chat that answers its texts.

    `say` gives the text of a turn, a chat answers it, `hear` appends the answer. A dialogue whose
    completion has no room for an id more ends there, with what it has earned.

    Args:
        tokenizer: with a chat template.
        opening: messages before the first turn.
        max_length: ids of the completion, those of others included; None for no bound.
        max_new_tokens: ids of a turn; None for what is left of the completion.
        template: further arguments of the chat template.

    Attributes:
        tokens: the ids.
        replies: the answers to its turns.

    Raises:
        ValueError: the chat template refuses the messages, or there is none.
    """

    def __init__(
        self,
        tokenizer: Any,
        opening: Sequence[Message],
        max_length: int | None = None,
        max_new_tokens: int | None = None,
        **template: Any,
    ) -> None:
        self._bounds = max_length, max_new_tokens
        self.tokens = ChatTokens(tokenizer, opening, **template)
        self.replies: list[ChatReply] = []

    @property
    def room(self) -> int:
        """Most ids of the next turn; 0 where none may follow."""
        if self.replies and self.replies[-1].over:
            return 0
        length, turn = self._bounds
        used = len(self.tokens.ids) - self.tokens.prompt_length
        bounds = [turn, None if length is None else length - used]
        return max(0, min([bound for bound in bounds if bound is not None], default=sys.maxsize))

    def say(self, ids: Sequence[int], logprobs: Sequence[float] | None = None) -> str:
        """Append the ids of a turn, and the log-probability of each; its text.

        Those after one that ends the turn are cut off, and more than there is room for: a server
        or a trainer may not know the end of the chat template.
        """
        end = next((at + 1 for at, token in enumerate(ids) if token in self.tokens.ends), len(ids))
        most = min(end, self.room)
        return self.tokens.say(ids[:most], None if logprobs is None else logprobs[:most])

    def hear(self, reply: ChatReply) -> None:
        """Append the answer to a turn; closing words are no part of the ids."""
        self.replies.append(reply)
        if not reply.over:
            self.tokens.hear([Message(role=USER, content=reply.text)])

    def outcome(self) -> dict[str, Any]:
        """Earnings and end of the dialogue.

        Returns:
            ``returns``, the sum of its ``turn_rewards``; their ``components`` by turn; ``success``,
            ``terminated``, and ``truncated``, which a dialogue without more room is too; ``turns``;
            ``closing``, what was heard after the end.
        """
        rewards, last = [reply.reward for reply in self.replies], self.replies[-1:]
        terminated = any(reply.terminated for reply in last)
        return {
            "returns": sum(rewards),
            "turn_rewards": rewards,
            "components": [dict(reply.components) for reply in self.replies],
            "success": any(bool(reply.info["is_success"]) for reply in last),
            "terminated": terminated,
            "truncated": not terminated,
            "turns": len(rewards),
            "closing": "".join([reply.text for reply in last if reply.over]),
        }

    @property
    def completion(self) -> Completion:
        """All from the model's first id to its last."""
        whole = self.tokens.completion
        end = max((at + 1 for at, own in enumerate(whole.is_learner) if own), default=0)
        return Completion(*[part[:end] for part in whole])  # type: ignore[arg-type]
