"""Reports on tapes, and tapes that are made of others."""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from dialgym.io.files import write_atomically
from dialgym.io.tape import Tape, key_of, line_of, read_records

APART = ("drawn", "turn")
"""Entries of a record's request that were not sent: they tell equal requests apart."""


@dataclass(frozen=True)
class TapeReport:
    """Contents of a tape.

    Attributes:
        answers: different ones.
        again: records of a key that was there already; the first holds.
        torn: unfinished lines.
        models: answers by model.
        turns: answers by the turn of the dialogue.
        prompt_tokens, answer_tokens: in all.
        empty: answers without a word.
        cut: answers that ended at the most tokens.
        digest: see `Tape.digest`.
        problems: records whose key is not that of their request.
    """

    answers: int
    again: int
    torn: int
    models: Mapping[str, int]
    turns: Mapping[int, int]
    prompt_tokens: int
    answer_tokens: int
    empty: int
    cut: int
    digest: str
    problems: Sequence[str]

    def __str__(self) -> str:
        models = ", ".join(f"{name} {count:,}" for name, count in self.models.items())
        return (
            f"{self.answers:,} answers ({models or 'of no model'}), turns 0 to "
            f"{max(self.turns, default=0)}, {self.prompt_tokens:,} + {self.answer_tokens:,} "
            f"tokens\n{self.empty:,} empty, {self.cut:,} cut at the most tokens, {self.again:,} "
            f"recorded again, {self.torn:,} unfinished lines\nsha256 {self.digest}"
        )


def describe_tape(path: Path) -> TapeReport:
    """Read a tape whole, and check each record.

    Raises:
        ValueError: it is no tape, or a record was changed since.
        FileNotFoundError: there is none.
    """
    read = list(read_records(path))
    records = [record for record in read if record is not None]
    first = {record["key"]: record for record in reversed(records)}
    answers = [record["answer"] for record in first.values()]
    requests = [record["request"] for record in first.values()]
    return TapeReport(
        len(first),
        len(records) - len(first),
        len(read) - len(records),
        Counter(sorted(str(request.get("model")) for request in requests)),
        Counter(sorted(int(request.get("turn", 0)) for request in requests)),
        sum(answer["prompt_tokens"] for answer in answers),
        sum(answer["answer_tokens"] for answer in answers),
        sum(not answer["text"].strip() for answer in answers),
        sum(answer["finish_reason"] == "length" for answer in answers),
        Tape(path, "replay").digest,
        [*_problems(records)],
    )


def _problems(records: Sequence[Mapping[str, Any]]) -> Iterator[str]:
    """Records that would not be found by the request that they hold."""
    for number, record in enumerate(records, 1):
        sent = {name: value for name, value in record["request"].items() if name not in APART}
        apart = [int(record["request"].get(name, 0)) for name in APART]
        if record["key"] != key_of(sent, *apart):
            yield f"record {number}: its key is not that of its request"


def merge_tapes(out: Path, sources: Sequence[Path]) -> dict[str, int]:
    """Write a tape with the answers of others, in the order of their keys.

    So the same answers are the same bytes, in whichever order they were recorded.

    Returns:
        Counts: ``answers``; ``again``, records that repeat one; ``differing``, those of another
        answer to the same request. The first one holds, that of the first tape.

    Raises:
        ValueError: a source is no tape, or a record was changed since; or `out` is there.
        FileNotFoundError: there is no such source.
    """
    if out.exists():
        raise ValueError(f"merge: {str(out)!r} is there already. Give another path.")
    kept: dict[str, dict[str, Any]] = {}
    counts = {"answers": 0, "again": 0, "differing": 0}
    for source in sources:
        for record in filter(None, read_records(source)):
            before = kept.setdefault(record["key"], record)
            counts["again"] += before is not record
            counts["differing"] += before["answer"] != record["answer"]
    content = b"".join(line_of(kept[key]) for key in sorted(kept))
    write_atomically(out, lambda temporary: temporary.write_bytes(content))
    return {**counts, "answers": len(kept)}
