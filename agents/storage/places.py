"""Where saved models lie: on the hub, in folders, and what they were made of beside them."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

from dialgym.hub import MODEL_FILES, PREFIX, SourceError, fetch, locate, model_folder
from dialgym.rollouts.policies import CHECKPOINT, CONFIGS


def fetched_agent(name: str | Path) -> Path:
    """The folder of a model of the hub: a saved one, or a language model with its tokenizer.

    Raises:
        SourceError, ImportError: as of `dialgym.hub.fetch`.
    """
    place = locate(name, "a model")
    if isinstance(place, Path):
        return place
    folder = fetch(place, "a model", (CHECKPOINT, *MODEL_FILES))
    if (folder / CHECKPOINT).is_file() or any(folder.rglob("*.safetensors")):
        return folder
    return model_folder(name, "a model")


def with_pretrained(attributes: dict[str, Any], change: Callable[[str], str]) -> dict[str, Any]:
    """Attributes in which the path of the model that a policy was made of is another one."""
    policy = attributes.get("policy_kwargs") or {}
    source = policy.get("pretrained") if isinstance(policy, dict) else None
    if not isinstance(source, str | Path) or _is_of_the_hub(str(source)):
        return attributes
    return {**attributes, "policy_kwargs": {**policy, "pretrained": change(str(source))}}


def _is_of_the_hub(source: str) -> bool:
    return source.startswith(PREFIX) and not Path(source.removeprefix(PREFIX)).exists()


def moved(source: str, file: Any) -> str:
    """Where a folder is that was at `source`: there, or where it would have moved with `file`.

    Raises:
        SourceError: it is nowhere; the message says where it was looked for.
    """
    if (Path(source) / CONFIGS[0]).is_file() or not isinstance(file, str | Path):
        return source
    parts = Path(source).parts[1:]
    tails = [Path(*parts[start:]) for start in range(len(parts))]
    bases = [Path(file).resolve().parent, *Path(file).resolve().parents[1:4], Path.cwd()]
    for base in bases:
        for tail in tails:
            if (base / tail / CONFIGS[0]).is_file():
                return str(base / tail)
    raise SourceError(
        f"{str(file)!r} was made of the language model in {source!r}, which is not there any more, "
        f"nor beside the file. Put its folder {Path(source).name!r} beside the file, or give the "
        "place: agents.load(path, policy_kwargs={**kwargs, 'pretrained': FOLDER})."
    )
