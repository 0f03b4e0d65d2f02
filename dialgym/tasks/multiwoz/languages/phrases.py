"""English phrases: what is said of a slot, and the sentences that it is said in.

A sentence is a frame and clauses, ``I need a train {}.`` + ``from ely``, ``on monday``. All
sentences of the task are written for it.
"""

from collections.abc import Mapping
from types import MappingProxyType

from dialgym.tasks.multiwoz.agenda import CHOICE, NOT_BOOK
from dialgym.tasks.multiwoz.answers import UNKNOWN
from dialgym.tasks.multiwoz.ontology import BOOKING, GENERAL
from dialgym.tasks.multiwoz.types import ASKED, NONE

Texts = tuple[str, ...]
NOUNS: Mapping[str, tuple[str, str]] = MappingProxyType(
    {
        "Attraction": ("attraction", "attractions"),
        "Hospital": ("hospital", "hospitals"),
        "Hotel": ("place to stay", "places to stay"),
        "Police": ("police station", "police stations"),
        "Restaurant": ("restaurant", "restaurants"),
        "Taxi": ("taxi", "taxis"),
        "Train": ("train", "trains"),
        BOOKING: ("booking", "bookings"),
    }
)
"""Domain -> noun and plural; frames have them as ``{noun}``, ``{a}``, ``{the}``, ``{plural}``."""

# Sentences

WHOLE, ANNOUNCED, TOLD, BOOKED, NAMED, ASKING = (
    "whole", "announced", "told", "booked", "named", "asking",
)  # fmt: skip
"""Styles of frames: that name a domain or say no slot; that name it and tell of it; that tell of
it; that tell how to book; that tell a name too; that ask for nouns alone."""
USER_FRAMES: Mapping[str, Mapping[str, Texts]] = MappingProxyType(
    {
        "Inform": {
            WHOLE: ("I am looking for {a}.", "I need {a}.", "Please find me {a}."),
            ANNOUNCED: ("I am looking for {a} {}.", "I need {a} {}.", "Please find me {a} {}."),
            TOLD: ("I would like {a} {}.", "I want {a} {}."),
        },
        "Request": {
            WHOLE: ("I have a question about {the}.",),
            TOLD: ("As for {the}, could you tell me {}?",),
            ASKING: ("Could you tell me {} of {the}?", "I also need {} of {the}."),
        },
    }
)
"""Intent -> style -> frames; ``{}`` has the clauses."""
SYSTEM_FRAMES: Mapping[str, Mapping[str, Texts]] = MappingProxyType(
    {
        "Inform": {
            WHOLE: ("There is {a}.",),
            TOLD: ("The {noun} {}.",),
            NAMED: ("There is {a} that {}.", "I have found {a} that {}."),
        },
        "Recommend": {
            WHOLE: ("I recommend {a}.",),
            TOLD: ("I recommend {a} {}.", "How about {a} {}?", "You may like {a} {}."),
        },
        "NoOffer": {
            WHOLE: ("Sorry, I cannot find {a}.", "I am afraid there is no {noun}."),
            TOLD: ("Sorry, I cannot find {a} {}.", "I am afraid there is no {noun} {}."),
        },
        "Select": {
            WHOLE: ("Which {noun} would you prefer?",),
            TOLD: ("Would you prefer {a} {}?", "Would {a} {} suit you?"),
        },
        "Request": {
            WHOLE: ("Could you tell me more about {the}?",),
            TOLD: ("For {the}, {}?", "As for {the}, {}?"),
        },
        "OfferBook": {
            WHOLE: ("I can book you {a}.", "May I book you {a}?"),
            TOLD: ("I can book you {a} {}.", "May I book you {a} {}?"),
        },
        "OfferBooked": {
            WHOLE: ("I have booked you {a}.",),
            TOLD: ("I have booked you {a} {}.",),
        },
    }
)
OWN_FRAMES: Mapping[tuple[str, str], Mapping[str, Texts]] = MappingProxyType(
    {
        (BOOKING, "Inform"): {
            WHOLE: ("Shall I make a booking?", "I could book it."),
            TOLD: ("Shall I make a booking {}?", "I could book it {}."),
        },
        (BOOKING, "Book"): {
            WHOLE: ("That is booked.", "It is booked for you."),
            TOLD: ("That is booked {}.", "It is booked for you {}."),
        },
        (BOOKING, "NoBook"): {
            WHOLE: ("I could not book that.", "It cannot be booked."),
            TOLD: ("I could not book that {}.", "It cannot be booked {}."),
        },
        (GENERAL, "bye"): {WHOLE: ("Goodbye.", "Bye now.", "That is all, goodbye.")},
        (GENERAL, "greet"): {WHOLE: ("Hello.", "Hi there.")},
        (GENERAL, "thank"): {WHOLE: ("Thank you.", "Thanks a lot.")},
        (GENERAL, "welcome"): {WHOLE: ("You are welcome.", "My pleasure.")},
        (GENERAL, "reqmore"): {
            WHOLE: ("Is there anything else I can do?", "Do you need anything else?")
        },
    }
)
"""Domain and intent -> style -> what takes the place of those; of either party."""
BOOKING_FRAMES: Mapping[str, Texts] = MappingProxyType(
    {
        "Hotel": ("Please book a room {}.", "I need a room {}."),
        "Restaurant": ("Please book a table {}.", "I need a table {}."),
        "Train": ("Please book seats on the train {}.",),
    }
)
"""Domain -> how the user says how to book."""
OWN_SENTENCES: Mapping[tuple[str, str], Mapping[str | None, Texts]] = MappingProxyType(
    {
        ("user", NOT_BOOK): {NONE: ("I do not want to book {the}.",)},
        ("user", CHOICE.capitalize()): {
            "any": ("Any {noun} will do.", "Please choose {a} for me."),
        },
        ("system", CHOICE.capitalize()): {
            "1": ("I have found 1 {noun}.", "There is 1 {noun} to choose from."),
            None: ("I have found {} {plural}.", "There are {} {plural} to choose from."),
        },
    }
)
"""Party and slot that it tells of -> value, or any with None -> sentences."""

