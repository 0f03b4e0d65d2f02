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
from typing import Any

import numpy as np
import torch

import agents
import dialgym
from agents.registry import ALGORITHMS

TOKENS, ACTS = "dialgym/Wordle-20-v0", "dialgym/SlotFilling-act-v0"
SEVERAL = "dialgym/MultiWOZ-act-v0"
LONG, SHORT = "dialgym/Laptops11-Env2-act-v0", {"max_episode_steps": 6}
TINY = {"preset": "nano", "n_layer": 1, "n_head": 2, "n_embd": 16}
NARROW = {"net_arch": [8]}
PPO = {"n_steps": 16, "batch_size": 64, "n_epochs": 2}
Q = {"learning_starts": 16, "batch_size": 16, "train_freq": 2, "gradient_steps": 2, "gamma": 0.95}
DIALOGUES = {"learning_starts": 8, "batch_size": 4, "policy_kwargs": NARROW}
UNCERTAIN = {"net_arch": [8], "dueling": True, "uncertainty": "noisy"}

# Name: id, timesteps, arguments. A suffix after a colon is another case of the same algorithm.
CASES: dict[str, tuple[str, int, dict[str, Any]]] = {
    "ppo": (TOKENS, 256, {**PPO, "policy_kwargs": TINY}),
    "ppo:turns": (TOKENS, 256, {**PPO, "advantage_level": "turn", "policy_kwargs": TINY}),
    "nlpo": (TOKENS, 256, {**PPO, "min_tokens": 3, "policy_kwargs": TINY}),
    "grpo": (TOKENS, 256, {**PPO, "group_size": 4, "policy_kwargs": TINY}),
    "grpo:turns": (
        TOKENS, 256, {**PPO, "group_size": 4, "credit": "turn", "policy_kwargs": TINY},
    ),
    "single-step:returns": (TOKENS, 3, {"returns": "monte-carlo", "policy_kwargs": TINY}),
    "cql:acts": (ACTS, 3, {"policy_kwargs": NARROW}),
    "chai": (TOKENS, 4, {"clone_steps": 2, "policy_kwargs": TINY}),
    "pg": (ACTS, 128, {"baseline": "value", "policy_kwargs": NARROW}),
    "pg:mean": (SEVERAL, 64, {"policy_kwargs": NARROW}),
    "gdpl": (ACTS, 128, {**PPO, "policy_kwargs": NARROW}),
    "gdpl:session": (
        ACTS, 128, {**PPO, "estimation": {"variant": "session"}, "policy_kwargs": NARROW},
    ),
    "gdpl:discriminator": (
        ACTS, 128, {**PPO, "estimation": {"variant": "discriminator"}, "policy_kwargs": NARROW},
    ),
    "madpl": (SEVERAL, 32, {"policy_kwargs": NARROW, "batch_size": 16}),
    "dqn": (ACTS, 64, {**Q, "n_steps": 3, "policy_kwargs": UNCERTAIN}),
    "dqn:priorities": (
        LONG, 64, {**Q, "priority_alpha": 0.6, "reward_scale": 0.05, "policy_kwargs": {
            "net_arch": [8], "uncertainty": "bootstrap", "curiosity": {}}},
    ),
    "bbqn": (ACTS, 64, {**Q, "policy_kwargs": NARROW}),
    "a2c": (ACTS, 128, {"gae_lambda": 0.9, "policy_kwargs": NARROW}),
    "a2c:limit": (LONG, 128, {"gae_lambda": 0.9, "policy_kwargs": NARROW}),
    "enac": (ACTS, 256, {**DIALOGUES, "dialogues_per_update": 4}),
    "enac:limit": (LONG, 256, {**DIALOGUES, "dialogues_per_update": 4}),
    "acer": (ACTS, 128, DIALOGUES),
    "acer:limit": (LONG, 128, DIALOGUES),
    "tracer": (ACTS, 128, DIALOGUES),
    "tracer:limit": (LONG, 128, DIALOGUES),
    "feudal-dqn": (ACTS, 64, {**Q, "n_steps": 2, "policy_kwargs": NARROW}),
    "feudal-acer": (LONG, 128, DIALOGUES),
    "feudal-gain": (ACTS, 64, {**Q, "policy_kwargs": {"net_arch": [8]}}),
    "gp-sarsa": (ACTS, 64, {}),
    "gp-sarsa:limit": (LONG, 64, {"kernel": "rbf", "act_similarity": 0.2}),
    "committee": (ACTS, 64, {"act_similarity": 0.2}),
    "stock-ppo": (ACTS, 128, {**PPO, "policy_kwargs": NARROW}),
    "maskable-ppo": (ACTS, 128, {**PPO, "policy_kwargs": NARROW}),
    "recurrent-ppo": (
        ACTS, 128, {**PPO, "policy_kwargs": {"net_arch": [8], "lstm_hidden_size": 8}},
    ),
    "stock-a2c": (ACTS, 128, {"n_steps": 16, "policy_kwargs": NARROW}),
    "trpo": (ACTS, 128, {"n_steps": 16, "batch_size": 64, "policy_kwargs": NARROW}),
    "stock-dqn": (ACTS, 64, {**Q, "policy_kwargs": NARROW}),
    "qrdqn": (ACTS, 64, {**Q, "policy_kwargs": {"net_arch": [8], "n_quantiles": 5}}),
}  # fmt: skip
OFFLINE_STEPS = 3


def main(names: list[str]) -> None:
    """Print a line for each case of the algorithms that are named, or of all."""
    torch.set_num_threads(1)
    torch.use_deterministic_algorithms(True)
    for name in cases(names):
        print(name, digest(trained(name)), flush=True)


def cases(names: list[str]) -> list[str]:
    """The cases of algorithms by name, or all of the table's; a case may be named itself."""
    known = [*CASES, *(name for name in ALGORITHMS if name not in CASES)]
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
