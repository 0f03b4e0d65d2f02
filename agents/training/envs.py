"""Envs as training wants them: with wrappers, and normalised rewards, that settings ask for."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

from stable_baselines3.common.vec_env import VecEnv, VecNormalize

from dialgym.errors import unknown, with_settings
from dialgym.views.wrappers import VectorReplaceForbidden

Wrapper = Callable[[Any], Any]
NORMALIZE_KEYS = ("norm_obs", "norm_reward", "clip_reward", "gamma", "epsilon")
WRAPPERS: dict[str, Wrapper] = dict.fromkeys(
    ("dialgym.ReplaceForbidden", "dialgym.VectorReplaceForbidden"), VectorReplaceForbidden
)
"""What `env_wrapper` may name; rl-zoo3 itself puts the first around single envs."""


def replaces_forbidden(settings: Mapping[str, Any]) -> str | None:
    """The `choose` of the `env_wrapper`, which is one that replaces; None where there is none."""
    given = settings.get("env_wrapper")
    if not given:
        return None
    arguments = {} if isinstance(given, str) else next(iter(given.values())) or {}
    return str(arguments.get("choose", "random"))


def env_wrapper(settings: Mapping[str, Any]) -> Wrapper | None:
    """What rl-zoo3's key `env_wrapper` names, from a fixed table; None where it is missing or null.

    Args:
        settings: hyperparameters; the key has a name, or a mapping of one name to its arguments.

    Raises:
        ValueError: it is neither, or the name is not in the table.
    """
    given = settings.get("env_wrapper")
    if not given:
        return None
    named = {given: None} if isinstance(given, str) else given
    if not isinstance(named, Mapping) or len(named) != 1:
        raise ValueError(
            "env_wrapper: expected a name, or a mapping such as {dialgym.ReplaceForbidden: "
            f"{{choose: nearest}}}}, got {given!r}"
        )
    ((name, arguments),) = named.items()
    if name not in WRAPPERS:
        raise unknown("env_wrapper", name, WRAPPERS)
    return lambda env: with_settings(partial(WRAPPERS[name], env), name, arguments or {})


def normalized(env: VecEnv, settings: Mapping[str, Any], training: bool) -> VecEnv:
    """`env` in Stable-Baselines3's `VecNormalize`, where the settings have `normalize`.

    It lies outside of the monitor, as in rl-zoo3: the returns of episodes stay raw. Without
    `training` rewards stay raw too.
    """
    options = normalize_options(settings)
    if not options:
        return env
    return VecNormalize(env, **{**options, **({} if training else NO_TRAINING)})


NO_TRAINING = {"training": False, "norm_reward": False}


def normalize_options(settings: Mapping[str, Any]) -> dict[str, Any]:
    """Arguments of `VecNormalize` from rl-zoo3's key `normalize`; none when it is missing or false.

    `gamma` is that of the algorithm, also when left out.

    Raises:
        ValueError: no mapping, an unknown key, `norm_obs` is not false, or another `gamma`.
    """
    given = settings.get("normalize") or {}
    example = "{norm_obs: false, norm_reward: true}"
    if not isinstance(given, Mapping):
        raise ValueError(f"normalize: expected a mapping such as {example}, got {given!r}")
    for key in given:
        if key not in NORMALIZE_KEYS:
            raise unknown("key", key, NORMALIZE_KEYS, "normalize")
    if given and given.get("norm_obs", True):
        raise ValueError(
            "normalize: observations are tokens and cannot be normalised; "
            f"expected norm_obs: false, as in {example}, got {dict(given)!r}"
        )
    gamma = settings.get("gamma", given.get("gamma", 0.99))
    if given.get("gamma", gamma) != gamma:
        raise ValueError(
            f"normalize: expected the algorithm's gamma {gamma!r}, got {given['gamma']!r}; "
            "leave it out to have the same"
        )
    return {**given, "gamma": gamma} if given else {}
