"""Spaces and tokenizers as JSON and arrays.

A `TokenBox` is kept with the tables of its automaton, not the constraint that they were compiled
from: so a file needs no class of the task that it was trained in.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from gymnasium import spaces

from agents.storage.values import EXACT, KINDS, Json, Packer, Unpacker
from dialgym.language.automata import TokenAutomaton
from dialgym.language.tokenizers import BPETokenizer, CharTokenizer, HFTokenizer, WordTokenizer
from dialgym.views.spaces import TokenBox


def _pack_box(packer: Packer, space: spaces.Box, place: str) -> Json:
    bounds = {}
    for name in ("low", "high"):
        bound = getattr(space, name)
        uniform = bound.size > 0 and (bound == bound.flat[0]).all()
        bounds[name] = packer.pack(bound.flat[0] if uniform else bound, f"{place}.{name}")
    return {**bounds, "shape": list(space.shape), "dtype": str(space.dtype)}


def _unpack_box(unpacker: Unpacker, value: Json) -> spaces.Box:
    low, high = unpacker.unpack(value["low"]), unpacker.unpack(value["high"])
    shape = tuple(value["shape"])
    return spaces.Box(low, high, shape, np.dtype(value["dtype"]).type)  # type: ignore[arg-type]


def _pack_tokens(packer: Packer, space: TokenBox, place: str) -> Json:
    automaton, union = space.automaton, None
    if automaton is None:
        union = space.union_automaton
    return {
        "tokenizer": packer.pack(space.tokenizer, f"{place}.tokenizer"),
        "window": space.window,
        "learner_tag": space.learner_tag,
        "limits": packer.pack(space.limits),
        "transitions": packer.pack(automaton and automaton.transitions, f"{place}.transitions"),
        "allowed": packer.pack(automaton and automaton.allowed, f"{place}.allowed"),
        "union_transitions": packer.pack(union and union.transitions, f"{place}.union_transitions"),
        "union_allowed": packer.pack(union and union.allowed, f"{place}.union_allowed"),
    }


def _unpack_tokens(unpacker: Unpacker, value: Json) -> TokenBox:
    tokenizer = unpacker.unpack(value["tokenizer"])
    box = TokenBox(tokenizer, value["window"], value["learner_tag"], limits=value["limits"])
    automaton = _unpack_automaton(unpacker, value, "")
    box.__dict__["automaton"] = automaton  # in the place of what would be compiled
    box.__dict__["union_automaton"] = automaton or _unpack_automaton(unpacker, value, "union_")
    return box


def _unpack_automaton(unpacker: Unpacker, value: Json, kind: str) -> TokenAutomaton | None:
    """None where there is none, or the file is older than its kind."""
    transitions = unpacker.unpack(value.get(f"{kind}transitions"))
    if transitions is None:
        return None
    return TokenAutomaton(transitions, unpacker.unpack(value[f"{kind}allowed"]))


def _pack_parts(packer: Packer, space: Any, place: str) -> Json:
    parts = dict(space.spaces) if isinstance(space, spaces.Dict) else list(space.spaces)
    return {"spaces": packer.pack(parts, place)}


def _pack_text(packer: Packer, space: spaces.Text, place: str) -> Json:
    chars = "".join(space.character_list)
    return {"max_length": space.max_length, "min_length": space.min_length, "charset": chars}


def _pack_hf(packer: Packer, tokenizer: HFTokenizer, place: str) -> Json:
    own = tokenizer.own
    backend = getattr(own, "backend_tokenizer", None)
    if backend is None:
        raise TypeError(
            f"{place.lstrip('.')}: a file cannot hold {type(own).__name__}; expected a fast "
            "tokenizer of transformers, which has a tokenizer.json"
        )
    special = {name: str(token) for name, token in own.special_tokens_map.items() if token}
    return {"json": backend.to_str(), "special": special}


def _unpack_hf(unpacker: Unpacker, value: Json) -> HFTokenizer:
    from tokenizers import Tokenizer
    from transformers import PreTrainedTokenizerFast

    backend = Tokenizer.from_str(value["json"])
    special = {name: token for name, token in value["special"].items() if isinstance(token, str)}
    return HFTokenizer(PreTrainedTokenizerFast(tokenizer_object=backend, **special))


_OWN: dict[str, tuple[Any, Callable[..., Json], Callable[..., Any]]] = {
    "TokenBox": (TokenBox, _pack_tokens, _unpack_tokens),
    "Box": (spaces.Box, _pack_box, _unpack_box),
    "Discrete": (
        spaces.Discrete,
        lambda p, v, place: {"n": int(v.n), "start": int(v.start)},
        lambda u, v: spaces.Discrete(v["n"], start=v["start"]),
    ),
    "MultiDiscrete": (
        spaces.MultiDiscrete,
        lambda p, v, place: {"nvec": v.nvec.tolist(), "dtype": str(v.dtype)},
        lambda u, v: spaces.MultiDiscrete(v["nvec"], dtype=np.dtype(v["dtype"]).type),
    ),
    "MultiBinary": (
        spaces.MultiBinary,
        lambda p, v, place: {"n": v.n if isinstance(v.n, int) else [int(n) for n in v.n]},
        lambda u, v: spaces.MultiBinary(v["n"]),
    ),
    "Dict": (spaces.Dict, _pack_parts, lambda u, v: spaces.Dict(u.unpack(v["spaces"]))),
    "Tuple": (spaces.Tuple, _pack_parts, lambda u, v: spaces.Tuple(u.unpack(v["spaces"]))),
    "Text": (
        spaces.Text,
        _pack_text,
        lambda u, v: spaces.Text(
            v["max_length"], min_length=v["min_length"], charset=frozenset(v["charset"])
        ),
    ),
    "CharTokenizer": (
        CharTokenizer,
        lambda p, v, place: {"alphabet": v.alphabet},
        lambda u, v: CharTokenizer(v["alphabet"]),
    ),
    "WordTokenizer": (
        WordTokenizer,
        lambda p, v, place: {"words": list(v.words)},
        lambda u, v: WordTokenizer(v["words"]),
    ),
    "BPETokenizer": (
        BPETokenizer,
        lambda p, v, place: {"json": v.to_json()},
        lambda u, v: BPETokenizer.from_json(v["json"]),
    ),
    "HFTokenizer": (HFTokenizer, _pack_hf, _unpack_hf),
}
KINDS.update(_OWN)
EXACT.update({types: kind for kind, (types, _, _) in _OWN.items()})
