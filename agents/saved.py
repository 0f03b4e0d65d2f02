"""From a saved model to an agent that talks, whatever algorithm it is of."""

from __future__ import annotations

import json
import zipfile
from pathlib import Path
from typing import Any

from agents.models.build import check_same_tokens


def load(path: str | Path, device: str = "auto") -> Any:
    """The Stable-Baselines3 (or sb3-contrib) model in a zip file.

    The algorithm is read from what the file says of itself, its policy and its hyperparameters: one
    of `agents`, or PPO, A2C, DQN, MaskablePPO or RecurrentPPO.

    Args:
        path: the zip file that `model.save` wrote.
        device: as everywhere in PyTorch.

    Returns:
        The model; it has `predict`.

    Raises:
        FileNotFoundError: there is no such file.
        ValueError: the file is no saved model.
    """
    path = Path(path)
    if not path.is_file():
        raise FileNotFoundError(f"no saved model at {str(path)!r}: expected a zip file there")
    return _algorithm(_describe(path)).load(path, device=device)


def start_from(policy: Any, source: Any) -> None:
    """Give a GPT policy the weights of another one, whatever algorithm that is of.

    Backbone and policy head must be of the same shape; other heads are taken where both have them.
    The weights beneath low-rank adapters are those of a model without any.

    Args:
        policy: takes the weights.
        source: a model, a policy, or the path of a saved model.

    Raises:
        FileNotFoundError, ValueError: as of `load`; or vocabularies or shapes differ.
    """
    model = load(source, device=policy.device) if isinstance(source, str | Path) else source
    other = getattr(model, "policy", model)
    who = f"cannot start from {_name(source)}: it"
    check_same_tokens(policy.observation_space, other.observation_space, who, window=False)
    theirs = other.state_dict()
    own = policy.state_dict()
    alike = {}
    for name, weight in own.items():
        found = theirs.get(name, theirs.get(name.replace(".base_layer", "")))
        if found is not None and found.shape == weight.shape:
            alike[name] = found
        elif name.startswith(("backbone.", "policy_head.")) and ".lora_" not in name:
            raise ValueError(
                f"cannot start from {_name(source)}: expected {name} of shape "
                f"{tuple(weight.shape)}, got {'none' if found is None else tuple(found.shape)}; "
                "give policy_kwargs and an env like those that it was trained with"
            )
    policy.load_state_dict(alike, strict=False)


def _name(source: Any) -> str:
    return repr(str(source)) if isinstance(source, str | Path) else f"this {type(source).__name__}"


def _describe(path: Path) -> dict[str, Any]:
    try:
        with zipfile.ZipFile(path) as archive:
            described: dict[str, Any] = json.loads(archive.read("data"))
    except (zipfile.BadZipFile, KeyError, ValueError) as error:
        raise ValueError(
            f"{str(path)!r} is no saved model: expected a zip file that a Stable-Baselines3 "
            f"model's save() wrote ({error}). Train one with `dialgym train`."
        ) from error
    return described


def _algorithm(described: dict[str, Any]) -> Any:
    import sb3_contrib
    import stable_baselines3

    import agents

    ours = described.get("algorithm")
    if ours in agents.__all__:
        return getattr(agents, ours)
    policy = str(described.get("policy_class", ""))
    if "askable" in policy:
        return sb3_contrib.MaskablePPO
    if "ecurrent" in policy:
        return sb3_contrib.RecurrentPPO
    if "clip_range" in described:
        return stable_baselines3.PPO
    return stable_baselines3.DQN if "exploration_rate" in described else stable_baselines3.A2C
