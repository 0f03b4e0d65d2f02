"""Hyperparameters from YAML, in rl-zoo3's format: a row for each id, and `default` for the rest.

`python -m rl_zoo3.train --conf-file agents/configs/ppo.yml` reads the same files.
"""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from importlib.resources import files
from inspect import signature
from pathlib import Path
from typing import Any

import yaml
from stable_baselines3.common.utils import LinearSchedule

from agents.models.build import SIZES
from agents.models.named import load_name
from dialgym.errors import refuse_renamed, unknown
from dialgym.optional import require

ONLINE = {
    "ppo": "agents.online.ppo:SequencePPO",
    "nlpo": "agents.online.nlpo:NLPO",
    "grpo": "agents.online.grpo:GRPO",
}
OFFLINE = {
    "bc": "agents.offline.bc:BC",
    "single-step": "agents.offline.ilql:SingleStepRL",
    "ilql": "agents.offline.ilql:ILQL",
    "cql": "agents.offline.cql:CQL",
    "psi": "agents.offline.psi:PsiLearning",
    "utterance-ilql": "agents.offline.utterance_ilql:UtteranceILQL",
    "chai": "agents.offline.chai:CHAI",
    "decision-transformer": "agents.offline.decision_transformer:DecisionTransformer",
}
ALGORITHMS = {**ONLINE, **OFFLINE}
ONLINE_KEYS = {"n_timesteps", "policy", "n_envs", "normalize", "metrics"}
OFFLINE_KEYS = {"n_timesteps", "policy", "top"}
TRAINER_KEYS = (ONLINE_KEYS | OFFLINE_KEYS) - {"policy"}
GIVEN_KEYS = {"self", "env", "seed", "device", "verbose", "tensorboard_log", "_init_setup_model"}
GIVEN_KEYS |= {"dataset"}
SCHEDULES = ("learning_rate", "clip_range", "clip_range_vf", "ent_coef")


def find_algorithm(name: str) -> Any:
    """The class of a learner.

    Raises:
        ValueError: there is no such algorithm; the message names the nearest one.
        ImportError: a package is missing; the message has the remedy.
    """
    if name not in ALGORITHMS:
        raise unknown("algorithm", name, ALGORITHMS)
    module, _, attribute = ALGORITHMS[name].partition(":")
    return getattr(require(module, "agents", f"training with {attribute}"), attribute)


def read_config(
    algo: str,
    env_id: str,
    overrides: Mapping[str, Any] | None = None,
    path: str | Path | None = None,
) -> dict[str, Any]:
    """Hyperparameters of `algo` on `env_id`: `default`, then the id's row, then `overrides`.

    `policy_kwargs` and other mappings are merged key by key.

    Args:
        algo: a key of `ALGORITHMS`.
        env_id: the full id, `dialgym/Wordle-20-v0`.
        overrides: replace what the file says.
        path: a YAML file; the built-in `agents/configs/<algo>.yml` when None.

    Raises:
        ValueError: unknown algorithm or key (with the nearest one), or a file without rows.
    """
    known = arguments_of(find_algorithm(algo)).keys() - GIVEN_KEYS
    known |= ONLINE_KEYS if algo in ONLINE else OFFLINE_KEYS
    where = Path(path) if path else files("agents") / "configs" / f"{algo}.yml"
    rows = yaml.safe_load(where.read_text("utf-8"))
    if not isinstance(rows, dict) or not {"default", env_id} & rows.keys():
        raise ValueError(
            f"{where}: expected a row {env_id!r} or 'default', got {_rows(rows)}; "
            "add one in rl-zoo3's format"
        )
    config: dict[str, Any] = {}
    for name, part in (
        ("default", rows.get("default")),
        (env_id, rows.get(env_id)),
        ("overrides", overrides),
    ):
        place = f"{name} of {where}" if name != "overrides" else f"{name} of {algo}"
        refuse_renamed(place, part or {}, getattr(find_algorithm(algo), "renamed", {}))
        _check_keys(part or {}, known, place)
        config = _merge(_without_sizes(config, part or {}), part or {})
    _check_policy(config, f"policy_kwargs of {env_id}")
    _check_numbers(config, arguments_of(find_algorithm(algo)), f"{algo} on {env_id}")
    return config


def _rows(rows: Any) -> list[str] | str:
    return sorted(rows) if isinstance(rows, dict) else repr(rows)


def _check_keys(part: Mapping[str, Any], known: set[str], where: str) -> None:
    for key in part:
        if key not in known:
            raise unknown("hyperparameter", key, known, where)


def _without_sizes(config: Mapping[str, Any], change: Mapping[str, Any]) -> dict[str, Any]:
    """The configuration without a policy's sizes, where the change names a pretrained model."""
    kept = dict(config)
    if (change.get("policy_kwargs") or {}).get("pretrained"):
        kwargs = kept.get("policy_kwargs") or {}
        kept["policy_kwargs"] = {k: v for k, v in kwargs.items() if k not in SIZES}
    return kept


def _check_policy(config: Mapping[str, Any], where: str) -> None:
    """Raises ValueError, with the nearest one, for an argument that the policy does not take."""
    if "." not in str(config.get("policy")):
        return
    policy = load_name("policy", str(config["policy"]))
    refuse_renamed(where, config.get("policy_kwargs") or {}, getattr(policy, "renamed", {}))
    known = set(arguments_of(policy))
    known -= {"self", "observation_space", "action_space", "lr_schedule", "use_sde"}
    for key in config.get("policy_kwargs") or {}:
        if key not in known:
            raise unknown("key", key, known, where)


def _check_numbers(config: Mapping[str, Any], defaults: Mapping[str, Any], where: str) -> None:
    """Raises ValueError for a text in place of a number; schedules are read later."""
    numbers = {**defaults, "n_timesteps": 0, "n_envs": 0}
    for key, value in config.items():
        number = isinstance(numbers.get(key), int | float) and not isinstance(numbers[key], bool)
        if number and isinstance(value, str) and key not in SCHEDULES:
            raise ValueError(f"{key} of {where}: expected a number, got {value!r}")


def arguments_of(learner: type) -> dict[str, Any]:
    """What the constructor takes and hands on to its parents', with defaults; `empty` for none."""
    found: dict[str, Any] = {}
    for cls in learner.__mro__:
        if "__init__" not in vars(cls):
            continue
        parameters = signature(vars(cls)["__init__"]).parameters.values()
        named = [p for p in parameters if p.kind not in (p.VAR_KEYWORD, p.VAR_POSITIONAL)]
        found = {**{p.name: p.default for p in named}, **found}
        if all(p.kind != p.VAR_KEYWORD for p in parameters):
            break
    return found


def _merge(base: Mapping[str, Any], changes: Mapping[str, Any]) -> dict[str, Any]:
    merged = dict(base)
    for key, value in changes.items():
        old = merged.get(key)
        both = isinstance(old, Mapping) and isinstance(value, Mapping)
        merged[key] = _merge(old, value) if both else value  # type: ignore[arg-type]
    return merged


def constructor_arguments(config: Mapping[str, Any]) -> dict[str, Any]:
    """What the algorithm's constructor takes: names become classes, `lin_x` becomes a schedule."""
    arguments = {k: v for k, v in config.items() if k not in TRAINER_KEYS}
    if "." in str(arguments.get("policy")):
        arguments["policy"] = load_name("policy", str(arguments["policy"]))
    for key in SCHEDULES:
        if isinstance(arguments.get(key), str):
            arguments[key] = schedule(key, arguments[key])
    return arguments


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
