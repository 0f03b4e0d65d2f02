"""Weights of a pretrained model beneath adapters, which files leave out, as they never change."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping
from typing import Any

import torch
from torch import Tensor, nn

ADAPTER = ".lora_"
"""In the names of weights that adapters add."""


def mark_base(backbone: nn.Module) -> None:
    """Set the backbone's `base_digest` to that of the pretrained model beneath new adapters."""
    backbone.base_digest = digest(_base(backbone))  # type: ignore[assignment]


def digest(weights: Mapping[str, Tensor]) -> str:
    """SHA-256 of the names, shapes and bytes of weights."""
    found = hashlib.sha256()
    for name, weight in sorted(weights.items()):
        found.update(f"{name} {tuple(weight.shape)} ".encode())
        found.update(weight.detach().cpu().contiguous().view(-1).view(torch.uint8).numpy().data)
    return found.hexdigest()


def without_bases(
    network: nn.Module, state: Mapping[str, Any]
) -> tuple[Mapping[str, Any], dict[str, str]]:
    """A network's state without the weights of its pretrained models.

    Args:
        network: any module.
        state: of it, by `state_dict` or gathered from several processes.

    Returns:
        The rest of the state, and the digest of each base that was left out, by the path of its
        backbone. A base that has become another, as by the start from another model, stays.
    """
    gone: set[str] = set()
    digests = {}
    for path, backbone in _marked(network):
        names = {name: f"{path}.{name}" for name in _base(backbone)}
        if digest({name: state[full] for name, full in names.items()}) == backbone.base_digest:
            gone |= {*names.values(), *_aliases(network, backbone)}
            digests[path] = str(backbone.base_digest)
    return {name: value for name, value in state.items() if name not in gone}, digests


def with_bases(
    network: nn.Module, state: Mapping[str, Any], digests: Mapping[str, str], source: str
) -> dict[str, Any]:
    """The whole state of a network that `without_bases` has shortened; the bases are its own.

    Raises:
        ValueError: the pretrained model is another than the one that was learned with.
    """
    marked = dict(_marked(network))
    names: set[str] = set()
    for path, expected in digests.items():
        backbone = marked.get(path)
        if backbone is None or digest(_base(backbone)) != expected:
            raise ValueError(
                f"{source} holds adapters of a pretrained model whose weights are not those that "
                f"{path} was made of here: expected SHA-256 {expected[:12]}... of them, got "
                f"{'no such model' if backbone is None else 'another'}. Give the folder or the "
                "revision that it was trained with as policy_kwargs['pretrained']."
            )
        names |= {*(f"{path}.{name}" for name in _base(backbone)), *_aliases(network, backbone)}
    own = network.state_dict()
    return {**{name: own[name] for name in names}, **state}


def _marked(network: nn.Module) -> Iterator[tuple[str, Any]]:
    """The backbones with a base, by path."""
    for path, module in network.named_modules():
        if hasattr(module, "base_digest"):
            yield path, module


def _base(backbone: nn.Module) -> dict[str, Tensor]:
    """The weights of a backbone without its adapters."""
    return {name: weight for name, weight in backbone.named_parameters() if ADAPTER not in name}


def _aliases(network: nn.Module, backbone: nn.Module) -> set[str]:
    """All names in a network of the weights of a base, such as that of a tied policy head."""
    own = {id(weight) for weight in _base(backbone).values()}
    named = network.named_parameters(remove_duplicate=False)
    return {name for name, weight in named if id(weight) in own}
