"""Saved models: settings as JSON, weights and optimizer state as safetensors.

Any algorithm of Stable-Baselines3 is written and read so. Nothing in a file is executed: its
algorithm and policy are looked up in the table of `agents.registry`. The files that
Stable-Baselines3 itself writes are pickles, and are read with `trust=True` only.
"""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Iterable, Mapping
from dataclasses import asdict
from pathlib import Path
from typing import IO, Any, Self

import torch
from stable_baselines3.common.base_class import BaseAlgorithm
from stable_baselines3.common.save_util import recursive_getattr, recursive_setattr
from stable_baselines3.common.type_aliases import GymEnv
from stable_baselines3.common.utils import check_for_correct_spaces

from agents.registry import NETWORK_KEYS, POLICIES, find, home_of, load_class, name_of, named, names
from agents.storage.archive import MODEL, Archive, ForeignFile, model_archive, write_archive
from agents.storage.base_weights import without_bases
from agents.storage.changed_settings import understood
from agents.storage.locate import (
    beside,
    fetched_agent,
    moved,
    named_from,
    saved_model,
    with_pretrained,
    with_tokenizer,
)
from agents.storage.pickled import learned_normalized, read_pickled, take_statistics
from agents.storage.state import (
    OF_REFERENCE,
    OPTIMIZER,
    REFERENCE,
    is_optimizer,
    load_state,
    reference_of,
)
from agents.storage.values import Unpacker
from dialgym.io.hub import PREFIX, commits, pinned_names
from dialgym.io.objects import without_module
from dialgym.io.saved_models import find_checkpoint, find_language_model
from dialgym.views.env_spec import made_from

Place = str | Path | IO[bytes]
CLOCK = "start_time"
"""An attribute that each `learn` sets; equal models have equal files without it."""


def save(
    model: BaseAlgorithm,
    path: Place,
    exclude: Iterable[str] | None = None,
    include: Iterable[str] | None = None,
) -> None:
    """Write a model of Stable-Baselines3, ours or stock, to a file that is safe to load.

    The file is a zip: `algorithm.json`, `settings.json` and its arrays, `policy.safetensors`,
    `optimizer.safetensors`, and others where the algorithm has more networks. Of a pretrained model
    beneath adapters it has the place and a digest, not the weights. A path is written atomically.

    Args:
        model: any algorithm.
        path: the file, `.zip` is added to a name without a suffix; or a file open for writing.
        exclude: attributes to leave out too.
        include: attributes that would be left out, such as `replay_buffer`, to write as well.

    Raises:
        TypeError: an attribute has no form in a file.
    """
    if isinstance(model, SafeFiles):
        model.save(path, exclude, include)
    else:
        write_model(model, path, exclude, include)


def write_model(
    model: BaseAlgorithm,
    path: Place,
    exclude: Iterable[str] | None = None,
    include: Iterable[str] | None = None,
) -> None:
    """Write a model as `save` does, for an algorithm without a `save` of its own."""
    path = _with_suffix(path)
    kept = _attributes(model, exclude or (), include or ())
    attributes = with_pretrained(kept, lambda source: named_from(path, source))
    attributes["policy_class"] = _policy_name(model)
    attributes["trained_in"] = trained_in(model)
    attributes = with_tokenizer(attributes, lambda source: named_from(path, source))
    attributes["learned_normalized"] = learned_normalized(model)
    optimizers: dict[str, Any] = {}
    networks: dict[str, Any] = {}
    bases: dict[str, dict[str, str]] = {}
    for name, state in model.get_parameters().items():
        if is_optimizer(model, name):
            optimizers[name] = state
        else:
            networks[name], bases[name] = without_bases(recursive_getattr(model, name), state)
    cls = type(model)
    variables = {name: recursive_getattr(model, name) for name in _variables(model)}
    sections = {
        "algorithm": {"name": name_of(cls), "class": home_of(cls), "networks": list(networks)}
        | ({"bases": bases} if any(bases.values()) else {})
        | _of_the_hub(),
        "settings": {"attributes": attributes, "variables": variables},
        **networks,
        OPTIMIZER: optimizers,
    }
    write_archive(path, MODEL, sections)


def load(
    path: Place,
    device: torch.device | str = "auto",
    trust: bool = False,
    env: GymEnv | None = None,
    **changes: Any,
) -> Any:
    """The model in a file, of whatever algorithm it is.

    Args:
        path: the file that `model.save`, `agents.save` or `dialgym train` wrote; the folder of a
            run, whose checkpoint holds a model where the run has not ended; the folder of a causal
            language model of `transformers`, which gives an `agents.ChatAgent`; or ``zoo:NAME``,
            or ``hf:NAME`` or ``hf:NAME@REVISION`` of either.
        device: as everywhere in PyTorch.
        trust: read pickles and import classes that the file names, which can run code of whoever
            made it; needed for files that Stable-Baselines3 itself wrote.
        env: to learn on in.
        changes: arguments of the algorithm's own `load`.

    Returns:
        The model; it has `predict`, and a language model `reply`.

    Raises:
        FileNotFoundError: there is no such file.
        ValueError: it is no saved model, it needs `trust`, or its class is not registered.
    """
    if isinstance(path, str | Path):
        place = fetched_agent(path) if str(path).startswith(PREFIX) else path
        path = find_checkpoint(place) or place
        if source := find_language_model(path):
            talker: Any = load_class("agents.chat.agent:ChatAgent")
            return talker.load(source, device, trust, **changes)
    return read_model(None, path, env, device, trust=trust, **changes)


