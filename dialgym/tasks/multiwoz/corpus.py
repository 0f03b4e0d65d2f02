"""Corpora of multi-domain dialogues, annotated with acts: MultiWOZ, CamRest and their like.

Two forms are read: ConvLab-2's, an object of dialogues by name with ``goal`` and ``log``, and the
unified format of ConvLab-3, a list of dialogues with ``turns`` and ``dialogue_acts``.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import lru_cache
from os import PathLike
from pathlib import Path
from typing import Any, NamedTuple

from dialgym.errors import one_of
from dialgym.io.archives import SPLITS, ArchiveMember, parts_of
from dialgym.io.files import parse_json
from dialgym.io.strict_reader import StrictReader
from dialgym.io.tables import fingerprint, locate
from dialgym.tasks.base import SYSTEM, USER
from dialgym.tasks.generators import Log
from dialgym.tasks.multiwoz.data import World
from dialgym.tasks.multiwoz.database import REF
from dialgym.tasks.multiwoz.goal_form import goal_as_json, parse_goal
from dialgym.tasks.multiwoz.notation import print_acts
from dialgym.tasks.multiwoz.ontology import (
    BOOKABLE,
    BOOKING,
    DOMAINS,
    GENERAL,
    INFORMABLE,
    REQUESTABLE,
    SHORT_NAMES,
    SLOT_NAMES,
    UNCONSTRAINED,
    act_domain,
)
from dialgym.tasks.multiwoz.types import ASKED, NONE, Acts, DialogueAct, DomainGoal, MultiWOZGoal

PATTERNS = ("*.json", "*.zip")
"""The files that a data set of the hub is asked for."""
EXPECTED = (
    "JSON of ConvLab-2, {name: {'goal': ..., 'log': [...]}}, or of ConvLab-3's unified format, "
    "[{'turns': [...], ...}]"
)
INTENTS = {
    "inform": "Inform",
    "request": "Request",
    "recommend": "Recommend",
    "select": "Select",
    "nooffer": "NoOffer",
    "book": "Book",
    "nobook": "NoBook",
    "offerbook": "OfferBook",
    "offerbooked": "OfferBooked",
}
"""Intents of the unified format -> of acts; those of ``general`` keep their names."""
UNIFIED_SLOTS = {
    "price range": "pricerange",
    "leave at": "leaveAt",
    "arrive by": "arriveBy",
    "train id": "trainID",
    "ref": "Ref",
    "book people": "people",
    "book day": "day",
    "book stay": "stay",
    "book time": "time",
}
"""Slots of the unified format that goals and databases name otherwise."""


class Annotated(NamedTuple):
    """A dialogue of a corpus.

    Attributes:
        name: for messages.
        split: ``train``, ``validation`` or ``test``.
        goal: as the corpus has it, in ConvLab-2's form; empty where it has none.
        turns: party and acts, the user first and both in turns.
    """

    name: str
    split: str
    goal: Mapping[str, Any]
    turns: Sequence[tuple[str, Acts]]


class MultiWOZCorpus:
    """The dialogues of a corpus, to be collected: `dialgym.collect(id, "corpus", ...)`.

    The parties say what the corpus has; belief, database and reward are those of the task, so that
    observations are what the learner will see when it plays. Acts that the task has no entry for
    are said, but are no part of the action. Reference numbers become those of the rows that were
    named last, where the world has them.

    The goal of a dialogue is the corpus's where some row of the world meets it; else what the user
    asks for in the dialogue. Dialogues without either are left out.

    Args:
        path: a file, folder, zip, ``hf:NAME`` or ``hf:NAME@REVISION``.
        split: ``"train"``, ``"validation"`` or ``"test"``; None for all.

    Attributes:
        dialogues: as they are annotated.
        left_out: how many dialogues are.

    Raises:
        ValueError: there is no such corpus or split, or something in it is broken.
    """

    def __init__(self, path: str | PathLike[str], split: str | None = None) -> None:
        one_of("split", split, (None, *sorted({*SPLITS.values()})), "the corpus")
        self.path, self.split = str(path), split
        place = locate(path, "MultiWOZ's corpora", built_in=False, patterns=PATTERNS)
        found = _read(place, fingerprint(place))
        kept = [dialogue for dialogue in found if split in (None, dialogue.split)]
        if not kept:
            splits = sorted({dialogue.split for dialogue in found})
            raise ValueError(
                f"corpus {self.path!r}: expected dialogues of the split {split!r}; got "
                f"{', '.join(splits) or 'none at all'}. Choose another split, or None."
            )
        answered = [d for d in kept if any(party == SYSTEM for party, _ in d.turns)]
        self.dialogues = [d for d in answered if d.goal or _said_goal(d.turns).domains]
        self.left_out = len(kept) - len(self.dialogues)

    def __len__(self) -> int:
        return len(self.dialogues)

    def count(self, task: Any) -> int:
        """See `dialgym.tasks.generators.Logs`."""
        return len(self)

    def log(self, task: Any, number: int) -> Log:
        """See `dialgym.tasks.generators.Logs`."""
        dialogue = self.dialogues[number]
        goal = goal_of(dialogue, task.world)
        turns = with_references(dialogue.turns, task.world)
        if turns[-1][0] == SYSTEM:  # the user leaves without a word: it is what ends a dialogue
            turns.append((USER, (DialogueAct("bye", GENERAL),)))
        texts = [(party, print_acts(acts)) for party, acts in turns]  # any language reads them
        return Log({"goal": goal_as_json(goal)}, texts)


def goal_of(dialogue: Annotated, world: World) -> MultiWOZGoal:
    """The corpus's goal where the world can meet it; else what the user says in the dialogue."""
    try:
        return parse_goal(dialogue.goal, world.database)
    except ValueError:
        said = _said_goal(dialogue.turns)
    met = {d: g for d, g in said.domains.items() if world.database.find(d, g.info)}
    open_ = {d: DomainGoal(requests=g.requests or ASKED_FOR[d]) for d, g in said.domains.items()}
    return MultiWOZGoal({**open_, **met})


