"""Python values as JSON and arrays, and back, without running anything that a file could name.

What JSON has no form for becomes a mapping with the key `$`, which says what kind of value it was.
Classes are looked up, never imported: those that are marked `storable`, those of the tables in
`agents.registry`, and networks, optimizers, buffers and named tuples of libraries that are loaded.
"""

from __future__ import annotations

import sys
import warnings
from collections import deque
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from enum import Enum
from pathlib import Path
from types import FunctionType, MethodType
from typing import Any, TypeVar

import numpy as np
import torch
from stable_baselines3.common.buffers import BaseBuffer
from stable_baselines3.common.noise import NormalActionNoise, OrnsteinUhlenbeckActionNoise
from stable_baselines3.common.type_aliases import TrainFreq, TrainFrequencyUnit
from stable_baselines3.common.utils import ConstantSchedule, FloatSchedule, LinearSchedule
from torch import Tensor, nn

from agents.registry import PARTS, POLICIES, home_of, load_class

Arrays = dict[str, Tensor]
"""By name, as a safetensors file has them."""
Json = Any
Marked = TypeVar("Marked", bound=Callable[..., Any])

LIBRARIES = ("torch", "stable_baselines3", "sb3_contrib", "agents")
PART_OF_A_MODEL = (nn.Module, torch.optim.Optimizer, BaseBuffer, tuple, Enum)
GENERATORS = ("PCG64", "PCG64DXSM", "MT19937", "Philox", "SFC64")
SCHEDULES = (
    *("learning_rate", "lr_schedule", "value_learning_rate"),
    *("clip_range", "clip_range_vf", "ent_coef"),
)
_storable: dict[str, Any] = {}


def storable(marked: Marked) -> Marked:
    """Mark a class or function of your own as one that saved models may hold; a decorator.

    A file has the attributes of an object of such a class. Reading gives them to a new object; its
    constructor is not called.
    """
    _storable[home_of(marked)] = marked  # type: ignore[arg-type]
    return marked


_SCHEDULES = (ConstantSchedule, FloatSchedule, LinearSchedule, TrainFreq, TrainFrequencyUnit)
_class: Any
for _class in (*_SCHEDULES, NormalActionNoise, OrnsteinUhlenbeckActionNoise):
    storable(_class)


@storable
@dataclass
class Unsaved:
    """In the place of a function that a file could not hold, such as a lambda.

    Called as a schedule at the beginning of training it gives the value that it had there.

    Raises:
        ValueError: it is called elsewhere.
    """

    what: str
    at_start: float | None = None

    def __call__(self, progress_remaining: float = 0.0) -> float:
        if progress_remaining == 1 and self.at_start is not None:
            return self.at_start
        raise ValueError(
            f"the saved model lacks {self.what}: a function of your own, which its file cannot "
            f"hold. Give it again, as in load(path, custom_objects={{{self.what!r}: ...}}), or "
            "train with a number or stable_baselines3.common.utils.LinearSchedule."
        )


class Packer:
    """Values to JSON. Their arrays are collected in `arrays`, named by their place."""

    def __init__(self) -> None:
        self.arrays: Arrays = {}

    def pack(self, value: Any, place: str = "") -> Json:
        """The JSON form of a value at a place, such as `policy_kwargs.net_arch`."""
        if value is None or type(value) in (bool, int, float, str):
            return value
        if type(value) is list:
            return self.pack_all(value, place)
        if type(value) in EXACT:
            kind = EXACT[type(value)]
            return {"$": kind, **KINDS[kind][1](self, value, place)}
        for kind, (types, pack, _) in KINDS.items():
            if kind not in EXACT.values() and isinstance(value, types):
                return {"$": kind, **pack(self, value, place)}
        if isinstance(value, Mapping):
            return self._pack_mapping(value, place)
        return {"$": "object", **_pack_object(self, value, place)}

    def pack_all(self, values: Any, place: str) -> list[Json]:
        """The JSON forms of several values."""
        return [self.pack(value, f"{place}.{i}") for i, value in enumerate(values)]

    def add(self, array: Tensor | np.ndarray, place: str) -> str:
        """Keep an array; its name."""
        name = place.lstrip(".")
        while name in self.arrays:
            name += "_"
        tensor = array if isinstance(array, Tensor) else torch.from_numpy(np.array(array))
        self.arrays[name] = tensor.detach()
        return name

    def _pack_mapping(self, value: Mapping[Any, Any], place: str) -> Json:
        if all(isinstance(key, str) for key in value) and "$" not in value:
            return {key: self.pack(part, f"{place}.{key}") for key, part in value.items()}
        pairs = [[self.pack(k), self.pack(v, f"{place}.{k}")] for k, v in value.items()]
        return {"$": "dict", "pairs": pairs}


