"""A small city in MultiWOZ's files, and changes of it."""

import json
from pathlib import Path
from typing import Any

DAYS = ("monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday")


def tables() -> dict[str, Any]:
    """The content of each ``<domain>_db.json``."""
    return {
        "attraction": [
            place("ely museum", type="museum", **{"entrance fee": "?"}),
            place("old park", type="park", area="south", **{"entrance fee": "free"}),
        ],
        "hospital": [
            {"department": "Eye Clinic", "phone": "01223000001", "id": 0},
            {"department": "burns", "phone": "01223000002", "id": 1},
        ],
        "hotel": [hotel("red house"), hotel("blue inn", area="south", type="hotel", stars="3")],
        "police": [{"name": "Main Station", "phone": "01223000003", "id": 0}],
        "restaurant": [
            place("tall table", food="thai", pricerange="cheap"),
            place("low table", food="Greek", pricerange="?", area="south"),
            {**place("no phone", food="thai", pricerange="expensive"), "location": [1.0, 2.0]},
        ],
        "taxi": {"taxi_colors": ["red", "blue"], "taxi_types": ["cab"], "taxi_phone": ["x"]},
        "train": [train(number, day) for day in DAYS for number in range(4)],
    }


def place(name: str, **cells: str) -> dict[str, Any]:
    usual = {"name": name, "area": "centre", "address": "1 road", "phone": "01223000009"}
    return {**usual, "postcode": "cb11aa", **cells}


def hotel(name: str, **cells: str) -> dict[str, Any]:
    usual = {"pricerange": "cheap", "stars": "4", "type": "guesthouse", "parking": "yes"}
    return {**place(name), **usual, "internet": "yes", "price": {"single": "50"}, **cells}


def train(number: int, day: str) -> dict[str, str]:
    ends = ("camford", "elta") if number % 2 else ("elta", "camford")
    times = {"leaveAt": f"{8 + 4 * number:02d}:50", "arriveBy": f"{9 + 4 * number:02d}:20"}
    usual = {"duration": "30 minutes", "price": "5.00 pounds", "trainID": f"TR{number:04d}"}
    return {"day": day, "departure": ends[0], "destination": ends[1], **times, **usual}


def write_city(folder: Path, /, **changes: Any) -> Path:
    """The files of the city, in ``db/``; changed files by name, None for one that is not there.

    Text is written as it is, all else as JSON.
    """
    contents = {f"{domain}_db": content for domain, content in tables().items()} | changes
    (folder / "db").mkdir(parents=True, exist_ok=True)
    for name, content in contents.items():
        if content is not None:
            text = content if isinstance(content, str) else json.dumps(content)
            (folder / "db" / f"{name}.json").write_text(text, encoding="utf-8")
    return folder
