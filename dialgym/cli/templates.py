"""Folders that are written from templates, by `dialgym new` and `dialgym export`."""

import re
from collections.abc import Iterator, Mapping
from importlib.resources import files
from importlib.resources.abc import Traversable
from pathlib import Path

from dialgym.io.files import write_folder_atomically, write_text

SUFFIX = ".tmpl"


def templates_in(name: str) -> Mapping[str, str]:
    """Texts of the templates in a folder of this package, by the paths of the files they make."""
    return dict(_texts(files("dialgym.cli") / name, ""))


def _texts(folder: Traversable, before: str) -> Iterator[tuple[str, str]]:
    for part in folder.iterdir():
        if part.is_dir():
            yield from _texts(part, f"{before}{part.name}/")
        elif part.name.endswith(SUFFIX):
            yield before + part.name.removesuffix(SUFFIX), part.read_text("utf-8")


def write_templates(folder: Path, templates: Mapping[str, str], values: Mapping[str, str]) -> None:
    """Write a new folder, whole or not at all.

    Args:
        folder: the new one.
        templates: texts by path, as of `templates_in`.
        values: what stands in the place of each word, in texts and paths.
    """
    pattern = re.compile(rf"\b({'|'.join(values)})\b")

    def write(target: Path) -> None:
        for path, text in templates.items():
            name, content = (pattern.sub(lambda word: values[word[1]], t) for t in (path, text))
            write_text(target / name, content)

    write_folder_atomically(folder, write)


def check_absent(folder: Path, command: str) -> None:
    """Raise a ValueError where the folder is there already."""
    if folder.exists():
        raise ValueError(f"{command}: {str(folder)!r} is there already. Choose another name.")
