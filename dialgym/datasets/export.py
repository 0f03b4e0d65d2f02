"""Stored dialogues as files that other tools read: messages in JSONL, or a CSV of utterances."""

import csv
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from dialgym.errors import one_of
from dialgym.io.files import write_atomically
from dialgym.language.messages import role_of

COLUMNS = ("dialogue_id", "speaker", "text", "reward")


def export(dataset: Any, path: Path) -> int:
    """Write the dialogues of a dataset into a file; how many.

    ``.jsonl``: a row a dialogue, with ``messages`` (role, content, and a reward for those of the
    learner, who is the assistant), ``reward``, ``success`` and where it comes from. ``.csv``: a row
    an utterance.

    Raises:
        ValueError: the ending of the file is another one.
    """
    one_of("the ending of the file", path.suffix, (".jsonl", ".csv"), "an export")
    write = _write_jsonl if path.suffix == ".jsonl" else _write_csv
    write_atomically(path, lambda temporary: write(dataset, temporary))
    return len(dataset)


def _write_jsonl(dataset: Any, path: Path) -> None:
    with path.open("w", encoding="utf-8") as file:
        for row in dataset:
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
    for number, row in enumerate(dataset):
        for turn in row["turns"]:
            reward = turn["reward"] if turn["said"] else ""
            yield number, turn["party"], turn["text"], reward
