"""Messages and masks of a dialogue that a door tells as token ids, by a tokenizer of characters."""

from dialgym.testing.agreement import lines_of, played
from tests.support.chat_templates import tokenizer_with

TOKENIZER = tokenizer_with("chatml")
(BEGIN,), (END,) = (TOKENIZER(name)["input_ids"] for name in ("<|im_start|>", "<|im_end|>"))


def sampled(texts):
    """Ids of the turns that a model samples; every other one with the token that ends it."""
    for number, text in enumerate(texts):
        yield TOKENIZER(text, split_special_tokens=True)["input_ids"] + [END] * (number % 2)


def parsed(ids, masks):
    """Messages of a chat by its ids, and the positions of those that the mask names, each whole."""
    messages, said = [], []
    starts = [at for at, token in enumerate(ids) if token == BEGIN]
    for start, stop in zip(starts, [*starts[1:], len(ids)]):
        inner = ids[start + 1 : stop]
        ends = inner.index(END) if END in inner else len(inner)
        role, _, content = TOKENIZER.decode(inner[:ends]).partition("\n")
        own = masks[start + 2 + len(role) : start + 1 + ends]  # characters are tokens
        assert len({*own}) < 2, "a message is one party's alone"
        said += [len(messages)] * any(own)
        messages.append({"role": role, "content": content})
    return messages, said


def record_of_tokens(opening, ids, masks, told):
    """The record of a dialogue by its ids, and by what `TokenChat.outcome` tells beside them."""
    messages, said = parsed(ids, masks)
    if told["closing"]:
        messages.append({"role": "user", "content": told["closing"]})
    return played(
        lines_of(opening),
        messages,
        told["turn_rewards"],
        said,
        told["components"],
        (bool(told["terminated"]), bool(told["truncated"])),
        bool(told["success"]),
    )
