"""Build Wordle's word lists from SCOWL (Debian package `scowl`, read from /usr/share/dict/scowl).

    python scripts/build_words.py [--scowl DIR] [--out dialgym/tasks/wordle/words]

answers.txt: common words, the most common first: SCOWL sizes up to 50 (English and American), no
regular plurals or third persons, no regular past forms, nothing offensive. guesses.txt: sizes up
to 70, alphabetical, the answers included; size 80 would bring lists that have terms of their own.
Words of one size are in the order of their SHA-256, so that the first N words are an unbiased
choice of the N most common.
"""

import argparse
import hashlib
import re
from pathlib import Path

SIZES = (10, 20, 35, 40, 50, 55, 60, 70)
ANSWER_SIZE, GUESS_SIZE = 50, 70
DIALECTS = ("english", "american")
WORD = re.compile(r"[a-z]{5}")

OFFENSIVE_STEMS = (
    "bitch", "boob", "chink", "cock", "cunt", "dago", "dyke", "fag", "fuck", "gook", "homo",
    "horny", "kike", "lesb", "negro", "nigg", "paki", "penis", "piss", "poof", "porn", "prick",
    "pussy", "queer", "rape", "rapist", "semen", "sex", "shit", "slut", "spic", "sperm", "tits",
    "titt", "turd", "vagin", "wank", "whor", "wog",
)  # fmt: skip
INNOCENT = {"spice", "spicy", "peacock", "scrape", "drape", "grape"}


def words_of(folder: Path, size: int) -> set[str]:
    """The five-letter words that SCOWL first lists at `size`."""
    found: set[str] = set()
    for dialect in DIALECTS:
        path = folder / f"{dialect}-words.{size}"
        if path.exists():
            text = path.read_text(encoding="latin-1")
            found.update(word for word in text.split() if WORD.fullmatch(word))
    return found


def all_words(folder: Path) -> set[str]:
    """Every word of any length up to the answers' size, to find the stems of inflected forms."""
    paths = (folder / f"{d}-words.{s}" for d in DIALECTS for s in SIZES if s <= ANSWER_SIZE)
    return {word for path in paths if path.exists() for word in path.read_text("latin-1").split()}


def is_inflected(word: str, known: set[str]) -> bool:
    """A regular plural, third person or past form of a known word."""
    plural = word.endswith("s") and not word.endswith(("ss", "us", "is"))
    stems = {word[:-1], word[:-2]}
    if plural and word.endswith("ies"):
        stems.add(word[:-3] + "y")
    return (plural or word.endswith("ed")) and bool(stems & known)


def is_offensive(word: str) -> bool:
    return word not in INNOCENT and any(stem in word for stem in OFFENSIVE_STEMS)


def build(folder: Path) -> tuple[list[str], list[str]]:
    """The answers, the most common first, and the guesses, alphabetical."""
    known, answers, guesses = all_words(folder), [], set()
    for size in SIZES:
        fresh = words_of(folder, size) - guesses
        guesses |= fresh
        if size <= ANSWER_SIZE:
            ordered = sorted(fresh, key=lambda word: hashlib.sha256(word.encode()).digest())
            answers += [w for w in ordered if not is_inflected(w, known) and not is_offensive(w)]
    return answers, sorted(guesses)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("--scowl", type=Path, default=Path("/usr/share/dict/scowl"))
    parser.add_argument("--out", type=Path, default=Path("dialgym/tasks/wordle/words"))
    args = parser.parse_args()
    if not (args.scowl / "english-words.10").exists():
        raise SystemExit(
            f"{args.scowl} holds no SCOWL lists (expected english-words.10 ...). "
            "Install Debian's package scowl, or give --scowl."
        )
    answers, guesses = build(args.scowl)
    args.out.mkdir(parents=True, exist_ok=True)
    for name, words in (("answers.txt", answers), ("guesses.txt", guesses)):
        (args.out / name).write_text("\n".join(words) + "\n", encoding="ascii")
        print(f"{name}: {len(words)} words")


if __name__ == "__main__":
    main()
