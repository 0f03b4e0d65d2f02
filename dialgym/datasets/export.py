"""Stored dialogues as files that other tools read: messages, a CSV of utterances, LMRL-Gym's."""

import csv
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from gymnasium.utils.seeding import np_random

from dialgym.datasets.foreign.lmrl_gym import write_lmrl_gym
from dialgym.errors import one_of
from dialgym.io.files import parse_json, write_atomically
from dialgym.language.messages import role_of
from dialgym.rollouts.player import rules_of
from dialgym.tasks import Task
from dialgym.views.speakers import other_party

LMRL_GYM = "lmrl-gym"
COLUMNS = ("dialogue_id", "speaker", "text", "reward")


def export(dataset: Any, path: Path, form: str | None = None) -> int:
    """Write the dialogues of a dataset into a file; how many.

    ``.jsonl``: a row a dialogue, with ``messages`` (role, content, and a reward for those of the
    learner, who is the assistant), ``success``, how it ended and where it comes from. ``.csv``: a
    row an utterance. What the learner was told in private, which it never said, stands as the other
    party's first words. With ``form="lmrl-gym"`` as LMRL-Gym's loaders take them: of Wordle
    ``.jsonl``, of twenty questions and cities ``.json``.

    Raises:
        ValueError: the ending of the file is another one, there is no such form, or as of
            `write_lmrl_gym`.
    """
    if form is not None:
        one_of("form", form, (LMRL_GYM,), "an export")
        write_lmrl_gym(dataset, path)
        return len(dataset)
    one_of("the ending of the file", path.suffix, (".jsonl", ".csv"), "an export")
    write = _write_jsonl if path.suffix == ".jsonl" else _write_csv
    write_atomically(path, lambda temporary: write(dataset, temporary))
    return len(dataset)


def _write_jsonl(dataset: Any, path: Path) -> None:
    with path.open("w", encoding="utf-8") as file:
        for row in _as_heard(dataset):
            file.write(json.dumps(_as_messages(row), ensure_ascii=False) + "\n")


def _as_messages(row: dict[str, Any]) -> dict[str, Any]:
    messages = []
    for turn in row["turns"]:
        message = {"role": role_of(turn["party"], row["learner"]), "content": turn["text"]}
        if turn["said"]:
            message["reward"] = turn["reward"]
        messages.append(message)
    facts = {name: row[name] for name in ("success", "terminated", "truncated", "env", "policy")}
    return {"messages": messages, **facts}


def _write_csv(dataset: Any, path: Path) -> None:
    with path.open("w", encoding="utf-8", newline="") as file:
        table = csv.writer(file)
        table.writerow(COLUMNS)
        table.writerows(_utterances(dataset))


def _utterances(dataset: Any) -> Iterator[tuple[Any, ...]]:
    for number, row in enumerate(_as_heard(dataset)):
        for turn in row["turns"]:
            reward = turn["reward"] if turn["said"] else ""
            yield number, turn["party"], turn["text"], reward


def _as_heard(dataset: Any) -> Iterator[dict[str, Any]]:
    """Rows in which another party says what the learner was told in private.

    Where the environment of a row is not here, nobody knows what that was, and all stays.
    """
    tasks: dict[tuple[str, str], Task | None] = {}
    for place, row in enumerate(dataset):
        own = [turn["party"] == row["learner"] and not turn["said"] for turn in row["turns"]]
        first = (*own, False).index(False)
        where = row["env"], row["settings"]
        if first and where not in tasks:
            tasks[where] = _task(dataset.select([place]))
        if first and (task := tasks[where]):
            state = task.initial(np_random(row["seed"])[0], parse_json(row["options"], "options"))
            for turn in row["turns"][: min(first, task.notes(state, row["learner"]))]:
                turn["party"] = other_party(task, row["learner"])
        yield row


def _task(one: Any) -> Task | None:
    """The rules of a dialogue, None where they are not here."""
    try:
        return rules_of(*one.environment())
    except (ValueError, OSError, ImportError):
        return None
