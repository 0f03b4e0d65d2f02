"""Hyperparameters from YAML, in rl-zoo3's format: a row for each id, and `default` for the rest.

`python -m rl_zoo3.train --conf-file agents/configs/ppo.yml` reads the same files.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

from stable_baselines3.common.utils import LinearSchedule

from agents.models.build import SIZES
from agents.registry import NETWORK_KEYS, Algorithm, find, load_name, parts_of, read_rows
from agents.storage.values import LIBRARIES, PART_OF_A_MODEL, storable
from dialgym.datasets import Dataset
from dialgym.errors import arguments_of, unknown
from dialgym.trust import allow, distrusted, is_allowed

PLAYS_KEYS = {"n_timesteps", "policy", "n_envs", "normalize", "env_wrapper", "metrics"}
FILTERS: Mapping[str, Callable[[Dataset, Any], Dataset]] = {
    "at_least": Dataset.at_least,
    "top": Dataset.top,
    "bottom": Dataset.bottom,
}
"""Hyperparameters that choose among stored dialogues, in the order in which they do."""
STORED_KEYS = {"n_timesteps", "policy", "held_out", "stream", *FILTERS}
TRAINER_KEYS = (PLAYS_KEYS | STORED_KEYS) - {"policy"}
GIVEN_KEYS = {"self", "env", "seed", "device", "verbose", "tensorboard_log", "_init_setup_model"}
GIVEN_KEYS |= {"hyperparameters", "dataset"}
SCHEDULES = (
    "learning_rate",
    "value_learning_rate",
    "clip_range",
    "clip_range_vf",
    "ent_coef",
)
CLASS_KEYS = ("activation_fn", *NETWORK_KEYS)
"""Arguments that name a class, beside those whose names end with `_class`."""
NUMBER, SWITCH = (float, "float"), (bool, "bool")
"""Annotations of arguments that are one number, or true or false."""
DEFAULT_ENVS = 8


def read_hyperparameters(
    algo: str | Algorithm,
    env_id: str,
    changes: Mapping[str, Any] | None = None,
    path: str | Path | None = None,
    kind: str | None = None,
    trust: bool = False,
) -> dict[str, Any]:
    """Hyperparameters of `algo` on `env_id`.

    They are those of the row `default`, then of the row of its kind of view (`tokens` or `acts`),
    then of the id's, then `changes`. `policy_kwargs` and other mappings are merged key by key.

    Args:
        algo: a row of the table of algorithms, or its name.
        env_id: the full id, `dialgym/Wordle-20-v0`.
        changes: replace what the file says.
        path: a YAML file; that of the algorithm when None. Classes in it are those of dialgym, of
            PyTorch and of Stable-Baselines3, and such as were named in Python or by `changes`.
        kind: of the view.
        trust: import other classes that the file names, which can run code of whoever made it.

    Raises:
        ValueError: unknown algorithm or key (with the nearest one), or a file without rows.
    """
    row = find(algo) if isinstance(algo, str) else algo
    learner = row.load()
    arguments = arguments_of(learner)
    known = arguments.keys() - GIVEN_KEYS | (PLAYS_KEYS if row.plays else STORED_KEYS)
    rows, where = read_rows(Path(path)) if path else row.rows()
    if not isinstance(rows, Mapping) or not {"default", env_id} & rows.keys():
        raise ValueError(
            f"{where}: expected a row {env_id!r} or 'default', got {_rows(rows)}; "
            "add one in rl-zoo3's format"
        )
    allow_classes(changes or {})
    config: dict[str, Any] = {"policy": row.policy}
    config |= {"n_envs": DEFAULT_ENVS} if row.plays else {}
    for name in dict.fromkeys(("default", kind, env_id)):
        own, place = rows.get(name) or {}, f"{name} of {where}"
        config = _with(config, own, known, place)
        if path:
            check_classes(own, place, trust)
    config = _with(config, changes or {}, known, f"hyperparameters of {row.name}")
    _check_policy(config, f"policy_kwargs of {env_id}")
    schedules = {
        key for key in SCHEDULES if key in arguments and _annotation(learner, key) not in NUMBER
    }
    _check_numbers(config, arguments, schedules, f"{row.name} on {env_id}")
    _check_switches(learner, config, f"{row.name} on {env_id}")
    return config


def _with(
    config: Mapping[str, Any], change: Mapping[str, Any], known: set[str], where: str
) -> dict[str, Any]:
    if not isinstance(change, Mapping):
        raise ValueError(f"{where}: expected hyperparameters by name, got {change!r}")
    _check_keys(change, known, where)
    return _merge(_base_for(config, change), change)


def _rows(rows: Any) -> list[str] | str:
    return sorted(rows) if isinstance(rows, dict) else repr(rows)


def _check_keys(part: Mapping[str, Any], known: set[str], where: str) -> None:
    for key in part:
        if key not in known:
            raise unknown("hyperparameter", key, known, where)
    if not isinstance(kwargs := part.get("policy_kwargs"), Mapping | None):
        raise ValueError(f"policy_kwargs in {where}: expected a mapping, got {kwargs!r}")


def _base_for(config: Mapping[str, Any], change: Mapping[str, Any]) -> dict[str, Any]:
    """The configuration to be changed, without settings that do not apply to what is new.

    That is all of `policy_kwargs` where the change names another policy, of `learner_kwargs` where
    it names another learner, and a policy's sizes where it names a pretrained model.
    """
    kept = dict(config)
    for name in ("policy", "learner"):
        if change.get(name, kept.get(name)) != kept.get(name):
            kept.pop(f"{name}_kwargs", None)
    if (change.get("policy_kwargs") or {}).get("pretrained"):
        kwargs = kept.get("policy_kwargs") or {}
        kept["policy_kwargs"] = {k: v for k, v in kwargs.items() if k not in SIZES}
    return kept


def _check_policy(config: Mapping[str, Any], where: str) -> None:
    """Raises ValueError, with the nearest one, for an argument that the policy does not take."""
    named = config.get("policy")
    if not isinstance(named, str | type):
        raise ValueError(f"policy: expected a name such as agents.GPTPolicy, got {named!r}")
    if "." not in str(named):
        return
    policy = _named_class("policy", named)
    known = set(arguments_of(policy))
    known -= {"self", "observation_space", "action_space", "lr_schedule", "use_sde"}
    for key in config.get("policy_kwargs") or {}:
        if key not in known:
            raise unknown("key", key, known, where)


def _annotation(learner: type, key: str) -> Any:
    """The annotation of an argument, in the class that has it; None where none has."""
    for cls in learner.__mro__:
        own = vars(cls).get("__init__")
        given = inspect.signature(own).parameters.get(key) if own else None
        if given is not None:
            return given.annotation
    return None


def _check_numbers(
    config: Mapping[str, Any], defaults: Mapping[str, Any], schedules: set[str], where: str
) -> None:
    """Raises ValueError for a text in place of a number; those of `schedules` are read later."""
    numbers = {**defaults, **dict.fromkeys(("n_timesteps", "n_envs", "held_out", *FILTERS), 0)}
    for key, value in config.items():
        number = isinstance(numbers.get(key), int | float) and not isinstance(numbers[key], bool)
        if number and isinstance(value, str) and key not in schedules:
            raise ValueError(f"{key} of {where}: expected a number, got {value!r}")


def _check_switches(learner: type, config: Mapping[str, Any], where: str) -> None:
    """Raises ValueError for anything but true and false where nothing else can be."""
    for key, value in config.items():
        if _annotation(learner, key) in SWITCH and not isinstance(value, bool):
            raise ValueError(f"{key} of {where}: expected true or false, got {value!r}")


def _merge(base: Mapping[str, Any], changes: Mapping[str, Any]) -> dict[str, Any]:
    merged = dict(base)
    for key, value in changes.items():
        old = merged.get(key)
        both = isinstance(old, Mapping) and isinstance(value, Mapping)
        merged[key] = _merge(old, value) if both else value  # type: ignore[arg-type]
    return merged


def constructor_arguments(config: Mapping[str, Any]) -> dict[str, Any]:
    """Arguments of the algorithm's constructor: names become classes, `lin_x` a schedule.

    Files of models may then hold these classes: who trains has named them.
    """
    arguments = {k: v for k, v in config.items() if k not in TRAINER_KEYS}
    if "." in str(arguments.get("policy")):
        arguments["policy"] = _named_class("policy", arguments["policy"])
    arguments = {key: _with_classes(key, value) for key, value in arguments.items()}
    for key in SCHEDULES:
        if isinstance(arguments.get(key), str):
            arguments[key] = schedule(key, arguments[key])
    return arguments


def check_classes(settings: Mapping[str, Any], where: str, trust: bool = False) -> None:
    """Check hyperparameters that were read from a file, before any class of theirs is imported.

    Raises:
        ValueError: they name a class that is not in the libraries, and that no caller has named.
    """
    if trust:
        allow_classes(settings)
    for name in _class_names(settings):
        if not is_allowed(_home(name)) and not _is_of_the_libraries(name):
            raise distrusted(name, where)


def allow_classes(settings: Mapping[str, Any]) -> None:
    """Record the classes that a caller has named: files may name them too."""
    for name in _class_names(settings):
        allow(_home(name))


def _home(name: str) -> str:
    return ":".join(parts_of(name))


def _class_names(settings: Mapping[str, Any]) -> Iterator[str]:
    """Names of the classes in hyperparameters."""
    for key, value in settings.items():
        if key == "metrics":
            names = value if isinstance(value, Iterable) else ()
            yield from (name for name in names if isinstance(name, str))
        elif isinstance(value, Mapping):
            yield from _class_names(value)
        elif isinstance(value, str) and (_is_class(key) or (key == "policy" and "." in value)):
            yield value


def _is_class(key: str) -> bool:
    return key in (*CLASS_KEYS, "class") or str(key).endswith("_class")


def _is_of_the_libraries(name: str) -> bool:
    """Return True for a part of models in one of `LIBRARIES`; nothing else is imported."""
    if parts_of(name)[0].partition(".")[0] not in LIBRARIES:
        return False
    try:
        found = load_name("class", name)
    except ValueError:  # there is none, which is said where it is made
        return True
    return isinstance(found, type) and issubclass(found, PART_OF_A_MODEL)


def _with_classes(key: str, value: Any) -> Any:
    """The value of a hyperparameter, with classes in the place of their names."""
    if isinstance(value, Mapping):
        return {name: _with_classes(name, part) for name, part in value.items()}
    is_class = _is_class(key) and key != "class"  # of a network, which is made later
    return _named_class(key, value) if is_class and value is not None else value


def _named_class(key: str, value: Any) -> Any:
    found = load_name(key, value) if isinstance(value, str) else value
    return storable(found) if isinstance(found, type) else found


def schedule(key: str, text: str) -> Any:
    """`lin_0.001` to a schedule that falls from 0.001 to 0 over training; `1e-3` to a number."""
    with suppress(ValueError):  # YAML takes it for a text
        return float(text)
    kind, _, start = text.partition("_")
    try:
        value = float(start)
    except ValueError:
        kind = ""
    if kind != "lin":
        raise ValueError(f"{key}: expected a number or 'lin_<number>', got {text!r}")
    return LinearSchedule(value, 0.0, 1.0)
