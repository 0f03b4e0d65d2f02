"""Data of LMRL-Gym (Abdulhai et al. 2023, arXiv 2311.18232), read as rows of turns, and written.

Of two forms. A sequence, a line of JSON for each dialogue of Wordle: ``sequence``, pairs of a text
and 1 for what the learner says, 0 for the rest; ``reward``, a number for each text but the opening;
``done``. A conversation, one of a list in a JSON file of twenty questions or cities: ``lines``, a
question and its answer each; ``correct``; ``word``, the names of the hidden thing. Files that are
written here also have ``done`` there, by which short games are known to be over.
"""

import json
import re
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

from dialgym.datasets.schema import IMPORTED
from dialgym.errors import one_of
from dialgym.io.files import write_atomically
from dialgym.io.tables import Row
from dialgym.registry import entry_of
from dialgym.tasks.base import SYSTEM, USER
from dialgym.views.making import make

OPENING = "Wordle:"
OWN = ("sequence", "reward", "done", "lines", "correct", "word")
"""Columns of a row in one of the two forms."""
MOST_QUESTIONS = 20
"""Questions of a dialogue that is over without the thing, where it does not say so."""
_ARTICLE = re.compile(r"^is it (?:an? |the |some )?")


def lmrl_row(row: Row) -> Row | None:
    """A row of LMRL-Gym's data as one of turns, with its other columns; None for another row.

    Words of Wordle are written without spaces, and answers as here: ``yes``, not ``Yes.``.

    Raises:
        ValueError: a list of rewards that does not fit the texts, or a line that is no question
            with its answer.
    """
    sequence, rewards, lines = (row.get(name) for name in ("sequence", "reward", "lines"))
    if isinstance(sequence, list) and isinstance(rewards, list) and _are_texts(sequence):
        known = _of_a_sequence(sequence, rewards, row.get("done", True))
    elif "correct" in row and isinstance(lines, list) and all(isinstance(x, str) for x in lines):
        known = _of_a_conversation(lines, bool(row["correct"]), row.get("done"))
    else:
        return None
    return {**{name: row[name] for name in row if name not in OWN}, **known}


def _are_texts(pairs: list[Any]) -> bool:
    return all(
        isinstance(pair, list | tuple) and len(pair) == 2 and isinstance(pair[0], str)
        for pair in pairs
    )


def _of_a_sequence(sequence: list[Any], rewards: list[Any], done: Any) -> Row:
    texts = [(text.strip(), bool(is_action)) for text, is_action in sequence]
    opened = len(texts) - len(rewards)
    if opened not in (0, 1):
        raise ValueError(
            f"rewards of {len(rewards)} of {len(texts)} texts, not of all or all but the first"
        )
    words = bool(texts) and texts[0] == (OPENING, False)
    turns = [
        {
            "speaker": SYSTEM if is_action else USER,
            "text": text.replace(" ", "") if words and is_action else text,
            "reward": reward,
        }
        for (text, is_action), reward in zip(texts, [0.0] * opened + rewards, strict=True)
    ]
    earned = [turn["reward"] for turn in turns if turn["speaker"] == SYSTEM]
    won = {"success": bool(earned) and earned[-1] >= 0} if words else {}
    return {"turns": turns[words:], "truncated": not done, **won}


def _of_a_conversation(lines: list[str], correct: bool, done: Any) -> Row:
    turns: list[dict[str, Any]] = []
    for line in lines:
        question, mark, answer = line.rpartition("? ")
        if not mark:
            raise ValueError("lines that are no question and answer, as 'Is it alive? Yes.' is")
        turns.append({"speaker": SYSTEM, "text": f"{question}?", "reward": -1.0})
        turns.append({"speaker": USER, "text": answer.strip().removesuffix(".").lower()})
    if correct and turns:
        turns[-2]["reward"] = 0.0
    over = correct or len(lines) >= MOST_QUESTIONS if done is None else bool(done)
    return {"turns": turns, "success": correct, "truncated": not over}


# Writing


def write_lmrl_gym(dataset: Any, path: Path) -> None:
    """Write dialogues of Wordle as ``.jsonl``, of twenty questions or cities as ``.json``.

    Raises:
        ValueError: they are of another task or of several environments, the file has the other
            ending, or what was said is no question.
    """
    env_id, _ = dataset.environment()
    task = str(entry_of(env_id).row.task).rpartition(":")[2]
    one_of("the task", task, FORMS, "dialogues in LMRL-Gym's form")
    ending, lines = FORMS[task]
    one_of("the ending of the file", path.suffix, (ending,), f"{task} in LMRL-Gym's form")
    content = "".join(lines(dataset))
    write_atomically(path, lambda temporary: temporary.write_text(content, encoding="utf-8"))


def _sequences(dataset: Any) -> Iterator[str]:
    for row in dataset:
        sequence, rewards = [(OPENING + "\n", 0.0)], []
        for turn in row["turns"]:
            text = " ".join(turn["text"]) if turn["said"] else turn["text"]
            sequence.append((text + "\n", float(turn["said"])))
            rewards.append(turn["reward"])
        line = {"sequence": sequence, "reward": rewards, "done": row["terminated"]}
        yield json.dumps(line) + "\n"


def _conversations(dataset: Any) -> Iterator[str]:
    env_id, settings = dataset.environment()
    env: Any = make(env_id, **settings).unwrapped
    yield json.dumps([_conversation(row, env) for row in dataset], indent=1) + "\n"


def _conversation(row: Row, env: Any) -> dict[str, Any]:
    texts = [turn["text"] for turn in row["turns"]]
    if wrong := [text for text in texts[::2] if not text.endswith("?")]:
        raise ValueError(
            f"LMRL-Gym's form: expected questions that end in '?', got {wrong[0][:80]!r}."
        )
    pairs = zip(texts[::2], texts[1::2], strict=False)
    lines = [f"{question} {answer.capitalize()}." for question, answer in pairs]
    facts = {"correct": row["success"], "done": row["terminated"]}
    return {"lines": lines, **facts, "word": _word(row, env)}


def _word(row: Row, env: Any) -> list[str]:
    """The hidden thing, which the seed of a dialogue draws; none of one that was imported."""
    if row["policy"] == IMPORTED:
        return []
    env.reset(seed=int(row["seed"]), options=json.loads(row["options"] or "{}"))
    return [_ARTICLE.sub("", env.task.naming(env.dialogue.state)).removesuffix("?")]


FORMS: Mapping[str, tuple[str, Callable[[Any], Iterator[str]]]] = {
    "Wordle": (".jsonl", _sequences),
    "TwentyQuestions": (".json", _conversations),
}
"""By task, the ending of its files and what makes their content."""
