"""Panels of the leaderboard: environments, learners, budgets and evaluation of a version.

They stand in `panels:` of envs_registry.yaml. A change that moves figures is a new version: rows of
another one are not shown beside it. ``wordle@0.1`` is a panel with a tenth of the budgets of
`wordle`: its rows lie and are shown apart.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import cache
from typing import Any, Self

from dialgym.errors import unknown
from dialgym.experiments.measures import check_names
from dialgym.io.files import read_registry
from dialgym.io.strict_reader import StrictReader
from dialgym.registry import entry_of
from dialgym.rollouts.episodes import every_secret
from dialgym.tasks import Task

METRICS = ("score", "return", "success")
BUDGETS = ("tokens", "acts", "dialogues", "gradient_steps")
"""Units of a budget: what an algorithm plays, or how often it learns from stored dialogues."""
SECRETS = DRAWN_SECRETS, ALL_SECRETS = ("drawn", "all")
SHARE = "@"
"""Between the name of a panel and a share of its budgets."""
Values = Mapping[str, Any]


@dataclass(frozen=True)
class StoredDialogues:
    """The dialogues that learners read which do not play.

    Attributes:
        policy: or generator that held them.
        episodes: how many.
        seed: of the first; the same for all learners and seeds.
        policy_kwargs: settings of the policy.
    """

    policy: str
    episodes: int
    seed: int = 1_000_000
    policy_kwargs: Values = field(default_factory=dict)


@dataclass(frozen=True)
class PanelEnvironment:
    """An environment of a panel.

    Attributes:
        id: in full.
        settings: as for `gym.make`.
        budget: by unit.
        goals: options of `reset`, a mapping for each goal that pass^k is measured with.
        data: stored dialogues; None where nobody reads any.
        held_out: settings over those, by which policies are scored and nothing is learned.
        measures: of the replies that are scored, see `dialgym.experiments.measures`.
        budgets: of single learners by name, in place of their own.
    """

    id: str
    settings: Values = field(default_factory=dict)
    budget: Mapping[str, int] = field(default_factory=dict)
    goals: tuple[Values, ...] = ()
    data: StoredDialogues | None = None
    held_out: Values = field(default_factory=dict)
    measures: tuple[str, ...] = ()
    budgets: Mapping[str, Mapping[str, int]] = field(default_factory=dict)

    @property
    def scoring_settings(self) -> dict[str, Any]:
        """The settings in which policies are scored."""
        return {**self.settings, **self.held_out}

    @property
    def short(self) -> str:
        """The id without its namespace."""
        return self.id.rpartition("/")[2]

    def scaled(self, share: float) -> Self:
        """With that share of every budget; stored dialogues stay as many."""
        budgets = {name: _scaled(budget, share) for name, budget in self.budgets.items()}
        return replace(self, budget=_scaled(self.budget, share), budgets=budgets)

    def budget_of(self, learner: PanelLearner) -> dict[str, int]:
        """The budget of a learner here: the environment's, its own, or its own here."""
        return {**self.budget, **learner.budget, **self.budgets.get(learner.name, {})}


@dataclass(frozen=True)
class PanelLearner:
    """An algorithm of a panel.

    Attributes:
        name: of its row in tables.
        algorithm: in the table of algorithms.
        hyperparameters: that replace those tuned for the environment.
        start: the learner whose model it begins with.
        budget: by unit, in place of an environment's.
        environments: ids of those of the panel that it learns in; none for all that it can play.
        settings: of the environment in its training, over the panel's; it is scored without them,
            and reads the panel's stored dialogues.
    """

    name: str
    algorithm: str
    hyperparameters: Values = field(default_factory=dict)
    start: str | None = None
    budget: Mapping[str, int] = field(default_factory=dict)
    environments: tuple[str, ...] = ()
    settings: Values = field(default_factory=dict)

    def scaled(self, share: float) -> Self:
        """With that share of its own budget, if it has any."""
        return replace(self, budget=_scaled(self.budget, share))


def _scaled(budget: Mapping[str, int], share: float) -> dict[str, int]:
    return {unit: max(1, round(share * amount)) for unit, amount in budget.items()}


@dataclass(frozen=True)
class Evaluation:
    """Protocol by which policies are scored.

    Attributes:
        episodes: of each seed of training, drawn and greedy.
        seed: added to that of the training, so that rows of one seed play the same dialogues.
        trials: dialogues of each goal, for pass^k.
        secrets: ``drawn``, or ``all``: everything that may be hidden is played equally often, so
            many times that there are `episodes` or more.
    """

    episodes: int = 500
    seed: int = 7_000_000
    trials: int = 8
    secrets: str = DRAWN_SECRETS

    def options(self, task: Task) -> list[Mapping[str, Any]]:
        """The options of `reset` of each episode of a task.

        Raises:
            ValueError: all secrets are to be played, and the task has no list of them.
        """
        if self.secrets == DRAWN_SECRETS:
            return [{}] * self.episodes
        secrets = task.secrets()
        if not secrets:
            raise ValueError(
                f"evaluation, secrets: {task.name} has no list of its secrets (Task.secrets); "
                f"expected {DRAWN_SECRETS!r}."
            )
        return every_secret(secrets, self.episodes)


