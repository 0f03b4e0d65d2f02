"""The player of TRL's door: its rollout function, and a trainer whose model says the texts."""

from types import SimpleNamespace

from dialgym.bridges import trl
from dialgym.bridges.seeded_prompts import seeded_rows
from dialgym.testing.agreement import lines_of, played
from tests.support.chat_templates import tokenizer_with

TOKENIZER = tokenizer_with("chatml")
LENGTH = 10**6


def play(env_id, settings, seed, texts):
    """Play the texts; every other turn is sampled with the token that ends it."""
    (row,) = seeded_rows(env_id, 1, seed=seed, **settings)
    script = iter(enumerate(texts))
    (end,) = TOKENIZER("<|im_end|>")["input_ids"]

    def generate(trainer, prefixes, longest):
        number, text = next(script)
        ids = TOKENIZER(text, split_special_tokens=True)["input_ids"] + [end] * (number % 2)
        return [ids], [[-1.0] * len(ids)]

    rollout = trl.rollout_func(env_id, generate=generate, **settings)
    args = SimpleNamespace(max_completion_length=LENGTH)
    trainer = SimpleNamespace(args=args, processing_class=TOKENIZER)
    columns = rollout([row["prompt"]], trainer)
    (told,) = [dict(zip(columns, values)) for values in zip(*columns.values())]
    masks = [0] * len(told["prompt_ids"]) + told["env_mask"]
    assert told["logprobs"] == [-1.0 if own else 0.0 for own in told["env_mask"]]
    messages, said = parsed(told["prompt_ids"] + told["completion_ids"], masks, end)
    return played(
        lines_of(row["prompt"]),
        messages,
        told["turn_rewards"],
        said,
        told["components"],
        (told["terminated"], told["truncated"]),
        told["success"],
        closes=False,
    )


def parsed(ids, masks, end):
    """Messages of a chat by its ids, and the positions of those that the mask names, each whole."""
    (begin,) = TOKENIZER("<|im_start|>")["input_ids"]
    messages, said = [], []
    starts = [at for at, token in enumerate(ids) if token == begin]
    for start, stop in zip(starts, [*starts[1:], len(ids)]):
        inner = ids[start + 1 : stop]
        ends = inner.index(end) if end in inner else len(inner)
        role, _, content = TOKENIZER.decode(inner[:ends]).partition("\n")
        own = masks[start + 2 + len(role) : start + 1 + ends]  # characters are tokens
        assert len({*own}) < 2, "a message is one party's alone"
        said += [len(messages)] * any(own)
        messages.append({"role": role, "content": content})
    return messages, said
