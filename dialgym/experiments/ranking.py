"""Ranking of the rows of a panel: means with intervals, ranks with ties, comparisons, gaps.

A row of the table is a name with several runs (trainings) in several environments. Environments
weigh the same. Intervals are Student's t over the runs, or over the episodes where there is one
run. Rows are ranked by tests of their differences (`difference`), with Holm's correction over all
pairs of a table.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import combinations
from typing import NamedTuple

import numpy as np

from dialgym.errors import unknown
from dialgym.experiments.panel import Panel
from dialgym.experiments.result import DRAWN, GREEDY
from dialgym.experiments.row import AS_NAMED, SCRIPTED, ExperimentRow
from dialgym.experiments.rules import Fingerprint, RowOrigin, older_rules
from dialgym.experiments.significance import (
    ALPHA,
    Difference,
    holm,
    mean_improvement,
    welch_difference,
)
from dialgym.experiments.statistics import (
    PERCENT,
    Estimate,
    Interval,
    iqm_estimate,
    mean_estimate,
    minimum_detectable_gap,
    pass_hat_k,
)

MIXED = "mixed"
"""The actions of a row whose runs are not all played in one way."""
OTHER = {DRAWN: GREEDY, GREEDY: DRAWN}
"""The other way to play a model."""
BOUNDS = {"success": PERCENT}
"""The least and the greatest value of metrics that have any."""


class SeedScores(NamedTuple):
    """A row of the table in one environment.

    Attributes:
        seeds: of the runs, ascending.
        values: (K, E) the metric in the episodes of each run; (K, 1) where means alone are known.
    """

    seeds: tuple[int, ...]
    values: np.ndarray


@dataclass(frozen=True, eq=False)
class RankedPolicy:
    """A row of the table.

    Attributes:
        name: of it.
        actions: how it is played: drawn, greedy or scripted; mixed where its runs differ.
        scores: by id.
        other_scores: the same with the other actions, drawn or greedy; empty if scripted.
        success: (K, E) per cent, by id.
        rows: the files; none where means of runs alone are known.
        origins: the rules that its rows say they were played by.
        bounds: the least and the greatest value that the metric can have, if there are any.
        cpu_seconds: of all that led to a run, mean; None if unknown.
    """

    name: str
    actions: str
    scores: Mapping[str, SeedScores]
    other_scores: Mapping[str, SeedScores] = field(default_factory=dict)
    success: Mapping[str, np.ndarray] = field(default_factory=dict)
    rows: Sequence[ExperimentRow] = ()
    origins: Sequence[RowOrigin] = ()
    bounds: Interval | None = None
    cpu_seconds: float | None = None

    @property
    def label(self) -> str:
        """The name, and in brackets how a model plays."""
        return label_of(self.name, self.actions)

    @cached_property
    def estimate(self) -> Estimate:
        """The mean over environments."""
        return mean_estimate([part.values for part in self._ordered], self.bounds)

    @cached_property
    def iqm(self) -> Estimate:
        """The interquartile mean over the runs of all environments."""
        means = [part.values.mean(1) for part in self._ordered]
        return iqm_estimate(means, [part.seeds for part in self._ordered], self.bounds)

    @property
    def is_of_episodes(self) -> bool:
        """True if the interval of `estimate` is over episodes somewhere, for want of runs."""
        return any(len(part.seeds) == 1 < part.values.size for part in self.scores.values())

    @property
    def mean_success(self) -> float:
        """Per cent, the mean over environments."""
        return float(np.mean([values.mean() for values in self.success.values()]))

    @property
    def other_mean(self) -> float | None:
        """The metric with the other actions, over the same environments; None for none."""
        if self.other_scores.keys() != self.scores.keys():
            return None
        return float(np.mean([part.values.mean() for part in self.other_scores.values()]))

    @property
    def runs(self) -> str:
        """Number in each environment; the least and the most where they differ."""
        counts = [len(part.seeds) for part in self.scores.values()]
        low, high = min(counts), max(counts)
        return f"{low}" if low == high else f"{low}-{high}"

    @cached_property
    def by_seed(self) -> np.ndarray:
        """(K,) means over environments of the seeds that all of them have."""
        common = set.intersection(*(set(part.seeds) for part in self.scores.values()))
        chosen = [
            [part.values[part.seeds.index(seed)].mean() for part in self.scores.values()]
            for seed in sorted(common)
        ]
        return np.mean(chosen, axis=1) if chosen else np.zeros(0)

    def pass_k(self, k: int) -> float | None:
        """pass^k over the goals of all environments and runs; None where no goals were fixed."""
        ways = [row.actions if self.actions == MIXED else self.actions for row in self.rows]
        trials = [row.values["trials"].get(way) for row, way in zip(self.rows, ways)]
        passes = [pass_hat_k(np.array(t, bool), k) for t in trials if t and len(t[0]) >= k]
        return float(np.mean(passes)) if passes else None

    @property
    def _ordered(self) -> list[SeedScores]:
        return [self.scores[env_id] for env_id in sorted(self.scores)]


def label_of(name: str, actions: str) -> str:
    """Name a row in tables, with how a model plays in brackets."""
    return name if actions == SCRIPTED else f"{name} ({actions})"


def difference(first: RankedPolicy, second: RankedPolicy) -> Difference | None:
    """Estimate how much higher the mean of the first is, over the environments of both.

    None for no such environment; see `welch_difference`. Runs of the same seeds are compared in
    pairs.

    Raises:
        ImportError: SciPy, of the extra ``agents``, is not installed.
    """
    common = [(first.scores[i], second.scores[i]) for i in _common(first, second)]
    if not common:
        return None
    paired = [a.seeds == b.seeds and a.values.shape == b.values.shape for a, b in common]
    pairs = ((a.values, b.values, pair) for (a, b), pair in zip(common, paired))
    return welch_difference(pairs, first.bounds)


def improvement(first: RankedPolicy, second: RankedPolicy) -> Estimate | None:
    """Estimate the probability that a run of the first is better, the mean over environments.

    None where they have no environment in common, or one run only of either.
    """
    ids = _common(first, second)
    pairs = [(first.scores[i].values, second.scores[i].values) for i in ids]
    if not pairs or min(min(len(x), len(y)) for x, y in pairs) < 2:
        return None
    return mean_improvement(pairs)


def _common(first: RankedPolicy, second: RankedPolicy) -> list[str]:
    """Ids of the environments that both have."""
    return sorted(first.scores.keys() & second.scores.keys())


@dataclass(frozen=True, eq=False)
class Ranking:
    """Policies of a panel, the best first.

    Attributes:
        panel: of which.
        rows: the highest mean first.
        metric: the panel's; the return where there are no references for scores.
        source: what stood in for the data that is named, if anything.
        left_out: names of policies with trainings that were cut short, and how many of them.
    """

    panel: Panel
    rows: Sequence[RankedPolicy]
    metric: str
    source: str = AS_NAMED
    left_out: Sequence[str] = ()

    @classmethod
    def all_of(
        cls, panel: Panel, rows: Sequence[ExperimentRow], actions: str | None = None
    ) -> list[Ranking]:
        """Make a ranking for each source: figures on what stands in do not compare with others.

        Args:
            panel: of the rows.
            rows: of its version.
            actions: drawn or greedy, for all models; None for those of their training.
        """
        sources = sorted({row.source for row in rows}, key=lambda name: (name != AS_NAMED, name))
        rankings = (cls.of(panel, [r for r in rows if r.source == one], actions) for one in sources)
        made = [replace(ranking, source=one) for ranking, one in zip(rankings, sources)]
        return made or [cls.of(panel, [])]

    @property
    def title(self) -> str:
        """The panel, and in brackets what stood in for its data."""
        return self.panel.name + ("" if self.source == AS_NAMED else f" ({self.source})")

    @cached_property
    def changed(self) -> list[str]:
        """Environments whose rows were not all made with the same data and simulator."""
        known: dict[str, set[Fingerprint]] = {}
        for row in (one for policy in self.rows for one in policy.rows):
            known.setdefault(row.id, set()).update([row.origin.rules] if row.origin.rules else [])
        return sorted(env_id for env_id, rules in known.items() if len(rules) > 1)

    @cached_property
    def older_rules(self) -> str:
        """A line about rows of older rules than those here; empty for none. It plays dialogues."""
        return older_rules(origin for row in self.rows for origin in row.origins)

    @property
    def unsealed(self) -> list[str]:
        """Names of rows with a file without a checksum, which may have been changed."""
        return [row.name for row in self.rows if not all(one.sealed for one in row.rows)]

    @property
    def unlike(self) -> list[str]:
        """Names of rows whose runs in one environment differ in policy or settings."""
        found = []
        for policy in self.rows:
            pairs = {(row.id, row.policy_digits) for row in policy.rows}
            if len(pairs) > len({row.id for row in policy.rows}):
                found.append(policy.name)
        return found

    @property
    def unreplayable(self) -> list[str]:
        """Names of rows whose policies are not all here, so that they cannot be played again."""
        return [row.name for row in self.rows if not all(one.is_replayable for one in row.rows)]

    @classmethod
    def of(cls, panel: Panel, rows: Sequence[ExperimentRow], actions: str | None = None) -> Ranking:
        """Rank the rows of a panel, all of one source; `actions` as of `all_of`."""
        scored = all(row.column("score") is not None for row in rows)
        metric = panel.metric if panel.metric != "score" or scored else "return"
        names = dict.fromkeys(row.name for row in rows)
        by_name = [[r for r in rows if r.name == name] for name in names]
        made = [ranked_policy(own, metric, actions) for own in by_name]
        return cls.sorted(panel, made, metric)

    @classmethod
    def sorted(cls, panel: Panel, rows: Sequence[RankedPolicy], metric: str) -> Ranking:
        """Rank policies, those with all environments first."""
        wide = _widest(rows)
        key = lambda row: (not wide <= {*row.scores}, -row.estimate.value, row.name)  # noqa: E731
        return cls(panel, sorted(rows, key=key), metric)

    @cached_property
    def ranks(self) -> list[tuple[int, int]]:
        """The best and the worst rank of each row that the tests of differences leave open.

        Of all pairs of the table those differ whose p-value is at most `ALPHA` after Holm's
        correction: that any of them is wrong has a probability of about `ALPHA`. Others are tied:
        their ranks overlap. Rows that lack environments have no rank: they stand at the end, and
        are in no other row's way.
        """
        n = self.complete
        better = np.zeros((n, n), bool)
        pairs = [*combinations(range(n), 2)]
        gaps = [difference(self.rows[i], self.rows[j]) for i, j in pairs]
        for (i, j), gap, p in zip(pairs, gaps, holm([g.p_value if g else 1.0 for g in gaps])):
            if gap is not None and p <= ALPHA:
                first, second = (i, j) if gap.estimate.value > 0 else (j, i)
                better[first, second] = True
        worse, best = better.sum(1), 1 + better.sum(0)
        return [(int(best[i]), n - int(worse[i])) for i in range(n)]

    @cached_property
    def complete(self) -> int:
        """Number of rows, the first ones, that have all environments that any row is ranked in."""
        wide = _widest(self.rows)
        return sum(wide <= {*row.scores} for row in self.rows)

    def __getitem__(self, name: str) -> RankedPolicy:
        for row in self.rows:
            if row.name == name:
                return row
        raise unknown("row", name, [row.name for row in self.rows], self.panel.label)

    @cached_property
    def gap(self) -> float | None:
        """The median of the minimum detectable gaps of the rows with two runs or more."""
        seeds = [row.by_seed for row in self.rows if row.actions != SCRIPTED]
        gaps = [minimum_detectable_gap(means[:, None]) for means in seeds if len(means) > 1]
        return float(np.median(gaps)) if gaps else None


def _widest(rows: Sequence[RankedPolicy]) -> frozenset[str]:
    """The environments that rows are ranked in: the most that a row has; of equally many those
    that most rows have."""
    sets = Counter(frozenset(row.scores) for row in rows)
    return max(sets, key=lambda ids: (len(ids), sets[ids], *sorted(ids)), default=frozenset())


def ranked_policy(
    rows: Sequence[ExperimentRow], metric: str, asked: str | None = None
) -> RankedPolicy:
    """Put the rows of one name together, with actions as `asked`, else as they were trained."""
    played = asked if all(asked in row.values["episodes"] for row in rows) else None
    ways = {played or row.actions for row in rows}
    actions = ways.pop() if len(ways) == 1 else MIXED
    scores, others, success = {}, {}, {}
    for env_id in sorted({row.id for row in rows}):
        own = sorted((row for row in rows if row.id == env_id), key=lambda row: row.seed)
        seeds = tuple(row.seed for row in own)
        scores[env_id] = SeedScores(
            seeds, np.array([row.column(metric, played) for row in own], float)
        )
        success[env_id] = np.array([row.column("success", played) for row in own], float)
        values = [_other_column(row, metric, played or row.actions) for row in own]
        if all(column is not None for column in values):
            others[env_id] = SeedScores(seeds, np.array(values, float))
    origins = [row.origin for row in rows]
    bounds = BOUNDS.get(metric)
    known = [row.cpu_seconds for row in rows if row.cpu_seconds is not None]
    cost = float(np.mean(known)) if known else None
    return RankedPolicy(rows[0].name, actions, scores, others, success, rows, origins, bounds, cost)


def _other_column(row: ExperimentRow, metric: str, actions: str) -> np.ndarray | None:
    """(E,) the metric as a run has it with the other actions; None where it was not played so."""
    return row.column(metric, OTHER[actions]) if actions in OTHER else None
