"""A linear map with a low-rank adapter: that of `peft`, computed in fewer and smaller steps."""

from __future__ import annotations

from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor

from agents.models.cache import precision
from dialgym.optional import require

require("peft", "agents", "lora")

from peft.tuners.lora.layer import Linear  # noqa: E402


class AdaptedLinear(Linear):  # type: ignore[misc]
    """`peft`'s map of one adapter without dropout.

    A small model on a GPU waits for the launches of its kernels. Under autocast `peft` takes ten of
    them to a map where four do, and casts the frozen weight at every call. Here its cast is kept,
    which takes half as much memory again.
    """

    def forward(self, x: Tensor, *args: Any, **kwargs: Any) -> Tensor:
        if self.merged or self.disable_adapters or args or kwargs:
            return super().forward(x, *args, **kwargs)  # type: ignore[no-any-return]
        dtype = precision(x.device)
        if dtype is not None and not torch.is_grad_enabled():
            x = x.to(dtype)  # else each product casts it, whose gradients are summed in float32
        frozen: Any = self.base_layer
        down: Any = self.lora_A["default"].weight
        up: Any = self.lora_B["default"].weight
        result = F.linear(x, _in_dtype(frozen.weight, dtype), frozen.bias).flatten(0, -2)
        low = F.linear(x, _in_dtype(down, dtype)).flatten(0, -2)
        scale = self.scaling["default"]
        result = result.addmm(low, _in_dtype(up, dtype).T, alpha=scale)
        return result.unflatten(0, x.shape[:-1])


def _in_dtype(weight: Tensor, dtype: torch.dtype | None) -> Tensor:
    """A weight as autocast casts it, cast once for all forwards without gradients for it."""
    learns = weight.requires_grad and torch.is_grad_enabled()
    if dtype is None or learns or torch.compiler.is_compiling():
        return weight
    key = weight.data_ptr(), weight._version, dtype
    known = getattr(weight, "cast", None)  # copies of a parameter go without
    if known is None or known[0] != key:
        with torch.inference_mode(False), torch.no_grad():  # an update reads it, too
            known = key, weight.to(dtype)
        weight.cast = known  # type: ignore[attr-defined]
    return known[1]  # type: ignore[no-any-return]
