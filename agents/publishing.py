"""Trained agents on the Hugging Face hub, or in a folder, with a card that has their scores."""

from __future__ import annotations

import json
import shutil
from collections.abc import Mapping, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from agents.registry import name_of
from agents.storage.models import load, save
from dialgym import __version__
from dialgym.benchmark import Result
from dialgym.checksums import write_json_checked
from dialgym.datasets.cards import card, code, table
from dialgym.files import write_text
from dialgym.hub import publish
from dialgym.rollouts.policies import CHECKPOINT, find_checkpoint

CARD, RESULTS = "README.md", "results.json"
OF_A_RUN = ("config.yml", "learning_curve.csv", "hub.json")
"""What is published of a run beside its model."""


def push_to_hub(
    model: Any,
    name: str,
    scores: Result | Sequence[Result] = (),
    private: bool = False,
    trust: bool = False,
) -> str:
    """Publish an agent: the saved model, and a card with its scores and how to use it.

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
        save(model, folder / CHECKPOINT)
        if results:
            found = {"results": [result.as_dict() for result in results]}
            write_json_checked(folder / RESULTS, found)
        write_text(folder / CARD, agent_card(model, name, results))
        return publish(folder, name, "an agent", private=private)


def from_hub(name: str, device: str = "auto", **more: Any) -> Any:
    """An agent that `push_to_hub` has published.

    Args:
        name: ``hf:NAME``, ``hf:NAME@REVISION``, or a folder.
        device, more: as of `agents.load`, which takes the same names.
    """
    return load(name, device, **more)


def agent_card(model: Any, name: str, results: Sequence[Result]) -> str:
    """The card: its head for the hub, scores, hyperparameters, how to load it."""
    algorithm = name_of(type(model)) or type(model).__name__
    ids = list(dict.fromkeys(env_id for result in results for env_id in result.by_id))
    head = {
        "library_name": "dialgym",
        "pipeline_tag": "reinforcement-learning",
        "tags": ["dialgym", "dialogue", "gymnasium", "reinforcement-learning", algorithm, *ids],
        "model-index": [{"name": algorithm, "results": [*_index(results)]}],
    }
    if not results:
        del head["model-index"]
    used = ids[0] if ids else "ID"
    shown = name if name.startswith("hf:") else "FOLDER"
    settings = json.dumps(_plain(getattr(model, "policy_kwargs", None) or {}), indent=1)
    return card(
        head,
        f"{type(model).__name__} on {', '.join(ids) or 'a dialogue task'}",
        f"An agent of [dialgym](https://github.com/dialgym/dialgym) {__version__}.",
        table(_rows(results)) if results else "It has not been scored.",
        "## Use it",
        code(f"dialgym evaluate {shown} {used}", "bash"),
        code(f'import agents\n\nmodel = agents.from_hub("{shown}")', "python"),
        "## Policy",
        code(settings, "json"),
    )


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
