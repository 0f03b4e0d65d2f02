"""A tokenizer and limits for dialogues, and dialogues within them."""

import unicodedata
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import cache
from typing import NamedTuple

import numpy as np

from dialgym.datasets.foreign.import_report import ImportReport
from dialgym.datasets.foreign.speakers import ImportedDialogue
from dialgym.language import Tokenizer
from dialgym.language.text import CHARSET, UNKNOWN, plain
from dialgym.language.tokenizers import BPETokenizer, make_tokenizer, train_bpe
from dialgym.tasks.base import SYSTEM, USER
from dialgym.tasks.logged.corpus import Sizes

BPE = "tokenizer.json"
LOST = 0.02
"""The share of characters that ASCII may lose of a corpus; beyond it, its own script is kept."""
STEP = 32
"""Windows are multiples of it."""
PARTIES = (SYSTEM, USER)
JOINERS = "\N{ZERO WIDTH NON-JOINER}\N{ZERO WIDTH JOINER}"
"""Kept, though they cannot be printed: Persian, the scripts of India and emoji need them."""
LONGEST_TOKEN = 32
"""Characters that a token may stand for, on average, in the longest utterance."""
SHOWN = 3
"""Characters that were left out, named in the report."""
Write = Callable[[str], str]
"""Brings a text to a charset."""


class Sized(NamedTuple):
    """Dialogues and what they fit into.

    Attributes:
        dialogues: their texts in the charset.
        sizes: see `dialgym.tasks.logged.corpus.Sizes`.
        window: tokens of the longest one, rounded up.
        bpe: the file of the tokenizer that was made for them; None where it was given.
    """

    dialogues: list[ImportedDialogue]
    sizes: Sizes
    window: int
    bpe: str | None


