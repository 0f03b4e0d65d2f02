"""Tables of language measures: of all rows in each environment, and of two rows' differences.

A measure is compared with actions chosen in one way: greedy replies are of fewer words, and more
alike, than drawn ones.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from html import escape

import numpy as np

from dialgym.experiments.bootstrap import mean_difference
from dialgym.experiments.measures import BOUNDS
from dialgym.experiments.panel import PanelEnvironment
from dialgym.experiments.ranking import RankedPolicy, Ranking, SeedScores, difference, label_of
from dialgym.experiments.row import ACTIONS, MODEL_ACTIONS, RETURN, SCRIPTED
from dialgym.experiments.statistics import format_estimate, format_interval
from dialgym.experiments.tables import markdown_table
from dialgym.io.html_tables import html_table

DIGITS = {RETURN: 2, "words": 1, "sacrebleu": 4}
USUAL = 3
"""Digits that are shown of a measure."""


def measure_row(
    row: RankedPolicy, environment: PanelEnvironment, name: str, actions: str
) -> RankedPolicy | None:
    """Rank a row by a measure in one environment, with actions chosen in one way.

    None where its runs have not been measured so.
    """
    own = sorted((one for one in row.rows if one.id == environment.id), key=lambda one: one.seed)
    measured = [one.measure(name, actions) for one in own]
    known = [values for values in measured if values is not None]
    if not known or len(known) < len(measured):
        return None
    part = SeedScores(tuple(one.seed for one in own), np.array(known))
    return RankedPolicy(row.name, actions, {environment.id: part}, bounds=BOUNDS.get(name))


def measures_as_markdown(ranking: Ranking) -> str:
    """The tables of all environments that have measures; nothing where none has."""
    parts = [f"### {title}\n\n{markdown_table(rows)}" for title, rows in _tables(ranking)]
    return "\n".join([*parts, *([NOTE] if parts else [])])


def measures_as_html(ranking: Ranking) -> str:
    """Tables of measures as HTML."""
    parts = [f"<h3>{escape(title)}</h3>{html_table(rows)}" for title, rows in _tables(ranking)]
    note = escape(NOTE.replace("`", ""))
    return "".join([*parts, f'<p class="note">{note}</p>' if parts else ""])


NOTE = """\
Measures of the replies that rows are scored by; in brackets the 95 % interval, Student's t over
runs (over the replies of the one run, where there is no other), of shares on the logit scale.
`judge` is the share of replies that are good to a judge which pays no reward; `distinct2` and
`sacrebleu` are of all replies of a run together.
"""


def _tables(ranking: Ranking) -> Iterator[tuple[str, list[list[str]]]]:
    """Title and cells, the head first, of each environment with measures."""
    for environment in _measured(ranking):
        rows = [
            [label_of(row.name, actions), *cells]
            for row in ranking.rows
            for actions in ACTIONS
            if any(cells := _cells(row, environment, actions))
        ]
        if rows:
            head = ["policy", RETURN, *environment.measures]
            yield f"{ranking.title}: {environment.short}", [head, *rows]


def _measured(ranking: Ranking) -> list[PanelEnvironment]:
    return [environment for environment in ranking.panel.environments if environment.measures]


def _cells(row: RankedPolicy, environment: PanelEnvironment, actions: str) -> list[str]:
    names = (RETURN, *environment.measures)
    measured = {name: measure_row(row, environment, name, actions) for name in names}
    return [
        "" if one is None else format_estimate(one.estimate, _digits(name))
        for name, one in measured.items()
    ]


def _digits(name: str) -> int:
    return DIGITS.get(name, USUAL)


def compare_measures(ranking: Ranking, first: str, second: str) -> str:
    """The differences of two rows in each measure, as Markdown; nothing where there are none."""
    rows = list(_differences(ranking, ranking[first], ranking[second]))
    if not rows:
        return ""
    head = ["environment", "measure", "played", first, second, "difference", "over replies", "%"]
    return f"{markdown_table([head, *rows])}\n{ABOUT_DIFFERENCES}"


ABOUT_DIFFERENCES = """\
Differences with 95 % intervals: of Student's t over runs, in pairs where the seeds are the same;
over replies: of a bootstrap of the replies of these runs, each with that of the other policy in the
same dialogue. Per cent: of the second row's figure.
"""


def _differences(ranking: Ranking, a: RankedPolicy, b: RankedPolicy) -> Iterator[list[str]]:
    for environment in _measured(ranking):
        for first, second in _compared_actions(a, b):
            played = first if first == second else f"{first}, {second}"
            for name in (RETURN, *environment.measures):
                one = measure_row(a, environment, name, first)
                two = measure_row(b, environment, name, second)
                if one is not None and two is not None:
                    cells = _difference_cells(one, two, environment.id, _digits(name))
                    yield [environment.short, name, played, *cells]


def _difference_cells(one: RankedPolicy, two: RankedPolicy, env_id: str, digits: int) -> list[str]:
    gap, base = difference(one, two), two.estimate.value
    assert gap is not None
    return [
        *(format_estimate(each, digits) for each in (one.estimate, two.estimate, gap.estimate)),
        format_interval(over_replies(one.scores[env_id], two.scores[env_id]), digits),
        f"{100 * gap.estimate.value / abs(base):+.1f}" if base else "-",
    ]


def _compared_actions(a: RankedPolicy, b: RankedPolicy) -> Sequence[tuple[str, str]]:
    """The actions with which two rows are compared: the same where both have them."""
    if SCRIPTED in (a.actions, b.actions):
        return [(a.actions, b.actions)]
    return [(actions, actions) for actions in MODEL_ACTIONS]


def over_replies(one: SeedScores, other: SeedScores) -> tuple[float, float] | None:
    """The interval of the difference if other replies of the same runs had been drawn.

    None where single replies are not known, or the dialogues were others.
    """
    if one.seeds != other.seeds or one.values.shape != other.values.shape:
        return None
    if one.values.shape[1] < 2:
        return None
    return mean_difference(one.values, other.values).interval
