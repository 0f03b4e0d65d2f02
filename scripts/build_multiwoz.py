"""Build the city of MultiWOZ that comes with the package: its size and schema, invented names.

    python scripts/build_multiwoz.py [--spec scripts/build_multiwoz.yaml] [--out FILE]

Writes one JSON file, compressed: the rows of all domains under their columns, what taxis can be,
and the goal model in ConvLab-2's form. The same specification gives the same content on any
machine: all draws come from `random.Random(seed).random()`.
"""

import argparse
import gzip
import json
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import combinations
from pathlib import Path
from random import Random
from typing import Any

import yaml
from domain_texts import Draw, Row, about, restaurant, street, word

ROOT = Path(__file__).parents[1]
OUT = ROOT / "dialgym" / "tasks" / "multiwoz" / "builtin" / "city.json.gz"
DAYS = ("monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday")
Rows = list[dict[str, str]]


def build(spec: Mapping[str, Any]) -> dict[str, Any]:
    """The content of the file."""
    draw = Draw(Random(spec["seed"]))
    ties = spec["ties"]
    rows = {d: places(d, columns, ties[d], draw) for d, columns in spec["rows"].items()}
    rows["train"] = trains(spec, draw)
    rows["hospital"] = hospital(spec["departments"], draw)
    rows["police"] = [{"name": f"{word(draw)} police station", **where(draw), "id": "0"}]
    taxis = spec["taxis"]
    return {
        "tables": {domain: as_table(found) for domain, found in sorted(rows.items())},
        "taxis": [taxis["colors"], taxis["types"]],
        "goal_model": goal_model(spec["goals"], rows),
    }


def places(domain: str, columns: Mapping[str, Mapping[str, int]], tie: float, draw: Draw) -> Rows:
    """Restaurants, hotels or attractions: each value as often as it should be."""
    rows = tied_cells(columns, tie, draw)
    names: list[str] = []
    for place, row in enumerate(rows):
        names.append(new_name(NAMES[domain], row, names, draw))
        row.update(
            {"id": str(place), "name": names[-1], **where(draw), **DETAILS[domain](row, draw)}
        )
    return rows


def tied_cells(columns: Mapping[str, Mapping[str, int]], tie: float, draw: Draw) -> Rows:
    """Rows whose columns go together: by `tie` of 1 in one order of rows, by 0 in any."""
    size = sum(next(iter(columns.values())).values())
    latent = [draw.random() for _ in range(size)]
    rows: Rows = [{} for _ in range(size)]
    for slot, counts in columns.items():
        kinds = shuffle(dict.fromkeys(counts, 1), draw)
        cells = iter([value for value in kinds for _ in range(counts[value])])
        keys = [tie * place + (1 - tie) * draw.random() for place in latent]
        for place in sorted(range(size), key=keys.__getitem__):
            rows[place][slot] = next(cells)
    return rows


def shuffle(counts: Mapping[str, int], draw: Draw) -> list[str]:
    values = [value for value, count in counts.items() for _ in range(count)]
    return [values.pop(draw.below(len(values))) for _ in range(len(values))]


def new_name(make: Callable[[Draw, Row], str], row: Row, names: Sequence[str], draw: Draw) -> str:
    """A name that holds no other, nor is held by one."""
    while True:
        name = make(draw, row)
        if not any(name in other or other in name for other in names):
            return name


def where(draw: Draw) -> dict[str, str]:
    """Address, phone and postcode, in the forms that they have in Cambridge."""
    letters = "abdefghjlnpqrstuwxyz"
    code = f"cb{draw.between(1, 5)}{draw.between(1, 9)}{draw.one(letters)}{draw.one(letters)}"
    phone = f"01223{draw.between(100000, 999999)}"
    return {"address": street(draw, {}), "phone": phone, "postcode": code}


def attraction_name(draw: Draw, row: Row) -> str:
    return draw.one(ATTRACTIONS[row["type"]]).format(word(draw))


