"""The rows of a pretrained embedding, in the vocabulary of an environment."""

from __future__ import annotations

from collections.abc import Callable
from itertools import chain
from typing import Any

import torch
from torch import Tensor

from dialgym.language.tokenizers import END, FIRST_TEXT, TAGS, HFTokenizer, Tokenizer

# Old vocabulary (rows, d) to new (V, d).
Mapping = Callable[[Tensor], Tensor]


def translate(tokenizer: Tokenizer, own: Any, rows: int) -> Mapping:
    """A map from the embedding of a model (rows, d) to one for `tokenizer` (V, d).

    A token of a Hugging Face tokenizer with the model's own vocabulary keeps its row. Any other is
    the mean of the rows of the pieces that the model's tokenizer makes of its text, as it stands
    within an utterance. ``<end>`` is the model's end of text where it has one, the speaker tags are
    the names of the parties, and what means nothing here, ``<unk>``, PAD and other special tokens,
    is the mean of all rows: the model's own end of text would be as likely as ``<end>``, and end
    nothing. (No hidden state depends on the row of PAD; a row of zeros would make PAD the
    likely next token of models whose logits are all negative, such as GPT-2.)

    Args:
        tokenizer: the environment's.
        own: the model's, of `transformers`.
        rows: how many rows the model's embedding has.

    Raises:
        ValueError: the model's tokenizer has pieces that its embedding does not know, so the two do
            not belong together.
    """
    pieces: list[list[int]] = [[] for _ in range(tokenizer.vocab_size)]
    if own.eos_token_id is not None:
        pieces[END] = [own.eos_token_id]
    for name, token in TAGS.items():
        pieces[token] = _pieces(own, [name])[0]
    if isinstance(tokenizer, HFTokenizer) and same_vocabulary(tokenizer, own):
        text = range(FIRST_TEXT, tokenizer.vocab_size)
        pieces[FIRST_TEXT:] = [
            [] if token in tokenizer.own_specials else [token - FIRST_TEXT] for token in text
        ]
    else:
        texts = [tokenizer.piece(i, False) for i in range(FIRST_TEXT, tokenizer.vocab_size)]
        pieces[FIRST_TEXT:] = _pieces(own, texts)
    _check_rows(pieces, rows, own)
    return lambda table: _means(table, pieces)


def _check_rows(pieces: list[list[int]], rows: int, own: Any) -> None:
    beyond = next((i for ids in pieces for i in ids if i >= rows), None)
    if beyond is not None:
        raise ValueError(
            f"pretrained model {own.name_or_path!r}: its tokenizer has {len(own)} tokens but its "
            f"embedding {rows} rows, so that {beyond} ({own.convert_ids_to_tokens(beyond)!r}) "
            "means nothing to it. The two do not belong together: give the model's own "
            "tokenizer, or resize its embeddings (resize_token_embeddings) and train them."
        )


def same_vocabulary(tokenizer: HFTokenizer, own: Any) -> bool:
    """Return True if token i + 5 of the environment is token i of the model's tokenizer."""
    return tokenizer.tokens == HFTokenizer(own).tokens


def _pieces(own: Any, texts: list[str]) -> list[list[int]]:
    return own(texts, add_special_tokens=False).input_ids if texts else []


def _means(table: Tensor, pieces: list[list[int]]) -> Tensor:
    """The mean of the rows that each token is made of; of all rows where there are none."""
    counts = torch.tensor([len(ids) for ids in pieces])
    owner = torch.repeat_interleave(torch.arange(len(pieces)), counts)
    rows = torch.tensor(list(chain.from_iterable(pieces)), dtype=torch.int64)
    sums = table.new_zeros(len(pieces), table.shape[1]).index_add_(0, owner, table[rows])
    return torch.where(counts[:, None] > 0, sums / counts.clamp(min=1)[:, None], table.mean(0))
