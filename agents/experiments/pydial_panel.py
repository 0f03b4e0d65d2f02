"""Panel of PyDial's benchmark: domains in settings, algorithms and their variants, stages."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import product
from pathlib import Path
from types import MappingProxyType
from typing import Any

from agents.experiments.published import DOMAINS
from agents.registry import ACTS, ALGORITHMS, STORED, find
from agents.training.hyperparameters import check_classes
from dialgym.errors import one_of, unknown
from dialgym.experiments.panel import Panel, PanelEnvironment, PanelLearner, panel_named
from dialgym.experiments.row_files import CORRECT, FIDELITIES, PYDIAL
from dialgym.io.files import read_yaml
from dialgym.tasks.slot_filling.domain.domain import (
    COUNTERPARTS,
    Domain,
    domain_files,
    is_path,
    load_domain,
)
from dialgym.trust import check_names

BUILT_IN_DOMAINS = (*COUNTERPARTS, *COUNTERPARTS.values())
ENVS = (1, 2, 3, 4, 5, 6)
SCRIPTED = ("handcrafted", "random")
"""Policies that learn nothing: they are tested once."""
SHORT = {name: short for short, name in DOMAINS.items()}
REGISTERED = re.compile(rf"dialgym/({'|'.join(SHORT)})-Env([1-6])-act-v0")
PANELS: Mapping[str, str] = MappingProxyType(
    {PYDIAL: "slot-filling-acts", CORRECT: "slot-filling-acts-correct"}
)
"""Names in the registry, by fidelity."""


@dataclass(frozen=True)
class Task:
    """A domain in one of the benchmark's settings.

    Attributes:
        domain: "CR", "SFR" or "LAP"; of another domain its name.
        env: 1 to 6.
        files: the path that another domain is loaded from, if it is no name.
        fidelity: ``"pydial"``, with the original's faults; ``"correct"`` without them. The two are
            different tasks.
    """

    domain: str
    env: int
    files: str | None = field(default=None, compare=False)
    fidelity: str = PYDIAL

    def __str__(self) -> str:
        return f"{self.domain}-Env{self.env}"

    @classmethod
    def of(cls, environment: PanelEnvironment) -> Task:
        """Find the task of an environment of the panel."""
        fidelity = environment.settings["fidelity"]
        if found := REGISTERED.fullmatch(environment.id):
            return cls(SHORT[found[1]], int(found[2]), fidelity=fidelity)
        domain, env = environment.settings["domain"], environment.settings["env"]
        path = is_path(domain)
        name = load_domain(domain).ontology.domain if path else domain
        return cls(name, env, domain if path else None, fidelity)

    @property
    def environment(self) -> PanelEnvironment:
        """Its act view, with the settings that the id leaves open."""
        settings: dict[str, Any] = {"fidelity": self.fidelity}
        if self.files is None and self.domain in DOMAINS:
            env_id = f"dialgym/{DOMAINS[self.domain]}-Env{self.env}-act-v0"
            return PanelEnvironment(env_id, settings)
        settings |= {"domain": self.files or self.domain, "env": self.env}
        return PanelEnvironment("dialgym/SlotFilling-act-v0", settings)

    def load(self) -> Domain:
        """Load its domain."""
        return load_domain(self.files or DOMAINS.get(self.domain, self.domain))


def domain_order(domain: str) -> tuple[int, str]:
    """Sort key of a domain in tables: the benchmark's first, in its order, then others by name."""
    names = [*DOMAINS]
    return (names.index(domain) if domain in DOMAINS else len(names)), domain


def pydial_panel(
    learners: Mapping[str, PanelLearner | None],
    tasks: Sequence[Task],
    stages: Sequence[int] | None = None,
    episodes: int | None = None,
) -> Panel:
    """Make the panel of PyDial's benchmark, of these learners and tasks.

    Args:
        learners: by name; None for a scripted policy.
        tasks: what is played, all of one fidelity.
        stages: after how many dialogues of training it is tested; the last ends it. Those of the
            registry's panel when None.
        episodes: test dialogues; those of a seed are the same for all.

    Raises:
        ValueError: a number out of range, or tasks of two fidelities.
    """
    fidelities = {task.fidelity for task in tasks} or {PYDIAL}
    if len(fidelities) > 1:
        raise ValueError(f"tasks: expected those of one fidelity, got {sorted(fidelities)}")
    panel = panel_named(PANELS[fidelities.pop()])
    stages = panel.stages if stages is None else tuple(stages)
    if not stages or min(stages) < 1 or sorted(set(stages)) != [*stages]:
        raise ValueError(
            f"tests: expected numbers of dialogues, ascending, such as 500,1000; got {list(stages)}"
        )
    episodes = panel.evaluation.episodes if episodes is None else episodes
    if episodes < 1:
        raise ValueError(f"episodes: expected 1 or more test dialogues, got {episodes}")
    budget = {"dialogues": stages[-1]}
    return replace(
        panel,
        environments=tuple(replace(task.environment, budget=budget) for task in tasks),
        algorithms={name: learner for name, learner in learners.items() if learner},
        references=tuple(name for name, learner in learners.items() if learner is None),
        evaluation=replace(panel.evaluation, episodes=episodes),
        stages=stages,
        imported_from=None,
    )