ATTRACTIONS = {
    "museum": ("{} museum", "the {} gallery", "museum of {}"),
    "college": ("{} college",),
    "nightclub": ("club {}", "the {} nightclub"),
    "theatre": ("{} theatre", "the {} playhouse"),
    "architecture": ("church of {}", "{} chapel", "the {} spire"),
    "park": ("{} park", "{} gardens"),
    "entertainment": ("{} bowling", "{} fun house"),
    "swimmingpool": ("{} pools", "{} splash"),
    "boat": ("{} punting", "riverboat {}"),
    "cinema": ("{} cinema", "{} picture house"),
    "multiple sports": ("{} sports ground",),
    "concerthall": ("{} concert hall",),
}
NAMES: Mapping[str, Callable[[Draw, Row], str]] = {
    "restaurant": lambda draw, row: restaurant(draw, ""),
    "hotel": lambda draw, row: (
        f"{word(draw)} {draw.one(('guest house', 'lodge', 'bed and breakfast'))}"
        if row["type"] == "guesthouse"
        else f"{word(draw)} {draw.one(('hotel', 'inn', 'arms'))}"
    ),
    "attraction": attraction_name,
}


def attraction_details(row: Row, draw: Draw) -> dict[str, str]:
    fee = row["entrance fee"]
    price = fee if fee in ("free", "?") else draw.one(("moderate", "moderate", "cheap"))
    hours = f"it opens daily from {draw.between(8, 11)} a.m. to {draw.between(4, 10)} p.m."
    return {"pricerange": price, "openhours": "?" if draw.chance(0.3) else hours}


DETAILS: Mapping[str, Callable[[Row, Draw], dict[str, str]]] = {
    "restaurant": lambda row, draw: {"type": "restaurant", "introduction": about(draw, row)},
    "hotel": lambda row, draw: {"takesbookings": "yes"},
    "attraction": attraction_details,
}


def trains(spec: Mapping[str, Any], draw: Draw) -> Rows:
    """Trains between the city and other towns, both ways, day by day, from five to midnight."""
    home, rows = spec["home"], []
    towns: list[str] = []
    for _ in spec["trains"]:
        towns.append(new_name(lambda draw, _: word(draw), {}, [*towns, home], draw))
    numbers = iter(shuffle({f"TR{number:04d}": 1 for number in range(10000)}, draw))
    for town, line in zip(towns, spec["trains"]):
        for departure, destination in ((home, town), (town, home)):
            start = 5 * 60 + draw.between(0, 11) * 5
            for day in DAYS:
                rows += day_of_trains(departure, destination, day, line, start, spec, numbers)
    return rows


def day_of_trains(
    departure: str,
    destination: str,
    day: str,
    line: Mapping[str, Any],
    start: int,
    spec: Mapping[str, Any],
    numbers: Iterator[str],
) -> Iterator[dict[str, str]]:
    step = {38: 30, 19: 60, 10: 120}[line["trains"]]
    start -= start % 60 // step * step  # so that the last one leaves before midnight
    price = line["pounds"] * (spec["weekend"] if day in DAYS[5:] else 1)
    for place in range(line["trains"]):
        leave = start + place * step
        yield {
            "day": day,
            "departure": departure,
            "destination": destination,
            "leaveAt": clock(leave),
            "arriveBy": clock(leave + line["minutes"]),
            "duration": f"{line['minutes']} minutes",
            "price": f"{price:.2f} pounds",
            "trainID": next(numbers),
        }


def clock(minutes: int) -> str:
    """A time; after midnight the hours go on, 24:07, as they do in MultiWOZ."""
    return f"{minutes // 60:02d}:{minutes % 60:02d}"


