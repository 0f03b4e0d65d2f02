"""Assignment of speakers to parties; utterances in turns, with their rewards."""

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from itertools import groupby
from operator import itemgetter
from typing import NamedTuple

from dialgym.datasets.foreign.conversations import ImportedConversation, Said
from dialgym.datasets.foreign.import_report import ImportReport
from dialgym.datasets.foreign.roles import ASIDES, MODELS, PEOPLE, folded
from dialgym.errors import unknown
from dialgym.tasks.base import SYSTEM, USER

FEW = 4
"""So many names of speakers, in all dialogues, are those of roles; more are those of persons."""


class ImportedTurn(NamedTuple):
    """An utterance of one of the parties, with its reward."""

    party: str
    text: str
    reward: float = 0.0


class ImportedDialogue(NamedTuple):
    """A dialogue of the parties, in turns."""

    turns: Sequence[ImportedTurn]
    success: bool | None
    where: str
    split: str | None = None
    truncated: bool = False
    rejected: bool = False


PartyMapping = Callable[[Sequence[Said]], dict[str | None, str] | None]
"""The party of each speaker of a conversation; None where they are not two."""


def dialogues_of(
    conversations: Sequence[ImportedConversation],
    system: str | None,
    rated: bool,
    report: ImportReport,
) -> Iterator[ImportedDialogue]:
    """The conversations as dialogues of the parties.

    Args:
        conversations: as they were found.
        system: the speaker who is the system; None to tell it by the names, or by who begins.
        rated: leave out those without a reward.
        report: counts what was left out.

    Raises:
        ValueError: nobody is called `system`.
    """
    name = _party_mapping(conversations, system, report)
    for conversation in conversations:
        where = conversation.where
        if rated and not is_rated(conversation):
            report.leave_out("dialogues without a reward (--reward none keeps them)", where)
            continue
        turns = _turns(conversation.said, name, report, where)
        if not turns:
            if not any(_spoken(conversation)):
                report.leave_out("dialogues without words", where)
            continue
        if not any(turn.party == SYSTEM for turn in turns) or len(turns) < 2:
            report.leave_out("dialogues in which only one speaks", where)
            continue
        turns = _with_reward(turns, conversation.reward)
        one = conversation
        yield ImportedDialogue(turns, one.success, where, one.split, one.truncated, one.rejected)


def is_rated(conversation: ImportedConversation) -> bool:
    """Return True if a conversation, or an utterance of it, has a reward."""
    by_turn = any(line.reward is not None for line in conversation.said)
    return by_turn or conversation.reward is not None


def _spoken(conversation: ImportedConversation) -> Iterator[Said]:
    """The utterances of a conversation that have words."""
    return (line for line in conversation.said if line.text.strip())


def _party_mapping(
    conversations: Sequence[ImportedConversation], system: str | None, report: ImportReport
) -> PartyMapping:
    """Choose the mapping from speakers to parties, by all names of speakers."""
    names = Counter(line.speaker for c in conversations for line in _spoken(c))
    by_lower = {folded(name): name for name in names if name is not None}
    if system is not None:
        if system.lower() not in by_lower:
            raise unknown("speaker", system, [str(name) for name in names if name is not None][:20])
        return _fixed({system.lower()}, names, report, "as was said")
    if not by_lower:
        report.add("system", "who speaks second, as the data names nobody")
        return _by_order
    if models := by_lower.keys() & MODELS:
        return _fixed(models, names, report, "by its name")
    if SYSTEM in by_lower:
        return _fixed({SYSTEM}, names, report, "by its name")
    people = by_lower.keys() & PEOPLE
    if people and by_lower.keys() - people:
        return _fixed(by_lower.keys() - people, names, report, "who is no user")
    if len(by_lower) <= FEW:
        second = _who_is_second(conversations)
        others = ", ".join(sorted(name for key, name in by_lower.items() if key != second))
        return _fixed(
            {second}, names, report,
            f"who speaks second in most; --system {others} for the other",
        )  # fmt: skip
    report.add("system", "who speaks second in each, as the names differ from one to the next")
    return _by_order


