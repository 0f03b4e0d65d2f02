"""Trained agents on the Hugging Face hub, or in a folder, with a card that has their scores."""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Mapping, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import yaml

from agents.registry import name_of
from agents.storage.locate import STATISTICS, named_from, with_pretrained, with_tokenizer
from agents.storage.models import load, save, trained_in
from agents.storage.pickled import learned_normalized
from dialgym import __version__
from dialgym.datasets.readme import card, code, table
from dialgym.experiments import Result
from dialgym.io.checksums import write_json_checked
from dialgym.io.files import read_yaml, write_text
from dialgym.io.hub import MODEL_FILES, OLD_WEIGHTS, is_repository, publish, with_texts
from dialgym.io.saved_models import CHECKPOINT, ZOO, find_checkpoint

CARD, RESULTS = "README.md", "results.json"
BASE = "base"
"""The folder of what a model was made of, beside it."""
PUBLISHED = (*MODEL_FILES, *OLD_WEIGHTS)
OF_A_RUN = ("config.yml", "learning_curve.csv", "hub.json", STATISTICS)
"""Files of a run that are published beside its model."""
REPLACED = (RESULTS, *OF_A_RUN, f"{BASE}/*", f"{BASE}-*/*")
"""Files of an agent that do not stay when another one is published in its place."""


def push_to_hub(
    model: Any,
    name: str,
    scores: Result | Sequence[Result] = (),
    private: bool = False,
    trust: bool = False,
) -> str:
    """Publish an agent: the saved model, and a card with its scores and how to use it.

    A pretrained model or a tokenizer that it names by a path goes with it; one of the hub stays
    where it is, by its name. So do the statistics of `VecNormalize`, a pickle, which whoever plays
    it has to trust.

    Args:
        model: of any algorithm of Stable-Baselines3, ours or stock; or the path of a saved one, or
            of its run, whose hyperparameters and learning curve go with it.
        name: ``hf:NAME`` on the hub; or a path, for the same files in a new folder.
        scores: what `dialgym.evaluate` found of it, to stand on the card.
        private: make a new repository private.
        trust: of a path, as of `agents.load`.

    Returns:
        ``hf:NAME@COMMIT``, or the path: `from_hub`, and whatever takes a policy, take it.

    Raises:
        SourceError: it cannot be written there.
        FileNotFoundError, ValueError: there is no such model, or the folder is in use.
    """
    results = [scores] if isinstance(scores, Result) else list(scores)
    with TemporaryDirectory() as temporary:
        folder = Path(temporary)
        if isinstance(model, str | Path):
            run = find_checkpoint(model)
            model = load(model, device="cpu", trust=trust)
            for file in OF_A_RUN:
                if run is not None and run.with_name(file).is_file():
                    shutil.copyfile(run.with_name(file), folder / file)
        elif (normalize := model.get_vec_normalize_env()) is not None:
            normalize.save(str(folder / STATISTICS))
        save(model, folder / CHECKPOINT)
        if copied := _copy_sources(model, folder):
            model = _with_sources(load(folder, device="cpu", trust=trust), copied, folder)
        if results:
            found = {"results": [result.as_dict() for result in results]}
            write_json_checked(folder / RESULTS, found)
        write_text(folder / CARD, agent_card(model, name, results))
        return publish(folder, name, "an agent", private=private, replaced=REPLACED)


def _copy_sources(model: Any, folder: Path) -> dict[str, str]:
    """Put the pretrained model and the tokenizer that were named by a path into `folder`.

    Returns:
        By the whole path that each had, where it is now.
    """
    found: dict[str, str] = {}

    def copy(source: str) -> str:
        place = Path(source).expanduser().resolve()
        if place.exists() and str(place) not in found:
            target = folder / (f"{BASE}-{len(found) + 1}" if found else BASE)
            _copy(place, target)
            found[str(place)] = str(target)
        return source

    attributes = {"trained_in": trained_in(model), **_networks(model)}
    with_tokenizer(with_pretrained(attributes, copy), copy)
    return found


def _copy(source: Path, target: Path) -> None:
    if source.is_file():
        shutil.copyfile(source, target)
        return
    target.mkdir()
    for file in source.iterdir():
        if file.is_file() and any(file.match(pattern) for pattern in PUBLISHED):
            shutil.copyfile(file, target / file.name)


