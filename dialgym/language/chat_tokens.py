"""Chats as token ids by a chat template, where what a model has sampled is never encoded again.

A template is only asked for what is new: the end of the learner's turn, what the others say, and
the beginning of the next turn. Nothing of the past is rendered again, so a template that rewrites
earlier turns cannot reach back, and the ids are those by which log-probabilities were computed.

A tokenizer is any object in the form of Hugging Face's: it has ``apply_chat_template(messages,
tokenize=False, add_generation_prompt=...)`` and ``decode(ids, skip_special_tokens=...)``, and is
called with a text and ``add_special_tokens=False`` for its ``["input_ids"]``.
"""

import re
from collections.abc import Collection, Mapping, Sequence
from functools import cached_property
from typing import Any, NamedTuple

from dialgym.language.messages import ASSISTANT, SYSTEM, USER, Message
from dialgym.language.model_text import THOUGHT, THOUGHT_END
from dialgym.language.tokenizers import special_ids

SENTINEL = "\N{INVISIBLE SEPARATOR}"
"""Text that stands for a turn of the learner where a template is asked for what comes after it."""
PRIVATE = range(0xE000, 0xF8FF)
"""Characters of private use, which stand for special tokens in what was said."""
SAID = "a"
"""Text that stands for a turn of the learner where what comes after it is encoded."""
CONTEXT = 16
"""Characters before a text that are encoded with it, at most."""
NOBODY = -1
"""Turn of a token that the learner has not said."""


class Encoded(NamedTuple):
    """Token ids of a chat, and True for each that the learner has said; of equal length."""

    ids: list[int]
    is_learner: list[bool]


class ChatTokens:
    """Append-only token ids of a dialogue under way.

    Args:
        tokenizer: with a chat template.
        messages: the beginning of the dialogue, as `Chat.reset` gives it; it ends with a user's.
        template: further arguments of the template, such as ``enable_thinking=False``.

    Attributes:
        ids: all so far, those that open the learner's next turn included.
        is_learner, logprobs, turn: as long as `ids`: True for what the learner has said; its
            log-probability, 0.0 for others and where none was given; the number of its turn from 0,
            -1 for others.
        prompt_length: the number of ids before the learner's first.

    Raises:
        ValueError: the tokenizer has no chat template, or it refuses these messages.
    """

    def __init__(self, tokenizer: Any, messages: Sequence[Message], **template: Any) -> None:
        self._form = TemplateForm(tokenizer, template)
        self.ids = self._form.prompt(messages)
        self.prompt_length = len(self.ids)
        self.is_learner = [False] * len(self.ids)
        self.logprobs = [0.0] * len(self.ids)
        self.turn = [NOBODY] * len(self.ids)
        self._turns = 0
        self._open = True

    def say(self, ids: Sequence[int], logprobs: Sequence[float] | None = None) -> str:
        """Append what the learner has sampled; its text without special tokens.

        Where the template has opened a thought for the learner, the text begins with that opening.

        Args:
            ids: of its turn, with the token that ends it or, where it was cut, without.
            logprobs: of each.

        Raises:
            ValueError: it is not the learner's turn, or ids and log-probabilities differ in number.
        """
        self._require(True)
        if logprobs is not None and len(logprobs) != len(ids):
            raise ValueError(
                f"logprobs: expected one for each of the {len(ids)} ids; got {len(logprobs)}."
            )
        own = [0.0] * len(ids) if logprobs is None else [float(p) for p in logprobs]
        self._append([int(i) for i in ids], own, self._turns)
        self._turns, self._open = self._turns + 1, False
        text = self._form.tokenizer.decode([*ids], skip_special_tokens=True)
        return f"{self._form.opened}{text}"

    def text_ids(self, text: str) -> list[int]:
        """Ids of a text that the learner is to say, none of them special."""
        return self._form.text(text)

    def hear(self, messages: Sequence[Message]) -> None:
        """Append the end of the learner's turn, what the others say, and what opens its next.

        Raises:
            ValueError: it is the learner's turn, or the template refuses the messages.
        """
        self._require(False)
        self._follow(self._form.after(messages, True))
        self._open = True

    def end(self, messages: Sequence[Message] = ()) -> None:
        """Append the end of the learner's last turn, and closing words of the others.

        Raises:
            ValueError: it is the learner's turn, or the template refuses the messages.
        """
        self._require(False)
        self._follow(self._form.after(messages, False))

    @property
    def ends(self) -> list[int]:
        """Ids of which one ends a turn of the learner: the template's, and the tokenizer's."""
        return self._form.ends

    @property
    def completion(self) -> "Completion":
        """All from the learner's first id on."""
        n = self.prompt_length
        parts = self.ids, self.is_learner, self.logprobs, self.turn
        return Completion(*[part[n:] for part in parts])  # type: ignore[arg-type]

    def _follow(self, ids: list[int]) -> None:
        """Append ids after the learner's turn, but for an end that it has sampled itself."""
        count = self.turn.count(self._turns - 1)
        said = self.ids[len(self.ids) - count :] if count else []
        known = 0
        if ids[:1] and self._form.is_special(ids[0]):
            ends = range(min(len(ids), len(said)), 0, -1)
            known = next((k for k in ends if said[-k:] == ids[:k]), 0)
        rest = ids[known:]
        self._append(rest, [0.0] * len(rest), NOBODY)

    def _append(self, ids: list[int], logprobs: list[float], turn: int) -> None:
        self.ids += ids
        self.is_learner += [turn != NOBODY] * len(ids)
        self.logprobs += logprobs
        self.turn += [turn] * len(ids)

    def _require(self, to_speak: bool) -> None:
        if self._open is not to_speak:
            now, call = ("", "say()") if self._open else ("not ", "hear() or end()")
            raise ValueError(f"chat tokens: it is {now}the learner's turn. Call {call} now.")