class Unpacker:
    """Values from JSON and arrays.

    Args:
        arrays: by name.
        trust: import classes that the file names and that are in no table.
        where: the file, for messages.
    """

    def __init__(self, arrays: Mapping[str, Tensor], trust: bool = False, where: str = "") -> None:
        self.arrays, self.trust, self.where = arrays, trust, where

    def unpack(self, value: Json) -> Any:
        """The value of a JSON form.

        Raises:
            ValueError: it is none, or names a class that is in no table.
        """
        if isinstance(value, list):
            return [self.unpack(part) for part in value]
        if not isinstance(value, dict):
            return value
        kind = value.get("$")
        if kind is None:
            return {key: self.unpack(part) for key, part in value.items()}
        if kind == "dict":
            return {self.unpack(key): self.unpack(part) for key, part in value["pairs"]}
        if kind == "object":
            return _unpack_object(self, value)
        if kind not in KINDS:
            raise ValueError(f"{self.where}: unknown kind of value {kind!r}; is dialgym too old?")
        return KINDS[kind][2](self, value)

    def find(self, name: str) -> Any:
        """The class or function `module:name`, if it may be used.

        Raises:
            ValueError: it is in no table, and the file is not trusted.
        """
        found = _storable.get(name)
        if found is None and name in {*POLICIES.values(), *PARTS.values()}:
            found = load_class(name)
        if found is None:
            found = _part_of_a_library(name)
        if found is None and self.trust:
            found = load_class(name)
        if found is None:
            raise ValueError(
                f"{self.where} holds {name}, which is not known here. Import the module that has "
                "it and mark it with @agents.storable, or load with trust=True, which imports "
                "what the file names, if you trust whoever made it."
            )
        return found


def _part_of_a_library(name: str) -> Any:
    """A network, optimizer, buffer or tuple of a library that is loaded already, or None."""
    module, _, attribute = name.partition(":")
    found = getattr(sys.modules.get(module), attribute, None)
    if module.partition(".")[0] not in LIBRARIES or not isinstance(found, type):
        return None
    is_part = issubclass(found, PART_OF_A_MODEL) or module.startswith("agents.buffers.")
    return found if is_part else None


# Objects: their attributes


def _pack_object(packer: Packer, value: Any, place: str) -> Json:
    name = home_of(type(value))
    if (name not in _storable and "<locals>" in name) or type(value).__module__ == "builtins":
        raise TypeError(
            f"{place.lstrip('.')}: a file cannot hold {type(value).__name__} objects; name the "
            "attribute in the algorithm's _excluded_save_params, or use a class of a module"
        )
    if isinstance(value, Enum):
        return {"class": name, "member": value.name}
    if isinstance(value, tuple):  # named
        return {"class": name, "items": packer.pack_all(value, place)}
    state = {slot: getattr(value, slot) for slot in _slots(type(value)) if hasattr(value, slot)}
    state |= getattr(value, "__dict__", {})
    return {"class": name, "state": packer.pack(state, place)}


def _slots(cls: type) -> list[str]:
    return [slot for base in cls.__mro__ for slot in base.__dict__.get("__slots__", ())]


def _unpack_object(unpacker: Unpacker, value: Json) -> Any:
    cls = unpacker.find(value["class"])
    if not isinstance(cls, type):
        raise ValueError(f"{unpacker.where}: expected a class, got {value['class']}")
    if issubclass(cls, Enum):
        return cls[value["member"]]
    if issubclass(cls, tuple):
        return tuple.__new__(cls, unpacker.unpack(value["items"]))
    made = object.__new__(cls)
    for name, part in unpacker.unpack(value["state"]).items():
        object.__setattr__(made, name, part)
    return made


# The other kinds of values


def _pack_tensor(packer: Packer, value: Tensor, place: str) -> Json:
    return {"array": packer.add(value, place)}


def _pack_array(packer: Packer, value: np.ndarray, place: str) -> Json:
    if value.dtype.kind in "OUS":
        items = [packer.pack(part, place) for part in value.ravel().tolist()]
        return {"dtype": value.dtype.str, "shape": list(value.shape), "items": items}
    return {"array": packer.add(value, place), "dtype": value.dtype.str}


