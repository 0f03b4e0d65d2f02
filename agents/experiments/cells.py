"""What a grid is made of: methods, tasks and seeds, and the protocol of a training."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import product
from pathlib import Path
from types import MappingProxyType
from typing import Any

from agents.registry import ACTS, ALGORITHMS, STORED, find
from agents.training.hyperparameters import check_classes
from dialgym.errors import unknown
from dialgym.io.files import read_yaml
from dialgym.tasks.slot_filling.domain.domain import (
    COUNTERPARTS,
    Domain,
    domain_files,
    is_path,
    load_domain,
)
from dialgym.trust import check_names

DOMAINS: Mapping[str, str] = MappingProxyType(
    {"CR": "CamRestaurants", "SFR": "SFRestaurants", "LAP": "Laptops11"}
)
"""PyDial's benchmark's domains, by what its tables call them."""
BUILT_IN_DOMAINS = (*COUNTERPARTS, *COUNTERPARTS.values())
ENVS = (1, 2, 3, 4, 5, 6)
SCRIPTED = ("handcrafted", "random")
"""Policies that learn nothing: they are tested once."""
APART = 1000
"""From a seed's first dialogue to that of the next: rows of an env take successive seeds."""


@dataclass(frozen=True)
class Method:
    """A row of tables: an algorithm of the table with hyperparameters of its own, or a policy.

    Attributes:
        name: what tables call it.
        algorithm: in `agents.registry`; of a scripted policy its name.
        overrides: hyperparameters that replace those of the configuration.
    """

    name: str
    algorithm: str
    overrides: Mapping[str, Any] = field(default_factory=dict, hash=False)

    @property
    def learns(self) -> bool:
        """Whether it is an algorithm, rather than a scripted policy."""
        return self.algorithm not in SCRIPTED


@dataclass(frozen=True)
class Task:
    """A domain in one of the benchmark's settings.

    Attributes:
        domain: "CR", "SFR" or "LAP"; of another domain its name.
        env: 1 to 6.
        files: the path that another domain is loaded from, if it is no name.
    """

    domain: str
    env: int
    files: str | None = field(default=None, compare=False)

    def __str__(self) -> str:
        return f"{self.domain}-Env{self.env}"

    @property
    def env_id(self) -> str:
        """The id of its act view, which leaves `settings` open."""
        if self._registered:
            return f"dialgym/{DOMAINS[self.domain]}-Env{self.env}-act-v0"
        return "dialgym/SlotFilling-act-v0"

    @property
    def settings(self) -> dict[str, Any]:
        """The settings that `env_id` leaves open."""
        if self._registered:
            return {}
        return {"domain": self.files or self.domain, "env": self.env}

    def load(self) -> Domain:
        """Its domain, as `load_domain` finds it."""
        return load_domain(self.files or DOMAINS.get(self.domain, self.domain))

    @property
    def _registered(self) -> bool:
        return self.files is None and self.domain in DOMAINS


def domain_order(domain: str) -> tuple[int, str]:
    """The place of a domain in tables: the benchmark's first, in its order, then others by name."""
    names = [*DOMAINS]
    return (names.index(domain) if domain in DOMAINS else len(names)), domain


@dataclass(frozen=True)
class Cell:
    """One training of a method in a task, or the test of a scripted policy."""

    method: Method
    task: Task
    seed: int

    def __str__(self) -> str:
        return f"{self.method.name} {self.task} seed {self.seed}"

    @property
    def folder(self) -> Path:
        """Below that of the grid."""
        return Path(self.method.name, str(self.task), f"seed{self.seed}")


@dataclass(frozen=True)
class Protocol:
    """How long a cell learns, and how it is tested.

    Attributes:
        tests: after how many dialogues of training it is tested; the last ends it.
        episodes: test dialogues; those of a seed are the same for every method.

    Raises:
        ValueError: a number out of range.
    """

    tests: tuple[int, ...] = (500, 1000, 2000, 3000, 4000)
    episodes: int = 500

    def __post_init__(self) -> None:
        if not self.tests or min(self.tests) < 1 or sorted(set(self.tests)) != [*self.tests]:
            raise ValueError(
                "tests: expected numbers of dialogues, ascending, such as 500,1000; got "
                f"{list(self.tests)}"
            )
        if self.episodes < 1:
            raise ValueError(f"episodes: expected 1 or more test dialogues, got {self.episodes}")

    @property
    def dialogues(self) -> int:
        """Of training."""
        return self.tests[-1]


