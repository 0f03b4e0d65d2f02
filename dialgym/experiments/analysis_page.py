"""Analysis of dialogues as HTML: its tables, and failed dialogues that they link to."""

from collections.abc import Iterator, Mapping
from html import escape
from os import PathLike
from pathlib import Path
from typing import Any

from dialgym.datasets import Dataset
from dialgym.experiments.analysis import EXAMPLES, MOST, Analysis
from dialgym.experiments.pages import draw_utterance, page, section
from dialgym.experiments.samples import SampleUtterance
from dialgym.io.files import write_text
from dialgym.io.html_tables import html_table


def write_analysis(
    path: str | PathLike[str], analysis: Analysis, dataset: Dataset, title: str
) -> None:
    """Write an analysis as one HTML file that needs no network.

    Args:
        path: of the file.
        analysis: as of `analyze`.
        dataset: the dialogues that it is of.
        title: of the page.

    Raises:
        OSError: the file cannot be written.
    """
    write_text(Path(path), page(title, analysis_sections(analysis, dataset)))


def analysis_sections(analysis: Analysis, dataset: Dataset) -> str:
    """Format an analysis as parts of a page: tables, kinds of failures, and dialogues of each."""
    tables = "".join(
        f"<h3>{escape(title)}</h3>{html_table(rows)}" for title, rows in analysis.tables()
    )
    note = f'<p class="note">{escape(analysis.caption)}</p>'
    shown = [n for group in analysis.failures[:MOST] for n in group.rows[:EXAMPLES]]
    failed = "".join(_dialogue(n, dataset[n]) for n in sorted(shown))
    return section("analysis", "Analysis", f"{tables}{_failures(analysis)}{note}") + (
        section("failed", "Failed dialogues", failed) if failed else ""
    )


def _failures(analysis: Analysis) -> str:
    """The most frequent kinds of failures, each with links to dialogues."""
    if not analysis.failures:
        return ""
    rows = "".join(
        f"<li>{len(group.rows)} &times; {escape(group.kind)}: {', '.join(_links(group.rows))}</li>"
        for group in analysis.failures[:MOST]
    )
    return f"<h3>Most frequent failures</h3><ul>{rows}</ul>"


def _links(rows: Any) -> Iterator[str]:
    for row in rows[:EXAMPLES]:
        yield f'<a href="#dialogue-{row}">{row}</a>'


def _dialogue(place: int, row: Mapping[str, Any]) -> str:
    lines = "".join(
        draw_utterance(SampleUtterance(t["party"], [(t["text"], "")], t["said"], False))
        for t in row["turns"]
    )
    gained = sum(turn["reward"] for turn in row["turns"])
    head = f"<strong>dialogue {place}</strong> seed {row['seed']}, return {gained:.3g}"
    return f'<article id="dialogue-{place}"><p class="head">{head}</p>{lines}</article>'
