"""Locations of saved models, and of what they were made of: folders and the hub."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

from dialgym.io.hub import MODEL_FILES, PREFIX, SourceError, fetch, hub_hint, locate, model_folder
from dialgym.io.saved_models import CHECKPOINT, CONFIGS, find_checkpoint

STATISTICS = "vecnormalize.pkl"
"""File of Stable-Baselines3's `VecNormalize` beside its own models."""
TOKENIZERS = ("hf", "bpe")
"""The kinds of tokenizers that are named with a path."""


def fetched_agent(name: str | Path) -> Path:
    """The folder of a model of the hub: a saved one, or a language model with its tokenizer.

    Raises:
        SourceError, ImportError: as of `dialgym.io.hub.fetch`.
    """
    place = locate(name, "a model")
    if isinstance(place, Path):
        return place
    folder = fetch(place, "a model", (CHECKPOINT, STATISTICS, *MODEL_FILES))
    if (folder / CHECKPOINT).is_file() or any(folder.rglob("*.safetensors")):
        return folder
    return model_folder(name, "a model")


def saved_model(path: Any) -> Any:
    """The path of a model, with `.zip` where only that is a file, or that in a run's folder.

    An open file stays as it is.

    Raises:
        SourceError: there is none of them.
    """
    if not isinstance(path, str | Path):
        return path
    if file := find_checkpoint(path):
        return file
    raise SourceError(
        f"no saved model at {str(path)!r}: expected a file that agents.save or `dialgym train` "
        "wrote, such as runs/NAME/model.zip, or the folder of a run. Check the path."
        f"{hub_hint(str(path))}"
    )


def with_pretrained(attributes: dict[str, Any], change: Callable[[str], str]) -> dict[str, Any]:
    """Attributes with each path of a pretrained model replaced by `change(path)`.

    These are the policy's, its critic's, and those of a reference that was read from a file.
    """
    changed = dict(attributes)
    if isinstance(policy := attributes.get("policy_kwargs"), dict):
        changed["policy_kwargs"] = _made_at(policy, change)
    if made_by := attributes.get("reference_made_by"):
        kind, arguments = made_by
        changed["reference_made_by"] = kind, _made_at(arguments, change)
    return changed


def _made_at(arguments: dict[str, Any], change: Callable[[str], str]) -> dict[str, Any]:
    """Arguments of a policy with each path of a pretrained model replaced."""
    changed = {**arguments, **_pretrained_at(arguments, change)}
    critic = arguments.get("share_features_extractor")
    if isinstance(critic, dict):
        changed["share_features_extractor"] = {**critic, **_pretrained_at(critic, change)}
    return changed


def _pretrained_at(settings: dict[str, Any], change: Callable[[str], str]) -> dict[str, str]:
    """The changed path of the pretrained model in some settings, where they name one."""
    source = settings.get("pretrained")
    if not isinstance(source, str | Path) or _is_of_the_hub(str(source)):
        return {}
    return {"pretrained": change(str(source))}


def with_tokenizer(attributes: dict[str, Any], change: Callable[[str], str]) -> dict[str, Any]:
    """Attributes with the path of the env's tokenizer replaced by `change(path)`."""
    place = attributes.get("trained_in") or {}
    scheme, _, source = str(place.get("settings", {}).get("tokenizer", "")).partition(":")
    if scheme not in TOKENIZERS or not source.startswith((".", "/", "~")):
        return attributes
    settings = {**place["settings"], "tokenizer": f"{scheme}:{change(source)}"}
    return {**attributes, "trained_in": {**place, "settings": settings}}


def _is_of_the_hub(source: str) -> bool:
    return source.startswith(PREFIX) and not Path(source.removeprefix(PREFIX)).exists()


def named_from(file: Any, source: str) -> str:
    """A path as a file names it: from its own folder where it lies within, else whole."""
    path = Path(source).expanduser().resolve()
    for folder in _folders(file)[:1]:
        if path.is_relative_to(folder):
            return f"./{path.relative_to(folder).as_posix()}"
    return str(path)


def _folders(file: Any) -> list[Path]:
    """The folder of a file, and that of what it links to; none of an open one.

    A file is written in the place of a link; in the cache of the hub all files are links.
    """
    if not isinstance(file, str | Path):
        return []
    path = Path(file).expanduser().absolute()
    return [path.parent.resolve(), path.resolve().parent]


def beside(file: Any, source: str) -> str:
    """The path that a file names by `named_from`."""
    found = (folder / source for folder in _folders(file) if source.startswith("./"))
    return next((str(place) for place in found if place.exists()), source)


def moved(source: str, file: Any) -> str:
    """Find a folder that was at `source`: there, or where it would have moved with `file`.

    Raises:
        SourceError: it is nowhere; the message says where it was looked for.
    """
    source = beside(file, source)
    if (Path(source) / CONFIGS[0]).is_file() or not isinstance(file, str | Path):
        return source
    parts = Path(source).parts[1:]
    tails = [Path(*parts[start:]) for start in range(len(parts))]
    bases = [base for folder in _folders(file) for base in (folder, *folder.parents[:3])]
    for base in (*bases, Path.cwd()):
        for tail in tails:
            if (base / tail / CONFIGS[0]).is_file():
                return str(base / tail)
    raise SourceError(
        f"{str(file)!r} was made of the language model in {source!r}, which is not there any more, "
        f"nor beside the file. Put its folder {Path(source).name!r} beside the file, or give the "
        "place: agents.load(path, policy_kwargs={**kwargs, 'pretrained': FOLDER})."
    )
