"""Replies a second that each reward scores."""

import random
from collections.abc import Callable, Iterator
from itertools import cycle
from typing import Any

from benchmarks.environments.timing import Figure
from benchmarks.environments.workloads import Work
from dialgym.rewards import Composite, Reply, make_rewards
from dialgym.rewards.compose import CACHE

BATCH = 64
POOL = 4 * CACHE  # replies, so many that none is in the cache when its turn comes again
BAR = 2000.0
"""Replies a CPU-second that the project asks of METEOR and intent together."""
COMPOSITE = {"meteor": 0.5, "intent": 0.5}
SPECS: dict[str, dict[str, Any]] = {
    "meteor": {},
    "rouge1": {},
    "rougeL": {},
    "rougeLsum": {},
    "sacrebleu": {},
    "intent": {},
    "sentiment": {},
    "toxicity": {},
    "length": {},
    "distinct2": {},
    "repetition": {},
}
ACTS = ("inform", "question", "directive", "commissive")
_OPENINGS = {
    "inform": ("It is", "I think we have", "My brother bought", "Yes, there was"),
    "question": ("Do you know", "What about", "Have you ever seen", "How much is"),
    "directive": ("Please bring me", "Let's look for", "You should try", "Don't forget"),
    "commissive": ("I'll get you", "Sure, I will find", "All right, we can share", "I promise"),
}
_COMMON = ("the", "a", "to", "of", "and", "in", "it", "that", "is", "was", "for", "you", "I", "my")
_SYLLABLES = ("ba", "ro", "ti", "men", "sal", "ver", "ing", "con", "der", "pla")


def reward_figures(measure: Callable[[Work], float]) -> Iterator[Figure]:
    """Replies a CPU-second, new ones in batches, and the composite of METEOR and intent."""
    for name, settings in SPECS.items():
        yield Figure(f"{name}, batches of {BATCH}", measure(scoring({name: settings})), "/s")
    new = Figure(f"meteor + intent, batches of {BATCH}", measure(scoring(COMPOSITE)), "/s", BAR)
    yield new
    single = measure(scoring(COMPOSITE, batch=1))
    yield Figure("  one by one", single, "/s", None, new, "batches")
    known = measure(scoring(COMPOSITE, pool=BATCH))
    yield Figure("  scored before", known, "/s", None, new, "new")


def scoring(spec: dict[str, Any], batch: int = BATCH, pool: int = POOL) -> Work:
    """Scores of a composite, a batch a share, the pool of replies over and over."""
    composite: Composite = make_rewards(spec, examples)
    replies = everyday_replies(pool)
    batches = cycle([replies[start : start + batch] for start in range(0, pool, batch)])

    def work() -> int:
        composite.score(next(batches))
        return batch

    return work


def examples() -> list[tuple[Reply, str]]:
    """Labelled replies to teach the classifier of acts, so that it can be timed."""
    return [(reply, str(reply.labels["act"])) for reply in everyday_replies(2000, seed=1)]


def everyday_replies(count: int, seed: int = 0) -> list[Reply]:
    """Replies as long as DailyDialog's, about 14 words, with two turns before and a reference."""
    rng = random.Random(seed)
    words = ["".join(rng.choices(_SYLLABLES, k=rng.randint(1, 3))) for _ in range(5000)]
    words += [*_COMMON] * 300

    def turn(act: str) -> str:
        rest = " ".join(rng.choices(words, k=rng.randint(4, 18)))
        return f"{rng.choice(_OPENINGS[act])} {rest}{'?' if act == 'question' else '.'}"

    acts = rng.choices(ACTS, k=count)
    return [Reply(turn(a), (turn(a), turn(a)), (turn(a),), {"act": a}) for a in acts]