def read_model(
    cls: Any,
    path: Place,
    env: GymEnv | None = None,
    device: torch.device | str = "auto",
    custom_objects: Mapping[str, Any] | None = None,
    force_reset: bool = True,
    trust: bool = False,
    **changes: Any,
) -> Any:
    """A model of the class `cls` (None takes what the file says) with a file's state.

    Other arguments are those of `stable_baselines3.common.base_class.BaseAlgorithm.load`.
    """
    path = saved_model(path)
    try:
        archive = model_archive(path, trust)
    except ForeignFile as error:
        more = {"custom_objects": custom_objects, "force_reset": force_reset, **changes}
        return read_pickled(cls, path, error, trust, env=env, device=device, **more)
    cls = _class_of(cls, archive)  # first: it loads the modules of what its settings name
    settings = archive.read("settings", ("attributes", "variables"))
    saved = pinned_names(settings["attributes"], archive.read("algorithm").get("hub", {}))
    changes = {**(custom_objects or {}), **changes}
    attributes = {**saved, **changes}
    attributes = with_pretrained(attributes, lambda source: moved(source, path))
    attributes = with_tokenizer(attributes, lambda source: beside(path, source))
    _resolve_names(cls, attributes, Unpacker({}, trust, archive.name))
    attributes |= understood(cls, attributes["policy_class"], saved, changes)
    if other := reference_of(attributes) != reference_of(saved):
        attributes = {n: v for n, v in attributes.items() if n not in OF_REFERENCE}
    if env is not None:
        env = _fitting(cls, env, attributes, force_reset)
    model = cls(policy=attributes["policy_class"], env=env, device=device, _init_setup_model=False)
    model.__dict__.update(attributes)
    model._setup_model()
    load_state(archive, model, model.set_parameters, {REFERENCE} if other else set(), device=device)
    if hasattr(model, "policy_given"):
        model.policy_given(changes)
    for name, value in settings["variables"].items():
        if value is not None:
            recursive_setattr(model, f"{name}.data", value.to(model.device))
    if model.use_sde:
        model.policy.reset_noise()
    if trust and attributes.get("learned_normalized", True):  # older files do not say
        take_statistics(model, path)
    return model


class SafeFiles:
    """Gives an algorithm `save` and `load` of files that are safe to load.

    It stands among a class's bases before that of Stable-Baselines3.
    """

    def save(
        self,
        path: Place,
        exclude: Iterable[str] | None = None,
        include: Iterable[str] | None = None,
    ) -> None:
        """See `agents.save`."""
        write_model(self, path, exclude, include)  # type: ignore[arg-type]

    @classmethod
    def load(
        cls,
        path: Place,
        env: GymEnv | None = None,
        device: torch.device | str = "auto",
        custom_objects: Mapping[str, Any] | None = None,
        print_system_info: bool = False,
        force_reset: bool = True,
        trust: bool = False,
        **kwargs: Any,
    ) -> Self:
        """A model of this class from a file; see `agents.load` and Stable-Baselines3's `load`.

        Raises:
            FileNotFoundError, ValueError: as of `agents.load`; or the file is of another class.
        """
        found: Self = read_model(
            cls, path, env, device, custom_objects, force_reset, trust, **kwargs
        )
        return found

    def set_parameters(
        self,
        load_path_or_dict: Any,
        exact_match: bool = True,
        device: torch.device | str = "auto",
    ) -> None:
        """As everywhere in Stable-Baselines3; a file is one that `save` wrote."""
        own: Any = super()
        options = {"exact_match": exact_match, "device": device}
        if isinstance(load_path_or_dict, dict):
            own.set_parameters(load_path_or_dict, **options)
        else:
            archive = model_archive(saved_model(load_path_or_dict))
            load_state(archive, self, own.set_parameters, (), **options)


# Writing


def trained_in(model: Any) -> dict[str, Any] | None:
    """The place where a model learns or learned; see `dialgym.views.env_spec.made_from`.

    None where that is none of dialgym's. A loaded model has it as its `trained_in`.
    """
    known: dict[str, Any] | None = getattr(model, "trained_in", None)
    found = made_from(model.env)
    if found and known and without_module(known["id"]) == found["id"]:
        found = {**found, "id": known["id"]}  # with the module that registers it
    return found or known


