"""State of networks and optimizers in a file of a model, and its loading."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from typing import Any

import torch
from stable_baselines3.common.base_class import BaseAlgorithm
from stable_baselines3.common.save_util import recursive_getattr

from agents.storage.archive import MALFORMED, Archive
from agents.storage.base_weights import with_bases
from agents.storage.pickled import check_model_finite

OPTIMIZER = "optimizer"
REFERENCE = "reference"
"""The policy that divergence is measured from, which learning makes where a file has none."""
OF_REFERENCE = ("reference_made_by", "reference_is_set")
"""Attributes of a model that are about its reference."""
TRUST_REGION = "trust_region"
"""The slow average of a policy, which begins as the policy itself where a file has none."""


def load_state(
    archive: Archive,
    model: Any,
    set_parameters: Callable[..., None],
    kept: Collection[str] = (),
    **options: Any,
) -> None:
    """Give a model the state of its networks and optimizers in a file.

    Args:
        archive: of the file.
        model: of which this is the state.
        set_parameters: its own method, or that of its parent.
        kept: networks that keep the state that they have.
        options: further arguments of that.

    Raises:
        ValueError: the state is of other networks than the model's, or not finite.
    """
    parameters = _parameters(archive, model, kept)
    try:
        set_parameters(parameters, **options)
    except (ValueError, *MALFORMED) as error:
        raise ValueError(
            f"{archive.name}: expected the state of the networks that its settings describe, got "
            f"another ({' '.join(str(error).split())}). Save the model again, unchanged."
        ) from error
    check_model_finite(model, archive.name)


def reference_of(attributes: Mapping[str, Any]) -> Any:
    """The file of the policy that divergence is measured from; None is the one learned from."""
    return getattr(attributes.get("kl"), "reference", None)


def is_optimizer(model: BaseAlgorithm, name: str) -> bool:
    """Return True if an attribute of a model is an optimizer."""
    return isinstance(recursive_getattr(model, name), torch.optim.Optimizer)


def _parameters(archive: Archive, model: Any, kept: Collection[str]) -> dict[str, Any]:
    """Networks and optimizers of a file; where it has no state of optimizers, the model's own.

    So it is with a reference: settings given to `load` may ask for one, or for none any more.
    """
    saved, own = archive.read("algorithm"), model.get_parameters()
    named = [name for name in saved["networks"] if name in own or name != REFERENCE]
    networks = {name: archive.read(name) for name in named if name not in kept}
    for name, digests in saved.get("bases", {}).items():
        if name in networks:
            network = recursive_getattr(model, name)
            networks[name] = with_bases(network, networks[name], digests, archive.name)
    if REFERENCE in own:
        networks.setdefault(REFERENCE, own[REFERENCE])
    if TRUST_REGION in own:
        average = {f"average.{name}": value for name, value in networks["policy"].items()}
        networks.setdefault(TRUST_REGION, average)
    optimizers = [name for name in own if is_optimizer(model, name)]
    if OPTIMIZER in archive.sections:
        return {**networks, **archive.read(OPTIMIZER, optimizers)}
    return {**{name: own[name] for name in optimizers}, **networks}
