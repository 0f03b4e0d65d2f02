"""Goals in ConvLab's form, a JSON object by domain: written, read and checked."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from dialgym.errors import unknown
from dialgym.tasks.multiwoz.database import CityDatabase
from dialgym.tasks.multiwoz.ontology import BOOKABLE, DAYS, DOMAINS, INFORMABLE, REQUESTABLE
from dialgym.tasks.multiwoz.types import DomainGoal, MultiWOZGoal

ORDER = "domain_ordering"
WHERE = "option 'goal' of MultiWOZ"
PARTS = ("info", "fail_info", "book", "fail_book", "reqt", "booked")
_NOTES = ("message", "topic", "eod")
"""Keys of the goals of the corpus beside domains."""
_MARKS = ("invalid", "pre_invalid", "none")
"""Keys of their constraints beside slots."""
_FORM = "{'hotel': {'info': {'area': 'north'}, 'reqt': ['phone'], 'book': {'day': 'friday', ...}}}"


def goal_as_json(goal: MultiWOZGoal) -> dict[str, Any]:
    """The goal as ConvLab writes it: what is empty is left out, but ``info``."""
    found: dict[str, Any] = {}
    for domain, part in goal.domains.items():
        written = {"info": dict(part.info), "fail_info": dict(part.fail_info)}
        written |= {"book": dict(part.book), "fail_book": dict(part.fail_book)}
        kept: dict[str, Any] = {k: v for k, v in written.items() if v or k == "info"}
        found[domain] = kept | ({"reqt": list(part.requests)} if part.requests else {})
    return found | {ORDER: list(goal.domains)}


def parse_goal(content: Any, database: CityDatabase | None = None) -> MultiWOZGoal:
    """The goal of ConvLab's form, or of the corpus's.

    Domains are asked for in the order of ``domain_ordering``, or of the object; a domain without
    anything in it is none. ``reqt`` is a list of slots, or an object with them as names.

    Args:
        content: the object.
        database: checks that some row meets the constraints; values are spelt as its rows have
            them.

    Raises:
        ValueError: it is no goal, names what nobody knows, wants nothing, or cannot be met.
    """
    if not isinstance(content, Mapping):
        raise _bad("", f"an object such as {_FORM}", repr(content)[:60])
    for domain in content:
        if domain not in (*DOMAINS, ORDER, *_NOTES):
            raise unknown("domain", domain, DOMAINS, WHERE)
    goals = {domain: _domain_goal(domain, content[domain]) for domain in _ordering(content)}
    if not any(goal.requests or goal.book for goal in goals.values()):
        raise _bad("", "a slot to ask for ('reqt') or to book ('book') in some domain", "none")
    if database is None:
        return MultiWOZGoal(goals)
    for domain, goal in goals.items():
        if not database.find(domain, goal.info):
            raise _bad(f" > {domain} > info", "constraints that a row meets", str(dict(goal.info)))
    return MultiWOZGoal({domain: _spelt(domain, g, database) for domain, g in goals.items()})


def _spelt(domain: str, goal: DomainGoal, database: CityDatabase) -> DomainGoal:
    """The goal in the words of the rows: ``centre`` for ``Centre``, ``monday`` for ``Monday``."""
    spelling = database.table(domain).spelling
    info, failing = (
        {slot: spelling(slot, value) for slot, value in part.items()}
        for part in (goal.info, goal.fail_info)
    )
    book, first = (
        {slot: day if (day := v.strip().lower()) in DAYS else v for slot, v in part.items()}
        for part in (goal.book, goal.fail_book)
    )
    return replace(goal, info=info, fail_info=failing, book=book, fail_book=first)


def _ordering(content: Mapping[str, Any]) -> list[str]:
    given = [domain for domain in DOMAINS if content.get(domain)]
    ordering = content.get(ORDER)
    if ordering is None:
        return [domain for domain in content if domain in given]
    if not _is_list(ordering) or sorted(ordering) != sorted(given):
        raise _bad(f" > {ORDER}", f"the domains {given} in some order", repr(ordering)[:80])
    return list(ordering)


def _domain_goal(domain: str, content: Any) -> DomainGoal:
    if not isinstance(content, Mapping):
        raise _bad(f" > {domain}", f"an object with some of {', '.join(PARTS)}", repr(content)[:60])
    for part in content:
        if part not in PARTS:
            raise unknown("part", part, PARTS, f"{WHERE} > {domain}")
    info, book = INFORMABLE[domain], BOOKABLE[domain]
    return DomainGoal(
        _constraints(domain, "info", content, info),
        _constraints(domain, "fail_info", content, info),
        _constraints(domain, "book", content, book),
        _constraints(domain, "fail_book", content, book),
        _requests(domain, content.get("reqt", ())),
    )


def _constraints(
    domain: str, part: str, content: Mapping[str, Any], known: Iterable[str]
) -> dict[str, str]:
    found = content.get(part, {})
    where = f" > {domain} > {part}"
    if not isinstance(found, Mapping):
        raise _bad(where, "an object of slots and values", repr(found)[:60])
    wanted = {slot: value for slot, value in found.items() if slot not in _MARKS}
    for slot, value in wanted.items():
        if slot not in known:
            raise unknown("slot", slot, known, f"{WHERE}{where}")
        if not isinstance(value, str) or not value.strip():
            raise _bad(where, f"a text under {slot!r}", repr(value)[:60])
    return wanted


def _requests(domain: str, content: Any) -> tuple[str, ...]:
    if not isinstance(content, Mapping) and not _is_list(content):
        raise _bad(f" > {domain} > reqt", "a list of slots, such as ['phone']", repr(content)[:60])
    for slot in content:
        if slot not in REQUESTABLE[domain]:
            raise unknown("slot", slot, REQUESTABLE[domain], f"{WHERE} > {domain} > reqt")
    return tuple(dict.fromkeys(content))


def _is_list(content: Any) -> bool:
    return isinstance(content, Sequence) and not isinstance(content, str)


def _bad(where: str, expected: str, got: str) -> ValueError:
    return ValueError(f"{WHERE}{where}: expected {expected}; got {got}.")
