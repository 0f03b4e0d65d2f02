"""Pages of results, each one HTML file that needs no network: of a benchmark, a run, a panel.

Every text goes through `html.escape`; there is no script in the page, and its content security
policy allows none.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from html import escape
from importlib.resources import files
from itertools import groupby
from os import PathLike
from pathlib import Path

import numpy as np

from dialgym.experiments.benchmark import Benchmark
from dialgym.experiments.curves import Curve
from dialgym.experiments.measure_tables import measures_as_html
from dialgym.experiments.metric_tables import NOTE, metric_tables
from dialgym.experiments.panel_tables import (
    UNITS,
    describe_replays,
    ranking_caption,
    ranking_head,
    ranking_rows,
)
from dialgym.experiments.ranking import Ranking
from dialgym.experiments.result import PREFIX, Result, caption, labels, measured_in
from dialgym.experiments.row import SCRIPTED, total_cpu_seconds
from dialgym.experiments.samples import SampleDialogue, SampleUtterance
from dialgym.experiments.statistics import Estimate, format_interval, performance_profile
from dialgym.experiments.svg import draw_curves, draw_intervals, draw_profiles
from dialgym.io.files import paired, write_text
from dialgym.io.html_tables import html_table
from dialgym.tasks.base import SYSTEM, USER
from dialgym.versions import command_line, versions

Facts = Mapping[str, str]
TILES = {"green": "hit", "yellow": "near", "bright_black": "miss"}
"""Backgrounds of rich's styles, and the classes that stand for them."""
COLOURS = {"green": "good", "red": "bad", "bright_black": "dim", "yellow": "near-text"}


def write_report(
    path: str | PathLike[str],
    outcome: Benchmark,
    title: str | None = None,
    run: Facts | None = None,
    hyperparameters: Facts | None = None,
    analysis: str = "",
) -> None:
    """Write a page of all that a benchmark found.

    Args:
        path: of the file.
        outcome: as of `benchmark`.
        title: of the page; the policies' names if None.
        run: what a training run was and came to, by name.
        hyperparameters: of that run.
        analysis: further parts, HTML of `analysis_page.analysis_sections`.

    Raises:
        OSError: the file cannot be written.
    """
    name = title or _title(outcome.results)
    parts = [
        section("run", "The run", facts_list(run)) if run else "",
        section("scores", "Scores", "".join(_scores(outcome.results))),
        section("curve", "Learning", draw_curves(outcome.curves)) if outcome.curves else "",
        section("dialogues", "Dialogues", "".join(_dialogues(outcome))) if outcome.games else "",
        analysis,
        section("origin", "How it was made", _origin(outcome, hyperparameters or {})),
    ]
    write_text(Path(path), page(name, "".join(parts)))


def _title(results: Sequence[Result]) -> str:
    ids = [label.removeprefix(PREFIX) for _, label in labels(results)]
    where = ", ".join(ids) if len(ids) < 3 else f"{len(ids)} environments"
    return f"{', '.join(result.name for result in results)} in {where}"


def page(title: str, body: str) -> str:
    """A whole page in the style of reports; the body is HTML. A lone surrogate is U+FFFD there."""
    style = (files("dialgym.experiments") / "report.css").read_text("utf-8")
    return paired(
        '<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        '<meta http-equiv="Content-Security-Policy" content="default-src \'none\'; '
        "style-src 'unsafe-inline'; img-src data:\">\n"
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        f"<title>{escape(title)} - dialgym</title>\n<style>\n{style}</style>\n</head>\n<body>\n"
        f'<header><p class="brand">dialgym report</p><h1>{escape(title)}</h1></header>\n'
        f"<main>\n{body}</main>\n</body>\n</html>\n"
    )


def section(name: str, title: str, body: str) -> str:
    """A part of a page; the body is HTML."""
    return f'<section id="{name}">\n<h2>{escape(title)}</h2>\n{body}\n</section>\n'


def facts_list(facts: Facts) -> str:
    """Names with values, as HTML."""
    rows = "".join(f"<dt>{escape(k)}</dt><dd>{escape(str(v))}</dd>" for k, v in facts.items())
    return f'<dl class="facts">{rows}</dl>'


# Scores


