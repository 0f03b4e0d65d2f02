"""Policies by registered name, object or path to a checkpoint."""

from collections.abc import Iterable, Sequence
from os import PathLike
from pathlib import Path
from typing import Any

from dialgym.errors import unknown
from dialgym.optional import require_agents
from dialgym.simulators import Speaker
from dialgym.views.dialogue import Dialogue
from dialgym.views.episodes import Predictor

CHECKPOINT = "model.zip"
Policy = str | PathLike[str] | Speaker | Predictor


def policy_name(policy: Policy) -> str:
    """What a table calls a policy: its registered name, its run or checkpoint, or its class."""
    if not isinstance(policy, (str, PathLike)):
        return type(policy).__name__
    path = Path(policy)
    return path.parent.name or path.stem if path.name == CHECKPOINT else path.name


def open_policy(policy: Policy, dialogues: Sequence[Dialogue]) -> Any:
    """The policy itself where it is an object or a checkpoint; a registered name stays a name.

    Args:
        policy: of the learner.
        dialogues: those it is to hold, at least one.

    Raises:
        ValueError: it is nothing that could play; the message says what could.
        ImportError: a checkpoint is given and the package `agents` cannot be imported.
    """
    if isinstance(policy, (str, PathLike)):
        learner = dialogues[0].learner
        named = {name for d in dialogues for name in d.task.speakers.get(learner, {})}
        if policy in named:
            return policy
        return _load(policy, named, learner)
    if isinstance(policy, (Speaker, Predictor)):
        return policy
    raise ValueError(
        "policy: expected a registered name, a path to a checkpoint, or an object with "
        "reply(task, state, rng) -> str or predict(observation, state, episode_start, "
        f"deterministic); got {policy!r}."
    )


def find_checkpoint(path: str | PathLike[str]) -> Path | None:
    """The file that `path` means: itself, with ``.zip`` added, or the model in a run's folder."""
    for file in (Path(path), Path(f"{path}.zip"), Path(path) / CHECKPOINT):
        if file.is_file():
            return file
    return None


def _load(path: str | PathLike[str], named: Iterable[str], learner: str) -> Any:
    file = find_checkpoint(path)
    if file is None and isinstance(path, str) and not {"/", "\\", "."}.intersection(path):
        error = unknown(f"policy for the {learner}", path, named)
        raise ValueError(f"{error} The path of a checkpoint will do as well.")
    if file is None:
        raise FileNotFoundError(
            f"policy: expected a checkpoint, or a folder with {CHECKPOINT}, at {str(path)!r}; "
            "there is none. Check the path."
        )
    agents = require_agents()
    if not hasattr(agents, "load"):
        raise ImportError(
            f"the checkpoint {str(path)!r} needs agents.load, which this version of the package "
            "'agents' does not have. Load the model yourself and give the object as policy."
        )
    return agents.load(file)