def with_references(turns: Iterable[tuple[str, Acts]], world: World) -> list[tuple[str, Acts]]:
    """The turns with the world's reference numbers of the rows that were named last."""
    named: dict[str, str] = {}  # domain -> reference
    places = _references(world)
    found: list[tuple[str, Acts]] = []
    domain = ""
    for party, acts in turns:
        said: list[DialogueAct] = []
        for act in acts:
            about = act.domain.lower()
            domain = about if BOOKABLE.get(about) else domain
            known = places.get((domain, act.slot), {}).get(act.value.lower())
            if known is not None:
                named[domain] = known
            books = act.slot == "Ref" and act.intent != "Request"
            said.append(act._replace(value=named.get(domain, act.value)) if books else act)
        found.append((party, tuple(said)))
    return found


@lru_cache(maxsize=8)
def _references(world: World) -> Mapping[tuple[str, str], Mapping[str, str]]:
    """Domain and slot of acts -> name or number of a row, in small letters -> its reference."""
    slots = (("hotel", "Name", "name"), ("restaurant", "Name", "name"), ("train", "Id", "trainID"))
    return {
        (domain, short): {
            row[slot].lower(): row[REF] for row in reversed(world.database.rows(domain))
        }
        for domain, short, slot in slots
    }


ASKED_FOR = {domain: REQUESTABLE[domain][:1] for domain in DOMAINS}
"""Requests of a user who is not heard to ask for anything."""


def _said_goal(turns: Iterable[tuple[str, Acts]]) -> MultiWOZGoal:
    """Wishes of the user: last values of each slot, and all requests."""
    values: dict[str, dict[str, str]] = {}
    asked: dict[str, list[str]] = {}
    for party, acts in turns:
        for intent, domain, short, value in acts if party == USER else ():
            about = domain.lower()
            slot = SLOT_NAMES.get(domain, {}).get(short, "")
            if about not in DOMAINS:
                continue
            told, wanted = values.setdefault(about, {}), asked.setdefault(about, [])
            if intent == "Request" and slot in REQUESTABLE[about] and slot not in wanted:
                wanted.append(slot)
            elif intent == "Inform" and slot and value not in UNCONSTRAINED:
                told[slot] = value
    return MultiWOZGoal(
        {domain: _domain_goal(domain, values[domain], asked[domain]) for domain in values}
    )


def _domain_goal(domain: str, values: Mapping[str, str], asked: Sequence[str]) -> DomainGoal:
    info = {slot: value for slot, value in values.items() if slot in INFORMABLE[domain]}
    book = {slot: value for slot, value in values.items() if slot in BOOKABLE[domain]}
    requests = asked or (() if book else ASKED_FOR[domain])
    return DomainGoal(info=info, book=book, requests=tuple(requests))


@lru_cache(maxsize=4)
def _read(place: Path, state: str) -> list[Annotated]:
    """All dialogues; `state` tells one state of the files from another."""
    parts = [part for part in parts_of(place) if part.suffix == ".json"]
    found = [dialogue for part in parts for dialogue in _dialogues(part)]
    if not found:
        names = ", ".join(part.name for part in parts[:5]) or "no JSON"
        raise ValueError(f"corpus {str(place)!r}: expected {EXPECTED}; got {names}.")
    return found


