"""Write the conversations that stand in for logged ones: ``dialgym/tasks/logged/sample``.

They are invented, of a shop's customers, with ratings from 1 to 5 as customers give them.

    python scripts/build_logged_sample.py
"""

import json
import shutil
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np

from dialgym.datasets.foreign import Choices, import_dialogues
from dialgym.io.tables import read_rows
from dialgym.tasks.logged.corpus import CARD

FOLDER = Path(__file__).parents[1] / "dialgym" / "tasks" / "logged" / "sample"
COUNT, SEED = 80, 0
THINGS = ("lamp", "kettle", "rucksack", "pair of boots", "radio", "desk chair", "bicycle pump")
PROBLEMS = {
    "has not arrived": ("It left our store on {day} and should be with you by {later}.",
                        "Please wait a little longer."),
    "came broken": ("I am sorry. We send a new one today, and you keep the old one.",
                    "Did you drop it?"),
    "is the wrong colour": ("My mistake. Which colour would you like? We change it for nothing.",
                            "You chose that colour."),
    "is too loud": ("You can send it back within thirty days, and we pay you all of it.",
                    "That is how it is made."),
}  # fmt: skip
DAYS = ("Monday", "Tuesday", "Wednesday", "Thursday", "Friday")
GREETINGS = ("Hello, how can I help you?", "Good morning. What can I do for you?", "Yes?")
ASKS = ("May I have the number of your order?", "What is the number of your order, please?")


def conversation(rng: np.random.Generator) -> dict:
    """One conversation: kind answers are rated better than curt ones."""
    thing, problem = rng.choice(THINGS), rng.choice(list(PROBLEMS))
    day, later = (str(name) for name in rng.choice(DAYS, 2, replace=False))
    kind, asked = rng.random() < 0.6, rng.random() < 0.7
    greeting = GREETINGS[int(rng.integers(2))] if kind else GREETINGS[int(rng.integers(3))]
    turns = [("user", "Hello?"), ("assistant", greeting)]
    turns.append(("user", f"The {thing} that I ordered {problem}."))
    if asked:
        turns += [
            ("assistant", str(rng.choice(ASKS))),
            ("user", f"It is {rng.integers(1000, 9999)}."),
        ]
    answer = PROBLEMS[str(problem)][0 if kind else 1].format(day=day, later=later)
    turns.append(("assistant", answer))
    turns.append(("user", "Thank you very much!" if kind else "That does not help me."))
    turns.append(("assistant", "You are welcome. Goodbye." if kind else "Goodbye."))
    rating = int(np.clip(rng.integers(4, 6) if kind else rng.integers(1, 4), 1, 5))
    return {"messages": [{"role": r, "content": t} for r, t in turns], "rating": rating}


def main() -> None:
    """Write the folder."""
    rng = np.random.default_rng(SEED)
    with TemporaryDirectory() as temporary:
        made = Path(temporary) / "made"
        rows = [conversation(rng) for _ in range(COUNT)]
        print(import_dialogues(rows, made, Choices(tokenizer="bpe")))
        FOLDER.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(made / CARD, FOLDER / CARD)
        with (FOLDER / "dialogues.jsonl").open("w", encoding="utf-8") as file:
            for _, row in read_rows(made / "dialogues.parquet"):
                turns = [{name: turn[name] for name in ("party", "text")} for turn in row["turns"]]
                file.write(json.dumps({"turns": turns}) + "\n")


if __name__ == "__main__":
    main()