def sized(
    dialogues: Sequence[ImportedDialogue],
    tokenizer: str | None,
    vocabulary: int,
    utterance_tokens: int,
    window: int,
    report: ImportReport,
) -> Sized:
    """The dialogues within limits.

    Args:
        dialogues: as people wrote them.
        tokenizer: as `make_tokenizer` takes it; None makes one of their texts.
        vocabulary: tokens of one that is made.
        utterance_tokens: most tokens of an utterance; the rest of it is cut off.
        window: most tokens of a dialogue; the oldest turns of a longer one are left out.
        report: is told of both.
    """
    dialogues, charset = in_charset(dialogues, report)
    dialogues = within_reach(dialogues, dict.fromkeys(PARTIES, utterance_tokens), report)
    texts = [turn.text for dialogue in dialogues for turn in dialogue.turns]
    bpe = None
    if tokenizer is None:
        bpe = train_bpe(texts, vocabulary, all_bytes=charset != CHARSET).to_str()
        made: Tokenizer = BPETokenizer.from_json(bpe)
    else:
        made = make_tokenizer(tokenizer, charset)
    report.add("tokens", f"{made.vocab_size:,} of {_name(tokenizer)}")
    counts = [np.array([len(made.encode(t.text)) for t in d.turns]) for d in dialogues]
    limits = _limits(dialogues, counts, utterance_tokens, report)
    shorter, used = _within(dialogues, counts, limits, window, report)
    sizes = _sizes(shorter, charset, limits, tokenizer or f"bpe:{BPE}")
    least = 2 + sum(limits.values())
    return Sized(shorter, sizes, max(-(-max(used) // STEP) * STEP, least), bpe)


def within_reach(
    dialogues: Iterable[ImportedDialogue], limits: Mapping[str, int], report: ImportReport
) -> list[ImportedDialogue]:
    """Cut utterances to lengths that may fit the token limits of their party.

    A text without end is not given to a tokenizer as a whole: it may take the square of its length.
    """
    shortened, cut = [], 0
    for dialogue in dialogues:
        room = [LONGEST_TOKEN * limits[turn.party] for turn in dialogue.turns]
        beyond = [len(turn.text) > most for turn, most in zip(dialogue.turns, room)]
        if any(beyond):
            pairs = zip(dialogue.turns, room)
            turns = [turn._replace(text=turn.text[:most].rstrip()) for turn, most in pairs]
            dialogue = dialogue._replace(turns=turns)
        cut += sum(beyond)
        shortened.append(dialogue)
    if cut:
        report.add("cut", f"{cut:,} utterances at {LONGEST_TOKEN} characters for each token")
    return shortened


def _name(tokenizer: str | None) -> str:
    return "a byte-pair encoding of these dialogues" if tokenizer is None else repr(tokenizer)


def in_charset(
    dialogues: Sequence[ImportedDialogue], report: ImportReport
) -> tuple[list[ImportedDialogue], str]:
    """The dialogues on lines of one charset: ASCII, or their own where that would lose much."""
    ascii_count = written = 0
    for dialogue in dialogues:
        for turn in dialogue.turns:
            written += sum(map(len, turn.text.split()))
            ascii_count += sum(map(len, plain(turn.text).split()))
    ascii_only = ascii_count >= (1 - LOST) * written
    write = plain if ascii_only else _tidy
    _tell_lost(dialogues, write, report)
    rewritten = [_rewritten(dialogue, write, report) for dialogue in dialogues]
    whole = [dialogue for dialogue in rewritten if dialogue is not None]
    if not whole:
        raise report.nothing_left()
    if ascii_only:
        return whole, CHARSET
    used = {char for dialogue in whole for turn in dialogue.turns for char in turn.text}
    report.add("text", f"in a script of its own, {len(used | set(CHARSET)):,} characters")
    return whole, "".join(sorted(used | set(CHARSET)))


def _tidy(text: str) -> str:
    """A text on one line, without unprintable characters."""
    chars = unicodedata.normalize("NFC", text)
    printable = (c for c in chars if c in JOINERS or c.isspace() or c.isprintable())
    return " ".join("".join(printable).replace(UNKNOWN, "").split())


def _tell_lost(dialogues: Sequence[ImportedDialogue], write: Write, report: ImportReport) -> None:
    """Tell which characters, but for accents, are left out where texts are written by `write`.

    Those that were broken when they were read have been told.
    """
    lost: Counter[str] = Counter()
    first, written = "", cache(write)
    for dialogue in dialogues:
        texts = [turn.text for turn in dialogue.turns if not _is_plain(turn.text)]
        used = Counter("".join(texts))
        gone = {
            char: n
            for char, n in used.items()
            if not (char.isspace() or unicodedata.combining(char) or written(char))
        }
        gone.pop(UNKNOWN, None)
        lost.update(gone)
        first = first or (dialogue.where if gone else "")
    if lost:
        shown = ", ".join(_name_of(char) for char, _ in lost.most_common(SHOWN))
        report.leave_out(f"characters, such as {shown}", first, lost.total())


def _is_plain(text: str) -> bool:
    """Return True if no character of a text is left out: most texts need no second look."""
    return text.isascii() and text.isprintable()


def _name_of(char: str) -> str:
    return unicodedata.name(char, f"U+{ord(char):04X}")


def _rewritten(
    dialogue: ImportedDialogue, write: Write, report: ImportReport
) -> ImportedDialogue | None:
    turns = [turn._replace(text=write(turn.text)) for turn in dialogue.turns]
    if all(turn.text for turn in turns):
        return dialogue._replace(turns=turns)
    report.leave_out("dialogues with an utterance of other characters alone", dialogue.where)
    return None


def _limits(
    dialogues: Sequence[ImportedDialogue],
    counts: Sequence[np.ndarray],
    most: int,
    report: ImportReport,
) -> dict[str, int]:
    """Most tokens of an utterance of each party, ``<end>`` included."""
    longest = dict.fromkeys(PARTIES, 2)
    cut = 0
    for dialogue, sizes in zip(dialogues, counts):
        for turn, size in zip(dialogue.turns, sizes.tolist()):
            longest[turn.party] = max(longest[turn.party], size + 1)
            cut += size + 1 > most
    if cut:
        report.add("cut", f"{cut:,} utterances at {most} tokens")
    return {party: min(size, most) for party, size in longest.items()}


def _within(
    dialogues: Sequence[ImportedDialogue],
    counts: Sequence[np.ndarray],
    limits: dict[str, int],
    window: int,
    report: ImportReport,
) -> tuple[list[ImportedDialogue], list[int]]:
    """The dialogues without the oldest turns that the window has no room for, and their tokens."""
    shorter, used = [], []
    for dialogue, sizes in zip(dialogues, counts):
        costs = [
            1 + min(size + 1, limits[turn.party])
            for turn, size in zip(dialogue.turns, sizes.tolist())
        ]
        rest = np.cumsum(costs[::-1])[::-1]  # from each turn to the end
        start = min(int((rest > window).sum()), max(len(costs) - 2, 0))
        turns = dialogue.turns[start:]
        if start:
            report.add("shortened", f"dialogues to their last {window} tokens")
            lost = sum(turn.reward for turn in dialogue.turns[:start])
            if lost:  # what was earned before counts for nobody
                report.add("shortened", "dialogues of which rewards by turn were left out too")
        if any(turn.party == SYSTEM for turn in turns) and rest[start] <= window:
            shorter.append(dialogue._replace(turns=turns))
            used.append(int(rest[start]))
        else:
            report.leave_out("dialogues too long for the window", dialogue.where)
    if not shorter:
        raise ValueError(
            f"import: no dialogue fits into a window of {window} tokens. Give a larger --window, "
            "or shorter utterances (--utterance-tokens)."
        )
    return shorter, used


def _sizes(
    dialogues: Sequence[ImportedDialogue], charset: str, limits: dict[str, int], tokenizer: str
) -> Sizes:
    heard, longest = dict.fromkeys(PARTIES, 1), dict.fromkeys(PARTIES, 1)
    for dialogue in dialogues:
        for party in PARTIES:
            texts = [turn.text for turn in dialogue.turns if turn.party == party]
            heard[party] = max(heard[party], len(texts))
            longest[party] = max([longest[party], *map(len, texts)])
    return Sizes(charset, heard[SYSTEM], heard, longest, limits, tokenizer)
