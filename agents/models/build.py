"""The networks of a policy, from its arguments."""

from __future__ import annotations

import copy
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from gymnasium import spaces
from torch import Tensor

from agents.models.gpt import GPT, preset
from agents.models.heads import PolicyHead, ValueHead
from agents.models.lora import add_lora

SIZES = ("preset", "n_layer", "n_head", "n_embd", "init_std")
DEFAULT_PRESET = "nano"


@dataclass(frozen=True)
class Networks:
    """What a policy is made of. The backbones meet `agents.models.backbone.Backbone`."""

    backbone: Any
    value_backbone: Any  # None: the value is read off the policy's hidden state
    policy_head: PolicyHead
    value_head: ValueHead


def build_networks(space: Any, config: Mapping[str, Any]) -> Networks:
    """Networks for observations of `space`, by the arguments of `GPTActorCritic`.

    Raises:
        ValueError: arguments that exclude each other, or a model that cannot be used.
    """
    vocab_size = int(space.high.max()) + 1
    backbone, head = _backbone(space, vocab_size, config)
    if config["lora"] is not None:
        add_lora(backbone, config["lora"])
    backbone.gradient_checkpointing = config["gradient_checkpointing"]
    tied_to = backbone.embedding if config["tie"] and head is None else None
    if config["pretrained"] is not None and tied_to is None and head is None:
        head = backbone.embedding.detach()
    policy_head = PolicyHead(backbone.width, vocab_size, tied_to, head)
    value_backbone = None if config["share_features_extractor"] else copy.deepcopy(backbone)
    if config["compile"]:
        for network in filter(None, (backbone, value_backbone)):
            network.compile(dynamic=True)  # sequences are of many lengths
    return Networks(backbone, value_backbone, policy_head, ValueHead(backbone.width))


def _backbone(space: Any, vocab_size: int, config: Mapping[str, Any]) -> tuple[Any, Tensor | None]:
    """The backbone, and the weight of a policy head that comes with it."""
    sizes = {key: config[key] for key in SIZES}
    if config["pretrained"] is None:
        name = sizes.pop("preset") or DEFAULT_PRESET
        return GPT(preset(name, vocab_size, space.shape[0], **sizes)), None
    given = [key for key, value in sizes.items() if value is not None]
    if given:
        raise ValueError(
            f"GPTPolicy: pretrained={config['pretrained']!r} fixes the sizes of the model; leave "
            f"out {', '.join(given)}, or leave out pretrained"
        )
    if not hasattr(space, "tokenizer"):
        raise ValueError(
            "GPTPolicy: a pretrained model needs to know what the tokens mean: expected an "
            f"observation space with a tokenizer, as dialgym's TokenBox, got {space}"
        )
    from agents.models.pretrained import load_backbone

    return load_backbone(config["pretrained"], space.tokenizer, space.shape[0])


def check_spaces(observation_space: spaces.Space, action_space: spaces.Space) -> None:
    """Raises ValueError unless observations are token windows and actions are their tokens."""
    is_tokens = (
        isinstance(observation_space, spaces.Box)
        and len(observation_space.shape) == 1
        and np.issubdtype(observation_space.dtype, np.integer)
    )
    if not is_tokens:
        raise ValueError(
            "GPTPolicy: expected observations Box(0, V - 1, (L,), integer), token ids with 0 as "
            f"padding, got {observation_space}; use the token view of the task"
        )
    assert isinstance(observation_space, spaces.Box)
    vocab_size = int(observation_space.high.max()) + 1
    if not isinstance(action_space, spaces.Discrete) or int(action_space.n) != vocab_size:
        raise ValueError(
            f"GPTPolicy: expected actions Discrete({vocab_size}), one for each token of the "
            f"observations, got {action_space}"
        )
