"""Train a byte-pair encoding on texts, one a line, and write it as a ``tokenizer.json``.

    python scripts/build_bpe.py TEXTS --size 1024 --out dialgym/language/everyday.json

The built-in one is made by `scripts/build_corpora.py`, on the built-in texts.
"""

import argparse
from pathlib import Path

from dialgym.io.files import write_text
from dialgym.language.tokenizers import train_bpe


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