@dataclass(frozen=True)
class Panel:
    """A fixed set of environments, budgets and learners.

    Attributes:
        name, version, description: what it is called, and about.
        environments: what is played.
        algorithms: the learners of its own table; others may be added.
        evaluation: how policies are scored.
        seeds: trainings of each learner.
        references: scripted policies that stand beside them.
        metric: what rows are ranked by: the normalised score, the return or the success.
        imported_from: the folder of `benchmarks/results` with the tables of its tests, where it
            has no rows; see `stages`.
        stages: after how many dialogues of training a learner is tested; none where it is scored
            at the end alone.
    """

    name: str
    version: int
    description: str
    environments: tuple[PanelEnvironment, ...]
    algorithms: Mapping[str, PanelLearner] = field(default_factory=dict)
    evaluation: Evaluation = field(default_factory=Evaluation)
    seeds: int = 5
    references: tuple[str, ...] = ()
    metric: str = "score"
    imported_from: str | None = None
    stages: tuple[int, ...] = ()

    def environment(self, env_id: str) -> PanelEnvironment:
        """The environment of an id, with or without the namespace.

        Raises:
            ValueError: the panel has none of that name.
        """
        for environment in self.environments:
            if env_id in (environment.id, environment.short):
                return environment
        raise unknown("environment", env_id, (p.short for p in self.environments), self.label)

    def check_seed(self, seed: int, where: str) -> None:
        """Raise a ValueError where a seed is none of the panel's: it chooses the episodes, too."""
        if not 0 <= seed < self.seeds:
            raise ValueError(
                f"{where}: expected a seed of {self.label}, 0 to {self.seeds - 1}, got {seed}: "
                "rows may not choose their episodes"
            )

    @property
    def label(self) -> str:
        """``wordle, version 1``."""
        return f"{self.name}, version {self.version}"

    def scaled(self, share: float) -> Self:
        """The panel with that share of every budget: another one, ``wordle@0.1``, of its own rows.

        Raises:
            ValueError: the share is not between 0 and 1, or the panel has no budgets.
        """
        if self.imported_from:
            raise ValueError(
                f"panel {self.name!r} has tests of whole trainings, and no budgets to take a "
                "share of"
            )
        if not 0 < share < 1:
            raise ValueError(
                f"panel {self.name!r}: expected a share of its budgets between 0 and 1, such as "
                f"{self.name}{SHARE}0.1, got {share:g}"
            )
        return replace(
            self,
            name=f"{self.name}{SHARE}{share:g}",
            description=f"{self.description} With {100 * share:g} % of the budgets.",
            environments=tuple(environment.scaled(share) for environment in self.environments),
            algorithms={name: one.scaled(share) for name, one in self.algorithms.items()},
        )

    @classmethod
    def of(cls, name: str, values: Any) -> Self:
        """A panel from plain values.

        Raises:
            ValueError: they are not of this form; the message says what, where, expected, got.
        """
        where = f"panel {name!r}"
        row = StrictReader(where, values, _fields(cls, "name"))
        settings, budget = row.get("settings", dict, {}), row.numbers("budget", BUDGETS)
        data = _stored(f"{where}, data", row.get("data", dict, None))
        common = PanelEnvironment("", settings, budget, (), data, row.get("held_out", dict, {}))
        listed = enumerate(row.get("environments", list))
        environments = tuple(
            _environment(f"{where}, environments[{i}]", v, common) for i, v in listed
        )
        learners = row.get("algorithms", dict, {})
        panel = cls(
            name,
            row.count("version"),
            row.get("description", str),
            environments,
            {key: _learner(where, str(key), value) for key, value in learners.items()},
            _evaluation(f"{where}, evaluation", row.get("evaluation", dict, {})),
            row.count("seeds", 5),
            tuple(row.get("references", list, [])),
            row.one_of("metric", METRICS, "score"),
            row.get("imported_from", str, None),
            tuple(row.get("stages", list, [])),
        )
        return panel._checked(where)

    def chain(self, learner: PanelLearner) -> list[PanelLearner]:
        """The learner, before it the one whose model it begins with, and so on.

        Raises:
            ValueError: one of them is unknown, or begins with itself.
        """
        chain, where = [learner], f"panel {self.name!r}, start"
        while (start := chain[0].start) is not None:
            if start not in self.algorithms:
                raise unknown("learner", start, self.algorithms, where)
            if start in (one.name for one in chain):
                raise ValueError(f"{where}: expected a first learner, got {start!r} before itself")
            chain.insert(0, self.algorithms[start])
        return chain

    def _checked(self, where: str) -> Self:
        ids = [environment.id for environment in self.environments]
        if not ids or len(set(ids)) < len(ids):
            raise ValueError(f"{where}, environments: expected distinct ids, got {ids}")
        for learner in self.algorithms.values():
            self.chain(learner)
            for env_id in learner.environments:
                self.environment(env_id)
        for environment in self.environments:
            for name in environment.budgets:
                if name not in self.algorithms:
                    at = f"{where}, {environment.short}, budgets"
                    raise unknown("learner", name, self.algorithms, at)
        return self


