"""Write all that is built in for tasks of language: dialogues, comments, byte-pair encoding.

    python scripts/build_corpora.py [--out FOLDER]

`build_everyday.py` and `build_comments.py` say what their files hold. The encoding is trained on
the training splits of both, by `build_bpe.py`. The same texts give the same bytes.
"""

import argparse
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import build_comments
import build_everyday
from build_bpe import train_bpe
from build_everyday import ROOT, write_rows

from dialgym.io.files import write_text

TOKENS = 1024
BPE = ROOT / "dialgym" / "language" / "everyday.json"


def training_texts(rows: Sequence[Mapping[str, Any]]) -> Iterator[str]:
    """The turns of dialogues, the parents and comments, of the training split."""
    for row in rows:
        if row["split"] == "train":
            yield from row["turns"] if "turns" in row else (row["parent"], row["comment"])


def main() -> None:
    """Write the three files."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--out", type=Path, default=ROOT, help="folder in place of the repository")
    out = parser.parse_args().out
    dialogues, comments = build_everyday.build(), build_comments.build()
    write_rows(dialogues, out / build_everyday.OUT.relative_to(ROOT))
    write_rows(comments, out / build_comments.OUT.relative_to(ROOT))
    bpe = train_bpe(training_texts([*dialogues, *comments]), TOKENS)
    write_text(out / BPE.relative_to(ROOT), bpe.to_str(pretty=False))


if __name__ == "__main__":
    main()
