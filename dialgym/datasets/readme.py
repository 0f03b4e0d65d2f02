"""Cards of what is published: a head in YAML, and Markdown in which hostile text stays text."""

from collections.abc import Mapping, Sequence
from typing import Any

import yaml

from dialgym.io.hub import is_repository
from dialgym.versions import VERSION


def card(head: Mapping[str, Any], title: str, *parts: str) -> str:
    """The text of a card."""
    front = yaml.safe_dump(dict(head), sort_keys=False, allow_unicode=True)
    return f"---\n{front}---\n\n# {plain(title)}\n\n" + "\n\n".join(parts) + "\n"


def code(text: str, language: str = "") -> str:
    """A block of code, fenced by more marks than stand in it."""
    fence = "```"
    while fence in text:
        fence += "`"
    return f"{fence}{language}\n{text}\n{fence}"


def table(rows: Sequence[Sequence[str]]) -> str:
    """A table; the first row is its head."""
    head, *rest = ["| " + " | ".join(plain(cell) for cell in row) + " |" for row in rows]
    return "\n".join([head, "|---" * len(rows[0]) + "|", *rest])


def plain(text: str) -> str:
    """A text that Markdown shows as it is, on one line."""
    line = " ".join(str(text).split())
    for mark in "\\`*_[]#":
        line = line.replace(mark, f"\\{mark}")
    for mark in "<>|":
        line = line.replace(mark, f"&#{ord(mark)};")
    return line


def dataset_card(dataset: Any, name: str) -> str:
    """The card of a data set: its files, counts, a dialogue, how to load it."""
    count = len(dataset)
    sizes = ((10**3, "n<1K"), (10**4, "1K<n<10K"), (10**5, "10K<n<100K"), (10**6, "100K<n<1M"))
    head = {
        "tags": ["dialgym", "dialogue", "reinforcement-learning"],
        "size_categories": [next((text for most, text in sizes if count < most), "1M<n<10M")],
        "configs": [{"config_name": "default", "data_files": "*.parquet"}],
    }
    first = "\n".join(f"{turn['party']}: {turn['text']}" for turn in dataset[0]["turns"])
    algorithm, _ = advised(float(dataset.returns.min()), float(dataset.returns.max()))
    shown = name if is_repository(name) else "FOLDER"
    return card(
        head,
        f"{count:,} dialogues",
        f"Dialogues of [dialgym](https://github.com/dialgym/dialgym) {VERSION}, with rewards.",
        code(dataset.describe().to_text()),
        "The first of them:",
        code(first),
        "## Use them",
        code(f'import dialgym\n\ndataset = dialgym.load_dataset("{shown}")', "python"),
        code(f"dialgym train {algorithm} {dataset['env'][0]} --data {shown}", "bash"),
    )


def advised(lowest: float, highest: float) -> tuple[str, str]:
    """An algorithm for dialogues with returns between these, and why, for messages.

    Where all returns are equal, values tell nothing apart: there is only what to imitate.
    """
    if lowest < highest:
        return "ilql", ""
    return "bc", f" (all returns are {lowest:g}, so that there is nothing to prefer)"
