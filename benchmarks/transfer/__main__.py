"""Score the leaderboard's models, unchanged, in other settings: `python -m benchmarks.transfer`."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from pathlib import Path

from agents.experiments.run import run_jobs
from benchmarks.transfer.axes import AXES
from benchmarks.transfer.jobs import jobs_of
from benchmarks.transfer.report import Results, as_markdown, cells_of, draw
from dialgym.cli.benchmark import ROWS
from dialgym.cli.common import check_failures, job_progress, parse_seeds, words
from dialgym.errors import unknown
from dialgym.experiments.panel import Panel, panel_named, panels
from dialgym.experiments.row import ExperimentRow
from dialgym.experiments.row_files import read_rows
from dialgym.io.files import write_text


def main(arguments: Sequence[str] | None = None) -> None:
    """Score what has not been scored, print the tables, and write them and their pictures."""
    parser = _parser()
    given = parser.parse_args(arguments)
    try:
        panel = panel_named(given.panel)
        rows = _rows(panel, given)
        for axis in dict.fromkeys(given.axes):
            _one(axis, panel, rows, given)
    except (ValueError, OSError) as error:
        parser.error(str(error))


def _one(axis: str, panel: Panel, rows: list[ExperimentRow], given: argparse.Namespace) -> None:
    jobs = jobs_of(axis, panel, rows, given.episodes, given.out)
    with job_progress("dialogues") as report:
        found, failures = run_jobs(jobs, given.workers, None, report)
    results = {job: found[job] for job in jobs if job in found}
    if results:
        text = as_markdown(axis, panel, results)
        print(f"\n{text}")
        if given.docs:
            _write(axis, panel, text, results, given.docs)
    check_failures(failures)


def _write(axis: str, panel: Panel, text: str, results: Results, docs: Path) -> None:
    name = f"transfer_{axis}_{panel.name.replace('-', '_')}"
    table, picture = docs / "results" / f"{name}.md", docs / "images" / f"{name}.png"
    write_text(table, text)
    picture.parent.mkdir(parents=True, exist_ok=True)
    draw(axis, cells_of(results), picture, "success" if panel.metric == "success" else "return")
    print(f"wrote {table} and {picture}")


def _rows(panel: Panel, given: argparse.Namespace) -> list[ExperimentRow]:
    """The rows that were asked for.

    Raises:
        ValueError: there are none, or a name is unknown.
    """
    rows = read_rows(given.results, panel)
    known = {row.name for row in rows}
    names = words(given.algorithms or "") or known
    for name in names:
        if name not in known:
            raise unknown("row", name, sorted(known), "--algorithms")
    places = [panel.environment(name).id for name in words(given.envs or "")]
    seeds = None if given.seeds is None else parse_seeds(given.seeds)
    found = [
        row
        for row in rows
        if row.name in names
        and (not places or row.id in places)
        and (seeds is None or row.seed in seeds)
    ]
    if not found:
        where = ", ".join(str(folder / panel.name) for folder in given.results)
        raise ValueError(
            f"panel {panel.label}: expected rows of the leaderboard with their models in {where}, "
            f"got none of those asked for. Make them by `dialgym benchmark {panel.name}`."
        )
    return found


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser("python -m benchmarks.transfer", description=__doc__)
    add = parser.add_argument
    add("axes", nargs="+", choices=AXES, help="what is changed")
    add("--panel", required=True, help=f"of {', '.join(panels())}")
    add("--algorithms", metavar="NAME,...", help="rows of the panel; all by default")
    add("--envs", metavar="ID,...", help="where they were trained; all by default")
    add("--seeds", metavar="N", help="how many, from 0; or which: 0,1,2 or 3-5")
    add("--episodes", type=int, default=500, help="dialogues a seed and setting")
    add("--workers", type=int, default=1, help="processes, one thread each; or 0")
    folders = {"type": Path, "nargs": "+", "default": [ROWS]}
    add("--results", **folders, help=f"folders of rows; default {ROWS}")  # type: ignore[arg-type]
    add("--out", type=Path, default=Path("runs/transfer"), help="of the figures")
    add("--docs", type=Path, help="folder of results/transfer_*.md and images/transfer_*.png")
    return parser


if __name__ == "__main__":
    main()
