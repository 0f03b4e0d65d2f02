"""Faults of simulated users, found in transcripts by rules: no model judges another.

A fault is in a dialogue or not, so that its rate is a share of dialogues, which are independent.
Each finder gives the place of the line that shows the fault first, or None. What concerns the goal
is read by the task's own understanding (`Findings.talk`); the rest looks at the words.
"""

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from typing import NamedTuple

from dialgym.experiments.analysis import LOOP
from dialgym.language import Utterance
from dialgym.language.text import UNKNOWN
from dialgym.rewards.base import Reply
from dialgym.rewards.metrics import distinct
from dialgym.rewards.words import words
from dialgym.tasks.findings import (
    AGAIN,
    ASK,
    BYE,
    CHECK,
    ELSE,
    MISPLACED,
    MORE,
    NO,
    NOTHING,
    OFFER,
    THANKS,
    YES,
    GoalTalk,
    Reading,
)

DONTCARE = "dontcare"
"""Value of a wish that anything meets."""
NOT_UNDERSTOOD = "not understood"
"""Fault that needs an understanding or a grammar of the task."""
SHORT, COPIED = 3, 4
"""Words below which an opening may be said again, and an utterance of the other party too."""
LATE = 3
"""Utterances without a goodbye after all is told, from which on a user ends too late."""
AS_SYSTEM = re.compile(
    r"\b(how (may|can) i (help|assist)|(may|can) i (help|assist) you|would you (like|prefer)\b.*\?"
    r"|do you (want|prefer)\b.*\?|what can i do for you|i can help you|let me (check|look) "
    r"(that|it|for|the|our)|i('d| would) recommend|as an ai|your (booking|reservation) is"
    r"|(glad|happy|here) to (help|assist)|is there anything else i can"
    r"|anything else i can (help|do))|^\W*(system|assistant|agent)\s*:",
    re.IGNORECASE,
)
"""Words of whoever helps."""
THOUGHT = re.compile(
    r"</?(think|thinking|thought|scratchpad|reasoning|analysis|reflection)\b|```|###"
    r"|^\W*(thoughts?|reasoning|analysis|scratchpad|plan|internal)\s*:"
    r"|\b(my (goal|task|role|persona) (is|as)|the (system|assistant|agent) (asked|is asking|wants)"
    r"|i (should|need to|must) (respond|reply|answer|act|stay in|play)"
    r"|let me think|as the user|the user('s)? (goal|wants|should)|step \d+\s*:)",
    re.IGNORECASE | re.MULTILINE,
)
"""Words about the dialogue that belong into nobody's mouth."""


@dataclass(frozen=True)
class AuditedDialogue:
    """A dialogue from the side of the party that is audited.

    Attributes:
        policy: name of the other party.
        job: seed and episode.
        party: that is audited.
        notes: lines that it was told alone, before the dialogue.
        lines: that both have said, as it has heard them.
        understood: of each line whether the task makes anything of it; None where it does not tell.
        talk: see `Findings.talk`.
        success: of the task.
    """

    policy: str
    job: tuple[int, int]
    party: str
    notes: Sequence[Utterance]
    lines: Sequence[Utterance]
    understood: Sequence[bool | None]
    talk: GoalTalk | None
    success: bool

    @cached_property
    def own(self) -> Sequence[int]:
        """Places of the lines of the party."""
        return [i for i, line in enumerate(self.lines) if line.speaker == self.party]

    def text(self, place: int) -> str:
        """Words of a line."""
        return self.lines[place].text

    def read(self, place: int) -> Reading:
        """A line as the task understands it."""
        assert self.talk is not None
        return self.talk.readings[place]

    def before(self, place: int) -> Reading:
        """Reading of the last line of the other party before one; an empty one of none."""
        earlier = [i for i in range(place) if self.lines[i].speaker != self.party]
        return self.read(earlier[-1]) if earlier else Reading()


