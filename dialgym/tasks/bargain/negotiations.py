"""Negotiations of people, read from the files of three corpora.

| corpus | game | file |
|---|---|---|
| Deal or No Deal (Lewis et al., 2017) | items | lines with ``<input>``, ``<dialogue>`` ... |
| CaSiNo (Chawla et al., 2021) | goods | a JSON list with ``chat_logs`` and ``participant_info`` |
| CraigslistBargain (He et al., 2018) | price | a JSON list with ``scenario`` and ``events`` |
"""

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import groupby
from operator import itemgetter
from pathlib import Path
from typing import Any, NamedTuple

from dialgym.io.archives import ArchiveMember, parts_of
from dialgym.io.files import parse_json
from dialgym.tasks.bargain.games import LISTS, STEPS, Numbers

Line = tuple[str, str]
"""Speaker and text."""
PROPOSED, ACCEPTED, REJECTED, LEFT = "[propose] ", "[accept]", "[reject]", "[leave]"
"""Lines of what was done by a button; the first goes on with what its speaker gets."""
KINDS = ("Food", "Water", "Firewood")
RANKS = {"High": 5, "Medium": 4, "Low": 3}
BUTTONS = {"accept": ACCEPTED, "reject": LEFT, "quit": LEFT}
"""Of Craigslist, where a rejected offer ends the dialogue."""
DEALS = {"Accept-Deal": ACCEPTED, "Reject-Deal": REJECTED, "Walk-Away": LEFT}
_FIELD = re.compile(r"<(\w+)> (.*?) </\1>")
_CHOSEN = re.compile(r"item[0-2]=(\d+)")
_PRICE = re.compile(r"(\d[\d,]*+(?:\.\d+)?+)(?! ?(?:%|percent|per cent))( ?k\b)?", re.IGNORECASE)


class Negotiation(NamedTuple):
    """A dialogue of two people.

    Attributes:
        split: ``train``, ``validation`` or ``test``.
        table: what there is of each kind, or the list price; see `games.Game`.
        values: of system and user, by kind, or the target.
        turns: the texts of both in turns, the system's first.
        deal: what the system gets of each kind, or the price in steps; () if they did not agree.
    """

    split: str
    table: Numbers
    values: tuple[Numbers, Numbers]
    turns: tuple[str, ...]
    deal: Numbers


def read_negotiations(place: Path, game: str) -> Iterator[Negotiation]:
    """The negotiations over a game (its name) in a file, folder or zip; other files are passed by.

    Raises:
        ValueError: a file is damaged; the message names it.
    """
    suffix, mark, read = FORMATS[game]
    for part in parts_of(place):
        if part.suffix == suffix and mark in part.read()[:4096]:
            try:
                for found in read(part):
                    if found.turns:
                        yield found
            except (KeyError, TypeError, IndexError, AttributeError) as error:
                raise ValueError(
                    f"{part.name}: expected negotiations over {game}; one has another form "
                    f"({error!r}). Fetch the file again."
                ) from error


def in_turns(lines: Iterable[Line], first: str) -> tuple[str, ...]:
    """Texts of two speakers in turns, from the first line of `first` on.

    Lines of one speaker in a row are joined; what was done by a button takes the place of words.
    """
    turns = [(who, _joined([text for _, text in said]))
             for who, said in groupby(lines, key=itemgetter(0))]  # fmt: skip
    begin = next((at for at, (who, _) in enumerate(turns) if who == first), len(turns))
    return tuple(text for _, text in turns[begin:])


def _joined(texts: Sequence[str]) -> str:
    done = [text for text in texts if text.startswith("[")]
    return done[-1] if done else " ".join(texts)


def _items(part: ArchiveMember) -> Iterator[Negotiation]:
    """Deal or No Deal: each dialogue once, as it was seen by the party who speaks first."""
    for _, line in part.lines():
        fields = dict(_FIELD.findall(line))
        said = [text.strip().partition(": ")[::2] for text in fields["dialogue"].split("<eos>")]
        if said[0][0] == "YOU":
            own, other = ([int(n) for n in fields[k].split()] for k in ("input", "partner_input"))
            words = [(who, text) for who, text in said if text != "<selection>"]
            shares = [int(count) for count in _CHOSEN.findall(fields["output"])]
            table, values = tuple(own[::2]), (tuple(own[1::2]), tuple(other[1::2]))
            agreed = len(shares) == 2 * len(table)  # what was chosen is missing otherwise
            deal = tuple(shares[: len(table)]) if agreed else ()
            yield Negotiation(_split(part), table, values, in_turns(words, "YOU"), deal)


