"""Data of LMRL-Gym (Abdulhai et al. 2023, arXiv 2311.18232), read as rows of turns, and written.

Of two forms. A sequence, a line of JSON for each dialogue of Wordle: ``sequence``, pairs of a text
and 1 for what the learner says, 0 for the rest; ``reward``, a number for each text but the opening;
``done``. A conversation, one of a list in a JSON file of twenty questions or cities: ``lines``, a
question and its answer each; ``correct``; ``word``, the names of the hidden thing.
"""

import json
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

import gymnasium as gym

from dialgym.errors import one_of
from dialgym.io.files import write_atomically
from dialgym.io.tables import Row
from dialgym.registry import entry_of
from dialgym.tasks.base import SYSTEM, USER
from dialgym.views.making import make

OPENING = "Wordle:"
TURNS = 20
"""Questions of a dialogue that is over without the thing."""
_ARTICLE = re.compile(r"^is it (?:an? |the |some )?")


def as_turns(row: Row) -> Row | None:
    """A row of LMRL-Gym's data as one of turns; None for another row.

    Words of Wordle are written without spaces, and answers as here: ``yes``, not ``Yes.``.

    Raises:
        ValueError: a list of rewards that does not fit the texts, or a line that is no question
            with its answer.
    """
    if "sequence" in row and "reward" in row:
        return _of_a_sequence(row)
    if "lines" in row and "correct" in row:
        return _of_a_conversation(row)
    return None


def _of_a_sequence(row: Row) -> Row:
    texts = [(str(text).strip(), bool(is_action)) for text, is_action in row["sequence"]]
    rewards, opened = list(row["reward"]), len(row["sequence"]) - len(row["reward"])
    if opened not in (0, 1):
        raise ValueError(
            f"LMRL-Gym's data: expected a reward for each of {len(texts)} texts, or for all but "
            f"the opening; got {len(rewards)}."
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
    return {"turns": turns[words:], "truncated": not row.get("done", True), **won}


def _of_a_conversation(row: Row) -> Row:
    turns: list[dict[str, Any]] = []
    for line in row["lines"]:
        question, mark, answer = str(line).rpartition("? ")
        if not mark:
            raise ValueError(
                f"LMRL-Gym's data: expected a question and its answer ('Is it alive? Yes.'), got "
                f"{str(line)[:80]!r}."
            )
        turns.append({"speaker": SYSTEM, "text": f"{question}?", "reward": -1.0})
        turns.append({"speaker": USER, "text": answer.strip().removesuffix(".").lower()})
    correct = bool(row["correct"])
    if correct and turns:
        turns[-2]["reward"] = 0.0
    unfinished = not correct and len(row["lines"]) < TURNS
    return {"turns": turns, "success": correct, "truncated": unfinished}


# Writing


def write_lmrl_gym(dataset: Any, path: Path) -> None:
    """Write dialogues of Wordle as ``.jsonl``, of twenty questions or cities as ``.json``.

    Raises:
        ValueError: they are of another task or of several environments, or the file has the other
            ending.
    """
    env_id, settings = dataset.environment()
    task = str(entry_of(env_id).row.task).rpartition(":")[2]
    one_of("the task", task, FORMS, "dialogues in LMRL-Gym's form")
    ending, lines = FORMS[task]
    one_of("the ending of the file", path.suffix, (ending,), f"{task} in LMRL-Gym's form")
    env = make(env_id, **settings, truths=True)
    content = "".join(lines(dataset, env))
    write_atomically(path, lambda temporary: temporary.write_text(content, encoding="utf-8"))


def _sequences(dataset: Iterable[Row], env: gym.Env[Any, Any]) -> Iterator[str]:
    for row in dataset:
        turns = row["turns"]
        said = [(_spaced(turn["text"]) + "\n", float(turn["said"])) for turn in turns]
        sequence = [(OPENING + "\n", 0.0), *said]
        rewards = [turn["reward"] for turn in turns]
        line = {"sequence": sequence, "reward": rewards, "done": row["terminated"]}
        yield json.dumps(line) + "\n"


def _spaced(text: str) -> str:
    """A word with a space between its letters; colours have them already."""
    return text if " " in text else " ".join(text)


def _conversations(dataset: Iterable[Row], env: gym.Env[Any, Any]) -> Iterator[str]:
    yield json.dumps([_conversation(row, env) for row in dataset], indent=1) + "\n"


def _conversation(row: Row, env: gym.Env[Any, Any]) -> dict[str, Any]:
    """A dialogue with the hidden thing, which its seed draws in the environment."""
    texts = [turn["text"] for turn in row["turns"]]
    pairs = zip(texts[::2], texts[1::2], strict=False)
    lines = [f"{question} {answer.capitalize()}." for question, answer in pairs]
    _, info = env.reset(seed=int(row["seed"]), options=json.loads(row["options"] or "{}"))
    word = _ARTICLE.sub("", info["truth"]).removesuffix("?")
    return {"lines": lines, "correct": row["success"], "word": [word]}


FORMS: Mapping[str, tuple[str, Callable[[Any, gym.Env[Any, Any]], Iterator[str]]]] = {
    "Wordle": (".jsonl", _sequences),
    "TwentyQuestions": (".json", _conversations),
}
"""By task, the ending of its files and what makes their content."""