class Completion(NamedTuple):
    """Ids of a dialogue after its prompt, with masks, log-probabilities and turns; equally long."""

    ids: list[int]
    is_learner: list[bool]
    logprobs: list[float]
    turn: list[int]


def encode(
    messages: Sequence[Message],
    tokenizer: Any,
    said: Collection[int] | None = None,
    **template: Any,
) -> Encoded:
    """Token ids of a whole chat: those of `ChatTokens` in which each turn has its own encoding.

    Args:
        messages: from the system's on.
        tokenizer, template: as of `ChatTokens`.
        said: positions of the learner's messages (`Chat.said`); None for every assistant's.

    Raises:
        ValueError: as of `ChatTokens`, or nothing was said.
    """
    own = [i for i, message in enumerate(messages) if message["role"] == ASSISTANT]
    positions = own if said is None else sorted(said)
    if not positions:
        raise ValueError("encode: expected a message that the learner has said; got none.")
    tokens = ChatTokens(tokenizer, messages[: positions[0]], **template)
    for place, following in zip(positions, [*positions[1:], len(messages)]):
        tokens.say(tokens.text_ids(messages[place]["content"]))
        heard = messages[place + 1 : following]
        if following < len(messages):
            tokens.hear(heard)
        else:
            tokens.end(heard)
    return Encoded(tokens.ids, tokens.is_learner)


