"""Weights of one model as the beginning of another."""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from torch import Tensor

from agents.models.build import check_same_tokens
from agents.models.gpt import GPT
from agents.models.lora import DEFAULTS
from agents.policies.belief import BeliefPolicy
from agents.storage.generators import generators_kept
from agents.storage.models import load

ALWAYS = ("mlp_extractor.policy_net.", "action_net.", "backbone.", "policy_head.")
"""Parts of a policy over beliefs, and of a GPT policy, that decide what is said."""
SPEAKS = (*ALWAYS, "features.", "return_embedding.")
"""Those, and what may decide it besides."""
UNSEEN = (
    "n_head",
    "positions",
    "model_type",
    "num_attention_heads",
    "hidden_act",
    "rope_parameters",
)
"""Settings of a backbone that change what it computes and no shape of its weights."""
FITS_ANY = {"lora r": None, "lora alpha": None, "tie": True}
"""Settings that any policy takes: no adapters, and a head that is the embeddings."""


def start_from(policy: Any, source: Any, trust: bool = False) -> None:
    """Give a policy the weights of another one of its kind, whatever algorithm that is of.

    What speaks, such as the backbone and policy head of a GPT, must be of the same shape, with the
    same heads of attention, positions and scale of low-rank adapters; other heads are taken where
    both have them. The weights beneath adapters are those of a model without any. A temperature is
    no weight: the policy keeps its own, with a warning where the other one has learned at another
    than 1. Global random generators stay as they are.

    Args:
        policy: takes the weights.
        source: a model, a policy, or the path of a saved model.
        trust: of a saved model, as of `agents.load`.

    Raises:
        FileNotFoundError, ValueError: as of `load`; vocabularies, acts, shapes or settings differ;
            or the other one speaks by a part that the policy has not, such as a return embedding.
    """
    model = source
    if isinstance(source, str | Path):
        with generators_kept():
            model = load(source, device=policy.device, trust=trust)
    other = getattr(model, "policy", model)
    if hasattr(policy, "start_from"):
        policy.start_from(other)
        return
    if isinstance(policy, BeliefPolicy):
        _check_same_acts(policy, other, source)
    else:
        who = f"cannot start from {_name(source)}: it"
        check_same_tokens(policy.observation_space, other.observation_space, who, window=False)
        _check_same_form(_form(policy), _form(other), source)
    policy.load_state_dict(_alike(policy.state_dict(), other.state_dict(), source), strict=False)
    _compare_temperatures(policy, other, source)


def _alike(
    own: Mapping[str, Tensor], theirs: Mapping[str, Tensor], source: Any
) -> dict[str, Tensor]:
    """The weights of another policy that fit, by the names that they have here.

    Raises:
        ValueError: a part that decides what is said is missing on either side, or does not fit.
    """
    alike, unused = {}, {name: weight for name, weight in theirs.items() if name.startswith(SPEAKS)}
    for name, weight in own.items():
        there = name if name in theirs else name.replace(".base_layer", "")
        found = theirs.get(there)
        if found is not None and found.shape == weight.shape:
            alike[name] = found
            unused.pop(there, None)
        elif name.startswith(ALWAYS) and ".lora_" not in name:
            raise _misfit(source, name, weight, found)
    for name, weight in unused.items():
        raise _misfit(source, name, own.get(name), weight)
    return alike


def _misfit(source: Any, name: str, own: Tensor | None, found: Tensor | None) -> ValueError:
    expected, got = ("none" if w is None else f"{tuple(w.shape)}" for w in (own, found))
    return ValueError(
        f"cannot start from {_name(source)}: expected {name} of shape {expected}, got {got}; "
        "give a policy, policy_kwargs and an env like those that it was trained with"
    )


def _form(policy: Any) -> dict[str, Any]:
    """Settings of a GPT policy by which weights of the same shape say something else."""
    backbone = getattr(policy, "backbone", None)
    if backbone is None:
        return {}
    config = backbone.config if isinstance(backbone, GPT) else backbone.model.config
    lora = policy.config["lora"]
    adapted = {} if lora is None else {**DEFAULTS, **lora}
    return {
        **{name: getattr(config, name, None) for name in UNSEEN},
        **{f"lora {name}": adapted.get(name) for name in ("r", "alpha")},
        "tie": policy.policy_head.weight is backbone.embedding,
    }


def _check_same_form(ours: dict[str, Any], theirs: dict[str, Any], source: Any) -> None:
    """Raises ValueError unless weights mean the same in two policies; see `_form`."""
    for name, got in theirs.items():
        fits = got == ours.get(name, got) or (name in FITS_ANY and got == FITS_ANY[name])
        if not fits:
            raise ValueError(
                f"cannot start from {_name(source)}: expected {name}={ours[name]!r}, got {got!r}, "
                "by which the same weights say something else; give policy_kwargs like those that "
                "it was trained with"
            )


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
