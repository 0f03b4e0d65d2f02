"""One table of bounds for the numbers that learners are given, wherever they come in."""

from __future__ import annotations

import math
from collections.abc import Mapping
from numbers import Integral, Real
from typing import Any, NamedTuple

import gymnasium as gym
import torch

from dialgym.registry import entry_of
from dialgym.tasks import Task


class Bounds(NamedTuple):
    """Bounds of a number.

    Attributes:
        least, most: the bounds, themselves included.
        above: whether `least` itself is left out.
        whole: whether it is a whole number.
        endless: whether infinity will do, where it means that there is no limit.
    """

    least: float = 0.0
    most: float = math.inf
    above: bool = False
    whole: bool = False
    endless: bool = False

    def admit(self, number: Real) -> bool:
        """Return True for a number within; no bounds admit NaN, and few infinity."""
        try:
            value = float(number)
        except OverflowError:  # a whole number that no float can hold
            return False
        within = self.least < value if self.above else self.least <= value
        finite = math.isfinite(value) or (self.endless and value == math.inf)
        return finite and within and value <= self.most and self._counts(number)

    def _counts(self, number: Real) -> bool:
        return not self.whole or isinstance(number, Integral)

    def __str__(self) -> str:
        kind = "a whole number" if self.whole else "a number"
        least = f"above {self.least:g}" if self.above else f"from {self.least:g}"
        return f"{kind} {least}" + (f" to {self.most:g}" if math.isfinite(self.most) else "")


FRACTION, POSITIVE, COUNT = Bounds(most=1.0), Bounds(above=True), Bounds(1, whole=True)
FINITE, FROM_0 = Bounds(-math.inf), Bounds()
BOUNDS: Mapping[str, Bounds] = {
    "learning_rate": Bounds(),
    "seed": Bounds(most=2**32 - 1, whole=True),
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
    "stats_window_size": COUNT,
    "log_interval": COUNT,
    # of learners over acts
    "alpha": Bounds(most=1.0, above=True),
    "average_tau": FRACTION,
    "damping": FROM_0,
    "dialogues_per_update": COUNT,
    "gain_reward": FINITE,
    "gain_threshold": FROM_0,
    "head_probability": FRACTION,
    "kl_coef": FROM_0,
    "max_kl": POSITIVE,
    "max_weight": Bounds(above=True, endless=True),
    "min_weight": FROM_0,
    "n_samples": COUNT,
    "priority_alpha": FROM_0,
    "priority_beta": FRACTION,
    "reward_scale": POSITIVE,
    "step_size": POSITIVE,
    "target_update_interval": COUNT,
    "train_freq": COUNT,
    "trust_delta": Bounds(above=True, endless=True),
    "forgetting": FRACTION,
    "scales_after": Bounds(whole=True),
    "test_scale": FROM_0,
    # of offline learners
    "beta": POSITIVE,
    "margin": FROM_0,
    "awac_beta": FROM_0,
    "awac_clip": POSITIVE,
    "awr_beta": FROM_0,
    "awr_clip": POSITIVE,
    "clone_steps": Bounds(whole=True),
    "cql_temperature": POSITIVE,
    "cql_weight": FROM_0,
    "expectile": FRACTION,
    "policy_weight": FROM_0,
    "pos_weight": POSITIVE,
    "q_weight": FROM_0,
    "random_samples": Bounds(whole=True),
    "samples": COUNT,
    "v_weight": FROM_0,
    "value_coef": FROM_0,
    # of online learners
    "clip_range_high": POSITIVE,
    "anchor_weight": FINITE,
    "critic_steps": COUNT,
    "empty_cost": FROM_0,
    "epsilon_high": POSITIVE,
    "eta": POSITIVE,
    "mask_every": COUNT,
    "min_tokens": COUNT,
    "own_coef": FINITE,
    "replay_batch": COUNT,
    "replay_size": COUNT,
    "situation_weight": FINITE,
    "target_every": COUNT,
    "top_p": Bounds(most=1.0, above=True),
    "truth_gain": FINITE,
    "turn_gamma": FRACTION,
    "values_hidden": COUNT,
    "values_rate": POSITIVE,
    "warmup": Bounds(whole=True),
}
"""By the name of the argument, in our algorithms and in those of Stable-Baselines3."""


def check_bounds(where: str, given: Mapping[str, Any]) -> None:
    """Check the numbers in arguments or attributes.

    A text or a truth value in the place of a number is none; None, schedules and pairs are left.

    Args:
        where: whose they are, for the error.
        given: by name; names that the table has not are left as well.

    Raises:
        ValueError: a number is not within its bounds, or not finite.
    """
    for name in BOUNDS.keys() & given.keys():
        require(where, BOUNDS[name], **{name: given[name]})


def require(where: str, bounds: Bounds, **numbers: Any) -> None:
    """Check arguments that have bounds of their own; raises as `check_bounds` does."""
    for name, given in numbers.items():
        value = _constant(given)
        known = isinstance(value, bool | str | Real)
        if known and (isinstance(value, bool | str) or not bounds.admit(value)):
            raise ValueError(f"{where}: expected {name} to be {bounds}; got {_short(value)}.")


def _short(value: Any) -> str:
    try:
        text = repr(value)
    except ValueError:  # a whole number of thousands of digits
        return "a whole number too long to print"
    return text if len(text) < 60 else f"{text[:50]}..."


def _constant(value: Any) -> Any:
    """The number of a schedule of Stable-Baselines3 that is constant; else what it is given."""
    return getattr(getattr(value, "value_schedule", value), "val", value)


def check_timesteps(where: str, value: Any) -> None:
    """Raise a ValueError unless `value` is a number of timesteps."""
    if not isinstance(value, Real) or isinstance(value, bool):
        bounds = BOUNDS["total_timesteps"]
        raise ValueError(f"{where}: expected total_timesteps to be {bounds}; got {value!r}.")
    check_bounds(where, {"total_timesteps": value})


def check_device(device: Any, where: str = "") -> None:
    """Raise a ValueError unless PyTorch knows the device; None and "auto" will do."""
    if device is None or device == "auto":
        return
    try:
        torch.device(device)
    except (RuntimeError, TypeError):
        hint = " Did you mean 'cuda'?" if "gpu" in str(device).lower() else ""
        raise ValueError(
            f"{where + ': ' if where else ''}expected device to be 'auto', 'cpu', 'cuda', 'cuda:1' "
            f"or another of PyTorch's; got {device!r}.{hint}"
        ) from None


def check_env(env: Any, where: str) -> None:
    """Raise a ValueError for a task, or an id that Gymnasium does not know, in an env's place."""
    is_task = isinstance(env, Task) or (isinstance(env, type) and issubclass(env, Task))
    if is_task:
        name = env.__name__ if isinstance(env, type) else type(env).__name__
        raise ValueError(
            f"{where}: expected an environment, got the task {name}. Make one of it: "
            "dialgym.sb3_vec_env(task, 8), or dialgym.make(task)."
        )
    if isinstance(env, str) and env not in gym.registry:
        found = entry_of(env).id  # or an error that names the nearest
        raise ValueError(
            f"{where}: expected an environment, or an id of Gymnasium; got {env!r}. "
            f"Say {found!r}, or give dialgym.sb3_vec_env({env!r}, 8)."
        )
