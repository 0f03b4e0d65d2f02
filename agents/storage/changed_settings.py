"""Settings that `load` is given in place of a saved model's, understood by its constructor."""

from __future__ import annotations

from collections.abc import Mapping
from inspect import signature
from typing import Any

from dialgym.errors import arguments_of

SETTLED = {"self", "policy", "env", "device", "policy_kwargs", "_init_setup_model"}
"""Arguments of a constructor of which a file and `load` make use by themselves."""
Settings = Mapping[str, Any]


def understood(cls: Any, policy: Any, saved: Settings, changes: Settings) -> dict[str, Any]:
    """The attributes that the constructor of `cls` makes of `changes` to what is `saved`.

    With a setting come others that follow from it, such as `kl_coef` from `kl`.

    Raises:
        ValueError, TypeError: as the constructor does.
    """
    given = {name: changes[name] for name in changes.keys() & arguments_of(cls).keys() - SETTLED}
    if not given:
        return {}
    own = signature(cls.__init__).parameters.keys() - SETTLED
    as_saved = {name: saved[name] for name in own & saved.keys()}
    before, after = (
        vars(cls(policy=policy, env=None, _init_setup_model=False, **settings))
        for settings in (as_saved, {**as_saved, **given})
    )
    return {n: v for n, v in after.items() if n in given or _is_other(v, before.get(n))}


def _is_other(value: Any, before: Any) -> bool:
    """True of another number, name or mapping; objects are made anew each time."""
    return isinstance(value, bool | int | float | str | dict | None) and value != before