class UserFault(NamedTuple):
    """A fault that a user may have.

    Attributes:
        name: in tables.
        about: a sentence.
        find: place of the line that shows it first, or None.
        of_goal: it needs a goal in slots.
    """

    name: str
    about: str
    find: Callable[[AuditedDialogue], int | None]
    of_goal: bool


# Of the words


def _restart(dialogue: AuditedDialogue) -> int | None:
    """The opening verbatim once more, after something else and without being asked to."""
    opening, *later = dialogue.own or [-1]
    if not later or len(words(dialogue.text(opening))) < SHORT:
        return None
    for last, place in pairwise(later):
        asked = dialogue.talk is not None and AGAIN in dialogue.before(place).kinds
        other = dialogue.text(last) != dialogue.text(opening)
        if other and not asked and dialogue.text(place).strip() == dialogue.text(opening).strip():
            return place
    return None


def _role_inversion(dialogue: AuditedDialogue) -> int | None:
    for place in dialogue.own:
        text = dialogue.text(place)
        heard = {
            line.text.strip() for line in dialogue.lines[:place] if line.speaker != dialogue.party
        }
        copied = text.strip() in heard and len(words(text)) >= COPIED
        misplaced = dialogue.talk is not None and MISPLACED in dialogue.read(place).kinds
        if copied or misplaced or AS_SYSTEM.search(text):
            return place
    return None


def _scratchpad(dialogue: AuditedDialogue) -> int | None:
    return _first(dialogue, lambda place: bool(THOUGHT.search(dialogue.text(place))))


def _repetition(dialogue: AuditedDialogue) -> int | None:
    own = dialogue.own
    for k in range(LOOP - 1, len(own)):
        if len({dialogue.text(place).strip() for place in own[k - LOOP + 1 : k + 1]}) == 1:
            return own[k]
    return None


def _foreign(dialogue: AuditedDialogue) -> int | None:
    return _first(dialogue, lambda place: UNKNOWN in dialogue.text(place))


def _not_understood(dialogue: AuditedDialogue) -> int | None:
    def is_lost(place: int) -> bool:
        return dialogue.understood[place] is False and bool(dialogue.text(place).strip())

    return _first(dialogue, is_lost)


def _silence(dialogue: AuditedDialogue) -> int | None:
    return _first(dialogue, lambda place: not dialogue.text(place).strip())


def _first(dialogue: AuditedDialogue, shows: Callable[[int], bool]) -> int | None:
    return next((place for place in dialogue.own if shows(place)), None)


# Of the goal


def _goal(dialogue: AuditedDialogue) -> GoalTalk:
    assert dialogue.talk is not None
    return dialogue.talk


def _is_wished(goal: GoalTalk, slot: str, value: str) -> bool:
    return value in goal.wishes.get(slot, (DONTCARE,))


def _other_values(dialogue: AuditedDialogue) -> Iterator[tuple[int, str, bool]]:
    """Values that the goal has not and the other party has not just said, and if after an offer."""
    goal, offered = _goal(dialogue), False
    for place, reading in enumerate(goal.readings):
        if dialogue.lines[place].speaker != dialogue.party:
            offered = offered or bool(reading.kinds & {OFFER, NOTHING})
            continue
        just_said = set(dialogue.before(place).told)
        for slot, value in reading.told:
            if (slot, value) not in just_said and not _is_wished(goal, slot, value):
                yield place, value, offered


def _invented(dialogue: AuditedDialogue) -> int | None:
    others = _other_values(dialogue)
    return next((at for at, value, offered in others if value != DONTCARE and not offered), None)


def _changed(dialogue: AuditedDialogue) -> int | None:
    return next((at for at, _, offered in _other_values(dialogue) if offered), None)


