"""What may stand for a policy: a registered name, an object, a path to a checkpoint."""

from collections.abc import Iterable, Sequence
from os import PathLike
from pathlib import Path
from typing import Any

from dialgym.benchmark.rollout import Predictor
from dialgym.errors import unknown
from dialgym.optional import require_agents
from dialgym.simulators import Speaker
from dialgym.views.dialogue import Dialogue

Policy = str | PathLike[str] | Speaker | Predictor


def policy_name(policy: Policy) -> str:
    """What a table calls a policy: its registered name, its checkpoint, or its class."""
    if isinstance(policy, str) and not _is_path(policy):
        return policy
    if isinstance(policy, (str, PathLike)):
        path = Path(policy)
        generic = path.suffix == ".zip" and path.stem in ("model", "best_model", "final_model")
        return path.parent.name if generic and path.parent.name else path.stem
    return type(policy).__name__


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


def _load(path: str | PathLike[str], named: Iterable[str], learner: str) -> Any:
    if not any(candidate.exists() for candidate in (Path(path), Path(f"{path}.zip"))):
        if _is_path(path):
            raise FileNotFoundError(
                f"policy: there is no checkpoint at {str(path)!r}. Check the path."
            )
        error = unknown(f"policy for the {learner}", path, named)
        raise ValueError(f"{error} A path to a checkpoint will do as well.")
    agents = require_agents()
    if not hasattr(agents, "load"):
        raise ImportError(
            f"loading the checkpoint {str(path)!r} needs agents.load, which this version of the "
            "package 'agents' does not have. Load it yourself and give the object as policy."
        )
    return agents.load(path)


def _is_path(policy: str | PathLike[str]) -> bool:
    return not isinstance(policy, str) or "/" in policy or "\\" in policy or policy.endswith(".zip")
