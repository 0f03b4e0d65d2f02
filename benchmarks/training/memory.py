"""Memory that one decision of an update takes over a vocabulary of 50,000, and an empty cache.

Each figure is the growth of a fresh process's greatest memory while it reads so many decisions and
takes their gradient, so that no measurement profits from memory that another has left behind. The
reference computes the logits of all decisions at once.
"""

from __future__ import annotations

import multiprocessing
import resource
import sys
from collections.abc import Iterator

from benchmarks.environments.timing import Figure

VOCABULARY, WINDOW, ROWS = 50_000, 128, 64
DECISIONS = (1024, 4096)


def figures() -> Iterator[Figure]:
    """Bytes a decision of minibatches of two sizes, and bytes of a cache that nothing is in."""
    with multiprocessing.get_context("spawn").Pool(1, maxtasksperchild=1) as pool:
        for count in DECISIONS:
            whole = pool.apply(memory_growth, (count, count * VOCABULARY)) / count
            ours = pool.apply(memory_growth, (count,)) / count
            reference = Figure(f"{count:,} decisions, all logits, each", whole / 1e3, " kB")
            yield reference
            what = f"{count:,} decisions, logits in pieces, each"
            yield Figure(what, ours / 1e3, " kB", reference=reference, than="all")
    yield Figure(f"empty cache of {ROWS} rows", cache_bytes() / 1e6, " MB")


def memory_growth(decisions: int, most_logits: int | None = None) -> int:
    """Bytes by which this process's greatest memory grows in a forward and backward pass.

    With `most_logits` so many are computed at once, in place of the policy head's own bound.
    """
    import torch

    from agents.models import heads

    torch.set_num_threads(1)
    heads.MOST_LOGITS = most_logits or heads.MOST_LOGITS
    policy = make_policy()
    tokens = torch.randint(5, VOCABULARY, (decisions // WINDOW, WINDOW))
    actions = torch.randint(5, VOCABULARY, (decisions,))

    def gradient(count: int) -> None:
        values, log_probs, _ = policy.evaluate_sequences(
            tokens, torch.arange(count), actions[:count], None, None, False
        )
        (log_probs.mean() + values.mean()).backward()
        policy.zero_grad()

    gradient(8)  # gradients of the weights are there in any case
    before = peak()
    gradient(decisions)
    return peak() - before


def make_policy():  # type: ignore[no-untyped-def]
    """A nano policy over the vocabulary."""
    import numpy as np
    from gymnasium import spaces

    from agents import GPTPolicy

    seen = spaces.Box(0, VOCABULARY - 1, (WINDOW,), np.int32)
    return GPTPolicy(seen, spaces.Discrete(VOCABULARY), lambda _: 1e-3, preset="nano")


def cache_bytes() -> int:
    """Bytes of keys and values of a cache for `ROWS` dialogues, none of them begun."""
    cache = make_policy().backbone.new_cache(ROWS)
    return cache.keys.nbytes + cache.values.nbytes


def peak() -> int:
    """The greatest memory of this process so far, in bytes."""
    unit = 1 if sys.platform == "darwin" else 1024
    return unit * resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