def _who_is_second(conversations: Sequence[ImportedConversation]) -> str:
    seconds: Counter[str] = Counter()
    for conversation in conversations:
        speakers = list(dict.fromkeys(folded(line.speaker) for line in _spoken(conversation)))
        seconds.update(speakers[1:2] or speakers[:1])
    return seconds.most_common(1)[0][0]


def _fixed(
    models: set[str], names: Counter[str | None], report: ImportReport, why: str
) -> PartyMapping:
    known = {name: folded(name) for name in names}
    shown = ", ".join(sorted({str(n) for n, lower in known.items() if lower in models}))
    report.add("system", f"{shown} ({why})")
    aside = ASIDES - models
    parties = {
        name: SYSTEM if lower in models else USER
        for name, lower in known.items()
        if lower not in aside or not models & MODELS
    }

    def named(said: Sequence[Said]) -> dict[str | None, str] | None:
        users = {_as_one(known[s.speaker]) for s in said if parties.get(s.speaker) == USER}
        return parties if len(users) <= 1 else None

    return named


def _as_one(name: str) -> str:
    """The name of a speaker; all names of people's role are one, as ``human`` and ``user``."""
    return USER if name in PEOPLE else name


def _by_order(said: Sequence[Said]) -> dict[str | None, str] | None:
    """Parties by order: the user begins."""
    order = list(dict.fromkeys(folded(line.speaker) for line in said))
    party = dict(zip(order, (USER, SYSTEM)))
    return {line.speaker: party[folded(line.speaker)] for line in said} if len(order) <= 2 else None


def _turns(
    said: Sequence[Said], name: PartyMapping, report: ImportReport, where: str
) -> list[ImportedTurn]:
    """Utterances of the two parties; consecutive ones of a party are joined."""
    places = _with_words(said)
    said = list(places.values())
    if all(line.speaker is None for line in said):
        parties = [(USER, SYSTEM)[place % 2] for place in places]
    else:
        party_of = name(said)
        if party_of is None:
            count = len({folded(line.speaker) for line in said})
            report.leave_out(f"dialogues of {count} speakers", where)
            return []
        for line in said:
            if line.speaker not in party_of:
                report.leave_out(f"messages of the role {line.speaker!r}", where)
        said = [line for line in said if line.speaker in party_of]
        parties = [party_of[line.speaker] for line in said]
    turns = [_joined(party, [line for _, line in lines])
             for party, lines in groupby(zip(parties, said), key=itemgetter(0))]  # fmt: skip
    if joined := len(said) - len(turns):
        report.add("joined", "utterances with that of the same speaker before", joined)
    return turns


def _with_words(said: Sequence[Said]) -> dict[int, Said]:
    """The utterances that have words, by their places.

    What one without words has earned counts for that before it, or for the first.
    """
    places: dict[int, Said] = {}
    due = 0.0
    for place, line in enumerate(said):
        if line.text.strip():
            places[place] = line._replace(reward=(line.reward or 0.0) + due)
            due = 0.0
        elif places:
            before, last = places.popitem()
            places[before] = last._replace(reward=(last.reward or 0.0) + (line.reward or 0.0))
        else:
            due += line.reward or 0.0
    return places


def _joined(party: str, lines: Sequence[Said]) -> ImportedTurn:
    """Texts of a party in a row, joined to one utterance."""
    earned = sum(line.reward or 0.0 for line in lines)
    return ImportedTurn(party, " ".join([line.text for line in lines]), earned)


def _with_reward(turns: Sequence[ImportedTurn], reward: float | None) -> list[ImportedTurn]:
    """The turns with all rewards at the system's: those of the user's count for that before.

    The one of the whole dialogue comes at the system's last; a user's before any of the system's
    counts for its first.
    """
    own = [index for index, turn in enumerate(turns) if turn.party == SYSTEM]
    earned, last = dict.fromkeys(own, 0.0), own[0]
    for index, turn in enumerate(turns):
        last = index if turn.party == SYSTEM else last
        earned[last] += turn.reward
    earned[last] += reward or 0.0
    return [turn._replace(reward=earned.get(index, 0.0)) for index, turn in enumerate(turns)]
