"""Grammar of up to eight acts an utterance."""

from collections.abc import Iterable, Iterator, Mapping, Sequence

from dialgym.language import Grammar
from dialgym.tasks.multiwoz.agenda import ANY, DONTCARE, NOT_BOOK
from dialgym.tasks.multiwoz.entries import REQUEST, SYSTEM_ENTRIES, USER_ENTRIES, Entry
from dialgym.tasks.multiwoz.ontology import (
    BOOKABLE,
    DOMAINS,
    INFORMABLE,
    REQUESTABLE,
    SHORT_NAMES,
    act_domain,
)
from dialgym.tasks.multiwoz.types import NONE

MOST = 8
"""Acts of one utterance."""
INFORM = "Inform"
TIMES = ("leaveAt", "arriveBy", "time")
"""The slots whose values are two words, of an hour and a minute."""
HOURS = tuple(f"{hour:02d}h" for hour in range(25))  # 24:30 is a time in the corpus
MINUTES = tuple(f"{minute:02d}m" for minute in range(60))
PLAIN = ("general-bye", "general-greet", "general-thank")
Nodes = dict[str, dict[str, str]]


def kind_word(domain: str, intent: str) -> str:
    """``hotel-inform``."""
    return f"{domain}-{intent}".lower()


def entry_kind(entry: Entry) -> str:
    """``hotel-inform``."""
    return kind_word(entry.domain, entry.intent)


def entry_slot(entry: Entry) -> str:
    """``name``, ``name2`` of the second row; ``none``."""
    return f"{entry.slot.lower()}{entry.place if entry.place > 1 else ''}"


def short_word(domain: str, slot: str) -> str:
    """``price`` for the slot ``pricerange``."""
    return SHORT_NAMES[domain][slot].lower()


def all_kinds() -> Iterator[tuple[str, str]]:
    """Domain and intent of everything that either party says."""
    for entry in (*SYSTEM_ENTRIES, *USER_ENTRIES):
        yield entry.domain, entry.intent
    for domain in DOMAINS:
        yield act_domain(domain), INFORM
        yield act_domain(domain), REQUEST


def system_grammar() -> Grammar:
    """Acts without values: ``hotel-inform area name2 general-reqmore``."""
    slots: dict[str, list[str]] = {}
    for entry in SYSTEM_ENTRIES:
        slots.setdefault(entry_kind(entry), []).append(entry_slot(entry))
    nodes: Nodes = {"acts 0": _begin(slots, 0)}
    ends: list[str] = []
    for kind, known in slots.items():
        for count in range(MOST):
            named = {s: f"{kind} said {count + 1}" for s in known if s != NONE}
            alone = _begin(slots, count + 1) if NONE in known else {}
            nodes[f"{kind} {count}"] = {**alone, **named}
            nodes[f"{kind} said {count}"] = {**_begin(slots, count), **named}
            ends += [f"{kind} {count}"] if NONE in known else []
            ends.append(f"{kind} said {count + 1}")
        nodes[f"{kind} said {MOST}"] = {}
    return Grammar(nodes, "acts 0", ends)


def user_grammar(
    values: Mapping[tuple[str, str], Sequence[str]], word: Mapping[str, str]
) -> Grammar:
    """Acts with values: ``train-inform day friday leave 09h 15m general-thank``.

    Args:
        values: of each slot of a domain that is no time.
        word: value -> its word.
    """
    asked = {kind_word(act_domain(d), REQUEST): d for d in DOMAINS if REQUESTABLE[d]}
    told = {kind_word(act_domain(d), INFORM): d for d in DOMAINS}
    kinds = (*asked, *told)
    nodes: Nodes = {f"plain {MOST}": {}, "acts 0": _user_begin(kinds, 0)}
    for count in range(MOST):
        more = _user_begin(kinds, count)
        nodes[f"plain {count}"] = more
        for kind, domain in asked.items():
            after = f"{kind} said {count + 1}"
            slots = {short_word(domain, slot): after for slot in REQUESTABLE[domain]}
            nodes[f"{kind} {count}"] = slots
            nodes[f"{kind} said {count}"] = {**more, **slots}
        for kind, domain in told.items():
            slots = _told(nodes, kind, domain, count, values, word)
            nodes[f"{kind} {count}"] = {**_user_begin(kinds, count + 1), **slots}
            nodes[f"{kind} said {count}"] = {**more, **slots}
    nodes |= {f"{kind} said {MOST}": {} for kind in kinds}
    counts = range(1, MOST + 1)
    ends = [f"{before} {count}" for before in ("plain", *_said(kinds)) for count in counts]
    ends += [f"{kind} {count}" for kind in told for count in range(MOST)]
    return Grammar(nodes, "acts 0", ends)


def _said(kinds: Iterable[str]) -> list[str]:
    return [f"{kind} said" for kind in kinds]


def _begin(kinds: Iterable[str], count: int) -> dict[str, str]:
    """The kinds that may follow on `count` acts."""
    return {kind: f"{kind} {count}" for kind in kinds} if count < MOST else {}


def _user_begin(kinds: Iterable[str], count: int) -> dict[str, str]:
    plain = dict.fromkeys(PLAIN, f"plain {count + 1}") if count < MOST else {}
    return {**plain, **_begin(kinds, count)}


def _told(
    nodes: Nodes,
    kind: str,
    domain: str,
    count: int,
    values: Mapping[tuple[str, str], Sequence[str]],
    word: Mapping[str, str],
) -> dict[str, str]:
    """The slots that may be told after `count` acts; each gets a node for its value."""
    after, slots = f"{kind} said {count + 1}", {NOT_BOOK.lower(): f"{kind} said {count + 1}"}
    for slot in (*INFORMABLE[domain], *BOOKABLE[domain]):
        node = slots[short_word(domain, slot)] = f"{kind} {slot} {count}"
        nodes[node] = {word[DONTCARE]: after}
        if slot in TIMES:
            minute = f"{kind} minute {count}"
            nodes[node] |= dict.fromkeys(HOURS, minute)
            nodes[minute] = dict.fromkeys(MINUTES, after)
        else:
            nodes[node] |= {word[value]: after for value in values[domain, slot]}
    if "choice" in SHORT_NAMES[domain]:
        slots["choice"] = f"{kind} choice {count}"
        nodes[f"{kind} choice {count}"] = {word[ANY]: after}
    return slots