def _all_at_once(dialogue: AuditedDialogue) -> int | None:
    goal = _goal(dialogue)
    place = next((p for p in dialogue.own if dialogue.read(p).told or dialogue.read(p).asked), None)
    if place is None or len(goal.wishes) < 2 or not goal.requests:
        return None
    reading = dialogue.read(place)
    told = {slot for slot, _ in reading.told}
    whole = goal.wishes.keys() <= told and bool(goal.requests & {*reading.asked})
    return place if whole else None


def _open_needs(dialogue: AuditedDialogue) -> Iterator[tuple[int, set[str]]]:
    """Each line of the party, and what it needs and has not been told by then."""
    open_needs = set(_goal(dialogue).needs)
    for place, line in enumerate(dialogue.lines):
        if line.speaker == dialogue.party:
            yield place, set(open_needs)
        else:
            open_needs -= {slot for slot, _ in dialogue.read(place).told}


def goodbye(dialogue: AuditedDialogue) -> int | None:
    """Place of its last line, where that is a goodbye and the other party has not said one."""
    if not dialogue.own or BYE not in dialogue.read(dialogue.own[-1]).kinds:
        return None
    return None if BYE in dialogue.before(dialogue.own[-1]).kinds else dialogue.own[-1]


def _goodbye(dialogue: AuditedDialogue) -> tuple[int, set[str]] | None:
    """The same, with the slots that it needs and has not been told by then."""
    return [*_open_needs(dialogue)][-1] if goodbye(dialogue) is not None else None


def _stated(dialogue: AuditedDialogue) -> set[str]:
    """Slots of which either party has said a value, or which the user has asked for."""
    readings = _goal(dialogue).readings
    told = {slot for reading in readings for slot, _ in reading.told}
    return told | {slot for place in dialogue.own for slot in dialogue.read(place).asked}


def _forgotten_wish(dialogue: AuditedDialogue) -> int | None:
    """A wish that is said not to matter, or was never spoken of by the goodbye."""
    for place, value, offered in _other_values(dialogue):
        if value == DONTCARE and not offered:
            return place
    end, goal = _goodbye(dialogue), _goal(dialogue)
    wishes = {slot for slot, values in goal.wishes.items() if DONTCARE not in values}
    return end[0] if end is not None and wishes - _stated(dialogue) else None


def _forgotten_request(dialogue: AuditedDialogue) -> int | None:
    end = _goodbye(dialogue)
    missing = _goal(dialogue).requests - _stated(dialogue)
    return end[0] if end is not None and missing else None


def _early_end(dialogue: AuditedDialogue) -> int | None:
    end = _goodbye(dialogue)
    return end[0] if end is not None and end[1] else None


def _late_end(dialogue: AuditedDialogue) -> int | None:
    late = 0
    for place, needs in _open_needs(dialogue):
        kinds = dialogue.read(place).kinds
        late += not needs and BYE not in kinds
        if late == LATE:
            return place
    return None


def _accepts_wrong(dialogue: AuditedDialogue) -> int | None:
    """A yes, thanks or a question about an offer or check that is against the goal."""
    goal = _goal(dialogue)
    wishes = {slot: set(values) for slot, values in goal.wishes.items()}
    for place in dialogue.own:
        before, own = dialogue.before(place), dialogue.read(place)
        against = {
            slot
            for slot, value in before.told
            if before.kinds & {OFFER, CHECK} and not {value, DONTCARE} & wishes.get(slot, {value})
        }
        objects = own.kinds & {NO, ELSE, CHECK} or against & {slot for slot, _ in own.told}
        if against and not objects and own.kinds & {YES, THANKS, ASK}:
            return place
        for slot, value in own.told:  # as it may be by now
            wishes.setdefault(slot, set()).add(value)
    return None


def _ends_when_asked(dialogue: AuditedDialogue) -> int | None:
    end = _goodbye(dialogue)
    if end is None or not end[1]:
        return None
    return end[0] if dialogue.before(end[0]).kinds & {MORE, THANKS} else None


