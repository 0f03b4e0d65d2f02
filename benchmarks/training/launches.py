"""Kernels that a rollout and an update of a pretrained model launch, which a small one waits for.

A Llama of 30 layers with adapters in bfloat16, as SmolLM2 has them but narrow, so that its numbers
cost next to nothing. Beside it the same with `peft`'s own maps, and a forward for each growth of
rows. The count is that of a GPU too; seconds are of this processor.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from itertools import product
from typing import Any
from unittest import mock

import numpy as np
import torch
from torch.utils._python_dispatch import TorchDispatchMode

from agents.models.cache import SPARE
from agents.models.hugging_face import HuggingFaceBackbone
from agents.models.lora import add_lora
from benchmarks.environments.timing import Figure, Works, alternate
from dialgym.optional import require

LAYERS, WINDOW, VOCABULARY = 30, 64, 512
GROWTH = np.array([1] * 6 + [2] * 2 + [5] * 4)
"""Tokens that each row of a rollout adds: one that it says, or what it hears."""
VIEWS = {"_unsafe_view", "lift_fresh", "detach"}
BAR = 0.4
"""Of the launches of a rollout's step without all this."""


class Launches(TorchDispatchMode):
    """Counts the operators that compute; views launch nothing."""

    def __init__(self) -> None:
        super().__init__()
        self.count = 0

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        self.count += not (func.is_view or func.overloadpacket.__name__ in VIEWS)
        return func(*args, **(kwargs or {}))


def figures(repeats: int) -> Iterator[Figure]:
    """Launches and seconds of a step and of an update, ours and usual."""
    model, tokens = narrow_llama(), torch.randint(5, VOCABULARY, (4, 32))
    works: dict[tuple[str, str], Callable[[], None]] = {}
    for name, usual in (("ours", False), ("usual", True)):
        works["a step of a rollout", name] = partial(_step, model, usual)
        works["an update's forward and backward", name] = partial(_update, model, tokens, usual)
    timed: Works = {f"{what}, {name}": work for (what, name), work in works.items()}
    spent = alternate(timed, repeats)
    for what, unit in product(dict.fromkeys(what for what, _ in works), ("launches", "s")):
        values = {
            name: launches(works[what, name]) if unit == "launches" else spent[f"{what}, {name}"]
            for name in ("usual", "ours")
        }
        shown = "" if unit == "launches" else unit
        before = Figure(f"{what}, adapters of peft, {unit}", values["usual"], shown)
        yield before
        asked = unit == "launches" and "rollout" in what
        bar = round(BAR * before.value) if asked else None
        yield Figure(f"{what}, ours, {unit}", values["ours"], shown, bar, before, "usual")


def launches(work: Callable[[], None]) -> int:
    """Operators that a piece of work computes, once caches are warm."""
    work()
    with Launches() as seen:
        work()
    return seen.count


def narrow_llama() -> HuggingFaceBackbone:
    """The model, its weights random."""
    transformers = require("transformers", "agents", "the benchmark of launches")
    config = transformers.LlamaConfig(
        vocab_size=VOCABULARY,
        hidden_size=36,
        intermediate_size=64,
        num_hidden_layers=LAYERS,
        num_attention_heads=9,
        num_key_value_heads=3,
    )
    model = HuggingFaceBackbone(transformers.LlamaModel(config), WINDOW)
    add_lora(model, {"r": 16, "alpha": 32})
    return model


@contextmanager
def _adapters_of_peft(usual: bool) -> Iterator[None]:
    from peft.tuners.lora.layer import Linear

    from agents.models.adapted_linear import AdaptedLinear

    forward = Linear.forward if usual else AdaptedLinear.forward
    patched = mock.patch.object(AdaptedLinear, "forward", forward)
    with patched, torch.autocast("cpu", torch.bfloat16):
        yield


def _step(model: HuggingFaceBackbone, usual: bool) -> None:
    """One `extend` of rows that have grown unequally, as on a GPU or with a forward for each."""
    with _adapters_of_peft(usual), torch.no_grad():
        cache = model.new_cache(len(GROWTH))
        cache.spare = 0 if usual else SPARE
        tokens = torch.arange(int(GROWTH.sum()))
        model.extend(tokens, GROWTH, cache, np.arange(len(GROWTH)))


def _update(model: HuggingFaceBackbone, tokens: torch.Tensor, usual: bool) -> None:
    with _adapters_of_peft(usual):
        loss = model(tokens).sum()
    loss.backward()
