"""Training a byte-pair encoding on the texts at hand."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from dialgym.optional import require

PRINTABLE = [chr(i) for i in range(33, 127)]
SPACE = "Ġ"  # what byte-level encodings write for a space


def train_bpe(texts: Iterable[str], size: int) -> Any:
    """A byte-level BPE of `size` tokens, as an object of the `tokenizers` library.

    Printable ASCII is always in it, all else is unknown. ``save(path)`` writes the file that
    ``tokenizer="bpe:PATH"`` takes.

    Raises:
        ImportError: `tokenizers` is not installed.
    """
    tokenizers = require("tokenizers", "rewards", "training a BPE tokenizer")
    bpe = tokenizers.Tokenizer(tokenizers.models.BPE(unk_token="<unk>"))
    bpe.pre_tokenizer = tokenizers.pre_tokenizers.ByteLevel(add_prefix_space=False)
    bpe.decoder = tokenizers.decoders.ByteLevel()
    trainer = tokenizers.trainers.BpeTrainer(
        vocab_size=size,
        special_tokens=["<unk>"],
        initial_alphabet=[SPACE, *PRINTABLE],
        limit_alphabet=len(PRINTABLE) + 1,
        show_progress=False,
    )
    bpe.train_from_iterator(texts, trainer)
    return bpe
