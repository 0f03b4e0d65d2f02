"""Cards of Hugging Face datasets: the data files that they name, by split.

A card is a README.md that begins with YAML, in which each of the ``configs`` has ``data_files``:
patterns of files, by split or not.
"""

from collections.abc import Iterator, Mapping, Sequence
from pathlib import PurePosixPath
from typing import Any

from dialgym.io.archives import SPLITS, ArchiveMember
from dialgym.io.files import parse_yaml

CARD, MARK = "README.md", "---"
"""The name of a card, and the lines around its YAML."""


def parts_on_card(
    parts: Sequence[ArchiveMember], where: str
) -> tuple[list[ArchiveMember], dict[str, str]]:
    """Select the files that the card of a folder names, with their splits by name.

    Without a card, or with one that names none, all files are selected, without splits.

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


def _config(card: ArchiveMember, where: str) -> Mapping[str, Any]:
    """The configuration that is the default, or the only one; empty where there is none."""
    head, end, _ = card.text().removeprefix(MARK).partition(f"\n{MARK}")
    if not end or not card.text().startswith(MARK):
        return {}
    content = parse_yaml(head, f"{where}, {CARD}")
    listed = content.get("configs") if isinstance(content, Mapping) else None
    configs = [one for one in listed or () if isinstance(one, Mapping)]
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
    """Return True if a pattern of the card, which names files beside it alone, fits a file."""
    folders, own = PurePosixPath(pattern.removeprefix("./")).parts, name.parts
    if "**" in folders:
        tail = folders[folders.index("**") + 1 :] or ("*",)
        head = folders[: folders.index("**")]
        shape = (*head, *["*"] * (len(own) - len(head) - len(tail)), *tail)
        return len(shape) == len(own) and _all_fit(own, shape)
    return len(folders) == len(own) and _all_fit(own, folders)


def _all_fit(own: Sequence[str], shape: Sequence[str]) -> bool:
    return all(PurePosixPath(part).match(wanted) for part, wanted in zip(own, shape))