def methods_of(names: Sequence[str], variants: str | Path | None = None) -> list[Method]:
    """Methods by name: algorithms that play acts, scripted policies, and a file's variants.

    Args:
        names: of methods.
        variants: a YAML file from names to ``{algorithm: NAME, HYPERPARAMETER: value, ...}``.

    Raises:
        ValueError: a name is unknown, twice there, or of what does not play acts; or the file's
            content is no such mapping.
    """
    own = {} if variants is None else read_variants(Path(variants))
    repeated = sorted({name for name in names if [*names].count(name) > 1})
    if not names or repeated:
        raise ValueError(f"--algorithms: expected distinct names, got {', '.join(names) or 'none'}")
    return [own.get(name) or _method(name, own) for name in names]


def read_variants(path: Path) -> dict[str, Method]:
    """The methods of a YAML file; see `methods_of`."""
    rows = read_yaml(path)
    fits = isinstance(rows, Mapping) and all(isinstance(row, Mapping) for row in rows.values())
    if not fits or not all("algorithm" in row for row in rows.values()):
        raise ValueError(
            f"{path}: expected names with an algorithm and hyperparameters each, such as "
            f"{{dueling: {{algorithm: dqn, dueling: true}}}}, got {rows!r}"
        )
    for row in rows.values():
        check_names(row["algorithm"], str(path))
        check_classes(row, str(path))
    return {name: _variant(str(name), dict(row)) for name, row in rows.items()}


def _variant(name: str, row: dict[str, Any]) -> Method:
    return Method(name, _method(str(row.pop("algorithm")), ()).algorithm, row)


def _method(name: str, others: Iterable[str]) -> Method:
    """A method without hyperparameters of its own."""
    if name in SCRIPTED:
        return Method(name, name)
    playing = [row.name for row in ALGORITHMS.values() if ACTS in row.kind]
    try:
        row = find(name)
    except ValueError:
        raise unknown("algorithm", name, (*others, *playing, *SCRIPTED), "--algorithms") from None
    if ACTS not in row.kind or STORED in row.kind:
        raise ValueError(
            f"--algorithms: expected what learns by playing dialogue acts, got {name!r}, which "
            f"learns from {' and '.join(row.kind)}"
        )
    return Method(row.name.replace(":", "."), name)


def tasks_of(domains: Sequence[str], envs: Sequence[int]) -> list[Task]:
    """Each domain in each setting.

    Args:
        domains: those of the benchmark by their short or full names; or what `load_domain` loads.
        envs: numbers of settings.

    Raises:
        ValueError: a domain cannot be loaded, two have one name, a number is not the benchmark's,
            or there is none.
    """
    for env in envs:
        if env not in ENVS:
            raise ValueError(f"--envs: expected numbers from 1 to 6, got {env}")
    named: dict[str, str | None] = {}
    for domain in domains:
        name, path = _named(domain)
        if named.setdefault(name, path) != path:
            raise ValueError(f"--domains: expected domains of different names, got {name} twice")
    found = [Task(name, env, named[name]) for name, env in product(named, sorted(set(envs)))]
    if not found:
        raise ValueError("expected one domain and one environment at least (--domains, --envs)")
    return found


def _named(domain: str) -> tuple[str, str | None]:
    """Name of a domain in tables, and its path where it is given by one."""
    full = {name: short for short, name in DOMAINS.items()}
    if domain in DOMAINS or domain in full:
        return full.get(domain, domain), None
    if not is_path(domain) and not domain_files(domain) and domain not in BUILT_IN_DOMAINS:
        raise unknown("domain", domain, (*DOMAINS, *full, *BUILT_IN_DOMAINS), "--domains")
    found = load_domain(domain)
    return (found.ontology.domain, found.played) if is_path(domain) else (domain, None)


def cells_of(methods: Sequence[Method], tasks: Sequence[Task], seeds: Sequence[int]) -> list[Cell]:
    """Every cell, seed by seed: what a grid has done when it is cut short covers all tasks."""
    return [Cell(m, task, seed) for seed, task, m in product(seeds, tasks, methods)]
