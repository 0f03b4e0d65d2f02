"""Write the built-in dialogues of everyday English, labelled with acts and emotions.

    python scripts/build_everyday.py [--out FILE]

The texts lie in `scripts/everyday`, a file a topic: lists of facts, named phrases (see
`phrases.py`) and scenarios. A scenario is a sequence of turns, ``SPEAKER ACT [EMOTION]: phrase``,
with blocks of alternatives between lines ``(``, ``|`` and ``)``; an empty alternative leaves the
block out. Facts hold for a dialogue, and a turn that has been written before
is worded again a few times. No two dialogues begin with the same two turns, so no
context of two turns or more in one split has the same reply in another.

All texts were written for dialgym. `corpus_figures.py` prints what there is: 4,000 dialogues of 25
topics, 26,800 turns, two thirds of them distinct; 43 % of the test's turns are in training too.

The same texts give the same bytes on any machine: all draws come from `Random(seed).random()`.
"""

import argparse
import gzip
import json
import re
from collections.abc import Container, Iterator, Sequence
from pathlib import Path
from random import Random
from typing import Any, NamedTuple

from domain_texts import Draw
from phrases import Lexicon, Speech, read_blocks, read_lexicon

from dialgym.io.files import write_atomically

ROOT = Path(__file__).parents[1]
TEXTS = ROOT / "scripts" / "everyday"
OUT = ROOT / "dialgym" / "tasks" / "daily_dialog" / "everyday.jsonl.gz"

SIZE, SEED, SHORTEST, LONGEST = 4000, 20, 4, 12
WORDINGS = 5
SPLITS = ("train",) * 8 + ("validation", "test")
ACTS = {"i": "inform", "q": "question", "d": "directive", "c": "commissive"}
EMOTIONS = ("no emotion", "happiness", "surprise", "sadness", "anger", "fear", "disgust")
TURN = re.compile(r"([AB]) ([iqdc])(?: (\w+))?")


class Turn(NamedTuple):
    """A turn of a scenario."""

    speaker: str
    act: str
    emotion: str
    phrase: str


Step = Turn | list  # a list holds alternatives, each a list of steps


class Scenario(NamedTuple):
    """Turns and lexicon of a kind of dialogues."""

    topic: str
    name: str
    steps: list[Step]
    lexicon: Lexicon


def read_scenarios(path: Path, common: Lexicon) -> list[Scenario]:
    """The scenarios of a topic's file."""
    blocks = read_blocks(path.read_text("utf-8").splitlines())
    topic = dict(blocks)["topic"]
    lexicon = common.joined(read_lexicon(blocks))
    blocks = [block for block in blocks if block[0][0] not in "@$"]
    starts = [i for i, (key, _) in enumerate(blocks) if key.startswith("==")]
    ends = [*starts[1:], len(blocks)]
    return [
        Scenario(topic, blocks[i][0].strip("= "), read_steps(blocks[i + 1 : j]), lexicon)
        for i, j in zip(starts, ends)
    ]


def read_steps(blocks: Sequence[tuple[str, str]]) -> list[Step]:
    """The turns of a scenario, and its blocks of alternatives as lists of lists."""
    stack: list[list] = [[[]]]
    for key, text in blocks:
        if key == "(":
            stack.append([[]])
        elif key == "|":
            stack[-1].append([])
        elif key == ")":
            done = stack.pop()
            stack[-1][-1].append(done)
        else:
            stack[-1][-1].append(read_turn(key, text))
    if len(stack) != 1:
        raise ValueError(f"a block of alternatives is not closed in {blocks[0]!r}.")
    return stack[0][0]


def read_turn(key: str, text: str) -> Turn:
    """A turn from ``A q happiness`` and its phrase."""
    match = TURN.fullmatch(key)
    emotion = (match and match[3]) or "no emotion"
    if match is None or emotion not in EMOTIONS or not text:
        raise ValueError(f"expected 'A|B i|q|d|c [EMOTION]: phrase'; got {key!r}: {text!r}.")
    return Turn(match[1], ACTS[match[2]], emotion, text)