# Clauses

ATTRIBUTES: Mapping[str, Texts] = MappingProxyType(
    {
        "Addr": ("at {}",),
        "Area": ("in the {}", "in the {} of town"),
        "Arrive": ("arriving at {}",),
        "Car": ("that is {article} {}",),
        "Choice": ("out of {} choices",),
        "Day": ("on {}",),
        "Depart": ("from {}", "departing from {}"),
        "Department": ("with the department {}",),
        "Dest": ("to {}", "going to {}"),
        "Fee": ("with an entrance fee of {}",),
        "Food": ("with {} food", "serving {} food"),
        "Id": ("with the number {}",),
        "Internet": ("with internet marked {}",),
        "Leave": ("leaving at {}",),
        "Name": ("called {}", "named {}"),
        "Parking": ("with parking marked {}",),
        "People": ("for {} people",),
        "Phone": ("with the phone number {}",),
        "Post": ("with the postcode {}",),
        "Price": ("in the {} price range",),
        "Ref": ("with the reference {}",),
        "Stars": ("with {} stars",),
        "Stay": ("for {} nights",),
        "Ticket": ("at a fare of {}",),
        "Time": ("at {}",),
        "Type": ("of the type {}",),
    }
)
"""Slot -> what is said with its value behind a noun; ``{article}`` is one that suits the value."""
OWN_ATTRIBUTES: Mapping[tuple[str, str], Texts] = MappingProxyType(
    {
        ("Train", "Time"): ("taking {}",),
        ("Hotel", "Type"): ("that is {article} {}",),
        ("Restaurant", "Addr"): ("at the address {}",),
        (BOOKING, "Name"): ("at a place called {}",),
    }
)
"""Domain and slot -> what takes the place of that."""
LIMITS: Mapping[str, Texts] = MappingProxyType(
    {"Arrive": ("arriving by {}",), "Leave": ("leaving after {}",)}
)
"""The same of times that the user asks for."""
OFFERS: Mapping[str, Texts] = MappingProxyType(
    {"Arrive": ("arriving at or before {}",), "Leave": ("leaving at or after {}",)}
)
"""The same of times that are offered, which are those of a train or what the user asked for."""
PREDICATES: Mapping[str, Texts] = MappingProxyType(
    {
        "Arrive": ("arrives at {}",),
        "Depart": ("departs from {}",),
        "Dest": ("goes to {}",),
        "Food": ("serves {} food",),
        "Leave": ("leaves at {}",),
        "Ticket": ("costs {}",),
    }
)
"""Slot -> what is said with its value behind a subject; others are made of `ATTRIBUTES`."""
OWN_PREDICATES: Mapping[tuple[str, str], Texts] = MappingProxyType(
    {
        ("Restaurant", "Addr"): ("is at {}",),
        ("Restaurant", "Time"): ("is free at {}",),
        ("Train", "Day"): ("runs on {}",),
        ("Train", "Time"): ("takes {}",),
    }
)
FIXED: Mapping[tuple[str, str], Texts] = MappingProxyType(
    {
        ("Internet", "yes"): ("with internet", "with wifi"),
        ("Internet", "no"): ("without internet",),
        ("Parking", "yes"): ("with parking", "with a car park"),
        ("Parking", "no"): ("without parking",),
        ("Fee", "free"): ("with free entrance",),
        ("Price", "free"): ("that is free",),
        ("People", "1"): ("for 1 person",),
        ("Stars", "1"): ("with 1 star",),
        ("Stay", "1"): ("for 1 night",),
        ("Area", "dontcare"): ("in any area",),
        ("Arrive", "dontcare"): ("arriving at any time",),
        ("Day", "dontcare"): ("on any day",),
        ("Depart", "dontcare"): ("from anywhere",),
        ("Dest", "dontcare"): ("to anywhere",),
        ("Internet", "dontcare"): ("with or without internet",),
        ("Leave", "dontcare"): ("leaving at any time",),
        ("Parking", "dontcare"): ("with or without parking",),
        ("People", "dontcare"): ("for any number of people",),
        ("Price", "dontcare"): ("in any price range",),
        ("Stay", "dontcare"): ("for any number of nights",),
        ("Time", "dontcare"): ("at any time",),
        ("Type", "dontcare"): ("of any type",),
    }
)
"""Slot and value -> what is said in one behind a noun."""
ABOUT: Mapping[str, Texts] = MappingProxyType(
    {
        "dontcare": ("with any {}",),
        NONE: ("with no known {}",),
        ASKED: ("with some {}",),
        UNKNOWN: ("with an unknown {}",),
    }
)
"""Value of any other slot -> what is said with the slot's label behind a noun."""
REQUESTED: Mapping[str, str] = MappingProxyType(
    {
        "Food": "what kind of food it serves",
        "Internet": "whether it has internet",
        "Parking": "whether it has parking",
    }
)
"""Slot -> what the user wants to be told; of others the label."""
QUESTIONS: Mapping[str, str] = MappingProxyType(
    {
        "Area": "which area would you like",
        "Arrive": "when would you like to arrive",
        "Day": "which day would you like",
        "Depart": "where would you like to leave from",
        "Department": "which department do you need",
        "Dest": "where would you like to go",
        "Food": "what kind of food would you like",
        "Internet": "do you need internet",
        "Leave": "when would you like to leave",
        "Name": "do you have a name in mind",
        "Parking": "do you need parking",
        "People": "how many people will there be",
        "Price": "which price range would you like",
        "Stars": "how many stars should it have",
        "Stay": "how many nights will you stay",
        "Time": "what time would you like",
        "Type": "what type would you like",
    }
)
"""Slot -> what the system asks; of others what they are."""
LABELS: Mapping[str, Texts] = MappingProxyType(
    {
        "Addr": ("address", "where is it", "where is that", "located"),
        "Area": ("area", "part of town"),
        "Arrive": ("arrival time", "arrive", "arrives", "arriving"),
        "Car": ("car type", "car", "kind of car"),
        "Choice": ("choice", "how many"),
        "Day": ("day",),
        "Depart": ("departure", "where from"),
        "Department": ("department",),
        "Dest": ("destination", "where to"),
        "Fee": ("entrance fee", "fee", "cost to enter", "entry fee"),
        "Food": ("kind of food", "food", "cuisine"),
        "Id": ("train number", "train id", "id"),
        "Internet": ("internet", "wifi"),
        "Leave": ("departure time", "leave", "leaves", "leaving"),
        "Name": ("name",),
        "Parking": ("parking", "car park"),
        "People": ("number of people", "how many people"),
        "Phone": ("phone number", "phone", "telephone", "contact number", "number"),
        "Post": ("postcode", "post code", "zip code"),
        "Price": ("price range", "price", "prices"),
        "Ref": ("reference number", "reference", "confirmation number"),
        "Stars": ("number of stars", "stars", "star rating"),
        "Stay": ("number of nights", "how many nights", "length of stay"),
        "Ticket": ("fare", "ticket price", "cost", "how much"),
        "Time": ("time", "travel time", "duration", "how long"),
        "Type": ("type", "kind"),
    }
)
"""Slot -> what it is called: first as sentences have it, then in other words of people's."""
OWN_LABELS: Mapping[tuple[str, str], str] = MappingProxyType(
    {("Train", "Id"): "number", ("Train", "Time"): "travel time"}
)
