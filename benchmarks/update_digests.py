"""Digests of learners' updates at a fixed seed, to compare before and after a change.

    python -m benchmarks.update_digests [NAME ...]

trains every algorithm of the table (or those that are named) for a few updates on the CPU with one
thread, and prints its name and the SHA-256 of its weights, or of a Gaussian process's dictionaries.
Run it in two trees and compare: a line that differs is an update that has changed. Digests belong
to a machine and a version of PyTorch, so none are kept here.
"""

from __future__ import annotations

import hashlib
import sys
from collections.abc import Iterator, Mapping
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import torch

import agents
import dialgym
from agents.registry import ALGORITHMS
from dialgym.io.files import read_yaml

TOKENS = "dialgym/Wordle-20-v0"
LONG, SHORT = "dialgym/Laptops11-Env2-act-v0", {"max_episode_steps": 6}
TINY = {"preset": "nano", "n_layer": 1, "n_head": 2, "n_embd": 16}
CASES = read_yaml(Path(__file__).with_suffix(".yaml"))["cases"]
OFFLINE_STEPS = 3


def main(names: list[str]) -> None:
    """Print a line for each case of the algorithms that are named, or of all."""
    torch.set_num_threads(1)
    torch.use_deterministic_algorithms(True)
    for name in cases(names):
        print(name, digest(trained(name)), flush=True)


def cases(names: list[str]) -> list[str]:
    """The cases of algorithms by name, or all of the table's; a case may be named itself."""
    given = [name for name, case in CASES.items() if case is not None]
    known = [*given, *(name for name in ALGORITHMS if name not in CASES)]
    return [case for case in known if not names or {case, case.partition(":")[0]} & {*names}]


def trained(case: str) -> Any:
    """The model of a case after its updates."""
    row = ALGORITHMS[case.partition(":")[0]]
    id, steps, arguments = CASES.get(case, (TOKENS, OFFLINE_STEPS, {"policy_kwargs": TINY}))
    if "dataset" not in arguments and "stored dialogues" in row.kind:
        arguments = {**arguments, "dataset": stored(id)}
    if "clone_steps" in arguments or (id == TOKENS and "n_steps" not in arguments):
        arguments = {"batch_size": 8, **arguments}
    policy = row.policy.removeprefix("agents.")
    if case.endswith(":acts"):
        policy = "ValueBeliefPolicy"
    policy = getattr(agents, policy) if policy in agents.__all__ else policy
    settings: Any = SHORT if id == LONG else {}
    env = dialgym.sb3_vec_env(id, 4, seed=7, **settings)
    model = row.load()(policy, env, seed=7, device="cpu", **arguments)
    model.learn(steps)
    env.close()
    assert model._n_updates > 1, f"{case}: {model._n_updates} updates"
    return model


@cache
def stored(id: str) -> Any:
    """A few dialogues of a rule-based policy."""
    return dialgym.collect(id, "expert" if id == TOKENS else "handcrafted", 40, seed=3)


def digest(model: Any) -> str:
    """SHA-256 over all that a model has learned, whatever its parts are called."""
    parts = [
        repr((array.dtype, array.shape)).encode() + np.ascontiguousarray(array).tobytes()
        for array in learned(model)
    ]
    return hashlib.sha256(b"".join(sorted(parts))).hexdigest()


def learned(model: Any) -> Iterator[np.ndarray]:
    """Weights, and the arrays and numbers of Gaussian processes."""
    for name, part in vars(model).items():
        if isinstance(part, torch.nn.Module):
            for value in part.state_dict().values():
                yield value.detach().cpu().numpy()
        elif "process" in name:
            yield from arrays(part)


def arrays(value: Any) -> Iterator[np.ndarray]:
    """Arrays and numbers within an object."""
    if isinstance(value, np.ndarray | float | int | bool):
        yield np.asarray(value)
    elif isinstance(value, Mapping):
        for part in value.values():
            yield from arrays(part)
    elif isinstance(value, list | tuple):
        for part in value:
            yield from arrays(part)
    elif hasattr(value, "__dict__"):
        yield from arrays(vars(value))


if __name__ == "__main__":
    main(sys.argv[1:])
