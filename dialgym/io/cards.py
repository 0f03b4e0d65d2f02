"""The card of a data set of Hugging Face's: which of its files are of which split.

A card is a ``README.md`` that begins with YAML. Under ``configs`` it has configurations, each with
``data_files``: patterns of files, by split or not. Only files beside the card are ever meant.
"""

from collections.abc import Iterator, Mapping, Sequence
from pathlib import PurePosixPath
from typing import Any

from dialgym.io.archives import SPLITS, Part
from dialgym.io.files import parse_yaml

CARD = "README.md"
MARK = "---"


def parts_on_card(parts: Sequence[Part], where: str) -> tuple[list[Part], dict[str, str]]:
    """The files that the card of a folder chooses, and their splits by name.

    Without a card, or one that chooses none, it is all files, and no splits.

    Raises:
        ValueError: the card has several configurations and none is the default.
    """
    card = next((part for part in parts if part.name == CARD), None)
    patterns = list(_patterns(_config(card, where))) if card else []
    if not patterns:
        return list(parts), {}
    splits: dict[str, str] = {}
    for split, pattern in patterns:
        for part in parts:
            if _fits(PurePosixPath(part.name), pattern):
                splits.setdefault(part.name, SPLITS.get(split, split))
    return [part for part in parts if part.name in splits], splits


def _config(card: Part, where: str) -> Mapping[str, Any]:
    """The configuration that is the default, or the only one; empty where there is none."""
    head, end, _ = card.text().removeprefix(MARK).partition(f"\n{MARK}")
    if not end or not card.text().startswith(MARK):
        return {}
    content = parse_yaml(head, f"{where}, {CARD}")
    found = content.get("configs") if isinstance(content, Mapping) else None
    configs = [one for one in found or () if isinstance(one, Mapping)]
    chosen = [one for one in configs if one.get("default") is True or len(configs) == 1]
    chosen += [one for one in configs if one.get("config_name") == "default"]
    if configs and not chosen:
        names = ", ".join(str(one.get("config_name")) for one in configs)
        raise ValueError(
            f"data {where!r}: its {CARD} has several configurations ({names}), and none is the "
            "default. Give the folder of one."
        )
    return chosen[0] if chosen else {}


def _patterns(config: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """Pairs of a split and a pattern."""
    given = config.get("data_files") or ()
    for one in [given] if isinstance(given, str | Mapping) else given:
        split, paths = "train", one
        if isinstance(one, Mapping):
            split, paths = str(one.get("split", split)), one.get("path") or ()
        for path in [paths] if isinstance(paths, str) else paths:
            yield split, str(path)


def _fits(name: PurePosixPath, pattern: str) -> bool:
    """Whether a pattern means a file; one of another place, or of the network, means none."""
    folders, own = PurePosixPath(pattern.removeprefix("./")).parts, name.parts
    if "**" in folders:
        tail = folders[folders.index("**") + 1 :] or ("*",)
        head = folders[: folders.index("**")]
        shape = (*head, *["*"] * (len(own) - len(head) - len(tail)), *tail)
        return len(shape) == len(own) and _all_fit(own, shape)
    return len(folders) == len(own) and _all_fit(own, folders)


def _all_fit(own: Sequence[str], shape: Sequence[str]) -> bool:
    return all(PurePosixPath(part).match(wanted) for part, wanted in zip(own, shape))
