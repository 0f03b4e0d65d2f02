"""The faults of ConvLab-2 that are kept under ``fidelity="convlab2"``, each with its name.

`FAULTS` says of each what the original does and what is done here; a part that has one looks its
name up in the `Fidelity` that it is given. Faults that change nothing are not among them: the rule
system's note of what it recommended outlives a dialogue, but nothing reads it. In one the original
is followed: its user never declines what ``OfferBook`` offers, by a test that is never true.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import NamedTuple

from dialgym.errors import one_of

FIDELITIES = ("correct", "convlab2")


class Fault(NamedTuple):
    """Behaviour of the original, and the default."""

    original: str
    default: str


FAULTS: Mapping[str, Fault] = MappingProxyType(
    {
        "same_as": Fault(
            "A value that the user wants in two domains becomes a phrase now and then ('same area "
            "as the hotel'), which the tracker stores as it is and no row has.",
            "The user says the value.",
        ),
        "day_is_booking": Fault(
            "The day of a train counts as a booking slot, so the user asks about the train before "
            "it has said the day, and is told of a train of another day.",
            "A slot is for booking where the goal books by it.",
        ),
        "loose_values": Fault(
            "Tracker and user replace a value by the first known one that contains it or is "
            "contained in it: 'meze bar restaurant' by 'meze bar'.",
            "A value is replaced where only case, spaces, an article or two letters of a long "
            "word differ; others are kept.",
        ),
        "null_answers": Fault(
            "'?', 'none' and the like count as answers to a request.",
            "They do not; that the database has no value is said by 'unknown'.",
        ),
        "any_value": Fault(
            "An answer counts as given if its form is right, whatever it says.",
            "It must be a value that some row has, or 'unknown' where some row has none.",
        ),
        "fuzzy_answers": Fault(
            "Answers agree with a row if 60 % of their letters do: train TR1234 with TR1235.",
            "They must be equal but for case and spaces.",
        ),
        "literal_bookings": Fault(
            "A booked row meets a constraint by the same letters only, so none meets 'Centre' or "
            "'dontcare'; a booking without constraints counts neither as made nor as missed.",
            "Constraints are met as in the database; any row meets a booking without them.",
        ),
        "missed_extras": Fault(
            "Told but not asked for counts against precision only where acts and database have "
            "the same name for a slot (phone, area ...), which the others (address ...) have not.",
            "Every slot that can be asked for counts.",
        ),
        "first_row": Fault(
            "Requests are answered, and bookings made, from the first row that matches, whichever "
            "row was recommended.",
            "They are about the row that was offered last, while it matches.",
        ),
        "books_early": Fault(
            "The system books as soon as one booking slot is said, and says nothing else then.",
            "It asks for those that are missing, and answers requests too.",
        ),
        "any_property": Fault(
            "A recommendation may tell the reference of a place before it is booked, and its name "
            "twice, and never tells the prices of an attraction.",
            "It tells the reference once it has booked, and every other property, once.",
        ),
        "ends_unasked": Fault(
            "The system never asks where a taxi is to leave and arrive.",
            "It asks.",
        ),
        "keeps_requests": Fault(
            "The tracker never clears a request.",
            "A request is cleared when the system answers it.",
        ),
        "never_booked": Fault(
            "The tracker does not know what has been booked.",
            "It keeps the reference of each booking.",
        ),
        "greets": Fault(
            "The system greets when it has nothing to say, to a goodbye too.",
            "It asks whether there is more, and says goodbye.",
        ),
        "unsayable": Fault(
            "What the user has no act for (the price of an attraction) is put on its agenda too, "
            "where it takes the place of other acts and keeps back requests.",
            "It is left out.",
        ),
        "unheard": Fault(
            "The user hears no name of the police, nor a day, people, nights or a time that are "
            "told of a hotel or restaurant itself.",
            "It hears all that the system can say.",
        ),
        "last_unheard": Fault(
            "The user leaves at the turn limit without hearing what the system said last.",
            "It hears that, and leaves.",
        ),
        "train_bins": Fault(
            "Numbers of matching trains are binned as those of hotels are (0, 1, 2, 3, 4, more); "
            "the bins meant for trains are never reached.",
            "They have bins of their own (0, to 2, to 5, to 10, to 40, more).",
        ),
        "rows_alone": Fault(
            "A chosen act gets its value from the row found and from nothing else, so the system "
            "cannot say where a taxi goes, nor for when or whom it has booked.",
            "What the row does not have is what is believed.",
        ),
    }
)


@dataclass(frozen=True)
class Fidelity:
    """Which faults are kept, each one a name of `FAULTS`; none by default."""

    same_as: bool = False
    day_is_booking: bool = False
    loose_values: bool = False
    null_answers: bool = False
    any_value: bool = False
    fuzzy_answers: bool = False
    literal_bookings: bool = False
    missed_extras: bool = False
    first_row: bool = False
    books_early: bool = False
    any_property: bool = False
    ends_unasked: bool = False
    keeps_requests: bool = False
    never_booked: bool = False
    greets: bool = False
    unsayable: bool = False
    unheard: bool = False
    last_unheard: bool = False
    train_bins: bool = False
    rows_alone: bool = False

    @classmethod
    def named(cls, name: str) -> "Fidelity":
        """None of the faults for ``"correct"``, all of them for ``"convlab2"``; or those named.

        Args:
            name: one of `FIDELITIES`, or names of `FAULTS` joined by ``+``.

        Raises:
            ValueError: the name is another.
        """
        parts = name.split("+") if isinstance(name, str) else [name]
        known = (*FIDELITIES, *FAULTS) if len(parts) == 1 else tuple(FAULTS)
        for part in parts:
            one_of("fidelity", part, known, "MultiWOZ")
        kept = {"correct": (), "convlab2": FAULTS}.get(name, parts)
        return cls(**dict.fromkeys(kept, True))
