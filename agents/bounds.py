"""One table of bounds for the numbers that learners are given, wherever they come in."""

from __future__ import annotations

import math
from collections.abc import Mapping
from numbers import Integral, Real
from typing import Any, NamedTuple


class Bounds(NamedTuple):
    """What a number may be.

    Attributes:
        least, most: the bounds, themselves included.
        above: whether `least` itself is left out.
        whole: whether it is a whole number.
    """

    least: float = 0.0
    most: float = math.inf
    above: bool = False
    whole: bool = False

    def admit(self, number: Real) -> bool:
        """Whether a number is within; no bounds admit NaN or infinity."""
        value = float(number)
        within = self.least < value if self.above else self.least <= value
        return math.isfinite(value) and within and value <= self.most and self._counts(number)

    def _counts(self, number: Real) -> bool:
        return not self.whole or isinstance(number, Integral)

    def __str__(self) -> str:
        kind = "a whole number" if self.whole else "a number"
        least = f"above {self.least:g}" if self.above else f"from {self.least:g}"
        return f"{kind} {least}" + (f" to {self.most:g}" if math.isfinite(self.most) else "")


FRACTION, POSITIVE, COUNT = Bounds(most=1.0), Bounds(above=True), Bounds(1, whole=True)
BOUNDS: Mapping[str, Bounds] = {
    "learning_rate": Bounds(),
    "n_steps": COUNT,
    "n_epochs": COUNT,
    "batch_size": COUNT,
    "buffer_size": COUNT,
    "gradient_steps": Bounds(-1, whole=True),
    "learning_starts": Bounds(whole=True),
    "gamma": FRACTION,
    "gae_lambda": FRACTION,
    "tau": FRACTION,
    "clip_range": POSITIVE,
    "clip_range_vf": POSITIVE,
    "target_kl": POSITIVE,
    "max_grad_norm": POSITIVE,
    "ent_coef": Bounds(-math.inf),
    "vf_coef": Bounds(),
    "exploration_fraction": FRACTION,
    "exploration_initial_eps": FRACTION,
    "exploration_final_eps": FRACTION,
    "total_timesteps": Bounds(),
}
"""By the name of the argument, in our algorithms and in those of Stable-Baselines3."""


def check_bounds(where: str, given: Mapping[str, Any]) -> None:
    """Check the numbers in arguments or attributes; what is no number is left.

    Args:
        where: whose they are, for the error.
        given: by name; names that the table has not are left as well.

    Raises:
        ValueError: a number is not within its bounds, or not finite.
    """
    for name, bounds in BOUNDS.items():
        value = _constant(given.get(name))
        if isinstance(value, Real) and not isinstance(value, bool) and not bounds.admit(value):
            raise ValueError(f"{where}: expected {name} to be {bounds}; got {value!r}.")


def _constant(value: Any) -> Any:
    """The number of a schedule of Stable-Baselines3 that is constant; else what it is given."""
    return getattr(getattr(value, "value_schedule", value), "val", value)


def check_timesteps(where: str, value: Any) -> None:
    """Raise a ValueError unless `value` is a number of timesteps."""
    if not isinstance(value, Real) or isinstance(value, bool):
        bounds = BOUNDS["total_timesteps"]
        raise ValueError(f"{where}: expected total_timesteps to be {bounds}; got {value!r}.")
    check_bounds(where, {"total_timesteps": value})
