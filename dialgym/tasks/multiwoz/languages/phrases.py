"""English phrases: how a sentence about a domain begins, and what it says of a slot.

A sentence is a beginning and clauses, ``I need a train`` + ``from ely``, ``on monday``. All
sentences of the task are written for it.
"""

from collections.abc import Mapping
from types import MappingProxyType

from dialgym.tasks.multiwoz.agenda import NOT_BOOK
from dialgym.tasks.multiwoz.ontology import BOOKING, GENERAL

A = MappingProxyType(
    {
        "Attraction": "an attraction",
        "Hospital": "a hospital",
        "Hotel": "a place to stay",
        "Police": "a police station",
        "Restaurant": "a restaurant",
        "Taxi": "a taxi",
        "Train": "a train",
        BOOKING: "a booking",
    }
)
"""Domain -> noun with its indefinite article."""
THE = MappingProxyType({domain: f"the {noun.split(' ', 1)[1]}" for domain, noun in A.items()})

USER_BEGINNINGS: Mapping[str, tuple[str, ...]] = MappingProxyType(
    {
        "Inform": ("I am looking for {a}", "I need {a}", "I would like {a}", "Please find {a}"),
        "Request": ("About {the}, what is", "For {the} I need", "Could you tell me, of {the},"),
    }
)
SYSTEM_BEGINNINGS: Mapping[str, tuple[str, ...]] = MappingProxyType(
    {
        "Inform": ("There is {a}", "I can see {a}", "We have {a}"),
        "Recommend": ("I recommend {a}", "How about {a}", "You may like {a}"),
        "NoOffer": ("Sorry, I cannot find {a}", "I am afraid that nothing is {a}"),
        "Select": ("Would you prefer {a}", "Which would suit you, {a}"),
        "Request": ("About {the}, what is", "For {the} I need", "Could you tell me, of {the},"),
        "OfferBook": ("I can book you {a}", "May I book you {a}"),
        "OfferBooked": ("I have booked you {a}", "You are booked on {a}"),
    }
)
"""Intent -> how a sentence begins; ``{a}`` and ``{the}`` are the domain's noun."""
OWN_BEGINNINGS: Mapping[tuple[str, str], tuple[str, ...]] = MappingProxyType(
    {
        (BOOKING, "Inform"): ("Shall I make a booking", "I could book it"),
        (BOOKING, "Book"): ("That is booked", "It is booked for you"),
        (BOOKING, "NoBook"): ("I could not book that", "It cannot be booked"),
    }
)
"""Domain and intent -> what takes the place of those."""
QUESTIONS = ("About", "Could", "How", "May", "Shall", "Which", "Would")
"""How a sentence begins that ends with a question mark."""
SENTENCES: Mapping[tuple[str, str], tuple[str, ...]] = MappingProxyType(
    {
        (GENERAL, "bye"): ("Goodbye.", "Bye now.", "That is all, goodbye."),
        (GENERAL, "greet"): ("Hello.", "Hi there."),
        (GENERAL, "thank"): ("Thank you.", "Thanks a lot."),
        (GENERAL, "welcome"): ("You are welcome.", "My pleasure."),
        (GENERAL, "reqmore"): ("Is there anything else I can do?", "Do you need anything else?"),
    }
)
"""Domain and intent -> whole sentences."""

CLAUSES: Mapping[str, tuple[str, ...]] = MappingProxyType(
    {
        "Addr": ("at the address {}",),
        "Area": ("in the {}", "on the {} side"),
        "Arrive": ("arriving by {}", "that arrives by {}"),
        "Car": ("in a {}",),
        "Choice": ("out of {} choices",),
        "Day": ("on {}",),
        "Depart": ("from {}", "departing from {}"),
        "Department": ("with the department {}",),
        "Dest": ("to {}", "going to {}"),
        "Fee": ("with an entrance fee of {}",),
        "Food": ("with {} food", "serving {} food"),
        "Id": ("with the number {}",),
        "Internet": ("with internet marked {}",),
        "Leave": ("leaving at {}", "that leaves after {}"),
        "Name": ("called {}", "named {}"),
        "Parking": ("with parking marked {}",),
        "People": ("for {} people",),
        "Phone": ("with the phone number {}",),
        "Post": ("with the postcode {}",),
        "Price": ("in the {} price range", "with {} prices"),
        "Ref": ("with the reference {}",),
        "Stars": ("with {} stars",),
        "Stay": ("for {} nights",),
        "Ticket": ("at a fare of {}",),
        "Time": ("at the time {}",),
        "Type": ("of the kind {}", "that is a {}"),
    }
)
"""Slot -> what is said with its value."""
FIXED: Mapping[tuple[str, str], tuple[str, ...]] = MappingProxyType(
    {
        ("Internet", "yes"): ("with internet", "with wifi"),
        ("Internet", "no"): ("without internet",),
        ("Parking", "yes"): ("with parking", "with a car park"),
        ("Parking", "no"): ("without parking",),
        ("Choice", "any"): ("of whatever kind you choose",),
        (NOT_BOOK, "none"): ("which I do not want to book",),
    }
)
"""Slot and value -> what is said in one."""
ANY_CLAUSE, NO_CLAUSE, SOME_CLAUSE = "with any {}", "with no known {}", "with some {}"
"""What is said of a slot's label with the values ``dontcare``, ``none`` and ``?``."""
LABELS: Mapping[str, tuple[str, ...]] = MappingProxyType(
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
        "Type": ("kind", "type"),
    }
)
"""Slot -> what it is called: first as sentences have it, then in other words of people's."""
