"""Train a byte-pair encoding on texts, one a line, and write it as a ``tokenizer.json``.

    python scripts/build_bpe.py TEXTS --size 1024 --out dialgym/language/everyday.json

The built-in one is made by `scripts/build_corpora.py`, on the built-in texts.
"""

import argparse
from collections.abc import Iterable
from pathlib import Path

from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers

from dialgym.files import write_text

PRINTABLE = [chr(i) for i in range(33, 127)]
SPACE = "Ġ"  # what byte-level encodings write for a space


def train_bpe(texts: Iterable[str], size: int) -> Tokenizer:
    """A byte-level BPE of `size` tokens; printable ASCII is always in it, all else is unknown."""
    bpe = Tokenizer(models.BPE(unk_token="<unk>"))
    bpe.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    bpe.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=size,
        special_tokens=["<unk>"],
        initial_alphabet=[SPACE, *PRINTABLE],
        limit_alphabet=len(PRINTABLE) + 1,
        show_progress=False,
    )
    bpe.train_from_iterator(texts, trainer)
    return bpe


def main() -> None:
    """Read the arguments, train, write."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("texts", type=Path, help="a UTF-8 file of texts, one a line")
    parser.add_argument("--size", type=int, default=1024, help="tokens of the vocabulary")
    parser.add_argument("--out", type=Path, required=True)
    arguments = parser.parse_args()
    bpe = train_bpe(arguments.texts.read_text("utf-8").splitlines(), arguments.size)
    write_text(arguments.out, bpe.to_str(pretty=False))


if __name__ == "__main__":
    main()