def hospital(departments: Mapping[str, Sequence[str]], draw: Draw) -> Rows:
    """One row for each department, in one building."""
    names = [f"{of} {kind}" for of in departments["of"] for kind in departments["kinds"]]
    building = where(draw)
    return [
        {"department": name, **building, "phone": where(draw)["phone"], "id": str(place)}
        for place, name in enumerate(names)
    ]


def as_table(rows: Rows) -> dict[str, Any]:
    columns = list(rows[0])
    return {"columns": columns, "rows": [[row[column] for column in columns] for row in rows]}


# the goal model


def goal_model(goals: Mapping[str, Any], rows: Mapping[str, Rows]) -> dict[str, Any]:
    combined = {d: weighted(sets) for d, sets in goals["slot_combination"].items()}
    combined["hotel"] = hotel_combinations(goals)
    return {
        "slot_probability": goals["slot_probability"],
        "value_distribution": {d: values(d, goals, rows) for d in goals["slot_probability"]},
        "domain_ordering": weighted(goals["domain_ordering"]),
        "booking_probability": goals["booking_probability"],
        "slot_combination": {domain: {"info": sets} for domain, sets in combined.items()},
    }


def weighted(pairs: Sequence[Sequence[Any]]) -> list[dict[str, Any]]:
    return [{"of": of, "weight": weight} for of, weight in pairs]


def hotel_combinations(goals: Mapping[str, Any]) -> list[dict[str, Any]]:
    slots = sorted(set(goals["slot_probability"]["hotel"]["info"]) - {"name"})
    pairs: list[tuple[list[str], float]] = [(["name"], goals["hotel_name"])]
    for size, weight in goals["hotel_sizes"].items():
        sets = list(combinations(slots, size))
        pairs += [(list(of), round(weight / len(sets), 1)) for of in sets]
    return weighted(pairs)


def values(
    domain: str, goals: Mapping[str, Any], rows: Mapping[str, Rows]
) -> dict[str, dict[str, dict[str, float]]]:
    """Slot -> value -> weight: as wanted, and else as frequent as in the rows."""
    chances, given = goals["slot_probability"][domain], goals["values"]
    found: dict[str, dict[str, dict[str, float]]] = {"info": {}, "book": {}}
    for slot in chances.get("info", {}):
        wanted = given.get(domain, {}).get(slot)
        found["info"][slot] = wanted or drawn_values(domain, slot, rows)
    for slot in chances.get("book", {}):
        found["book"][slot] = BOOKINGS.get(slot) or given["stay"]
    return found


def drawn_values(domain: str, slot: str, rows: Mapping[str, Rows]) -> dict[str, float]:
    if slot in ("leaveAt", "arriveBy"):
        first, last = (8, 22) if domain == "train" else (1, 25)
        return quarters(first, last)
    if domain == "taxi":
        return {row["name"]: 1 for d in ("attraction", "hotel", "restaurant") for row in rows[d]}
    return dict(Counter(row[slot] for row in rows[domain]))


def quarters(first: int, last: int) -> dict[str, float]:
    return {clock(minutes): 1 for minutes in range(first * 60, last * 60, 15)}


BOOKINGS: Mapping[str, dict[str, float]] = {
    "day": dict.fromkeys(DAYS, 1),
    "people": {str(people): 1 for people in range(1, 9)},
    "time": quarters(10, 22),
}


def read(file: Path) -> dict[str, Any]:
    """The content of the file."""
    found: dict[str, Any] = json.loads(gzip.decompress(file.read_bytes()))
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--spec", type=Path, default=ROOT / "scripts" / "build_multiwoz.yaml")
    parser.add_argument("--out", type=Path, default=OUT)
    args = parser.parse_args()
    content = build(yaml.safe_load(args.spec.read_text("utf-8")))
    text = json.dumps(content, separators=(",", ":"))
    args.out.parent.mkdir(parents=True, exist_ok=True)
    args.out.write_bytes(gzip.compress(text.encode(), mtime=0))


if __name__ == "__main__":
    main()
