"""Saved models: by path, as ``zoo:NAME`` of the zoo, or as ``hf:NAME`` of the hub.

The zoo is a folder of small trained agents, a folder each with its model and its card. It is part
of the repository and of no package: ``DIALGYM_ZOO`` names the folder; in a checkout it is found by
itself. Whatever takes a policy or a saved model asks `find_checkpoint` here.
"""

import os
from os import PathLike
from pathlib import Path

from dialgym.errors import unknown
from dialgym.io.hub import PREFIX, SourceError

CHECKPOINT = "model.zip"
UNFINISHED = "checkpoint.zip"
"""The checkpoint of a run, which holds the model of one that has not ended."""
CONFIGS = ("config.json", "adapter_config.json")
"""Files of which the folder of a language model has one."""
ZOO = "zoo:"
ZOO_INDEX = "zoo.json"
"""File that makes a folder a zoo: where each of its agents is from, and what it scores."""
ZOO_VARIABLE = "DIALGYM_ZOO"


def find_checkpoint(path: str | PathLike[str]) -> Path | None:
    """The file that `path` means; None if there is no such file.

    It is the path itself, with ``.zip`` added, the model in a run's folder, the checkpoint there of
    a run that has not ended, or the model of an agent of the zoo.

    Raises:
        ValueError: the zoo has no such agent, or there is no zoo here.
    """
    if str(path).startswith(ZOO):
        return _find_in_zoo(str(path).removeprefix(ZOO))
    place = Path(os.path.expanduser(path))
    within = (place / name for name in (CHECKPOINT, UNFINISHED))
    for file in (place, Path(f"{place}.zip"), *within):
        if file.is_file():
            return file
    return None


def find_language_model(path: str | PathLike[str]) -> str | None:
    """Find a language model: its folder, or its name on the Hugging Face hub."""
    if str(path).startswith(PREFIX):
        return str(path)
    folder = Path(path).expanduser()
    return str(folder) if any((folder / name).is_file() for name in CONFIGS) else None


def is_saved(path: str | PathLike[str]) -> bool:
    """Tell if there is a saved model or a language model at a path, in the zoo or on the hub.

    Raises:
        ValueError: as of `find_checkpoint`.
    """
    return bool(find_checkpoint(path) or find_language_model(path))


def zoo_folder() -> Path:
    """The folder that ``DIALGYM_ZOO`` names, or that of the checkout.

    Raises:
        SourceError: there is no zoo; the message says how to get one.
    """
    named = os.environ.get(ZOO_VARIABLE)
    folder = Path(named).expanduser() if named else Path(__file__).parents[2] / "zoo"
    if (folder / ZOO_INDEX).is_file():
        return folder
    at = f"{ZOO_VARIABLE} names {named!r}, which has" if named else "This installation has"
    raise SourceError(
        f"the zoo of trained agents: {at} no {ZOO_INDEX}. The zoo is the folder zoo/ of dialgym's "
        f"repository: work in a checkout, or name a copy of the folder ({ZOO_VARIABLE}=FOLDER)."
    )


def zoo_names() -> list[str]:
    """Names of the agents of the zoo; none where there is no zoo."""
    try:
        return sorted(file.parent.name for file in zoo_folder().glob(f"*/{CHECKPOINT}"))
    except SourceError:
        return []


def _find_in_zoo(name: str) -> Path:
    folder = zoo_folder()
    if name not in zoo_names():
        raise unknown("agent", name, zoo_names(), f"the zoo {str(folder)!r}")
    return folder / name / CHECKPOINT
