"""Tables of the leaderboard: a panel's rows, a comparison of two, as Markdown and as a page."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from html import escape
from os import PathLike
from pathlib import Path

import numpy as np

from dialgym.experiments.curves import Curve
from dialgym.experiments.measure_tables import (
    compare_measures,
    measures_as_html,
    measures_as_markdown,
)
from dialgym.experiments.pages import facts_list, page, section
from dialgym.experiments.ranking import (
    Board,
    Contestant,
    cost_of_score,
    difference,
    improvement,
    is_better,
)
from dialgym.experiments.statistics import format_estimate, performance_profile
from dialgym.experiments.svg import draw_curves, draw_intervals, draw_profiles
from dialgym.experiments.tables import markdown_table
from dialgym.io.files import write_text
from dialgym.io.html_tables import html_table
from dialgym.versions import command_line, versions

PASSES = 4
"""The k of pass^k."""
SHOWN = 4
"""Rows of which curves are drawn, the best."""
UNITS = {"score": "score", "return": "return", "success": "success %"}
DIGITS = {"score": 1, "return": 2, "success": 1}
"""Digits that are shown of a metric."""


def head(board: Board) -> list[str]:
    """The names of the columns."""
    names = [
        "rank",
        "policy",
        UNITS[board.metric],
        "IQM",
        "success",
        "other way",
        "better than next",
    ]
    if _has_passes(board):
        names.append(f"pass^{PASSES}")
    return [*names, "environments", "runs", "steps to target", "CPU h a run"]


def table(board: Board) -> list[list[str]]:
    """The cells of each row, the best first."""
    return [_cells(board, i) for i in range(len(board.rows))]


def _cells(board: Board, i: int) -> list[str]:
    row = board.rows[i]
    low, high = board.ranks[i] if i < board.complete else (0, 0)
    rank = f"{low}" if low == high else f"{low}-{high}"
    cpu, digits = row.cost("cpu_seconds"), DIGITS[board.metric]
    cells = [
        rank if low else "-",
        row.label,
        format_estimate(row.estimate, digits),
        format_estimate(row.iqm, digits),
        f"{row.mean_success:.1f} %",
        "-" if row.other_mean is None else f"{row.other_mean:.{digits}f}",
        _next(board, i),
    ]
    if _has_passes(board):
        found = row.pass_k(PASSES)
        cells.append("-" if found is None else f"{100 * found:.1f} %")
    steps = [cost_of_score(one, board.panel.evaluation.target) for one in row.rows]
    return [
        *cells,
        f"{len(row.parts)}",
        f"{row.runs}",
        reached([None if s is None else s[0] for s in steps]),
        "-" if cpu is None else f"{cpu / 3600:.2f}",
    ]


def reached(found: Sequence[float | None]) -> str:
    """The median of those that got there, and how many did."""
    known = [value for value in found if value is not None]
    return f"{np.median(known):,.0f} ({len(known)} of {len(found)})" if known else "-"


def _next(board: Board, i: int) -> str:
    if i + 1 >= board.complete:
        return "-"
    return format_estimate(improvement(board.rows[i], board.rows[i + 1]), 2)


def _has_passes(board: Board) -> bool:
    return any(row.pass_k(PASSES) is not None for row in board.rows)


def caption(board: Board) -> str:
    """What the figures mean."""
    panel, digits = board.panel, DIGITS[board.metric]
    gap = "" if board.gap is None else (
        f" Minimum detectable gap (80 % power, median of the rows): {board.gap:.{digits}f}."
    )  # fmt: skip
    joined = " Its runs are known by their means alone." if panel.joined else ""
    if board.changed:
        joined += (
            " NOT COMPARABLE: rows of "
            f"{', '.join(board.changed)} were made with several versions of data or simulator."
        )
    if board.unsealed:
        joined += f" WITHOUT A CHECKSUM: files of {', '.join(board.unsealed)}."
    target = f"{panel.evaluation.target:g}"
    return (
        f"{panel.label}: {panel.description} Ranked by {UNITS[board.metric]}, the mean over "
        "environments; in brackets the 95 % interval of a bootstrap of each environment's runs (of "
        "the episodes, where there is one run). Rows whose difference has a 95 % interval "
        "(Student's t) that holds 0 are tied: their ranks overlap; rows that lack environments "
        "have no rank. In round brackets the way of playing; other way: the "
        "same policy played greedily, or drawn. Better than next: probability that a run is better "
        "than one of the next row. Steps to target: of training until a score of "
        f"{target}, by the learning curve, and how many runs got there.{joined}{gap}"
    )


def as_markdown(board: Board) -> str:
    """The table of a panel, and what it means."""
    if not board.rows:
        return f"## {board.title}\n\nNo rows of version {board.panel.version} yet.\n"
    rows = markdown_table([head(board), *table(board)])
    more = [f"\n{board.older_rules}\n" if board.older_rules else ""]
    if measures := measures_as_markdown(board):
        more.append(f"\n{measures}")
    return f"## {board.title}\n\n{rows}\n{caption(board)}\n{''.join(more)}"


def replays(board: Board) -> str:
    """Which rows can be played again, and which cannot, as their models are not here."""
    if not any(row.rows for row in board.rows):
        return "not known"
    missing = ", ".join(board.unreplayable)
    lacking = f"; not {missing}, whose models are not beside the files" if missing else ""
    count = len(board.rows) - len(board.unreplayable)
    return f"{count} of {len(board.rows)} rows by `dialgym leaderboard check --replay`{lacking}"


def compare(board: Board, first: str, second: str) -> str:
    """Two rows in each environment that both have played, as Markdown.

    Raises:
        ValueError: there is no such row, or no environment that both have played.
    """
    a, b = board[first], board[second]
    whole = difference(a, b)
    if whole is None:
        raise ValueError(f"compare: {first} and {second} have no environment in common")
    common, digits = [env_id for env_id in a.parts if env_id in b.parts], DIGITS[board.metric]
    rows = [["environment", a.label, b.label, "difference"]]
    for env_id in common:
        one, other = (_only(row, env_id) for row in (a, b))
        found = difference(one, other)
        assert found is not None
        cells = [format_estimate(each, digits) for each in (one.estimate, other.estimate, found)]
        rows.append([env_id.rpartition("/")[2], *cells])
    chance = improvement(a, b)
    verdict = (
        f"{first} is better" if is_better(whole)
        else f"{second} is better" if is_better(difference(b, a))
        else "a tie: the interval holds 0"
    )  # fmt: skip
    more = "" if chance is None else f" Probability of improvement: {format_estimate(chance, 2)}."
    measures = compare_measures(board, first, second)
    where = "1 environment" if len(common) == 1 else f"{len(common)} environments"
    return (
        f"{markdown_table(rows)}\nOver {where} the difference is "
        f"{format_estimate(whole, digits)} ({UNITS[board.metric]}): {verdict}.{more}\n"
    ) + (measures and f"\n{measures}")


def _only(row: Contestant, env_id: str) -> Contestant:
    return Contestant(row.name, row.way, {env_id: row.parts[env_id]})


# As a page


def write_page(path: str | PathLike[str], board: Board) -> None:
    """Write a panel as one HTML file that needs no network.

    Raises:
        OSError: the file cannot be written.
    """
    measures = measures_as_html(board)
    parts = [
        section("table", "Table", _html_table(board)),
        section("measures", "Measures", measures) if measures else "",
        section("profile", "Performance profile", _profiles(board)) if board.rows else "",
        section("curves", "Learning", "".join(_curves(board))) if any(_curves(board)) else "",
        section("origin", "How it was made", _origin(board)),
    ]
    write_text(Path(path), page(f"Leaderboard: {board.title}", "".join(parts)))


def _html_table(board: Board) -> str:
    if not board.rows:
        return "<p>No rows yet.</p>"
    rows = [[*cells[:3], "", *cells[3:]] for cells in (head(board), *table(board))]
    bars = draw_intervals([row.estimate for row in board.rows])
    return (
        html_table(rows, "ranking", left=1, bars=(3, bars))
        + f'<p class="note">{escape(caption(board))}</p>'
        f'<p class="note">{escape(board.older_rules)}</p>'
    )


def _profiles(board: Board) -> str:
    """The share of runs above each value, of the first rows."""
    runs = {
        row.name: np.concatenate([part.values.mean(1) for part in row.parts.values()])[None]
        for row in board.rows[: min(board.complete, SHOWN)]
    }
    low = min(float(v.min()) for v in runs.values())
    high = max(float(v.max()) for v in runs.values())
    at = np.linspace(low, high if high > low else low + 1, 101)
    shares = {name: performance_profile(values, list(at)) for name, values in runs.items()}
    note = (
        f"Share of runs, over all environments, whose mean {UNITS[board.metric]} is above a value; "
        f"of the best {len(runs)} rows with all environments."
    )
    return f'{draw_profiles(at, shares)}<p class="note">{escape(note)}</p>'


def _curves(board: Board) -> Iterator[str]:
    """Of each environment the learning curves of the best rows, the mean of their runs."""
    for place in board.panel.environments:
        found: list[Curve] = []
        references = _scripted(board, place.id)
        for row in board.rows:
            own = [np.array(r.values["curve"], float) for r in row.rows if r.id == place.id]
            own = [curve for curve in own if len(curve) > 1]
            if own and len(found) < SHOWN:
                steps = np.linspace(max(c[0, 0] for c in own), min(c[-1, 0] for c in own), 100)
                mean = np.mean([np.interp(steps, c[:, 0], c[:, 2]) for c in own], axis=0)
                found.append(Curve(row.name, steps, mean, references))
        if found:
            yield f"<h3>{escape(place.short)}</h3>{draw_curves(found)}"


def _scripted(board: Board, env_id: str) -> dict[str, float]:
    """The mean returns of the scripted policies there, by name."""
    scripted = [row for row in board.rows if row.way == "scripted"]
    found = {row.name: [r for r in row.rows if r.id == env_id] for row in scripted}
    return {
        name: float(np.mean([r.values["statistics"][r.way]["return"] for r in own]))
        for name, own in found.items()
        if own
    }


def _origin(board: Board) -> str:
    rows = [one for row in board.rows for one in row.rows]
    hours = sum(float(one.values["cost"].get("cpu_seconds", 0)) for one in rows) / 3600
    machines = sorted({str(one.values["hardware"].get("processor")) for one in rows})
    facts = {
        "panel": board.panel.label,
        "about": board.panel.description,
        "environments": ", ".join(place.short for place in board.panel.environments),
        "files": str(len(rows)) if rows else f"joined from {board.panel.joined}",
        "checksums": f"missing in rows of {', '.join(board.unsealed)}" if board.unsealed else "all",
        "can be played again": replays(board),
        "CPU hours": f"{hours:.1f}" if rows else "not known",
        "hardware": ", ".join(machines) or "not known",
        "commands": "; ".join(sorted({str(one.values["command"]) for one in rows}))
        or "see tables.md",
        "this page": command_line() or "from Python",
        "versions": ", ".join(f"{k} {v}" for k, v in versions().items() if v),
    }
    return facts_list(facts)
