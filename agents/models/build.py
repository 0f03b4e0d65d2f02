"""The networks of a policy, from its arguments."""

from __future__ import annotations

import copy
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import torch
from stable_baselines3.common.type_aliases import Schedule
from torch import Tensor, nn

from agents.models.gpt import GPT
from agents.models.gpt_config import preset
from agents.models.heads import PolicyHead, ValueHead
from agents.models.lora import add_lora
from agents.models.observations import token_space
from agents.registry import load_name
from agents.storage.base_weights import mark_base
from dialgym.errors import unknown

SIZES = ("preset", "n_layer", "n_head", "n_embd", "positions", "init_std")
DEFAULT_PRESET = "nano"
EXAMPLE = "agents.models.heads.MLPHead"
CRITIC = "share_features_extractor"


@dataclass(frozen=True)
class Execution:
    """Settings of how a policy's networks are run, which change the cost and not the results.

    Attributes:
        cache: a rollout keeps keys and values between steps.
        cache_rows: batches with more rows than this are read without a cache.
        group: an update by single observations reads one sequence for all that are its beginnings.
        gradient_checkpointing: compute activations twice rather than keep them.
        compile: `torch.compile` for the update; needs a C++ compiler.
    """

    cache: bool = True
    cache_rows: int = 4096
    group: bool = True
    gradient_checkpointing: bool = False
    compile: bool = False


OF_VALUES = "of_values"
"""Key of the parameter group of the weights that make values alone."""


def make_optimizer(
    policy: Any, lr_schedule: Schedule, apart: bool = False
) -> torch.optim.Optimizer:
    """Make the optimizer of a policy's trainable parameters, by its arguments.

    Args:
        policy: with `optimizer_class` and `optimizer_kwargs`.
        lr_schedule: its learning rate at first is `lr_schedule(1)`.
        apart: give the weights that make values alone a group of their own, which has a true
            `of_values`.
    """
    trained: list[Any] = [weight for weight in policy.parameters() if weight.requires_grad]
    if apart:
        own = {id(weight) for part in _value_parts(policy) for weight in part.parameters()}
        trained = [
            {"params": [weight for weight in trained if id(weight) not in own]},
            {"params": [weight for weight in trained if id(weight) in own], OF_VALUES: True},
        ]
    made: torch.optim.Optimizer = policy.optimizer_class(
        trained, lr=lr_schedule(1), **policy.optimizer_kwargs
    )
    return made


def _value_parts(policy: Any) -> list[nn.Module]:
    """The modules of an actor-critic of Stable-Baselines3, or of ours, that make values alone."""
    if hasattr(policy, "value_backbone"):
        parts = [policy.value_head, policy.value_backbone, policy.value_features]
        parts += [getattr(policy, name, None) for name in ("q_heads", "v_heads")]
    else:
        parts = [policy.mlp_extractor.value_net, policy.value_net]
    return [part for part in parts if part is not None]


@dataclass(frozen=True)
class Networks:
    """The networks of a policy. The backbones meet `agents.models.backbone.Backbone`."""

    backbone: Any
    value_backbone: Any  # None: the value is read off the policy's hidden state
    policy_head: PolicyHead
    value_head: nn.Module  # ValueHead, or one of the user's own


def build_networks(space: Any, config: Mapping[str, Any]) -> Networks:
    """Networks for observations of `space`, by the arguments of `GPTActorCritic`.

    Raises:
        ValueError: arguments that exclude each other, or a model that cannot be used.
    """
    space = token_space(space)
    vocab_size = int(space.high.max()) + 1
    backbone, head = _backbone(space, vocab_size, config)
    _add_adapters(backbone, config)
    execution: Execution = config["execution"]
    backbone.gradient_checkpointing = execution.gradient_checkpointing
    tied_to = backbone.embedding if config["tie"] and head is None else None
    if config["pretrained"] is not None and tied_to is None and head is None:
        head = backbone.embedding.detach()
    policy_head = PolicyHead(backbone.width, vocab_size, tied_to, head, config["temperature"])
    value_backbone = made_critic(config[CRITIC], space, backbone)
    if execution.compile:
        for network in filter(None, (backbone, value_backbone)):
            network.compile(dynamic=True)  # sequences are of many lengths
    value_head = made_head(
        "value_head", config["value_head"], ValueHead, (value_backbone or backbone).width
    )
    return Networks(backbone, value_backbone, policy_head, value_head)


def made_critic(given: Any, space: Any, backbone: Any) -> Any:
    """The backbone that values are read off, by `share_features_extractor`; None for the policy's.

    Args:
        given: True for the policy's, False for a copy of it, or settings of another one: `preset`
            and sizes, or `pretrained`, as of `GPTActorCritic`, either with `lora`; or `class`, an
            `nn.Module` or its name, made with `vocab_size`, `window` and the other settings. It
            meets `agents.models.backbone.Backbone`; without `extend` and `new_cache` a rollout
            reads whole dialogues.
        space: of token windows.
        backbone: of the policy.

    Raises:
        ValueError: an unknown setting, or a class that makes no such backbone.
    """
    if isinstance(given, bool):
        return None if given else copy.deepcopy(backbone)
    settings = dict(given) if isinstance(given, Mapping) else {"class": given}
    vocab_size = int(space.high.max()) + 1
    if "class" in settings:
        return _critic_of_class(settings.pop("class"), settings, vocab_size, space.shape[0])
    known = (*SIZES, "pretrained", "lora")
    for name in settings:
        if name not in known:
            raise unknown("setting", name, (*known, "class"), CRITIC)
    config = {**dict.fromkeys(known), **settings}
    critic, _ = _backbone(space, vocab_size, config)
    _add_adapters(critic, config)
    critic.gradient_checkpointing = backbone.gradient_checkpointing
    return critic


