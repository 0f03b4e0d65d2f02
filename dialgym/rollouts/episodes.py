"""Options and seeds of episodes, seeds of scripted policies and of policies that sample.

Episode e of seed s is the dialogue that ``env.reset(seed=episode_seed(s, e))`` begins: every
policy meets the same hidden states, and nothing depends on how many dialogues run at once.
"""

import random
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from copy import deepcopy
from typing import Any

import numpy as np

Job = tuple[int, int]
"""Seed, and number of the episode."""
Report = Callable[[int], object]
"""Called with the number of episodes that have just ended."""


def every_secret(secrets: Sequence[Mapping[str, Any]], episodes: int) -> list[Mapping[str, Any]]:
    """Options of `episodes` dialogues or more, in which each of the secrets comes equally often."""
    return [*secrets] * -(-episodes // len(secrets))


def episode_seed(seed: int, episode: int) -> int:
    """The seed of the environment in an episode."""
    return int(np.random.SeedSequence((seed, episode)).generate_state(1, np.uint64)[0])


def policy_rng(seed: int, episode: int, branch: int = 0) -> np.random.Generator:
    """The generator of a scripted policy in an episode, independent of the environment's.

    Where an episode is several dialogues, each after the first has a number from 1.
    """
    key = (1, branch) if branch else (1,)
    return np.random.default_rng(np.random.SeedSequence((seed, episode), spawn_key=key))


@contextmanager
def seeded(policy: Any, seed: int) -> Iterator[None]:
    """Seed a policy by Stable-Baselines3's ``set_random_seed``, where it has one, for a block.

    SB3 seeds the global generators of Python, NumPy and torch, the policy's action space, and the
    environment that the model is trained in. That environment is left alone, and all the others
    are put back afterwards.
    """
    if not hasattr(policy, "set_random_seed"):
        yield
        return
    numbers, arrays = random.getstate(), np.random.get_state()  # noqa: NPY002
    with _torch_put_back(), _space_put_back(getattr(policy, "action_space", None)):
        seed_policy(policy, seed)
        try:
            yield
        finally:
            random.setstate(numbers)
            np.random.set_state(arrays)  # noqa: NPY002


def seed_policy(policy: Any, seed: int) -> None:
    """Call a policy's ``set_random_seed`` without the environment that it is trained in."""
    env = getattr(policy, "env", None)
    if env is None:
        policy.set_random_seed(seed)
        return
    policy.env = None
    try:
        policy.set_random_seed(seed)
    finally:
        policy.env = env


@contextmanager
def _space_put_back(space: Any) -> Iterator[None]:
    before = deepcopy(getattr(space, "_np_random", None))
    try:
        yield
    finally:
        if space is not None and hasattr(space, "_np_random"):
            space._np_random = before


@contextmanager
def _torch_put_back() -> Iterator[None]:
    torch = sys.modules.get("torch")
    if torch is None:
        yield
        return
    devices = range(torch.cuda.device_count()) if torch.cuda.is_initialized() else []
    with torch.random.fork_rng(devices=devices):
        yield
