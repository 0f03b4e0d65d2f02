"""Acts of both parties, goals, and the state of one dialogue."""

from dataclasses import dataclass, field
from operator import attrgetter
from typing import NamedTuple

from dialgym.language import Utterance
from dialgym.tasks.service_desk.domains import NONE

FIND, IDENTIFY, GET, WRITE, CONFIRM, TELL, ASK, REFUSE, MORE, BYE, PLEASE = range(11)
"""Acts of the desk: its tools, up to WRITE, then what it says."""
NAMED, CODE, WANT, WHICH, YES, NO, CHANGE, LEAVE, CLAIM, SCREEN, DID, PARDON, FAREWELL = range(13)
USE, TALK = 13, 14
"""Acts of the user: what it says, the use of its device, and small talk, which only people make."""
ASK_NAME, ASK_CODE, ASK_WHICH = range(3)
BY_NUMBER, BY_NAME, NUMBER_LATER, NAME_LATER = range(4)
LATER = NUMBER_LATER, NAME_LATER
"""Ways of a user to say which record it means, two of them only when it is asked."""
IDENTITY, CONSENT, FORBIDDEN, PRIVACY, UNTRUE, REFUSAL = (1 << bit for bit in range(6))
"""Faults of a desk: a change or news for somebody unknown; a change without a yes; one that a rule
forbids; news that nobody has asked for; wrong news; a refusal without a reason that was found."""
FAULTS = ("identity", "consent", "forbidden", "privacy", "untrue", "refusal")
WORKS = 0b010
"""A device that works: airplane mode off, data on, not stuck (its bits from the first)."""


def screen_of(device: int) -> int:
    """Bits that a device shows: airplane mode, data, signal."""
    return device & 0b011 | (device == WORKS) << 2


TRIES = 2
"""Wrong codes after which a desk may refuse."""


class DeskAct(NamedTuple):
    """An utterance or a call, as far as it is understood; see the names above.

    Values are places among the values of a field; NONE where nothing is said of one.
    """

    op: int = NONE
    which: int = NONE  # write, field, question, wish, or tool of the device
    number: int = NONE  # of a record
    value: int = NONE  # argument, told value, name of a customer, code, bits of a screen
    name: int = NONE  # of a record: what it is


NOTHING = DeskAct()


class Request(NamedTuple):
    """A wish of a user.

    Attributes:
        kind: place in `DeskDomain.kinds`.
        record: the record that it is about; NONE for a device.
        value: the argument that is wished for at first.
        final: the argument after a change of mind.
        number, name: of the record, of which the user says one; the other is NONE.
        way: how it says that.
        forbidden: whether a rule forbids it.
        changes: whether the user changes its mind when it is first asked to confirm; where no
            other argument takes the place of the first it wants nothing any more.
        claim: (field, value) that the user claims after a refusal, though it is not so; else NONE.
    """

    kind: int
    record: int
    value: int
    final: int
    number: int
    name: int
    way: int
    forbidden: bool
    changes: bool
    claim: tuple[int, int]

    @property
    def withdrawn(self) -> bool:
        """Tell if the user in the end wants nothing."""
        return self.changes and self.final == self.value


class Goal(NamedTuple):
    """Beginning of a dialogue, and the end that it should have.

    Attributes:
        policy: place in `DeskDomain.every`.
        names, codes: of two customers, of whom the first is who the user says it is.
        records: those of the first customer, then those of the second.
        owners: the customer of each record.
        requests: what the user wants, in order.
        device: bits of the user's device at the beginning.
        wrong: a code that is not right.
        slips: the user says that one first.
        impostor: it knows no other; then nothing may be told or changed.
        end: the records at the end.
    """

    policy: int
    names: tuple[int, int]
    codes: tuple[int, int]
    records: tuple[tuple[int, ...], ...]
    owners: tuple[int, ...]
    requests: tuple[Request, ...]
    device: int
    wrong: int
    slips: bool
    impostor: bool
    end: tuple[tuple[int, ...], ...]


@dataclass(slots=True)
class DeskState:
    """One dialogue. Bits of `told`, `refused`, `voiced`, `changed` are the goal's requests."""

    goal: Goal
    policy: int
    records: tuple[tuple[int, ...], ...]
    device: int
    desk_lines: list[Utterance] = field(default_factory=list)
    user_lines: list[Utterance] = field(default_factory=list)
    waiting: bool = True  # for the user
    over: bool = False
    turns: int = 0  # utterances of the desk, calls too
    calls: int = 0  # of its tools
    uses: int = 0  # of the device, in the user's turn
    understood: int = 0  # utterances of either
    # what the desk has heard and found
    name_told: int = NONE
    code_told: int = NONE  # since the last one was tried
    found: int = NONE  # the customer
    verified: int = NONE  # the customer who was identified
    wrong_codes: int = 0
    read: int = 0  # bits of records
    wish: DeskAct = NOTHING  # the open one, as it was told
    proposed: DeskAct = NOTHING
    confirmed: DeskAct = NOTHING
    done: DeskAct = NOTHING  # what was changed last
    screen: int = NONE  # as the user has told it
    last: DeskAct = NOTHING  # of the desk
    heard: DeskAct = NOTHING  # of the user
    # what is owed and was given
    current: int = NONE  # the goal's request that is open
    voiced: int = 0
    changed: int = 0
    claimed: int = 0
    told: int = 0
    refused: int = 0
    faults: int = 0
    repeats: int = 0  # questions that were answered before, and words that were not understood
    codes_said: int = 0
    answered: int = 0  # right or not
    consented: int = 0
    shown: int = NONE  # on the screen when the user read it
    pleas: int = 0  # bits of the tools that it was asked to use
    again: bool = False  # it was asked for the last one before

    def copy(self) -> "DeskState":
        """An independent copy."""
        other = DeskState(*_VALUES(self))
        other.desk_lines, other.user_lines = self.desk_lines.copy(), self.user_lines.copy()
        return other


_VALUES = attrgetter(*DeskState.__slots__)