def _scores(results: Sequence[Result]) -> Iterator[str]:
    head = ["policy", "mean return", "95 % interval", "success", "score", "turns"]
    for env_id, label in labels(results):
        own = [r for r in results if env_id in r.by_id and r.label(env_id) == label]
        bars = draw_intervals([Estimate(r[env_id].mean_return, *r[env_id].interval) for r in own])
        yield f"<h3>{escape(label.removeprefix(PREFIX))}</h3>\n"
        yield html_table([head, *(_cells(r, env_id) for r in own)], "scores", bars=(2, bars))
    yield f'<p class="note">{escape(caption(*results))}</p>'
    tables = list(metric_tables(measured_in(results)))
    for label, rows in tables:
        yield f"<h3>{escape(label)}: measures</h3>\n{html_table(rows, 'scores')}"
    if tables:
        yield f'<p class="note">{escape(NOTE)}</p>'


def _cells(result: Result, env_id: str) -> list[str]:
    part = result[env_id]
    return [
        result.name,
        f"{part.mean_return:.2f}",
        format_interval(part.interval, 2),
        f"{100 * part.success:.0f} %",
        "-" if part.score is None else f"{part.score:.1f}",
        f"{part.mean_length:.1f}",
    ]


# Dialogues


def _dialogues(outcome: Benchmark) -> Iterator[str]:
    names = outcome.labels()
    yield '<p class="note">Each row is one dialogue, begun by the same seed for every policy.</p>'
    for env_id, games in groupby(outcome.games_by_id(), key=lambda game: game.env_id):
        yield f"<h3>{escape(names[env_id].removeprefix(PREFIX))}</h3>\n"
        for job, alike in groupby(games, key=lambda game: game.job):
            shown = list(alike)
            hidden = shown[0].hidden
            note = f' <span class="hidden">{escape(hidden)}</span>' if hidden else ""
            yield f'<h4>seed {job[0]}, episode {job[1]}{note}</h4>\n<div class="row">'
            yield from map(_game, shown)
            yield "</div>\n"


def _game(game: SampleDialogue) -> str:
    badge = '<b class="good">solved</b>' if game.solved else '<b class="bad">not solved</b>'
    turns = "1 turn" if game.turns == 1 else f"{game.turns} turns"
    head = (
        f"<strong>{escape(game.policy)}</strong> {badge} {turns}, return {game.episode_return:.3g}"
    )
    lines = "".join(map(draw_utterance, game.utterances))
    return f'<article><p class="head">{head}</p>{lines}</article>'


def draw_utterance(line: SampleUtterance) -> str:
    """Draw an utterance as HTML: its speaker, and its text in styles."""
    side = "private" if line.private else "own" if line.own else "other"
    pieces = [(escape(text), _classes(style)) for text, style in line.pieces]
    text = "".join(f'<span class="{kind}">{part}</span>' if kind else part for part, kind in pieces)
    speaker = line.speaker if line.speaker in (SYSTEM, USER) else "nobody"
    return f'<p class="{side} {speaker}"><small>{escape(line.speaker)}</small>{text}</p>'


def _classes(style: str) -> str:
    """The classes for a style in rich's words, such as ``bold black on green``."""
    front, on, back = style.partition("on ")
    if on:
        return f"tile {TILES.get(back.strip(), 'miss')}"
    return " ".join(COLOURS[word] for word in front.split() if word in COLOURS)


# Origin


def _origin(outcome: Benchmark, hyperparameters: Facts) -> str:
    first = outcome.results[0]
    settings = ", ".join(f"{k}={v}" for k, v in first.env_kwargs.items()) or "those of the ids"
    facts = {
        "command": command_line() or "from Python",
        "environments": ", ".join(label for _, label in labels(outcome.results)),
        "settings": settings,
        "policies": ", ".join(result.name for result in outcome.results),
        "seeds": ", ".join(map(str, first.seeds)),
        "episodes for each seed": str(next(iter(first.by_id.values())).returns.shape[1]),
        **({"left out": " ".join(outcome.notes)} if outcome.notes else {}),
        **{f"no policy {name!r} in": ", ".join(ids) for name, ids in outcome.absent.items()},
        "versions": ", ".join(f"{k} {v}" for k, v in versions().items() if v),
    }
    more = facts_list(hyperparameters) if hyperparameters else ""
    details = f"<details><summary>hyperparameters</summary>{more}</details>" if more else ""
    return f"{facts_list(facts)}{details}"


def plain_facts(values: Mapping[str, object], names: Iterable[str]) -> dict[str, str]:
    """The values that are not empty, as text."""
    return {name: str(values[name]) for name in names if values.get(name) not in (None, "", {}, [])}


# A panel

SHOWN = 4
"""Rows of which curves are drawn, the best."""


