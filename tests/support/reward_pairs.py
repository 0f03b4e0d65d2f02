"""Replies and references that the rewards are compared on: odd ones, generated and real."""

import json
import random
import zipfile
from functools import cache
from pathlib import Path

from dialgym.rewards import Reply

ODD = [
    "", " ", ".", "?!...", "a", "a a a a a", "the the the cat", "Yes.", "yes", "I'm can't won't",
    "well-known, semi-colon; e.g. U.S.A. $3.50 (50%)", "naïve café – “quoted” text",
    "one\ntwo.\nthree",
    "No! Really? Yes, really. I said so.", "running runs ran runner", "THE CAT SAT", "\t tabs \t",
    "12 34 12 34 12 34", "don't do n't", "a b c d e f g h i j k l m n o p q r s t u v w x y z",
    "happily happy happiness unhappy", "...", "(hello) [world] {again}", "cats cat's cats'",
]  # fmt: skip
WORDS = [
    *("the", "a", "cat", "dog", "cats", "runs", "running", "ran", "quickly", "quick", "I", "you"),
    *("we", "like", "likes", "liked", "going", "gone", "go", "to", "of", "it", ".", ",", "?", "!"),
    *("not", "never", "happy", "happily", "n't", "'s", "(", ")", "word", "words", "wordy"),
]


def generated(rng: random.Random, count: int) -> list[Reply]:
    """Texts of few words, so that they overlap and repeat themselves."""

    def text() -> str:
        return " ".join(rng.choices(WORDS, k=rng.randint(0, 14)))

    pairs = [Reply(text(), (text(),), (text(),)) for _ in range(count)]
    odd = [Reply(rng.choice(ODD), (rng.choice(ODD),), (rng.choice(ODD),)) for _ in range(count)]
    several = [Reply(text(), (), tuple(text() for _ in range(3))) for _ in range(count // 2)]
    same = [Reply(text, (text,), (text,)) for text in ODD]
    return [*pairs, *odd, *several, *same]


@cache
def real_turns(data: Path, split: str) -> list[tuple[Reply, str]]:
    """Every turn of DailyDialog's split as a reply to those before it, with its act."""
    with zipfile.ZipFile(data / "dailydialog_unified" / "data.zip") as archive:
        dialogues = json.loads(archive.read("data/dialogues.json"))
    found = []
    for dialogue in dialogues:
        if dialogue["data_split"] == split:
            texts = tuple(turn["utterance"] for turn in dialogue["turns"])
            for i, turn in enumerate(dialogue["turns"]):
                acts = turn["dialogue_acts"]["binary"]
                act = acts[0]["intent"] if acts else "inform"
                reply = Reply(texts[i], texts[:i], (texts[i],), {"act": act})
                found.append((reply, act))
    return found


def shuffled(turns: list[tuple[Reply, str]], rng: random.Random, count: int) -> list[Reply]:
    """Replies that were said elsewhere, each with the reference."""
    chosen = rng.sample(turns, count)
    return [r._replace(text=rng.choice(turns)[0].text) for r, _ in chosen[: count // 2]] + [
        # a reply that shares much with its reference: some of its words, in another order
        r._replace(text=" ".join(rng.sample(r.text.split(), max(1, len(r.text.split()) * 2 // 3))))
        for r, _ in chosen[count // 2 :]
    ]