def learners_of(
    names: Sequence[str], variants: str | Path | None = None
) -> dict[str, PanelLearner | None]:
    """Find learners by name: algorithms that play acts, scripted policies, variants of a file.

    Args:
        names: of learners; a scripted policy is None.
        variants: a YAML file from names to ``{algorithm: NAME, HYPERPARAMETER: value, ...}``.

    Raises:
        ValueError: a name is unknown, twice there, or of what does not play acts; or the file's
            content is no such mapping.
    """
    own = {} if variants is None else read_variants(Path(variants))
    repeated = sorted({name for name in names if [*names].count(name) > 1})
    if not names or repeated:
        raise ValueError(f"--algorithms: expected distinct names, got {', '.join(names) or 'none'}")
    learners = (own.get(name) or _learner(name, own) for name in names)
    return {name if one is None else one.name: one for name, one in zip(names, learners)}


def read_variants(path: Path) -> dict[str, PanelLearner]:
    """Read the learners of a YAML file; see `learners_of`."""
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
    return {str(name): _variant(str(name), dict(row)) for name, row in rows.items()}


def _variant(name: str, row: dict[str, Any]) -> PanelLearner:
    algorithm = str(row.pop("algorithm"))
    _learner(algorithm, ())
    return PanelLearner(name, algorithm, row)


def _learner(name: str, others: Iterable[str]) -> PanelLearner | None:
    """A learner without hyperparameters of its own."""
    if name in SCRIPTED:
        return None
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
    return PanelLearner(row.name.replace(":", "."), name)


def tasks_of(domains: Sequence[str], envs: Sequence[int], fidelity: str = PYDIAL) -> list[Task]:
    """Return each domain in each setting.

    Args:
        domains: those of the benchmark by their short or full names; or what `load_domain` loads.
        envs: numbers of settings.
        fidelity: of all of them.

    Raises:
        ValueError: a domain cannot be loaded, two have one name, a number is not the benchmark's,
            there is none, or the fidelity is unknown.
    """
    one_of("--fidelity", fidelity, FIDELITIES)
    for env in envs:
        if env not in ENVS:
            raise ValueError(f"--envs: expected numbers from 1 to 6, got {env}")
    named: dict[str, str | None] = {}
    for domain in domains:
        name, path = _named(domain)
        if named.setdefault(name, path) != path:
            raise ValueError(f"--domains: expected domains of different names, got {name} twice")
    pairs = product(named, sorted(set(envs)))
    found = [Task(name, env, named[name], fidelity) for name, env in pairs]
    if not found:
        raise ValueError("expected one domain and one environment at least (--domains, --envs)")
    return found


def tasks_of_panel(
    panel: Panel, domains: Sequence[str] | None = None, envs: Sequence[int] | None = None
) -> list[Task]:
    """As `tasks_of`, with the panel's fidelity, and its own domains and settings for None."""
    own = [Task.of(environment) for environment in panel.environments]
    return tasks_of(
        [task.domain for task in own] if domains is None else domains,
        [task.env for task in own] if envs is None else envs,
        own[0].fidelity,
    )


def _named(domain: str) -> tuple[str, str | None]:
    """Name of a domain in tables, and its path where it is given by one."""
    if domain in DOMAINS or domain in SHORT:
        return SHORT.get(domain, domain), None
    if not is_path(domain) and not domain_files(domain) and domain not in BUILT_IN_DOMAINS:
        raise unknown("domain", domain, (*DOMAINS, *SHORT, *BUILT_IN_DOMAINS), "--domains")
    found = load_domain(domain)
    return (found.ontology.domain, found.played) if is_path(domain) else (domain, None)