def _of_the_hub() -> dict[str, Any]:
    """The commits of what this process has read from the hub, if anything."""
    return {"hub": found} if (found := commits()) else {}


def _attributes(
    model: BaseAlgorithm, exclude: Iterable[str], include: Iterable[str]
) -> dict[str, Any]:
    """Attributes of a model that are saved beside networks and optimizers; decoding as it is now.

    What a run has put in the place of a method, for its time, is not the model's.
    """
    networks, variables = model._get_torch_save_params()
    left_out = {*exclude, CLOCK, *model._excluded_save_params()} - set(include)
    left_out |= {name.partition(".")[0] for name in (*networks, *variables)}
    left_out |= {name for name in vars(model) if callable(getattr(type(model), name, None))}
    kept = {name: value for name, value in vars(model).items() if name not in left_out}
    if ended := kept.get("ep_info_buffer"):
        kept["ep_info_buffer"] = deque(map(_without_time, ended), ended.maxlen)
    if "policy_kwargs" in kept and (decoding := getattr(model.policy, "decoding", None)):
        kept["policy_kwargs"] = {**kept["policy_kwargs"], "decoding": asdict(decoding)}
    return kept


def _without_time(episode: Mapping[str, Any]) -> dict[str, Any]:
    """Figures of a monitored episode without the seconds since it began."""
    return {name: value for name, value in episode.items() if name != "t"}


def _variables(model: BaseAlgorithm) -> list[str]:
    return list(model._get_torch_save_params()[1] or ())


def _policy_name(model: BaseAlgorithm) -> str:
    """An alias of the algorithm, a name of the table, or `module:Class`."""
    cls = model.policy_class
    aliases = {**dict.fromkeys(POLICIES), **type(model).policy_aliases}
    home = home_of(cls)
    for name, other in aliases.items():
        if other is cls or POLICIES.get(name) == home:
            return name
    return home


def _with_suffix(path: Place) -> Place:
    if not isinstance(path, str | Path):
        return path
    path = Path(os.path.expanduser(path))
    return path if path.suffix else path.with_suffix(".zip")


# Reading


def _class_of(cls: Any, archive: Archive) -> Any:
    """The algorithm of a file, which must be `cls` where that is given."""
    said = archive.read("algorithm", ("name", "class", "networks"))
    name, home = said["name"], said["class"]
    if cls is not None and home_of(cls) == home:
        return cls
    if known := named(home) or (name if name in names() else None):  # a name may have moved on
        found = find(known).load()
    elif archive.trust:
        found = load_class(home)
    else:
        raise ValueError(
            f"{archive.name} is a model of {home}, which is not registered. Import the class and "
            f"call agents.register('a-name', {home.rpartition(':')[2]}), or load the file with "
            "that class's own load, or with trust=True, which imports what the file names."
        )
    if cls is not None and not issubclass(found, cls):
        raise ValueError(
            f"{archive.name}: expected a model of {cls.__name__}, got one of {found.__name__}; "
            "agents.load takes any"
        )
    return found


def _resolve_names(cls: Any, attributes: dict[str, Any], unpacker: Unpacker) -> None:
    """Make classes of the names in a file, all of which must be known."""
    policy = attributes["policy_class"]
    if isinstance(policy, str):
        aliases = getattr(cls, "policy_aliases", {})
        home = POLICIES.get(policy, policy)
        attributes["policy_class"] = aliases.get(policy) or unpacker.find(home)
    for name, value in attributes.items():
        attributes[name] = _networks_resolved(value, unpacker)


def _networks_resolved(value: Any, unpacker: Unpacker) -> Any:
    """`value` with a class in place of each network by name, which a policy would import."""
    if isinstance(value, dict):
        parts = {name: _networks_resolved(part, unpacker) for name, part in value.items()}
        for key in value.keys() & NETWORK_KEYS:
            given = value[key]
            if isinstance(given, str):
                parts[key] = _found_class(given, unpacker)
            elif isinstance(given, dict) and isinstance(given.get("class"), str):
                parts[key] = {**given, "class": _found_class(given["class"], unpacker)}
        return parts
    if type(value) in (list, tuple):
        return type(value)(_networks_resolved(part, unpacker) for part in value)
    return value


def _found_class(name: str, unpacker: Unpacker) -> Any:
    module, _, attribute = name.rpartition(":" if ":" in name else ".")
    return unpacker.find(f"{module}:{attribute}")


def _fitting(cls: Any, env: GymEnv, attributes: dict[str, Any], force_reset: bool) -> Any:
    """The env, wrapped as the algorithm wants it; raises ValueError for other spaces."""
    wrapped = cls._wrap_env(env, attributes["verbose"])
    check_for_correct_spaces(wrapped, attributes["observation_space"], attributes["action_space"])
    if force_reset:
        attributes["_last_obs"] = None
    attributes["n_envs"] = wrapped.num_envs
    return wrapped
