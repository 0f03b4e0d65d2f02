"""Weights of one model as the beginning of another."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from agents.models.build import check_same_tokens
from agents.storage.models import load


def start_from(policy: Any, source: Any, trust: bool = False) -> None:
    """Give a GPT policy the weights of another one, whatever algorithm that is of.

    Backbone and policy head must be of the same shape; other heads are taken where both have them.
    The weights beneath low-rank adapters are those of a model without any.

    Args:
        policy: takes the weights.
        source: a model, a policy, or the path of a saved model.
        trust: of a saved model, as of `agents.load`.

    Raises:
        FileNotFoundError, ValueError: as of `load`; or vocabularies or shapes differ.
    """
    is_path = isinstance(source, str | Path)
    model = load(source, device=policy.device, trust=trust) if is_path else source
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