def _goods(part: ArchiveMember) -> Iterator[Negotiation]:
    """CaSiNo: the party who speaks first is the system."""
    for row in _rows(part):
        lines = [(line["id"], _done(line)) for line in row["chat_logs"]]
        first = lines[0][0]
        second = next(name for name in row["participant_info"] if name != first)
        values = [
            {kind: RANKS[rank] for rank, kind in person["value2issue"].items()}
            for person in (row["participant_info"][name] for name in (first, second))
        ]
        own, other = (tuple(worth[kind] for kind in KINDS) for worth in values)
        deal = _accepted(lines, first)
        yield Negotiation(_split(part), (3, 3, 3), (own, other), in_turns(lines, first), deal)


def _done(line: Mapping[str, Any]) -> str:
    """A line of CaSiNo; a proposal says what its speaker gets."""
    share = (line["task_data"] or {}).get("issue2youget")
    if share:
        return PROPOSED + " ".join(str(int(share[kind])) for kind in KINDS)
    return DEALS.get(line["text"], line["text"])


def _accepted(lines: Sequence[Line], first: str) -> Numbers:
    """Share of the first speaker, if the last line accepts the proposal before it."""
    offers = [line for line in lines if line[1].startswith(PROPOSED)]
    if lines[-1][1] != ACCEPTED or not offers:
        return ()
    who, text = offers[-1]
    share = [int(count) for count in text.removeprefix(PROPOSED).split()]
    return tuple(count if who == first else 3 - count for count in share)


def _price(part: ArchiveMember) -> Iterator[Negotiation]:
    """Craigslist: the buyer is the system; what a seller says before it is left out.

    Prices are told as shares of the list price: those of the messages are scaled with it.
    """
    for row in _rows(part):
        people = {each["personal"]["Role"]: at for at, each in enumerate(row["scenario"]["kbs"])}
        known = [row["scenario"]["kbs"][people[role]] for role in ("buyer", "seller")]
        real = float(known[0]["item"]["Price"])
        table = min(LISTS, key=lambda price: abs(price - real))
        own, other = ((round(STEPS * k["personal"]["Target"] / real),) for k in known)
        lines = [(str(event["agent"]), _said(event, table / real)) for event in row["events"]]
        offer = (row["outcome"].get("offer") or {}).get("price")
        agreed = row["outcome"]["reward"] == 1
        deal = (round(STEPS * offer / real),) if agreed and offer is not None else ()
        turns = in_turns([line for line in lines if line[1]], str(people["buyer"]))
        yield Negotiation(_split(part), (table,), (own, other), turns, deal)


def _said(event: Mapping[str, Any], scale: float) -> str:
    """An event of Craigslist, its prices scaled."""
    if event["action"] == "offer":
        price = event["data"]["price"]
        return f"{PROPOSED}{price * scale:.0f}" if price is not None else ""
    if event["action"] == "message":
        return scaled(event["data"], scale)
    return BUTTONS.get(event["action"], "")


def scaled(text: str, scale: float) -> str:
    """A text with its numbers at another scale: ``13k`` at 0.01 is ``130``; percents stay."""

    def price(found: re.Match[str]) -> str:
        amount = float(found[1].replace(",", "") or 0) * (1000 if found[2] else 1)
        return f"{amount * scale:.0f}"

    return _PRICE.sub(price, text)


def _rows(part: ArchiveMember) -> Sequence[Mapping[str, Any]]:
    rows = parse_json(part.text(), part.name)
    if not isinstance(rows, list):
        raise ValueError(f"{part.name}: expected a list of dialogues; got {type(rows).__name__}.")
    return rows


def _split(part: ArchiveMember) -> str:
    return part.split or "train"


FORMATS: dict[str, tuple[str, bytes, Callable[[ArchiveMember], Iterator[Negotiation]]]] = {
    "items": (".txt", b"<input> ", _items),
    "goods": (".json", b'"chat_logs"', _goods),
    "price": (".json", b'"scenario"', _price),
}
"""By game: the suffix of its files, what they have near the beginning, and their reader."""
