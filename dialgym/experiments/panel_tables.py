"""Tables of a panel: its rows, a comparison of two, and the costs of panels."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from dialgym.experiments.measure_tables import (
    compare_measures,
    measures_as_markdown,
)
from dialgym.experiments.ranking import (
    BOUNDS,
    RankedPolicy,
    Ranking,
    difference,
    improvement,
)
from dialgym.experiments.row import RETURN, total_cpu_seconds
from dialgym.experiments.significance import ALPHA
from dialgym.experiments.statistics import format_estimate
from dialgym.experiments.tables import markdown_table

OF_EPISODES = "†"
"""Mark of an interval over episodes, for want of runs."""
EPISODES_NOTE = f"{OF_EPISODES}: over the episodes of the one run"
PASSES = 4
"""The k of pass^k."""
UNITS = {"score": "score", "return": "return", "success": "success %"}
DIGITS = {"score": 1, "return": 2, "success": 1}
"""Digits that are shown of a metric."""
OWN_UNITS = ", each in its own unit"
"""Said of means of returns over several environments, of which large ones decide."""


def ranking_head(ranking: Ranking) -> list[str]:
    """The names of the columns."""
    names = [
        "rank",
        "policy",
        UNITS[ranking.metric],
        "IQM",
        "success",
        "other way",
        "better than next",
    ]
    if _has_passes(ranking):
        names.append(f"pass^{PASSES}")
    return [*names, "environments", "runs", "CPU h a run"]


def ranking_rows(ranking: Ranking) -> list[list[str]]:
    """The cells of each row, the best first."""
    return [_cells(ranking, i) for i in range(len(ranking.rows))]


def _cells(ranking: Ranking, i: int) -> list[str]:
    row = ranking.rows[i]
    low, high = ranking.ranks[i] if i < ranking.complete else (0, 0)
    rank = f"{low}" if low == high else f"{low}-{high}"
    cpu, digits = row.cpu_seconds, DIGITS[ranking.metric]
    cells = [
        rank if low else "-",
        row.label,
        _mean(row, digits),
        format_estimate(row.iqm, digits),
        f"{row.mean_success:.1f} %",
        "-" if row.other_mean is None else f"{row.other_mean:.{digits}f}",
        _next(ranking, i),
    ]
    if _has_passes(ranking):
        passed = row.pass_k(PASSES)
        cells.append("-" if passed is None else f"{100 * passed:.1f} %")
    return [
        *cells,
        f"{len(row.scores)}",
        row.runs,
        "-" if cpu is None else f"{cpu / 3600:.2f}",
    ]


def _mean(row: RankedPolicy, digits: int) -> str:
    """The mean with its interval, marked where that is over episodes."""
    return format_estimate(row.estimate, digits) + (OF_EPISODES if row.is_of_episodes else "")


def _next(ranking: Ranking, i: int) -> str:
    if i + 1 >= ranking.complete:
        return "-"
    return format_estimate(improvement(ranking.rows[i], ranking.rows[i + 1]), 2)


def _has_passes(ranking: Ranking) -> bool:
    return any(row.pass_k(PASSES) is not None for row in ranking.rows)


def ranking_caption(ranking: Ranking) -> str:
    """Caption of the table of a ranking."""
    panel, digits = ranking.panel, DIGITS[ranking.metric]
    within = " on the logit scale" if ranking.metric in BOUNDS else ""
    marked = any(row.is_of_episodes for row in ranking.rows)
    episodes = f" ({EPISODES_NOTE})" if marked else ""
    gap = "" if ranking.gap is None else (
        f" Minimum detectable gap (80 % power, median of the rows): {ranking.gap:.{digits}f}."
    )  # fmt: skip
    most = max((len(row.scores) for row in ranking.rows), default=0)
    more = " Its runs are known by their means alone." if panel.imported_from else ""
    if ranking.left_out:
        more += f" Left out, as trainings that were cut short: {', '.join(ranking.left_out)}."
    if ranking.changed:
        more += (
            " NOT COMPARABLE: rows of "
            f"{', '.join(ranking.changed)} were made with several versions of data or simulator."
        )
    if ranking.unlike:
        more += f" RUNS OF SEVERAL POLICIES OR SETTINGS: {', '.join(ranking.unlike)}."
    if ranking.unsealed:
        more += f" WITHOUT A CHECKSUM: files of {', '.join(ranking.unsealed)}."
    return (
        f"{panel.label}: {panel.description} Ranked by {UNITS[ranking.metric]}, the mean over "
        f"environments{_units(ranking.metric, most)}; in brackets the 95 % interval, Student's t "
        f"over runs{within}{episodes}. Rows are tied, and their ranks overlap, unless Welch's t "
        f"test tells them apart with Holm's correction over {_pairs(ranking)}: no rank is "
        "wrong in about 95 % of such tables (in simulations 89 to 100 %). Rows that lack "
        "environments have no rank. In round brackets the way of playing; other way: the same "
        "policy played greedily, or drawn. Better than next: probability that a run is better "
        f"than one of the next row.{more}{gap}"
    )


def _units(metric: str, environments: int) -> str:
    """The words for means of returns over several environments; empty for other means."""
    return OWN_UNITS if metric == RETURN and environments > 1 else ""


def _pairs(ranking: Ranking) -> str:
    """``all 66 pairs``."""
    count = ranking.complete * (ranking.complete - 1) // 2
    return f"all {count} pairs" if count != 1 else "its pair"


def ranking_as_markdown(ranking: Ranking) -> str:
    """The table of a panel, and what it means."""
    if not ranking.rows:
        return f"## {ranking.title}\n\nNo rows of version {ranking.panel.version} yet.\n"
    rows = markdown_table([ranking_head(ranking), *ranking_rows(ranking)])
    more = [f"\n{ranking.older_rules}\n" if ranking.older_rules else ""]
    if measures := measures_as_markdown(ranking):
        more.append(f"\n{measures}")
    return f"## {ranking.title}\n\n{rows}\n{ranking_caption(ranking)}\n{''.join(more)}"


def describe_replays(ranking: Ranking) -> str:
    """Tell which rows can be played again, and which cannot, as their models are not here."""
    if not any(row.rows for row in ranking.rows):
        return "not known"
    missing = ", ".join(ranking.unreplayable)
    lacking = f"; not {missing}, whose models are not beside the files" if missing else ""
    count = len(ranking.rows) - len(ranking.unreplayable)
    return f"{count} of {len(ranking.rows)} rows by `dialgym leaderboard check --replay`{lacking}"


def compare_rows(ranking: Ranking, first: str, second: str) -> str:
    """Compare two rows in each environment that both have played, as Markdown.

    Raises:
        ValueError: there is no such row, or no environment that both have played.
    """
    a, b = ranking[first], ranking[second]
    whole = difference(a, b)
    if whole is None:
        raise ValueError(f"compare: {first} and {second} have no environment in common")
    common, digits = [env_id for env_id in a.scores if env_id in b.scores], DIGITS[ranking.metric]
    rows = [["environment", a.label, b.label, "difference"]]
    for env_id in common:
        one, other = (
            RankedPolicy(row.name, row.actions, {env_id: row.scores[env_id]}, bounds=row.bounds)
            for row in (a, b)
        )
        gap = difference(one, other)
        assert gap is not None
        cells = [_mean(one, digits), _mean(other, digits), format_estimate(gap.estimate, digits)]
        rows.append([env_id.rpartition("/")[2], *cells])
    chance = improvement(a, b)
    verdict = (
        "no verdict, as nothing tells how it varies" if not whole.estimate.is_bounded
        else "a tie: the interval holds 0" if whole.p_value > ALPHA
        else f"{first if whole.estimate.value > 0 else second} is better"
    )  # fmt: skip
    marked = "" if not (a.is_of_episodes or b.is_of_episodes) else f" {EPISODES_NOTE}."
    more = "" if chance is None else f" Probability of improvement: {format_estimate(chance, 2)}."
    measures = compare_measures(ranking, first, second)
    units = _units(ranking.metric, len(common))
    where = "1 environment" if len(common) == 1 else f"{len(common)} environments"
    where += units and f"{units},"
    return (
        f"{markdown_table(rows)}\nOver {where} the difference is "
        f"{format_estimate(whole.estimate, digits)} ({UNITS[ranking.metric]}): {verdict}."
        f"{more}{marked}\n"
    ) + (measures and f"\n{measures}")


# Costs of panels


class PanelCosts(NamedTuple):
    """Cells and costs of a panel.

    Attributes:
        panel: its name, as the tables have it.
        cells: trainings and scripted policies that are there, a seed in an environment each.
        wanted: those that the panel asks for; None where that is not known.
        others: cells of rows that the panel does not ask for, such as your own.
        seeds: fewest and most of a row in an environment, and those that the panel asks for.
        cpu_seconds: of all cells; None where it is not known.
    """

    panel: str
    cells: int
    wanted: int | None
    others: int
    seeds: tuple[int, int, int]
    cpu_seconds: float | None


def panel_costs(
    rankings: Sequence[Ranking], wanted: int | None, cpu_seconds: float | None
) -> PanelCosts:
    """Count the cells of a panel, and sum up their costs.

    Args:
        rankings: of the panel, one for each source of data.
        wanted: cells that the panel asks for.
        cpu_seconds: of all cells, where the rows do not say.
    """
    panel = rankings[0].panel
    asked = {*panel.algorithms, *panel.references}
    policies = [policy for ranking in rankings for policy in ranking.rows]
    runs = [(one.name, len(part.seeds)) for one in policies for part in one.scores.values()]
    own = [n for name, n in runs if name in asked or not asked]
    known = total_cpu_seconds(row for one in policies for row in one.rows)
    seeds = [min(n, panel.seeds) for _, n in runs] or [0]
    return PanelCosts(
        panel.name,
        sum(own),
        wanted,
        sum(n for _, n in runs) - sum(own),
        (min(seeds), max(seeds), panel.seeds),
        cpu_seconds if known is None else known,
    )


def costs_as_markdown(totals: Sequence[PanelCosts]) -> str:
    """A table with a line for each panel, and one for all."""
    head = ["panel", "cells", "others' cells", "seeds", "CPU h"]
    rows = [
        [t.panel, _cell_count(t), str(t.others), _seeds(t), _hours(t.cpu_seconds)] for t in totals
    ]
    spent = [t.cpu_seconds for t in totals if t.cpu_seconds is not None]
    cells = sum(t.cells for t in totals)
    whole = ["all", str(cells), str(sum(t.others for t in totals)), "", _hours(sum(spent))]
    return (
        f"## What is there\n\n{markdown_table([head, *rows, whole])}\n"
        "A cell is a training, or a scripted policy, with one seed in one environment: those that "
        "the panel asks for, and others. Seeds: fewest and most of a row in an environment, of "
        "those asked for. CPU hours are of all cells that are there: training, stored dialogues "
        "and scoring, what was cut off and gone on with included; of runs that another command "
        "made, training alone. Cells that a GPU has trained are counted, and not their hours.\n"
    )


def _cell_count(total: PanelCosts) -> str:
    return f"{total.cells}" if total.wanted is None else f"{total.cells} of {total.wanted}"


def _seeds(total: PanelCosts) -> str:
    low, high, asked = total.seeds
    return f"{high if low == high else f'{low} to {high}'} of {asked}"


def _hours(seconds: float | None) -> str:
    return "-" if seconds is None else f"{seconds / 3600:.2f}"