def chosen(steps: Sequence[Step], draw: Draw) -> Iterator[Turn]:
    """The turns of one way through a scenario."""
    for step in steps:
        if isinstance(step, list):
            yield from chosen(draw.one(step), draw)
        else:
            yield step


def write_dialogue(scenario: Scenario, draw: Draw, known: Container[str] = ()) -> dict[str, Any]:
    """One dialogue of a scenario; a turn that is `known` is worded again, a few times.

    Raises:
        ValueError: the speakers do not alternate, or there are too few or too many turns.
    """
    turns = list(chosen(scenario.steps, draw))
    speech = Speech(scenario.lexicon, draw)
    who = "".join(turn.speaker for turn in turns)
    if "AA" in who or "BB" in who or not SHORTEST <= len(who) <= LONGEST:
        raise ValueError(f"{scenario.topic}, {scenario.name}: speakers {who}.")
    return {
        "topic": scenario.topic,
        "turns": [write_turn(speech, turn.phrase, known) for turn in turns],
        "acts": [turn.act for turn in turns],
        "emotions": [turn.emotion for turn in turns],
    }


def write_turn(speech: Speech, phrase: str, known: Container[str]) -> str:
    """A wording that is not `known`, if one is found in `WORDINGS` draws."""
    for _ in range(WORDINGS):
        if (text := speech.write(phrase)) not in known:
            break
    return text


def write_all(scenarios: Sequence[Scenario], draw: Draw, size: int = SIZE) -> list[dict[str, Any]]:
    """`size` dialogues, as many of one scenario as of another, no two with the same beginning."""
    beginnings: set[tuple[str, ...]] = set()
    known: set[str] = set()
    dialogues: list[dict[str, Any]] = []
    for i, scenario in enumerate(scenarios):
        wanted = (i + 1) * size // len(scenarios)
        for _ in range(100 * size // len(scenarios)):
            if len(dialogues) == wanted:
                break
            dialogue = write_dialogue(scenario, draw, known)
            if (beginning := tuple(dialogue["turns"][:2])) not in beginnings:
                beginnings.add(beginning)
                known.update(dialogue["turns"])
                dialogues.append(dialogue)
        else:
            raise ValueError(f"{scenario.topic}, {scenario.name}: too few beginnings.")
    return dialogues


def with_splits(rows: Sequence[dict[str, Any]], draw: Draw) -> list[dict[str, Any]]:
    """The rows by split: eight of ten in a row for training, one each for the others.

    Those for training stay in order, alike beside alike, which halves the file; the others do not.
    """
    named = [(SPLITS[i % len(SPLITS)], row) for i, row in enumerate(rows)]
    train = [{"split": split, **row} for split, row in named if split == "train"]
    others = [(split, draw.random(), row) for split, row in named if split != "train"]
    others.sort(key=lambda other: (SPLITS.index(other[0]), other[1]))
    return [*train, *({"split": split, **row} for split, _, row in others)]


def all_scenarios(folder: Path = TEXTS) -> list[Scenario]:
    """The scenarios of all topics, in the order of their files' names."""
    common = read_lexicon(read_blocks((folder / "common.txt").read_text("utf-8").splitlines()))
    paths = sorted(path for path in folder.glob("*.txt") if path.stem != "common")
    return [scenario for path in paths for scenario in read_scenarios(path, common)]


def write_rows(rows: Sequence[dict[str, Any]], path: Path) -> None:
    """One JSON object a line, compressed; the same rows give the same bytes."""
    lines = "".join(json.dumps(row) + "\n" for row in rows)
    packed = gzip.compress(lines.encode(), compresslevel=9, mtime=0)
    write_atomically(path, lambda temporary: temporary.write_bytes(packed))


def build() -> list[dict[str, Any]]:
    """All rows of the file."""
    draw = Draw(Random(SEED))
    return with_splits(write_all(all_scenarios(), draw), draw)


def main() -> None:
    """Write the file."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--out", type=Path, default=OUT)
    write_rows(build(), parser.parse_args().out)


if __name__ == "__main__":
    main()
