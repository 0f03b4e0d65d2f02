"""Weighted sums of rewards, made from a specification."""

import pickle
from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from inspect import Parameter, signature
from numbers import Integral, Real
from types import NoneType, UnionType
from typing import Any, get_args

import numpy as np

from dialgym.debug import BrokenPromise, enforcing
from dialgym.errors import finite_number, service_error, unknown
from dialgym.io.cache import LRU
from dialgym.io.files import read_registry
from dialgym.io.objects import find_object, load
from dialgym.rewards.base import FunctionReward, Reply, Reward
from dialgym.rewards.degenerate import is_degenerate

Examples = Callable[[], Sequence[tuple[Reply, str]]]
"""Labelled replies of the training split, asked for when a reward that learns from them scores."""

SLACK = 1e-6
"""By how much a score may pass its bounds."""
CACHE = 4096
"""Scores of each reward that are kept, at most."""


@dataclass(frozen=True)
class WeightedReward:
    """A reward, the name it is logged by, and its weight."""

    name: str
    weight: float
    reward: Reward
    cache: LRU[float] = field(default_factory=lambda: LRU(CACHE), compare=False, repr=False)

    @property
    def bounds(self) -> tuple[float, float]:
        """Lowest and highest weighted score."""
        if not self.weight:
            return 0.0, 0.0
        low, high = sorted(self.weight * bound for bound in self.reward.bounds)
        return low, high

    def score(self, replies: Sequence[Reply], keys: Sequence[Hashable]) -> np.ndarray:
        """Weighted scores (k,) float64; replies scored before are not scored again."""
        scores = self.cache.get_many(keys, lambda new: self._score([replies[i] for i in new]))
        return self.weight * np.array(scores, np.float64)

    def _score(self, replies: Sequence[Reply]) -> list[float]:
        try:
            scores = np.asarray(self.reward.score(replies), np.float64)
        except Exception as error:
            unanswered = service_error(f"reward {self.name!r}", self.reward, error)
            if unanswered is None:
                raise
            raise unanswered from None
        if scores.shape != (len(replies),):
            raise ValueError(
                f"reward {self.name!r} must give one score a reply, shape ({len(replies)},); "
                f"got shape {scores.shape}."
            )
        for bad in np.flatnonzero(~np.isfinite(scores)).tolist():
            raise ValueError(
                f"reward {self.name!r} gave {scores[bad]} for the reply {replies[bad].text!r}; "
                "expected a finite number. Mend the reward or its model."
            )
        if enforcing():
            self._hold_to_bounds(replies, scores)
        plain: list[float] = scores.tolist()
        return plain

    def _hold_to_bounds(self, replies: Sequence[Reply], scores: np.ndarray) -> None:
        """Raise a BrokenPromise where a score leaves what the reward declares."""
        low, high = self.reward.bounds
        for bad in np.flatnonzero((scores < low - SLACK) | (scores > high + SLACK)).tolist():
            raise BrokenPromise(
                f"reward {self.name!r} gave {scores[bad]:g} for the reply {replies[bad].text!r}; "
                f"its bounds are {low:g} to {high:g}. Mend the reward, or its bounds."
            )


class Composite:
    """A weighted sum of rewards. Picklable; a copy elsewhere starts with empty caches.

    Attributes:
        parts: the rewards with their names and weights.
        guarded: a text that is no reply at all (`dialgym.rewards.degenerate`) gets the lowest
            weighted score of each part that has one.
        bounds: lowest and highest weighted sum.
    """

    def __init__(self, parts: Sequence[WeightedReward], guarded: bool = True) -> None:
        self.parts, self.guarded = tuple(parts), guarded
        self._degenerate: LRU[bool] = LRU(CACHE)

    @property
    def bounds(self) -> tuple[float, float]:
        """Lowest and highest weighted sum."""
        pairs = [part.bounds for part in self.parts]
        return sum(low for low, _ in pairs), sum(high for _, high in pairs)

    def score(self, replies: Sequence[Reply]) -> dict[str, np.ndarray]:
        """Weighted scores (k,) float64 by name: one call of each reward for all k replies.

        Raises:
            ValueError: a score is not a finite number; the message names reward and reply.
        """
        keys = [_key(reply) for reply in replies]
        scores = {part.name: part.score(replies, keys) for part in self.parts}
        empty = self._empty(replies, keys)
        if not empty.any():
            return scores
        lowest = {part.name: part.bounds[0] for part in self.parts if np.isfinite(part.bounds[0])}
        return {name: np.where(empty, lowest.get(name, s), s) for name, s in scores.items()}

    def _empty(self, replies: Sequence[Reply], keys: Sequence[Hashable]) -> np.ndarray:
        """Which replies (k,) bool the guard takes for none."""
        if not self.guarded:
            return np.zeros(len(replies), bool)
        degenerate = self._degenerate.get_many(
            keys, lambda new: [is_degenerate(replies[i]) for i in new]
        )
        return np.array(degenerate, bool)


def _key(reply: Reply) -> Hashable:
    """Key of a reply; labels that cannot be hashed are told by their pickle.

    Raises:
        ValueError: its text is none, or its context is a bare text.
    """
    text, context, references, labels = reply
    if not isinstance(text, str) or isinstance(context, str):
        raise ValueError(
            "a reply to be scored has a text and a tuple of texts as its context; got "
            f"text={text!r:.40}, context={context!r:.40}. Give `Reply(text, (text, ...))`."
        )
    known: Hashable
    try:
        known = frozenset(labels.items())
    except TypeError:
        known = pickle.dumps(labels)  # not how they print, which leaves out parts of an array
    return text, tuple(context), tuple(references), known


