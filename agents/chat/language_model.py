"""A causal language model of `transformers` that replies in a chat."""

from __future__ import annotations

import inspect
from collections.abc import Sequence
from typing import Any

import torch
from jinja2 import TemplateError
from torch import Tensor

from agents.decoding.replies import Turn, newest, one_at_a_time
from agents.decoding.sampling import Sampling
from dialgym.language.causal_models import load_causal_model, window_of
from dialgym.language.chat_tokens import turn_ends

NAMES = {True: "system", False: "user"}
"""Names of the speakers where the tokenizer has no chat template."""
MOST = 256  # tokens of a reply, or half of a shorter window


class CausalTalker:
    """A language model that goes on with a chat, written by its tokenizer's chat template.

    Without a template it goes on with lines ``user: ...`` and ``system: ...``, up to the next line.
    A reply costs one reading of the chat, and a step for each token; a model without a cache of
    keys and values reads all for each token. Special tokens are not said. Threads may share it; one
    is answered at a time.

    Args:
        model: a causal language model of `transformers`.
        tokenizer: its own.

    Raises:
        ValueError: the tokenizer has tokens that the model does not know, or none at all.
    """

    def __init__(self, model: Any, tokenizer: Any) -> None:
        rows = model.get_input_embeddings().num_embeddings
        if len(tokenizer) > rows:
            raise ValueError(
                f"chat: expected the model's own tokenizer, got one with {len(tokenizer)} tokens "
                f"for a model that knows {rows}; save the two together"
            )
        if not tokenizer(NAMES[True], add_special_tokens=False).input_ids:
            raise ValueError(
                "chat: expected a tokenizer that reads text; got one without a vocabulary. Save "
                "the model's own beside it (tokenizer.json)."
            )
        self.model, self.tokenizer = model.eval(), tokenizer
        self.window = window_of(model.config, tokenizer)
        self.ends = turn_ends(model, tokenizer)
        self.spare = "logits_to_keep" in inspect.signature(model.forward).parameters

    @classmethod
    def load(cls, source: str, device: torch.device | str = "cpu") -> CausalTalker:
        """The model and tokenizer of a folder, or of ``hf:NAME`` or ``hf:NAME@REVISION``.

        Raises:
            ValueError: there is none, or it is no causal language model.
            ImportError: `transformers` is not installed.
        """
        model, tokenizer = load_causal_model(source, "chat")
        return cls(model.to(device), tokenizer)

    @torch.no_grad()
    def answer(self, turns: Sequence[Turn], sampling: Sampling, generator: torch.Generator) -> str:
        """See `agents.decoding.replies.Talker`.

        Raises:
            ValueError: the last utterance alone leaves no room for a reply, or the chat template
                fails.
        """
        with one_at_a_time(self.model):  # its tokenizer, too, serves one thread
            return self._answer(turns, sampling, generator)

    def _answer(self, turns: Sequence[Turn], sampling: Sampling, generator: torch.Generator) -> str:
        most = min(sampling.max_tokens or MOST, max(self.window // 2, 1))
        ids = self._prompt(list(turns), self.window - most)
        said, cache = list[int](), None
        extra = {"logits_to_keep": 1} if self.spare else {}
        while len(said) < most:
            out = self.model(self._tensor(ids), past_key_values=cache, use_cache=True, **extra)
            cache = getattr(out, "past_key_values", None)  # Mamba and GPT-1 have none
            logits = out.logits[0, -1, : len(self.tokenizer)].float()  # some models have more rows
            token = sampling.next_token(logits, generator)
            if token in self.ends:
                break
            said.append(token)
            ids = [*ids, token] if cache is None else [token]
            if self._is_over(said):
                break
        return self._text(said)

    def _prompt(self, turns: list[Turn], room: int) -> list[int]:
        """The tokens of the newest turns that `room` holds."""
        for first in range(len(turns)):
            ids = self._written(turns[first:])
            if len(ids) <= room:
                return ids
        return list(newest([self._written(turns[-1:])], room)[0])

    def _written(self, turns: Sequence[Turn]) -> list[int]:
        if self.tokenizer.chat_template is None:
            lines = [f"{NAMES[turn.own]}: {turn.text}\n" for turn in turns]
            ids: list[int] = self.tokenizer("".join([*lines, f"{NAMES[True]}:"])).input_ids
            while ids and ids[-1] in self.ends:  # which some tokenizers write behind each text
                ids.pop()
            return ids
        text = self._by_template(messages(turns))
        written: list[int] = self.tokenizer(text, add_special_tokens=False).input_ids
        return written

    def _by_template(self, chat: list[dict[str, str]]) -> str:
        try:
            written: str = self.tokenizer.apply_chat_template(
                chat, add_generation_prompt=True, tokenize=False
            )
        except TemplateError as error:
            raise ValueError(
                f"chat: the chat template of the tokenizer fails: {error}. Mend its "
                "chat_template, or remove it to chat in lines 'user: ...', 'system: ...'."
            ) from error
        return written

    def _is_over(self, said: list[int]) -> bool:
        return self.tokenizer.chat_template is None and "\n" in self._raw(said).lstrip()

    def _text(self, said: list[int]) -> str:
        text = self._raw(said).strip()
        return text if self.tokenizer.chat_template else text.partition("\n")[0].rstrip()

    def _raw(self, said: list[int]) -> str:
        text: str = self.tokenizer.decode(said, skip_special_tokens=True)
        return text

    def _tensor(self, ids: list[int]) -> Tensor:
        return torch.tensor([ids], device=self.model.device)


def messages(turns: Sequence[Turn]) -> list[dict[str, str]]:
    """For a chat template, in which the user begins and roles alternate.

    Utterances of one party in a row become one message; what the model said before anyone else is
    an answer to an empty one.
    """
    result: list[dict[str, str]] = [{"role": "user", "content": ""}]
    for turn in turns:
        role = "assistant" if turn.own else "user"
        if result[-1]["role"] != role:
            result.append({"role": role, "content": turn.text})
        else:
            result[-1]["content"] = f"{result[-1]['content']}\n{turn.text}".strip()
    return result
