"""Score the leaderboard's models, unchanged, in other settings: `python -m benchmarks.transfer`."""

from __future__ import annotations

import argparse
import shlex
import sys
from collections.abc import Sequence
from pathlib import Path

from agents.experiments.run import run_jobs
from benchmarks.transfer.axes import AXES, Axis
from benchmarks.transfer.jobs import jobs_of
from benchmarks.transfer.pictures import draw
from benchmarks.transfer.table import as_markdown, cells_of
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
        for axis in (AXES[name] for name in dict.fromkeys(given.axes)):
            _one(axis, panel, rows, given)
    except (ValueError, OSError) as error:
        parser.error(str(error))


def _one(axis: Axis, panel: Panel, rows: list[ExperimentRow], given: argparse.Namespace) -> None:
    command = shlex.join(["python", "-m", "benchmarks.transfer", *sys.argv[1:]])
    jobs = jobs_of(axis, panel, rows, given.episodes, given.out, command)
    with job_progress("dialogues") as report:
        found, failures = run_jobs(jobs, given.workers, None, report)
    results = {job: found[job] for job in jobs if job in found}
    if results:
        text = as_markdown(axis, panel, results)
        print(f"\n{text}")
        if given.docs:
            _write(axis, panel, text, results, given.docs)
    check_failures(failures)


def _write(axis: Axis, panel: Panel, text: str, results: dict, docs: Path) -> None:  # type: ignore[type-arg]
    name = f"transfer_{axis.name}_{panel.name.replace('-', '_')}"
    table, picture = docs / "results" / f"{name}.md", docs / "images" / f"{name}.png"
    metric = "success" if panel.metric == "success" else "return"
    write_text(table, text)
    picture.parent.mkdir(parents=True, exist_ok=True)
    draw(axis, cells_of(results), picture, metric)
    print(f"wrote {table} and {picture}")


def _rows(panel: Panel, given: argparse.Namespace) -> list[ExperimentRow]:
    """The rows that were asked for.

    Raises:
        ValueError: there are none, or a name is unknown.
    """
    rows = read_rows(given.results, panel)
    names = words(given.algorithms or "") or list(dict.fromkeys(row.name for row in rows))
    for name in names:
        if name not in {row.name for row in rows}:
            raise unknown("row", name, sorted({row.name for row in rows}), "--algorithms")
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
    parser.add_argument("axes", nargs="+", choices=AXES, help="what is changed")
    parser.add_argument("--panel", required=True, help=f"of {', '.join(panels())}")
    parser.add_argument(
        "--algorithms", metavar="NAME,...", help="rows of the panel; all by default"
    )
    parser.add_argument("--envs", metavar="ID,...", help="where they were trained; all by default")
    parser.add_argument("--seeds", metavar="N", help="how many, from 0; or which: 0,1,2 or 3-5")
    parser.add_argument("--episodes", type=int, default=500, help="dialogues a seed and setting")
    parser.add_argument("--workers", type=int, default=1, help="processes, one thread each; or 0")
    parser.add_argument(
        "--results", type=Path, nargs="+", default=[ROWS], help=f"folders of rows; default {ROWS}"
    )
    parser.add_argument("--out", type=Path, default=Path("runs/transfer"), help="of the figures")
    parser.add_argument(
        "--docs", type=Path, help="folder that gets results/transfer_*.md, images/transfer_*.png"
    )
    return parser


if __name__ == "__main__":
    main()