def make_rewards(
    spec: Mapping[str, Any], examples: Examples | None = None, guarded: bool = True
) -> Composite:
    """The composite that a specification asks for.

    Args:
        spec: by name a weight, a `Reward`, a function from the text of a reply to its score, or a
            mapping of `weight` (1 by default) and settings of the reward. A name is a row of
            `rewards:` in envs_registry.yaml or ``module:Class``. With an entry `reward` in the
            mapping, that says which reward it is (a row, ``module:Class``, a `Reward`, or a
            function, whose setting is `bounds`), and the name is only what it is logged by.
        examples: gives labelled replies to the rewards that learn from them.
        guarded: texts that are no reply at all get the lowest scores, see `Composite`.

    Raises:
        ValueError: an unknown reward or setting, a weight that is no finite number, no rewards.
    """
    if not isinstance(spec, Mapping) or not spec:
        raise ValueError(
            "rewards must be a mapping such as {'meteor': 0.5, 'intent': 0.5}, "
            f"with one reward or more; got {spec!r}."
        )
    return Composite([_part(name, value, examples) for name, value in spec.items()], guarded)


def _part(name: str, value: Any, examples: Examples | None) -> WeightedReward:
    if isinstance(value, Reward) or _is_function(value):
        value = {"reward": value}
    settings = dict(value) if isinstance(value, Mapping) else {"weight": value}
    weight = finite_number(f"the weight of reward {name!r}", settings.pop("weight", 1.0))
    what = settings.pop("reward", name)
    if _is_function(what):
        return WeightedReward(name, weight, _function_reward(name, what, settings))
    if not isinstance(what, Reward):
        return WeightedReward(name, weight, make_reward(what, settings, examples))
    if settings:
        raise ValueError(
            f"reward {name!r} is an object, which has its settings already; "
            f"got {sorted(settings)} too. Give them when you make it."
        )
    return WeightedReward(name, weight, what)


def _is_function(value: Any) -> bool:
    return callable(value) and not isinstance(value, type | Reward)


def _function_reward(
    name: str, function: Callable[[str], float], settings: Mapping[str, Any]
) -> FunctionReward:
    for key in settings:
        if key != "bounds":
            raise unknown("setting", key, ["weight", "bounds"], f"reward {name!r}")
    if "bounds" not in settings:
        return FunctionReward(function)
    bounds = settings["bounds"]
    if not isinstance(bounds, Sequence) or isinstance(bounds, str) or len(bounds) != 2:
        raise ValueError(f"bounds of reward {name!r} must be two numbers; got {bounds!r}.")
    low, high = (finite_number(f"a bound of reward {name!r}", bound) for bound in bounds)
    if low > high:
        raise ValueError(f"bounds of reward {name!r} must be the lowest and the highest score.")
    return FunctionReward(function, (low, high))


def make_reward(
    name: str, settings: Mapping[str, Any] | None = None, examples: Examples | None = None
) -> Reward:
    """A reward by its row in envs_registry.yaml or as ``module:Class``, with settings.

    Raises:
        ValueError: there is no such reward, it has no such setting, or one of another kind.
    """
    cls, defaults = _find(name)
    parameters = signature(cls).parameters
    known = [key for key in parameters if key != "examples"]
    for key in settings or {}:
        if key not in known:
            raise unknown("setting", key, ["weight", *known], f"reward {name!r}")
        _check_setting(f"{key} of reward {name!r}", (settings or {})[key], parameters[key])
    more = {"examples": examples} if "examples" in parameters else {}
    made: Reward = cls(**{**defaults, **(settings or {}), **more})
    return made


@dataclass(frozen=True)
class RewardRow:
    """A row of `rewards:` in envs_registry.yaml: a class of rewards, and settings of it."""

    name: str
    reward: str
    description: str
    settings: Mapping[str, Any] = field(default_factory=dict)


@cache
def reward_rows() -> Mapping[str, RewardRow]:
    """The rewards of language by name, in the order of the registry."""
    rows = read_registry().get("rewards") or {}
    return {name: RewardRow(name, **values) for name, values in rows.items()}


KINDS: Mapping[Any, tuple[type, str]] = {
    bool: (bool, "true or false"),
    int: (Integral, "a whole number"),
    float: (Real, "a number"),
    str: (str, "a text"),
    NoneType: (NoneType, "null"),
}


def _check_setting(what: str, value: Any, parameter: Parameter) -> None:
    """Raise a ValueError where a setting is not of the simple kind that its annotation names."""
    said = parameter.annotation
    kinds = get_args(said) if isinstance(said, UnionType) else (said,)
    if any(kind not in KINDS for kind in kinds):
        return
    own = (
        {bool}
        if isinstance(value, bool)
        else {k for k, (t, _) in KINDS.items() if isinstance(value, t)}
    )
    if not own & set(kinds):
        expected = " or ".join(KINDS[kind][1] for kind in kinds)
        raise ValueError(f"{what} must be {expected}; got {value!r}.")


def _find(name: str) -> tuple[type[Reward], Mapping[str, Any]]:
    rows = reward_rows()
    if name in rows:
        return load(rows[name].reward), rows[name].settings
    if ":" not in str(name):
        raise unknown("reward", name, rows)
    cls = find_object(name, "reward")
    if not (isinstance(cls, type) and issubclass(cls, Reward)):
        raise ValueError(f"reward {name!r} must be a subclass of dialgym.rewards.Reward.")
    return cls, {}