class TemplateForm:
    """Parts of a chat template's text, asked for one by one, as token ids.

    A special token that stands in what somebody has said is encoded as the text that it is.

    Args:
        tokenizer: whose template it is.
        template: further arguments of it.
    """

    def __init__(self, tokenizer: Any, template: Mapping[str, Any]) -> None:
        if not getattr(tokenizer, "chat_template", True):
            raise ValueError(
                f"{type(tokenizer).__name__} has no chat template. Take the tokenizer of an "
                "instruction model, or set tokenizer.chat_template."
            )
        self.tokenizer, self._template = tokenizer, dict(template)
        added = getattr(tokenizer, "added_tokens_decoder", {}).values()
        names = {*getattr(tokenizer, "all_special_tokens", ()), *map(str, added)}
        self._special = sorted(filter(None, names), key=len, reverse=True)
        unknown = getattr(tokenizer, "unk_token_id", None)
        self._special_ids = special_ids(tokenizer) - {unknown}
        self._in_text = re.compile("|".join(map(re.escape, self._special)) or r"(?!)")

    def is_special(self, token: int) -> bool:
        """True for a token that ends or begins a turn, and is no text."""
        return token in self._special_ids

    @cached_property
    def ends(self) -> list[int]:
        """Special tokens that end a turn: the template's, and the tokenizer's."""
        after = [token for token in self.after((), False)[:1] if self.is_special(token)]
        own = getattr(self.tokenizer, "eos_token_id", None)
        return [*dict.fromkeys([*after, *([] if own is None else [own])])]

    @cached_property
    def opened(self) -> str:
        """The tag of a thought that the template opens before each turn; "" where it opens none."""
        prompt = self._render([Message(role=USER, content="a")], True)
        _, tag, thought = prompt.rpartition(THOUGHT)
        return "" if THOUGHT_END in thought else tag

    def prompt(self, messages: Sequence[Message]) -> list[int]:
        """Ids of the beginning, up to where the learner's text begins."""
        safe, marks = self._marked(messages)
        return self._ids(self._render(safe, True), marks)

    def after(self, heard: Sequence[Message], generation_prompt: bool) -> list[int]:
        """Ids from the end of the learner's text to the beginning of its next."""
        safe, marks = self._marked(heard)
        before = [Message(role=USER, content="a"), Message(role=ASSISTANT, content=SENTINEL)]
        text = self._render([*before, *safe], generation_prompt)
        if text.count(SENTINEL) != 1:
            raise ValueError(
                "the chat template must give the assistant's text once; it gives it "
                f"{text.count(SENTINEL)} times. Choose another template."
            )
        return self._ids(text.partition(SENTINEL)[2], marks, SAID)

    def text(self, text: str) -> list[int]:
        """Ids of what the learner says, none of them special."""
        (safe,), marks = self._marked([Message(role=ASSISTANT, content=text)])
        return self._ids(safe["content"], marks, self._before_answer)

    @cached_property
    def _before_answer(self) -> str:
        """The template's text before an answer; "" if a space ends it, which the answer has."""
        answer = Message(role=ASSISTANT, content=SENTINEL)
        text = self._render([Message(role=USER, content="a"), answer], False)
        before = text.partition(SENTINEL)[0]
        return "" if before.endswith(" ") else before

    def _marked(self, messages: Sequence[Message]) -> tuple[list[Message], dict[str, str]]:
        """The messages with a character in the place of each special token in their texts."""
        texts = [message["content"] for message in messages]
        found = sorted({name for text in texts for name in self._in_text.findall(text)})
        used = {*"".join(texts)}
        free = (chr(code) for code in PRIVATE if chr(code) not in used)
        marks = dict(zip(found, free))
        safe = [self._in_text.sub(lambda name: marks[name[0]], text) for text in texts]
        marked = [Message(role=m["role"], content=text) for m, text in zip(messages, safe)]
        return marked, {mark: name for name, mark in marks.items()}

    def _ids(self, text: str, marks: Mapping[str, str], before: str = "") -> list[int]:
        """Ids of a template's text after another, in which each mark is a special token as text."""
        ids: list[int] = []
        for part in re.split(f"([{''.join(marks)}])", text) if marks else [text]:
            name = marks.get(part)
            ids += self._as_text(name, before) if name else self._encode(part, before)
            before = name[1:] if name else part or before
        return ids

    def _encode(self, text: str, before: str = "", **options: Any) -> list[int]:
        """Ids of a text, without the space that some tokenizers put before each.

        As within a whole text, it is put after a special token alone.
        """
        alone = self._encoded(text, **options)
        context = self._in_text.split(before)[-1][-CONTEXT:]
        if not context or not self._puts_spaces:
            return alone
        known, both = (self._encoded(t, **options) for t in (context, context + text))
        return both[len(known) :] if both[: len(known)] == known else alone

    @cached_property
    def _puts_spaces(self) -> bool:
        """True where a letter is another token at the beginning than after a full stop."""
        stop, letter, both = map(self._encoded, (".", "a", ".a"))
        after = both[len(stop) :]
        return bool(stop and after) and both[: len(stop)] == stop and after != letter

    def _encoded(self, text: str, **options: Any) -> list[int]:
        return [*self.tokenizer(text, add_special_tokens=False, **options)["input_ids"]]

    def _as_text(self, name: str, before: str) -> list[int]:
        ids = self._encode(name, before, split_special_tokens=True)
        if self._special_ids.isdisjoint(ids):
            return ids
        raise ValueError(
            f"somebody has said {name!r}, a special token of the tokenizer, which would end or "
            "begin a turn. Take a tokenizer that knows split_special_tokens."
        )

    @cached_property
    def _reads_system(self) -> bool:
        """False for a template that refuses the system's text, or leaves it out."""
        brief = Message(role=SYSTEM, content=SENTINEL)
        try:
            return SENTINEL in self._apply([brief, Message(role=USER, content="a")], True)
        except Exception:  # a template raises what it likes
            return False

    def _render(self, messages: Sequence[Message], generation_prompt: bool) -> str:
        try:
            if messages and messages[0]["role"] == SYSTEM and not self._reads_system:
                messages = merged(messages)
            return self._apply(messages, generation_prompt)
        except Exception as error:
            raise _refused(error) from error

    def _apply(self, messages: Sequence[Message], generation_prompt: bool) -> str:
        text = self.tokenizer.apply_chat_template(
            [*messages],
            tokenize=False,
            add_generation_prompt=generation_prompt,
            **self._template,
        )
        return str(text)


def turn_ends(model: Any, tokenizer: Any) -> set[int]:
    """Tokens that end a turn of a causal language model: its own, its tokenizer's, its template's.

    A template that cannot write an answer within a chat names none.
    """
    ends = model.generation_config.eos_token_id
    own = {tokenizer.eos_token_id, *(ends if isinstance(ends, list) else [ends])} - {None}
    try:
        return own.union(TemplateForm(tokenizer, {}).ends if tokenizer.chat_template else ())
    except ValueError:
        return own


def merged(messages: Sequence[Message]) -> list[Message]:
    """The chat with the system's text before the first user's, for templates without a system."""
    brief, first, *rest = messages
    both = f"{brief['content']}\n\n{first['content']}"
    return [Message(role=first["role"], content=both), *rest]


def _refused(error: Exception) -> ValueError:
    return ValueError(
        f"the chat template refuses the chat: {error}. Set another tokenizer.chat_template."
    )
