"""A small VisDial v1.0 file, and a task of visual dialogue that needs nothing but its images."""

import json
from pathlib import Path
from types import SimpleNamespace

import numpy as np

from dialgym.tasks.visual_dialogue.guessers import Held
from dialgym.tasks.visual_dialogue.pool import Pool
from dialgym.tasks.visual_dialogue.retrieval import WordGuesser
from dialgym.tasks.visual_dialogue.visdial import VisDialPool

THINGS = ("dog", "cat", "horse", "train", "pizza", "kite", "boat", "zebra")
ASKED = ("what color is the {}", "is it sunny", "how many people are there", "can you see a {}")
COLOURS = ("brown", "white", "black", "red")
EVASION, OTHERS = "hard to tell", ["green", "yes, it is", "no"]


def visdial_json(count: int = 8, split: str = "val", first_id: int = 100) -> dict:
    """`count` images, each with four rounds about its own thing."""
    questions: list[str] = []
    answers = [EVASION, *OTHERS]
    dialogs = []
    for image in range(count):
        turns = []
        for text, answer in zip(ASKED, answers_of(image)):
            questions.append(text.format(THINGS[image % len(THINGS)]))
            answers.append(answer)
            options = [2, 0, len(answers) - 1] if len(turns) % 2 else [1, len(answers) - 1]
            turns.append(
                {
                    "question": len(questions) - 1,
                    "answer": len(answers) - 1,
                    "answer_options": options,
                    "gt_index": len(options) - 1,
                }
            )
        caption = f"a {THINGS[image % len(THINGS)]} in picture {image}"
        dialogs.append({"image_id": first_id + image, "caption": caption, "dialog": turns})
    data = {"questions": questions, "answers": answers, "dialogs": dialogs}
    return {"version": "1.0", "split": split, "data": data}


def visdial05_json(count: int = 8) -> list[dict]:
    """The same dialogues as v0.5 has them: a list, texts in place, no ids, no question marks."""
    data = visdial_json(count)["data"]
    return [
        {
            "caption": row["caption"],
            "dialog": [
                {
                    "question": data["questions"][turn["question"]],
                    "answer": data["answers"][turn["answer"]],
                }
                for turn in row["dialog"]
            ],
        }
        for row in data["dialogs"]
    ]


def answers_of(image: int) -> tuple[str, ...]:
    """The answers about an image."""
    sunny = "yes" if image % 2 else "no"
    return COLOURS[image % len(COLOURS)], sunny, str(image), "yes, 1"


def write_visdial(folder: Path, name: str = "visdial_1.0_val.json", **settings) -> Path:
    """The file of `visdial_json`."""
    path = folder / name
    path.write_text(json.dumps(visdial_json(**settings)), encoding="utf-8")
    return path


class PlainPool(Pool):
    """Three images of which nothing is known but captions."""

    features = np.eye(3, dtype=np.float32)
    captions = ("one", "two", "three")
    answerer = "rules"


class Same:
    """A guesser that ranks all images alike, and an answerer that always says yes."""

    def percentiles(self, dialogues):
        return np.full(len(dialogues), 0.5)

    def reply(self, task, state, rng):
        return "yes"


class ToyTask:
    """As much of a task as speakers and servers ask for: images, and who ranks them."""

    def __init__(self, pool, guesser) -> None:
        self.pool, self.guesser = pool, guesser

    def held(self, state) -> Held:
        return Held(self.pool.captions[state.image], state.history, state.image)


def toy_task(folder: Path, **settings) -> ToyTask:
    """Eight images, ranked by words."""
    pool = VisDialPool(write_visdial(folder), **settings)
    return ToyTask(pool, WordGuesser(pool))


def state_of(image: int, history=(), asked=None) -> SimpleNamespace:
    """A dialogue under way."""
    return SimpleNamespace(image=image, history=tuple(history), asked=asked)
