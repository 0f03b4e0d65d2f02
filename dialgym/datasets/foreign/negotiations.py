"""The negotiations of Lewis et al. (2017), "Deal or No Deal?", as rows: a line is one perspective.

``train.txt``, ``val.txt`` and ``test.txt`` hold each dialogue twice, once as either party saw it.
"""

import re
from collections.abc import Iterator, Mapping
from typing import Any

from dialgym.io.archives import ArchiveMember
from dialgym.io.tables import Row, RowLocation
from dialgym.tasks.base import SYSTEM, USER

ITEMS = ("books", "hats", "balls")
SPEAKERS = {"YOU": SYSTEM, "THEM": USER}
MARKS = ("input", "dialogue", "output")
EXPECTED = (
    "<input> three counts with values </input> <dialogue> YOU: ... <eos> THEM: ... </dialogue> "
    "<output> six choices </output>"
)
_BEGIN = b"<input> "
_FIELD = re.compile(r"<(\w+)> (.*?) </\1>")
_CHOSEN = re.compile(r"item([0-2])=(\d+)")


def are_negotiations(part: ArchiveMember) -> bool:
    """Return True if a file is one of them."""
    return part.suffix == ".txt" and part.read().startswith(_BEGIN)


def negotiations_in(part: ArchiveMember) -> Iterator[tuple[RowLocation, Row]]:
    """The dialogues of a file as rows, in which the system is the party who tells.

    The user's first words say in brackets what lies on the table and what it is worth to the
    system. The reward is what the system's share is worth, and 0 without an agreement.

    Raises:
        ValueError: a line is of another form; the message says which.
    """
    for number, line in part.lines():
        location = RowLocation(part.name, number, "line")
        fields = dict(_FIELD.findall(line))
        try:
            yield location, _row(fields)
        except (KeyError, ValueError) as error:
            raise ValueError(f"{location}: expected {EXPECTED}; got {line[:80]!r}.") from error


def _row(fields: Mapping[str, str]) -> Row:
    numbers = [int(number) for number in fields["input"].split()]
    counts, values = numbers[::2], numbers[1::2]
    items = [f"{name} {n} at {worth}" for name, n, worth in zip(ITEMS, counts, values, strict=True)]
    said = [{"speaker": USER, "text": f"[{', '.join(items)}]"}]
    shares = _CHOSEN.findall(fields["output"])
    agreed = len(shares) == 2 * len(ITEMS)
    own = [int(count) for _, count in shares[: len(ITEMS)]]
    points = sum(n * worth for n, worth in zip(own, values)) if agreed else 0
    turns = [_turn(text) for text in fields["dialogue"].split("<eos>")]
    return {"turns": said + turns, "reward": points, "success": agreed}


def _turn(text: str) -> dict[str, Any]:
    speaker, _, words = text.strip().partition(": ")
    return {"speaker": SPEAKERS[speaker], "text": words.replace("<selection>", "[selection]")}
