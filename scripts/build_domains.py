"""Build the domains that come with the package: invented, of the sizes of PyDial's.

    python scripts/build_domains.py [--spec scripts/build_domains.yaml] [--out FOLDER] [NAME ...]

Writes one JSON file a domain: its ontology, and the rows of its database. The same specification
gives the same files on any machine: all draws come from `random.Random(seed).random()`.
"""

import argparse
import json
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from itertools import accumulate
from pathlib import Path
from random import Random
from typing import Any

import yaml
from domain_texts import DETAILS, NAMES, VALUES, Draw

ROOT = Path(__file__).parents[1]
OUT = ROOT / "dialgym" / "tasks" / "slot_filling" / "domain" / "builtin"
MISSING = "not available"


class Slot:
    """A slot's values, the commonest first, and how each class of rows prefers them."""

    def __init__(self, name: str, spec: Mapping[str, Any], words: Mapping, draw: Draw) -> None:
        self.name, self.spec = name, spec
        self.asked: bool = spec.get("asked", True)
        self.missing: float = spec.get("missing", 0.0)
        self.values = self._make(words, draw)
        self.used = self.values[: spec.get("used", len(self.values))]

    def _make(self, words: Mapping, draw: Draw) -> list[str]:
        if "make" in self.spec:
            return draw.distinct(VALUES[self.spec["make"]], self.spec["count"])
        values = self.spec["values"]
        values = words[values] if isinstance(values, str) else values
        return values[: self.spec.get("count", len(values))]

    def prefer(self, classes: int, tilt: float, draw: Draw) -> list[list[float]]:
        """Cumulative weights of the used values, for each class."""
        zipf = [(place + 1) ** -self.spec["skew"] for place in range(len(self.used))]
        return [list(accumulate(w * draw.lognormal(tilt) for w in zipf)) for _ in range(classes)]


def build(spec: Mapping[str, Any], words: Mapping[str, Sequence[str]]) -> dict[str, Any]:
    """The ontology of a domain, and its rows under ``columns`` and ``rows``."""
    draw = Draw(Random(spec["seed"]))
    slots = [Slot(name, slot, words, draw) for name, slot in spec["slots"].items()]
    rows = draw_rows(spec, slots, draw)
    names = name_rows(spec["names"], rows, slots[0].name, draw)
    details = spec["details"]
    for name, row in zip(names, rows):
        row["name"] = name
        row.update({detail: DETAILS[kind](draw, row) for detail, kind in details.items()})
    requestable = ["name", *spec["slots"], *details]
    return {
        "type": spec["type"],
        "informable": {"name": sorted(names), **{s.name: sorted(s.values) for s in slots}},
        "requestable": requestable,
        "system_requestable": [slot.name for slot in slots if slot.asked],
        "columns": requestable,
        "rows": [[row[column] for column in requestable] for row in rows],
    }


def draw_rows(spec: Mapping[str, Any], slots: Sequence[Slot], draw: Draw) -> list[dict[str, str]]:
    """The cells of all slots; every used value is in some row."""
    classes = spec["classes"]
    weights = [slot.prefer(classes, spec["tilt"], draw) for slot in slots]
    rows: list[dict[str, str]] = []
    for _ in range(spec["rows"]):
        kind = draw.below(classes)
        rows.append({s.name: draw.one(s.used, w[kind]) for s, w in zip(slots, weights)})
    for slot in slots:
        use_all(slot, rows, draw)
        for row in rows:
            if draw.chance(slot.missing) and not is_last(row[slot.name], slot.name, rows):
                row[slot.name] = MISSING
    return rows


def use_all(slot: Slot, rows: list[dict[str, str]], draw: Draw) -> None:
    """Give values that no row has to rows whose value is a common one."""
    for value in slot.used:
        counts = Counter(row[slot.name] for row in rows)
        if not counts[value]:
            common = [row for row in rows if counts[row[slot.name]] > 1]
            draw.one(common)[slot.name] = value


def is_last(value: str, slot: str, rows: Sequence[Mapping[str, str]]) -> bool:
    return sum(row[slot] == value for row in rows) == 1


def name_rows(
    spec: Mapping[str, Any], rows: Sequence[Mapping[str, str]], prefix: str, draw: Draw
) -> list[str]:
    """A name for each row, all distinct, and those of venues that are in no row."""
    make, known = NAMES[spec["make"]], dict[str, None]()
    for row in (*rows, *rows[: spec.get("unused", 0)]):
        known.setdefault(draw.until_new(lambda row=row: make(draw, row[prefix]), known))
    return list(known)


def as_text(domain: Mapping[str, Any]) -> str:
    """JSON with one line for each row, and for each slot."""
    return "".join(_lines(domain)) + "\n"


def _lines(domain: Mapping[str, Any]) -> Iterator[str]:
    yield "{\n"
    for key in ("type", "requestable", "system_requestable"):
        yield f"{json.dumps(key)}: {json.dumps(domain[key])},\n"
    slots = (f"  {json.dumps(s)}: {json.dumps(v)}" for s, v in domain["informable"].items())
    yield '"informable": {\n' + ",\n".join(slots) + "\n},\n"
    yield f'"columns": {json.dumps(domain["columns"])},\n"rows": [\n'
    yield ",\n".join(json.dumps(row) for row in domain["rows"]) + "\n]\n}"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("names", nargs="*", help="domains; without any, all of them")
    parser.add_argument("--spec", type=Path, default=ROOT / "scripts" / "build_domains.yaml")
    parser.add_argument("--out", type=Path, default=OUT)
    args = parser.parse_args()
    spec = yaml.safe_load(args.spec.read_text("utf-8"))
    args.out.mkdir(parents=True, exist_ok=True)
    for name in args.names or spec["domains"]:
        text = as_text(build(spec["domains"][name], spec["words"]))
        (args.out / f"{name}.json").write_text(text, encoding="utf-8")
        print(f"{name}: {len(text)} bytes")


if __name__ == "__main__":
    main()
