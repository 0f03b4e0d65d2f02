"""A pretended accelerator on the CPU that notes each operation for which a program has to wait.

Tensors "on the device" are of a class of their own; what is computed of them stays there. A program
waits where it brings numbers to the host (`cpu`, `item`, `tolist`, `bool`), where the shape of a
result depends on numbers (`nonzero`), and where it copies to the device without `non_blocking`.
"""

from __future__ import annotations

import traceback
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import torch
from torch import Tensor, nn
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_map_only
from torch.utils.backend_registration import _setup_privateuseone_for_python_backend

_setup_privateuseone_for_python_backend()
DEVICE = torch.device("privateuseone", 0)
aten = torch.ops.aten
SHAPED_BY_NUMBERS = {"nonzero", "masked_select", "unique_dim", "_unique2", "unique_consecutive"}


class OnDevice(Tensor):
    """A tensor of the device; its numbers are in `raw`."""

    raw: Tensor

    @staticmethod
    def __new__(cls, raw: Tensor) -> OnDevice:
        made: Any = torch.Tensor._make_wrapper_subclass(
            cls, raw.size(), strides=raw.stride(), dtype=raw.dtype, device=DEVICE
        )
        made.raw = raw
        return made

    @classmethod
    def __torch_dispatch__(cls, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        raise RuntimeError(f"{func} outside of `waits`")


class Waits(TorchDispatchMode):
    """While it is active, the device works; `places` says where a program waited for it."""

    def __init__(self) -> None:
        super().__init__()
        self.places: list[str] = []

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        kwargs = dict(kwargs or {})
        ours = any(issubclass(kind, OnDevice) for kind in types)
        target = kwargs.get("device")
        name = func.overloadpacket.__name__
        if target is not None and torch.device(target).type == DEVICE.type:
            if name == "_to_copy" and not ours and not kwargs.get("non_blocking"):
                self._note("a copy to the device that waits")
            kwargs["device"], ours = torch.device("cpu"), True
        elif ours and target is not None:
            self._note(name)
            ours = False
        if ours and (name == "_local_scalar_dense" or name in SHAPED_BY_NUMBERS):
            self._note(name)
        kwargs.pop("pin_memory", None)
        raw = tree_map_only(OnDevice, lambda tensor: tensor.raw, (args, kwargs))
        result = func(*raw[0], **raw[1])
        if not ours:
            return result
        for given, inside in zip(args, raw[0], strict=True):  # written in place
            if isinstance(given, OnDevice) and result is inside:
                return given
        return tree_map_only(Tensor, OnDevice, result)

    def _note(self, what: str) -> None:
        frames = [f for f in traceback.extract_stack() if "/agents/" in f.filename]
        where = f"{frames[-1].filename.rpartition('/')[2]}:{frames[-1].lineno}" if frames else "?"
        self.places.append(f"{what} at {where}")


@contextmanager
def waits() -> Iterator[Waits]:
    """Within it the device works."""
    with Waits() as mode:
        yield mode


def move(module: nn.Module) -> None:
    """Put a module's weights and buffers on the device."""
    moved: dict[int, Any] = {}  # weights that two modules share stay one
    for part in module.modules():
        for kept in (part._parameters, part._buffers):
            for name, tensor in kept.items():
                if tensor is None:
                    continue
                if id(tensor) not in moved:
                    there = OnDevice(tensor.detach())
                    is_weight = isinstance(tensor, nn.Parameter)
                    moved[id(tensor)] = nn.Parameter(there, False) if is_weight else there
                kept[name] = moved[id(tensor)]