def panels() -> Mapping[str, Panel]:
    """The panels of envs_registry.yaml, by name."""
    return _panels()


def panel_named(name: str) -> Panel:
    """One of them; ``wordle@0.1`` is that of the name with a tenth of its budgets.

    Raises:
        ValueError: there is none of that name, or the share is none.
    """
    whole, scaled, share = name.partition(SHARE)
    if whole not in panels():
        raise unknown("panel", name, panels(), "envs_registry.yaml")
    panel = panels()[whole]
    if not scaled:
        return panel
    try:
        amount = float(share)
    except ValueError:
        raise ValueError(
            f"panel {name!r}: expected a number after {SHARE!r}, such as {whole}{SHARE}0.1"
        ) from None
    return panel.scaled(amount)


@cache
def _panels() -> Mapping[str, Panel]:
    rows = read_registry().get("panels") or {}
    return {name: Panel.of(name, values) for name, values in rows.items()}


def digest(values: Any) -> str:
    """16 hexadecimal digits of plain values."""
    text = json.dumps(values, sort_keys=True, separators=(",", ":"), default=str)
    return hashlib.sha256(text.encode()).hexdigest()[:16]


# Reading


def _environment(where: str, values: Any, common: PanelEnvironment) -> PanelEnvironment:
    """An environment, whose own entries go over what all have in common; an id alone will do."""
    row = StrictReader(
        where, {"id": values} if isinstance(values, str) else values, _fields(PanelEnvironment)
    )
    try:
        env_id = entry_of(row.get("id", str)).id
    except ValueError as error:
        raise ValueError(f"{where}, id: {error}") from None
    goals = row.get("goals", list, [])
    own = _stored(f"{where}, data", row.get("data", dict, None))
    return PanelEnvironment(
        env_id,
        {**common.settings, **row.get("settings", dict, {})},
        {**common.budget, **row.numbers("budget", BUDGETS)},
        tuple(dict(goal) for goal in goals),
        own or common.data,
        {**common.held_out, **row.get("held_out", dict, {})},
        check_names(row.get("measures", list, []), f"{where}, measures"),
        _budgets(f"{where}, budgets", row.get("budgets", dict, {})),
    )


def _budgets(where: str, values: Values) -> dict[str, dict[str, int]]:
    row = StrictReader(where, values, list(values))
    return {name: row.numbers(name, BUDGETS) for name in values}


def _learner(where: str, name: str, values: Any) -> PanelLearner:
    row = StrictReader(f"{where}, algorithms, {name}", values or {}, _fields(PanelLearner, "name"))
    return PanelLearner(
        name,
        row.get("algorithm", str, name),
        row.get("hyperparameters", dict, {}),
        row.get("start", str, None),
        row.numbers("budget", BUDGETS),
        tuple(map(str, row.get("environments", list, []))),
        row.get("settings", dict, {}),
    )


def _evaluation(where: str, values: Values) -> Evaluation:
    row, default = StrictReader(where, values, _fields(Evaluation)), Evaluation()
    return Evaluation(
        row.count("episodes", default.episodes),
        row.count("seed", default.seed),
        row.count("trials", default.trials),
        row.one_of("secrets", SECRETS, default.secrets),
    )


def _stored(where: str, values: Values | None) -> StoredDialogues | None:
    if values is None:
        return None
    row = StrictReader(where, values, _fields(StoredDialogues))
    return StoredDialogues(
        row.get("policy", str),
        row.count("episodes"),
        row.count("seed", StoredDialogues.seed),
        row.get("policy_kwargs", dict, {}),
    )


def _fields(cls: Any, *without: str) -> list[str]:
    extra = ["settings", "budget", "data", "held_out"] if cls is Panel else []
    return [name for name in cls.__dataclass_fields__ if name not in without] + extra