def _dialogues(part: ArchiveMember) -> Iterator[Annotated]:
    """Those of a file; none of one that holds something else, such as a database."""
    content = parse_json(part.text(), part.name)
    if isinstance(content, Mapping):
        rows = [(name, row) for name, row in content.items() if _has(row, "log")]
        yield from (_of_convlab2(f"{part.name} > {n}", part.split, row) for n, row in rows)
    elif isinstance(content, Sequence) and not isinstance(content, str):
        unified = [(i, row) for i, row in enumerate(content) if _has(row, "turns")]
        yield from (_of_unified(f"{part.name} > {i}", part.split, row) for i, row in unified)


def _has(row: Any, name: str) -> bool:
    return isinstance(row, Mapping) and name in row


def _of_convlab2(where: str, split: str | None, row: Mapping[str, Any]) -> Annotated:
    dialogue = StrictReader(f"corpus, {where}", row)
    turns: list[tuple[str, Acts]] = []
    for i, turn in enumerate(dialogue.get("log", list)):
        own = StrictReader(f"{dialogue.where} > log > {i}", turn)
        acts = _named_acts(StrictReader(own.where, own.get("dialog_act", dict)))
        turns.append((USER if i % 2 == 0 else SYSTEM, tuple(acts)))
    goal = dialogue.get("goal", dict, None) or {}
    return Annotated(where, split or "train", goal, _alternating(turns))


def _named_acts(said: StrictReader) -> Iterator[DialogueAct]:
    """Acts of ``{"Hotel-Inform": [["Area", "east"]]}``."""
    for kind in said.values:
        domain, _, intent = kind.partition("-")
        for item in said.get(kind, list):
            if not _is_pair(item):
                raise ValueError(
                    f"{said.where} > {kind}: expected pairs of slot and value; got {item!r:.80}."
                )
            yield DialogueAct(intent, domain, *map(str, item))


def _is_pair(item: Any) -> bool:
    return isinstance(item, Sequence) and not isinstance(item, str) and len(item) == 2


def _of_unified(where: str, split: str | None, row: Mapping[str, Any]) -> Annotated:
    dialogue = StrictReader(f"corpus, {where}", row)
    turns: list[tuple[str, Acts]] = []
    for i, turn in enumerate(dialogue.get("turns", list)):
        own = StrictReader(f"{dialogue.where} > turns > {i}", turn)
        said = StrictReader(f"{own.where} > dialogue_acts", own.get("dialogue_acts", dict))
        items = [(f"{said.where} > {kind}", item)
                 for kind in ("categorical", "non-categorical", "binary")
                 for item in said.get(kind, list, ())]  # fmt: skip
        acts = [_unified_act(StrictReader(place, item)) for place, item in items]
        turns.append((own.one_of("speaker", (USER, SYSTEM)), tuple(acts)))
    given = dialogue.get("goal", dict, None) or {}
    goal = _unified_goal(StrictReader(f"{dialogue.where} > goal", given))
    named = dialogue.get("data_split", str, None) or split or "train"
    return Annotated(where, SPLITS.get(named, named), goal, _alternating(turns))


def _unified_act(item: StrictReader) -> DialogueAct:
    intent, domain = (item.get(name, str, "") for name in ("intent", "domain"))
    if domain in (GENERAL, ""):
        return DialogueAct(intent, GENERAL)
    slot = item.get("slot", str, "")
    name = UNIFIED_SLOTS.get(slot, slot)
    short = SHORT_NAMES.get(domain, {}).get(name, slot or NONE)
    books = intent in ("book", "nobook")
    value = ASKED if intent == "request" else str(item.values.get("value") or NONE)
    return DialogueAct(
        INTENTS.get(intent, intent), BOOKING if books else act_domain(domain), short, value
    )


def _unified_goal(goal: StrictReader) -> dict[str, Any]:
    """In ConvLab-2's form."""
    found: dict[str, Any] = {}
    for part, kept in (("inform", False), ("request", True)):
        domains = StrictReader(f"{goal.where} > {part}", goal.get(part, dict, None) or {})
        for domain in domains.values:
            content = found.setdefault(domain, {})
            for slot, value in domains.get(domain, dict).items():
                name = UNIFIED_SLOTS.get(slot, slot)
                if kept:
                    content.setdefault("reqt", []).append(name)
                else:
                    kind = "book" if slot.startswith("book ") else "info"
                    content.setdefault(kind, {})[name] = value
    return found


def _alternating(turns: Sequence[tuple[str, Acts]]) -> list[tuple[str, Acts]]:
    """Turns of the user and the system by turns: what one says at once is one utterance."""
    joined: list[tuple[str, Acts]] = []
    for party, acts in turns:
        if joined and joined[-1][0] == party:
            joined[-1] = party, joined[-1][1] + acts
        else:
            joined.append((party, acts))
    return [(USER, ()), *joined] if joined and joined[0][0] == SYSTEM else joined