def _with_sources(model: Any, copied: Mapping[str, str], folder: Path) -> Any:
    """The model as it names the copies, saved again; the settings of its run name them too."""
    found = {"trained_in": model.trained_in, **_networks(model)}
    found = with_pretrained(found, lambda source: copied.get(source, source))
    found = with_tokenizer(found, lambda source: copied.get(source, source))
    vars(model).update(found)
    save(model, folder / CHECKPOINT)
    config = folder / OF_A_RUN[0]
    if config.is_file():
        names = {source: named_from(config, copy) for source, copy in copied.items()}
        settings = with_texts(read_yaml(config), lambda text: _renamed(text, names))
        write_text(config, yaml.safe_dump(settings, sort_keys=False))
    found = with_pretrained(found, lambda source: named_from(folder / CHECKPOINT, source))
    vars(model).update(found)
    return model


def _renamed(text: str, names: Mapping[str, str]) -> str:
    """Another name of a source, where a text gives one by its path, with a scheme before or not."""
    scheme, colon, path = text.rpartition(":")
    place = os.path.realpath(os.path.expanduser(path))
    return f"{scheme}{colon}{names[place]}" if path and place in names else text


def _networks(model: Any) -> dict[str, Any]:
    """Attributes of a model that say what its networks, and its reference's, were made of."""
    names = ("policy_kwargs", "reference_made_by")
    return {name: getattr(model, name) for name in names if hasattr(model, name)}


def from_hub(name: str, device: str = "auto", **more: Any) -> Any:
    """An agent that `push_to_hub` has published.

    Args:
        name: ``hf:NAME``, ``hf:NAME@REVISION``, or a folder.
        device, more: as of `agents.load`, which takes the same names.
    """
    return load(name, device, **more)


def agent_card(
    model: Any, name: str, results: Sequence[Result], origin: Mapping[str, str] | None = None
) -> str:
    """The card: its head for the hub, scores, origin, hyperparameters, how to load it.

    Args:
        model: of any algorithm of Stable-Baselines3.
        name: ``hf:NAME``, ``zoo:NAME``, or any other for the folder of the card.
        results: what it has scored.
        origin: facts of how it was made, by what they are; its ``licence`` stands in the head too.
    """
    algorithm = name_of(type(model)) or type(model).__name__
    ids = list(dict.fromkeys(env_id for result in results for env_id in result.by_id))
    head = {
        "library_name": "dialgym",
        "license": (origin or {}).get("licence", "").lower(),
        "pipeline_tag": "reinforcement-learning",
        "tags": ["dialgym", "dialogue", "gymnasium", "reinforcement-learning", algorithm, *ids],
        "model-index": [{"name": algorithm, "results": [*_index(results)]}],
    }
    if not results:
        del head["model-index"]
    if not head["license"]:
        del head["license"]
    used = "" if trained_in(model) else f" {ids[0] if ids else 'ID'}"
    shown = name if is_repository(name) or name.startswith(ZOO) else "."
    option, argument = (" --trust", ", trust=True") if learned_normalized(model) else ("", "")
    settings = json.dumps(_plain(getattr(model, "policy_kwargs", None) or {}), indent=1)
    return card(
        head,
        f"{type(model).__name__} on {', '.join(ids) or 'a dialogue task'}",
        f"An agent of [dialgym](https://github.com/dialgym/dialgym) {__version__}.",
        table(_rows(results)) if results else "It has not been scored.",
        *_origin(origin or {}),
        "## Use it",
        code(f"dialgym evaluate {shown}{used}{option}", "bash"),
        code(f'import agents\n\nmodel = agents.load("{shown}"{argument})', "python"),
        "## Policy",
        code(settings, "json"),
    )


def _origin(facts: Mapping[str, str]) -> list[str]:
    rows = [["what", "origin"], *([name, value] for name, value in facts.items())]
    return [table(rows)] if facts else []


def _plain(value: Any) -> Any:
    return json.loads(json.dumps(value, default=str))


def _rows(results: Sequence[Result]) -> list[list[str]]:
    rows = [["environment", "policy", "mean return", "95 % interval", "success", "score"]]
    for result in results:
        for env_id, found in result.by_id.items():
            low, high = found.interval
            score = "" if found.score is None else f"{found.score:.1f}"
            row = [result.label(env_id), result.name, f"{found.mean_return:.3f}"]
            rows.append([*row, f"{low:.3f} to {high:.3f}", f"{found.success:.1%}", score])
    return rows


def _index(results: Sequence[Result]) -> list[Mapping[str, Any]]:
    """The scores in the form in which the hub shows them."""
    return [
        {
            "task": {"type": "reinforcement-learning", "name": "reinforcement-learning"},
            "dataset": {"name": env_id, "type": env_id},
            "metrics": [
                {
                    "type": "mean_reward",
                    "name": "mean return",
                    "value": f"{found.mean_return:.2f} +/- {float(found.returns.std()):.2f}",
                    "verified": False,
                }
            ],
        }
        for result in results
        for env_id, found in result.by_id.items()
    ]
