"""Build the tables of twenty questions that come with the package.

    python scripts/build_questions.py [--spec scripts/build_questions.yaml] [--out FOLDER]

Writes ``things.csv``, ``animals.csv`` (the animals among the things) and ``cities.csv``: a row for
each thing, a column for each question, 1 or 0. The rows come in turns from all kinds, so that the
first rows of a table are a varied lot. The same specification gives the same files on any machine.
"""

import argparse
import csv
import io
from collections.abc import Iterator, Mapping
from itertools import chain, zip_longest
from pathlib import Path
from typing import Any

import yaml

ROOT = Path(__file__).parents[1]
OUT = ROOT / "dialgym" / "tasks" / "twenty_questions" / "tables"
Rows = list[tuple[str, dict[str, str]]]
"""Name of each thing, and its answer to each question."""


def rows_of(spec: Mapping[str, Any]) -> Rows:
    """All things, in turns from all kinds."""
    kinds = [list(_kind(kind, spec["questions"])) for kind in spec["kinds"].values()]
    return [row for row in chain(*zip_longest(*kinds)) if row]


def _kind(kind: Mapping[str, Any], questions: Mapping[str, str]) -> Iterator[tuple[str, dict]]:
    for line in kind["things"]:
        name, _, own = line.partition(":")
        answers = dict.fromkeys(questions, "0")
        for word in (*kind["is"].split(), *own.split()):
            question = word.removeprefix("-")
            if question not in questions:
                raise SystemExit(f"{name}: there is no question {question!r}")
            answers[question] = "0" if word.startswith("-") else "1"
        yield name, answers


def only(rows: Rows, question: str) -> Rows:
    """The things of which something is true, and the questions whose answers differ among them."""
    kept = [(name, answers) for name, answers in rows if answers[question] == "1"]
    varied = [q for q in rows[0][1] if len({answers[q] for _, answers in kept}) > 1]
    return [(name, {q: answers[q] for q in varied}) for name, answers in kept]


def check(table: str, rows: Rows) -> None:
    """Stop where two things have one name or the same answers, or a question is never true."""
    names: dict[str, str] = {}
    same: dict[tuple[str, ...], str] = {}
    for name, answers in rows:
        for variant in name.split(";"):
            if names.setdefault(variant, name) != name:
                raise SystemExit(f"{table}: {variant!r} is {name!r} and {names[variant]!r}")
        if (twin := same.setdefault(tuple(answers.values()), name)) != name:
            raise SystemExit(f"{table}: {name!r} and {twin!r} have the same answers")
    for question in rows[0][1]:
        if not any(answers[question] == "1" for _, answers in rows):
            raise SystemExit(f"{table}: {question!r} is true of nothing")


def write(path: Path, rows: Rows, questions: Mapping[str, str]) -> None:
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(["name", *(questions[q] for q in rows[0][1])])
    writer.writerows([name, *answers.values()] for name, answers in rows)
    path.write_text(text.getvalue(), "utf-8")
    print(f"{path.name}: {len(rows)} things, {len(rows[0][1])} questions")


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--spec", type=Path, default=ROOT / "scripts" / "build_questions.yaml")
    parser.add_argument("--out", type=Path, default=OUT)
    options = parser.parse_args()
    spec = yaml.safe_load(options.spec.read_text("utf-8"))
    options.out.mkdir(parents=True, exist_ok=True)
    things = rows_of(spec["things"])
    tables = {
        "things": things,
        "animals": only(things, "animal"),
        "cities": rows_of(spec["cities"]),
    }
    for table, rows in tables.items():
        check(table, rows)
        questions = spec["cities" if table == "cities" else "things"]["questions"]
        write(options.out / f"{table}.csv", rows, questions)


if __name__ == "__main__":
    main()
