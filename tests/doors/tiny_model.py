"""A language model of a few thousand weights from nothing, and a tokenizer of a game."""

from itertools import product

import numpy as np
import tokenizers
import torch
from transformers import GPT2Config, GPT2LMHeadModel, PreTrainedTokenizerFast

import dialgym
from dialgym.language.chat_tokens import encode
from dialgym.simulators import shown_to

TEMPLATE = (
    "{% for m in messages if m.role != 'system' %}<{{ m.role }}>{{ m.content }}<end>{% endfor %}"
    "{% if add_generation_prompt %}<assistant>{% endif %}"
)
"""It leaves out the brief, of which so small a model reads nothing."""
SPECIAL = ["<unk>", "<pad>", "<user>", "<assistant>", "<end>"]
COLOURS = [" ".join(letters) for letters in product("gyb", repeat=5)]


def tokenizer_of(env_id):
    """A tokenizer whose tokens are the words of a Wordle and the answers of its host."""
    words = [str(word) for word in dialgym.Chat(env_id).task.answers]
    tokens = dict.fromkeys([*SPECIAL, *words, *COLOURS, "invalid", "Begin.", "a"])
    scores = [(token, -1.0) for token in tokens]
    core = tokenizers.Tokenizer(tokenizers.models.Unigram(scores, unk_id=0))
    core.decoder = tokenizers.decoders.Fuse()
    core.add_special_tokens(SPECIAL)
    made = PreTrainedTokenizerFast(
        tokenizer_object=core,
        unk_token="<unk>",
        eos_token="<end>",
        pad_token="<pad>",
        additional_special_tokens=["<user>", "<assistant>"],
    )
    made.chat_template = TEMPLATE
    return made


def model_of(tokenizer, width=64, layers=2, positions=1024):
    """A GPT-2 with random weights."""
    torch.manual_seed(0)
    none = {"resid_pdrop": 0, "embd_pdrop": 0, "attn_pdrop": 0, "bos_token_id": None}
    ids = {"eos_token_id": tokenizer.eos_token_id, "pad_token_id": tokenizer.pad_token_id}
    return GPT2LMHeadModel(
        GPT2Config(
            vocab_size=len(tokenizer),
            n_positions=positions,
            n_embd=width,
            n_layer=layers,
            n_head=4,
            **none,
            **ids,
        )
    )


def games_of(env_id, count, expert, share, seed=10_000):
    """Chats of an expert, in whose place a random speaker says a share of the turns."""
    chat, rng = dialgym.Chat(env_id), np.random.default_rng(seed)
    task = chat.task
    speakers = [task.speaker_named(chat.learner, name) for name in (expert, "random")]
    for number in range(seed, seed + count):
        chat.reset(seed=number)
        over = False
        while not over:
            speaker = speakers[int(rng.random() < share)]
            seen = shown_to(speaker, task, chat.env.dialogue.state)
            over = chat.step(speaker.reply(task, seen, rng)).over
        yield [message.copy() for message in chat.messages], chat.said


def clone(model, tokenizer, games, steps, rate=3e-3):
    """Teach a model what was said in games, by cross-entropy of the learner's ids."""
    chats = [encode(messages, tokenizer, said) for messages, said in games]
    rng, optimiser = np.random.default_rng(0), torch.optim.AdamW(model.parameters(), rate)
    for _ in range(steps):
        batch = [chats[at] for at in rng.integers(len(chats), size=64)]
        width = max(len(chat.ids) for chat in batch)
        ids = torch.full((64, width), tokenizer.pad_token_id)
        labels = torch.full((64, width), -100)
        for row, chat in enumerate(batch):
            ids[row, : len(chat.ids)] = torch.tensor(chat.ids)
            own = torch.tensor(chat.is_learner)
            labels[row, : len(own)][own] = torch.tensor(chat.ids)[own]
        loss = model(ids, labels=labels).loss
        optimiser.zero_grad()
        loss.backward()
        optimiser.step()