def _unpack_array(unpacker: Unpacker, value: Json) -> np.ndarray:
    if "items" in value:
        flat = np.empty(len(value["items"]), np.dtype(value["dtype"]))
        flat[:] = unpacker.unpack(value["items"])
        return flat.reshape(value["shape"])
    return unpacker.arrays[value["array"]].numpy().astype(np.dtype(value["dtype"]))


def _pack_function(packer: Packer, value: Any, place: str) -> Json:
    name, what = home_of(value), place.rpartition(".")[2]
    if "<" not in name and not isinstance(value, MethodType):
        return {"name": name}
    warnings.warn(
        f"a file cannot hold {what}, a function without a name of its own ({name}): the saved "
        "model plays, but learns on only when it is given again",
        stacklevel=2,
    )
    known = [part for part in place.split(".") if part in SCHEDULES]
    return {"what": known[0] if known else what, "at_start": float(value(1.0)) if known else None}


def _unpack_function(unpacker: Unpacker, value: Json) -> Any:
    if "name" in value:
        return unpacker.find(value["name"])
    return Unsaved(value["what"], value["at_start"])


def _unpack_generator(unpacker: Unpacker, value: Json) -> np.random.Generator:
    state = unpacker.unpack(value["state"])
    if state["bit_generator"] not in GENERATORS:
        raise ValueError(f"{unpacker.where}: unknown generator {state['bit_generator']!r}")
    bits = getattr(np.random, state["bit_generator"])()
    bits.state = state
    return np.random.Generator(bits)


def _is_named(value: tuple) -> bool:
    return hasattr(value, "_fields")


def _pack_tuple(packer: Packer, value: tuple, place: str) -> Json:
    if _is_named(value):
        return {"$": "object", **_pack_object(packer, value, place)}
    return {"items": packer.pack_all(value, place)}


Pack = Callable[[Packer, Any, str], Json]
Unpack = Callable[[Unpacker, Json], Any]
KINDS: dict[str, tuple[Any, Pack, Unpack]] = {
    "tensor": (Tensor, _pack_tensor, lambda u, v: u.arrays[v["array"]]),
    "array": (np.ndarray, _pack_array, _unpack_array),
    "scalar": (
        np.generic,
        lambda p, v, place: {"dtype": v.dtype.str, "value": v.item()},
        lambda u, v: np.dtype(v["dtype"]).type(v["value"]),
    ),
    "bytes": (
        bytes | bytearray,
        lambda p, v, place: {"array": p.add(np.frombuffer(v, np.uint8), place)},
        lambda u, v: u.arrays[v["array"]].numpy().tobytes(),
    ),
    "tuple": (tuple, _pack_tuple, lambda u, v: tuple(u.unpack(v["items"]))),
    "set": (
        set | frozenset,
        lambda p, v, place: {"items": p.pack_all(sorted(v, key=repr), place)},
        lambda u, v: set(u.unpack(v["items"])),
    ),
    "deque": (
        deque,
        lambda p, v, place: {"items": p.pack_all(v, place), "maxlen": v.maxlen},
        lambda u, v: deque(u.unpack(v["items"]), v["maxlen"]),
    ),
    "path": (Path, lambda p, v, place: {"path": str(v)}, lambda u, v: Path(v["path"])),
    "torch.device": (
        torch.device,
        lambda p, v, place: {"name": str(v)},
        lambda u, v: torch.device(v["name"]),
    ),
    "torch.dtype": (
        torch.dtype,
        lambda p, v, place: {"name": str(v).removeprefix("torch.")},
        lambda u, v: _torch_dtype(v["name"]),
    ),
    "dtype": (np.dtype, lambda p, v, place: {"name": v.str}, lambda u, v: np.dtype(v["name"])),
    "generator": (
        np.random.Generator,
        lambda p, v, place: {"state": p.pack(v.bit_generator.state, place)},
        _unpack_generator,
    ),
    "class": (type, lambda p, v, place: {"name": home_of(v)}, lambda u, v: u.find(v["name"])),
    "function": (FunctionType | MethodType, _pack_function, _unpack_function),
}
"""By name: the types, the function to JSON, the function from JSON. Others may be added."""
EXACT: dict[type, str] = {}
"""Types whose kind is not that of what derives from them."""


def _torch_dtype(name: str) -> torch.dtype:
    found = getattr(torch, name, None)
    if not isinstance(found, torch.dtype):
        raise ValueError(f"unknown torch.dtype {name!r}")
    return found
