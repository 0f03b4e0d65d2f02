"""Weights of one model as the beginning of another."""

from __future__ import annotations

import warnings
from pathlib import Path
from typing import Any

from agents.models.build import check_same_tokens
from agents.policies.belief import BeliefPolicy
from agents.storage.generators import generators_kept
from agents.storage.models import load

SPEAKS = {True: ("mlp_extractor.policy_net.", "action_net."), False: ("backbone.", "policy_head.")}
"""Parts of a policy over beliefs, and of a GPT policy, that decide what is said."""


def start_from(policy: Any, source: Any, trust: bool = False) -> None:
    """Give a policy the weights of another one of its kind, whatever algorithm that is of.

    What speaks, such as the backbone and policy head of a GPT, must be of the same shape; other
    heads are taken where both have them. The weights beneath low-rank adapters are those of a model
    without any. A temperature is no weight: the policy keeps its own, with a warning where the
    other one has learned at another than 1. Global random generators stay as they are.

    Args:
        policy: takes the weights.
        source: a model, a policy, or the path of a saved model.
        trust: of a saved model, as of `agents.load`.

    Raises:
        FileNotFoundError, ValueError: as of `load`; or vocabularies, acts or shapes differ.
    """
    model = source
    if isinstance(source, str | Path):
        with generators_kept():
            model = load(source, device=policy.device, trust=trust)
    other = getattr(model, "policy", model)
    if hasattr(policy, "start_from"):
        policy.start_from(other)
        return
    acts = isinstance(policy, BeliefPolicy)
    if acts:
        _check_same_acts(policy, other, source)
    else:
        who = f"cannot start from {_name(source)}: it"
        check_same_tokens(policy.observation_space, other.observation_space, who, window=False)
    theirs = other.state_dict()
    own = policy.state_dict()
    alike = {}
    for name, weight in own.items():
        found = theirs.get(name, theirs.get(name.replace(".base_layer", "")))
        if found is not None and found.shape == weight.shape:
            alike[name] = found
        elif name.startswith(SPEAKS[acts]) and ".lora_" not in name:
            raise ValueError(
                f"cannot start from {_name(source)}: expected {name} of shape "
                f"{tuple(weight.shape)}, got {'none' if found is None else tuple(found.shape)}; "
                "give policy_kwargs and an env like those that it was trained with"
            )
    policy.load_state_dict(alike, strict=False)
    _compare_temperatures(policy, other, source)


def _check_same_acts(policy: Any, other: Any, source: Any) -> None:
    """Raises ValueError unless two policies over beliefs see and choose the same."""
    ours, theirs = ((p.observation_space.shape, p.action_space) for p in (policy, other))
    if ours != theirs:
        raise ValueError(
            f"cannot start from {_name(source)}: expected beliefs of shape {ours[0]} and actions "
            f"of {ours[1]}, got {theirs[0]} and {theirs[1]}; take one of the same act view"
        )
    wanted, got = (p.activation_fn.__name__ for p in (policy, other))
    if wanted != got:  # weights of the same shape would mean something else
        raise ValueError(
            f"cannot start from {_name(source)}: expected a network of {wanted}, got one of {got}; "
            "give activation_fn in policy_kwargs as it was trained with"
        )


def _compare_temperatures(policy: Any, other: Any, source: Any) -> None:
    heads = (getattr(p, "policy_head", None) for p in (policy, other))
    here, there = (getattr(head, "temperature", 1.0) for head in heads)
    if there not in (1, here):
        warnings.warn(
            f"{_name(source)} has learned at a temperature of {there:g}, and goes on at {here:g} "
            f"here; give policy_kwargs={{'temperature': {there:g}}} to begin with what it says",
            stacklevel=3,
        )


def _name(source: Any) -> str:
    return repr(str(source)) if isinstance(source, str | Path) else f"this {type(source).__name__}"