FAULTS = (
    UserFault("invented value", "states a value that its goal has not, before there is an offer",
              _invented, True),
    UserFault("changed goal", "states such a value after an offer", _changed, True),
    UserFault("all told at once", "tells all wishes and asks in its first utterance about them",
              _all_at_once, True),
    UserFault("forgotten wish", "says that a wish does not matter, before there is an offer, or "
              "goodbye although it was never spoken of", _forgotten_wish, True),
    UserFault("forgotten request", "says goodbye although a request was never spoken of",
              _forgotten_request, True),
    UserFault("early end", "says goodbye before it has been told all that it needs", _early_end,
              True),
    UserFault("late end", f"says {LATE} things or more, no goodbye, after it has been told all",
              _late_end, True),
    UserFault("accepts the wrong", "says yes or thanks to, or asks about, what is not its goal",
              _accepts_wrong, True),
    UserFault("ends when asked for more", "says goodbye to thanks or to an offer of more help, "
              "before it has been told all", _ends_when_asked, True),
    UserFault("restart", "says its opening again, word for word", _restart, False),
    UserFault("role inversion", "speaks as the other party, or says its words", _role_inversion,
              False),
    UserFault("scratchpad", "tells its reasoning or instructions", _scratchpad, False),
    UserFault("repetition", f"says the same {LOOP} times in a row", _repetition, False),
    UserFault("foreign characters", "uses characters that the task does not have", _foreign,
              False),
    UserFault(NOT_UNDERSTOOD, "says what the task makes nothing of", _not_understood, False),
    UserFault("silence", "says nothing in its turn", _silence, False),
)  # fmt: skip
"""All of them, in the order of tables."""


# Manner


def _share(part: int, whole: int) -> float | None:
    return part / whole if whole else None


def _wishes_told(dialogue: AuditedDialogue) -> float | None:
    goal = _goal(dialogue)
    told = {pair for place in dialogue.own for pair in dialogue.read(place).told}
    right = sum(any(_is_wished(goal, *pair) for pair in told if pair[0] == s) for s in goal.wishes)
    return _share(right, len(goal.wishes))


def _requests_made(dialogue: AuditedDialogue) -> float | None:
    asked = {slot for place in dialogue.own for slot in dialogue.read(place).asked}
    return _share(len(_goal(dialogue).requests & asked), len(_goal(dialogue).requests))


def _distinct(dialogue: AuditedDialogue, n: int) -> float | None:
    replies = [Reply(dialogue.text(place)) for place in dialogue.own]
    return distinct(replies, n) if any(len(words(reply.text)) >= n for reply in replies) else None


def _words(dialogue: AuditedDialogue) -> float | None:
    return _share(sum(len(words(dialogue.text(p))) for p in dialogue.own), len(dialogue.own))


class UserManner(NamedTuple):
    """A figure of a dialogue that is no fault, whichever value it has.

    Attributes:
        name: in tables.
        about: a sentence.
        measure: of a dialogue; None where there is nothing to measure.
        of_goal: it needs a goal in slots.
        bounds: the least and the greatest value; None where it has none.
    """

    name: str
    about: str
    measure: Callable[[AuditedDialogue], float | None]
    of_goal: bool
    bounds: tuple[float, float] | None


MANNERS = (
    UserManner("wishes told", "share of its wishes that it has told as they are", _wishes_told,
               True, (0, 1)),
    UserManner("requests made", "share of its requests that it has asked for", _requests_made,
               True, (0, 1)),
    UserManner("distinct-1", "distinct words of a dialogue over all its words (Li et al. 2016)",
               lambda dialogue: _distinct(dialogue, 1), False, (0, 1)),
    UserManner("distinct-2", "the same of pairs of words", lambda dialogue: _distinct(dialogue, 2),
               False, (0, 1)),
    UserManner("words", "words of an utterance", _words, False, None),
    UserManner("utterances", "utterances of a dialogue", lambda dialogue: len(dialogue.own), False,
               None),
)  # fmt: skip
"""All of them, in the order of tables."""