def write_ranking(path: str | PathLike[str], ranking: Ranking) -> None:
    """Write a panel as one HTML file that needs no network.

    Raises:
        OSError: the file cannot be written.
    """
    measures, curves = measures_as_html(ranking), "".join(_ranking_curves(ranking))
    parts = [
        section("table", "Table", _html_table(ranking)),
        section("measures", "Measures", measures) if measures else "",
        section("profile", "Performance profile", _profiles(ranking)) if ranking.rows else "",
        section("curves", "Learning", curves) if curves else "",
        section("origin", "How it was made", _ranking_origin(ranking)),
    ]
    write_text(Path(path), page(f"Leaderboard: {ranking.title}", "".join(parts)))


def _html_table(ranking: Ranking) -> str:
    if not ranking.rows:
        return "<p>No rows yet.</p>"
    rows = [
        [*cells[:3], "", *cells[3:]] for cells in (ranking_head(ranking), *ranking_rows(ranking))
    ]
    bars = draw_intervals([row.estimate for row in ranking.rows])
    return (
        html_table(rows, "ranking", left=1, bars=(3, bars))
        + f'<p class="note">{escape(ranking_caption(ranking))}</p>'
        f'<p class="note">{escape(ranking.older_rules)}</p>'
    )


def _profiles(ranking: Ranking) -> str:
    """The share of runs above each value, of the first rows."""
    runs = {
        row.name: np.concatenate([part.values.mean(1) for part in row.scores.values()])[None]
        for row in ranking.rows[: min(ranking.complete, SHOWN)]
    }
    low = min(float(v.min()) for v in runs.values())
    high = max(float(v.max()) for v in runs.values())
    at = np.linspace(low, high if high > low else low + 1, 101)
    shares = {name: performance_profile(values, list(at)) for name, values in runs.items()}
    note = (
        f"Share of runs, over all environments, whose mean {UNITS[ranking.metric]} is above a "
        f"value; of the best {len(runs)} rows with all environments."
    )
    return f'{draw_profiles(at, shares)}<p class="note">{escape(note)}</p>'


def _ranking_curves(ranking: Ranking) -> Iterator[str]:
    """Learning curves of the best rows, the mean of their runs, in each environment."""
    for environment in ranking.panel.environments:
        curves: list[Curve] = []
        references = _scripted(ranking, environment.id)
        for row in ranking.rows:
            own = [np.array(r.values["curve"], float) for r in row.rows if r.id == environment.id]
            own = [curve for curve in own if len(curve) > 1]
            if own and len(curves) < SHOWN:
                steps = np.linspace(max(c[0, 0] for c in own), min(c[-1, 0] for c in own), 100)
                mean = np.mean([np.interp(steps, c[:, 0], c[:, 2]) for c in own], axis=0)
                curves.append(Curve(row.name, steps, mean, references))
        if curves:
            yield f"<h3>{escape(environment.short)}</h3>{draw_curves(curves)}"


def _scripted(ranking: Ranking, env_id: str) -> dict[str, float]:
    """The mean returns of the scripted policies there, by name."""
    scripted = [row for row in ranking.rows if row.actions == SCRIPTED]
    rows_of = {row.name: [r for r in row.rows if r.id == env_id] for row in scripted}
    return {
        name: float(np.mean([r.values["statistics"][r.actions]["return"] for r in own]))
        for name, own in rows_of.items()
        if own
    }


def _ranking_origin(ranking: Ranking) -> str:
    rows = [one for row in ranking.rows for one in row.rows]
    hours = (total_cpu_seconds(rows) or 0.0) / 3600
    machines = sorted({str(one.values["hardware"].get("processor")) for one in rows})
    facts = {
        "panel": ranking.panel.label,
        "about": ranking.panel.description,
        "environments": ", ".join(environment.short for environment in ranking.panel.environments),
        "files": str(len(rows)) if rows else f"tables of {ranking.panel.imported_from}",
        "checksums": f"missing in rows of {', '.join(ranking.unsealed)}"
        if ranking.unsealed
        else "all",
        "can be played again": describe_replays(ranking),
        "CPU hours": f"{hours:.1f}" if rows else "not known",
        "hardware": ", ".join(machines) or "not known",
        "commands": "; ".join(sorted({str(one.values["command"]) for one in rows}))
        or "see tables.md",
        "this page": command_line() or "from Python",
        "versions": ", ".join(f"{k} {v}" for k, v in versions().items() if v),
    }
    return facts_list(facts)