@torch.no_grad()
def _critic_of_class(given: Any, settings: dict[str, Any], vocab_size: int, window: int) -> Any:
    """A backbone of the user's own class, of which a few tokens have been asked."""
    make = (
        load_name(CRITIC, given, "my_package.critics:Critic") if isinstance(given, str) else given
    )
    try:
        critic = make(vocab_size=vocab_size, window=window, **settings)
        tokens = torch.arange(6).view(2, 3) % vocab_size
        hidden, some = critic(tokens), critic(tokens, torch.tensor([1, 5]))
        earlier = critic(tokens[:, :2])
        right = hidden.shape == (2, 3, critic.width) and critic.embedding.shape[0] == vocab_size
        right &= torch.allclose(some, hidden.flatten(0, 1)[[1, 5]], atol=1e-4)
    except (TypeError, RuntimeError, AttributeError, IndexError) as error:
        raise _bad_critic(given, f"{type(error).__name__}: {error}") from error
    if not isinstance(critic, nn.Module) or not right:
        raise _bad_critic(given, f"{type(critic).__name__} with states {tuple(hidden.shape)}")
    if not torch.allclose(hidden[:, :2], earlier, atol=1e-4):
        raise _bad_critic(given, "hidden states that change with the tokens after them")
    return critic


def _bad_critic(given: Any, got: str) -> ValueError:
    return ValueError(
        f"{CRITIC} {given!r}: expected a torch.nn.Module, made with vocab_size, window and the "
        f"other keys of {CRITIC}, with the attributes width and embedding (vocab_size, ...), that "
        "takes tokens (B, T) to hidden states (B, T, width), those at the flat places `at` (N,) "
        f"to (N, width), each of what stands before it alone; got {got}"
    )


def made_head(
    what: str, given: Any, default: type[nn.Module], width: int, *outputs: int
) -> nn.Module:
    """A head by the argument `what` of a policy: the default, or the class that was asked for.

    Args:
        what: the name of the argument.
        given: a class, its name, or a mapping with it as `class` and arguments; None for none.
        default: of ours.
        width: d of the hidden states.
        outputs: how many numbers it gives for a hidden state; none for one, of which a class is
            not told.

    Raises:
        ValueError: the class makes no such head.
    """
    settings = {}
    if isinstance(given, Mapping):
        settings = {key: value for key, value in given.items() if key != "class"}
        given = given.get("class")
    if given is None:
        return default(width, *outputs, **settings)
    make = load_name(what, given, EXAMPLE) if isinstance(given, str) else given
    try:
        head = make(width, *outputs, **settings)
        with torch.no_grad():
            shape = tuple(head(torch.zeros(2, 3, width)).shape)
    except (TypeError, RuntimeError, AttributeError) as error:
        raise _bad_head(what, given, outputs, f"{type(error).__name__}: {error}") from error
    if not isinstance(head, nn.Module) or shape != (2, 3, *(outputs or (1,))):
        got = f"{type(head).__name__} with values of shape {shape}"
        raise _bad_head(what, given, outputs, got)
    return head


def _bad_head(what: str, given: Any, outputs: tuple[int, ...], got: str) -> ValueError:
    made = "the width of hidden states" + (" and the number of actions" if outputs else "")
    count = outputs[0] if outputs else 1
    return ValueError(
        f"{what} {given!r}: expected a torch.nn.Module, made with {made} "
        f"and the other keys of {what}, that takes hidden states (..., d) to values (..., {count});"
        f" got {got}"
    )


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


def _add_adapters(backbone: nn.Module, config: Mapping[str, Any]) -> None:
    """Put adapters into a backbone where they are asked for."""
    if config["lora"] is None:
        return
    add_lora(backbone, config["lora"])
    if config["pretrained"] is not None:
        mark_base(backbone)


def check_same_tokens(ours: Any, theirs: Any, who: str, window: bool = True) -> None:
    """Raises ValueError unless ids mean the same in two observation spaces, and windows suffice.

    Args:
        ours: a space of token windows.
        theirs: that of the other party, whose window must hold ours.
        who: names the other party in the message.
        window: look at the windows too.
    """
    ours, theirs = token_space(ours), token_space(theirs)
    have, need = int(theirs.high.max()) + 1, int(ours.high.max()) + 1
    tokenizers = getattr(theirs, "tokenizer", None), getattr(ours, "tokenizer", None)
    if have != need or (None not in tokenizers and tokenizers[0] != tokenizers[1]):
        raise ValueError(
            f"{who} has another vocabulary: expected {_vocabulary(tokenizers[1], need)}, got "
            f"{_vocabulary(tokenizers[0], have)}; the same ids would be other words. Give both the "
            "same tokenizer, as in env_kwargs={'tokenizer': ...}"
        )
    if window and theirs.shape[0] < ours.shape[0]:
        raise ValueError(
            f"{who} reads {theirs.shape[0]} tokens, but the window here is {ours.shape[0]}. "
            "Shorten the window, or choose another model."
        )


def _vocabulary(tokenizer: Any, size: int) -> str:
    kind = "" if tokenizer is None else f" of {type(tokenizer).__name__}"
    return f"{size} tokens{kind}"
