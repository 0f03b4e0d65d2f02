"""``dialgym benchmark pydial``: algorithms in all tasks of PyDial's benchmark, with every seed."""

import re
import shlex
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn

from dialgym.cli.common import Ray, Workers, console, numbers, require_agents, resumable, words

OUT = Path("runs/pydial")


def benchmark_pydial(
    algorithms: Annotated[
        str,
        typer.Option(
            "--algorithms",
            metavar="NAME,NAME,...",
            help="Algorithms that play acts, names of --variants, handcrafted, random.",
        ),
    ] = "handcrafted,maskable-ppo,dqn",
    envs: Annotated[str, typer.Option(metavar="N,N,...", help="Settings, 1 to 6.")] = "1,2,3,4,5,6",
    domains: Annotated[
        str,
        typer.Option(
            metavar="D,D,...", help="CR, SFR, LAP; the name of another domain, or path/to/Bars."
        ),
    ] = "CR,SFR,LAP",
    seeds: Annotated[
        str, typer.Option(metavar="N", help="How many, from 0; or which: 0,1,2 or 100-104.")
    ] = "10",
    workers: Workers = 1,
    ray: Ray = None,
    out: Annotated[Path, typer.Option(help="Folder of the runs, which go on from there.")] = OUT,
    results: Annotated[
        Path | None, typer.Option(help="Folder of figures, tables, plots; default OUT/results.")
    ] = None,
    tests: Annotated[
        str, typer.Option(metavar="N,N,...", help="Training dialogues before each test.")
    ] = "500,1000,2000,3000,4000",
    episodes: Annotated[int, typer.Option("--episodes", "-n", help="Dialogues of a test.")] = 500,
    variants: Annotated[
        Path | None,
        typer.Option(exists=True, help="YAML: names, each with algorithm and hyperparameters."),
    ] = None,
    tables: Annotated[
        bool, typer.Option("--tables", help="Run nothing: tables and plots of what there is.")
    ] = False,
) -> None:
    """Train and test algorithms on PyDial's benchmark: tables, curves, rankings.

    What has been done is not done again; killed at any moment, the same command goes on.
    """
    require_agents()
    from agents.experiments.panel_jobs import jobs_of
    from agents.experiments.pydial_panel import learners_of, pydial_panel, tasks_of
    from agents.experiments.pydial_report import older_in, write_report
    from agents.experiments.pydial_results import Results
    from agents.experiments.run import run_jobs

    where = results or out / "results"
    failures: dict[Any, str] = {}
    if tables and (ended := Results.ended(out)).methods:
        ended.merged_into(where)
    if not tables:
        learners = learners_of(words(algorithms), variants)
        tasks = tasks_of(words(domains), numbers(envs, "--envs"))
        panel = pydial_panel(learners, tasks, numbers(tests, "--tests"), episodes)
        jobs = jobs_of(panel, [*learners], panel.environments, parse_seeds(seeds), out, command())
        with resumable(), grid_progress() as report:
            found, failures = run_jobs(jobs, workers, ray, report)
        Results.of(found[job] for job in jobs if job in found).merged_into(where)
    try:
        files = ", ".join(file.name for file in write_report(where))
    except ImportError as error:  # all but the pictures has been written
        console.print(f"without pictures: {error}", style="yellow", markup=False)
        files = "tables.md"
    console.print(f"in {where}: {files}", style="dim")
    if older := older_in(where):
        console.print(older, style="yellow", markup=False, soft_wrap=True)
    check_failures(failures)


def check_failures(failures: Mapping[Any, str]) -> None:
    """Raise ValueError where jobs have failed, with the reasons."""
    if failures:
        reasons = "; ".join(f"{job}: {reason}" for job, reason in failures.items())
        raise ValueError(
            f"{len(failures)} jobs have failed ({reasons}). The same command tries them again."
        )


def parse_seeds(text: str) -> list[int]:
    """``"3"`` as 0, 1, 2; ``"0,2"`` as 0 and 2; ``"100-102"`` as 100, 101, 102.

    Raises:
        ValueError: it is none of these.
    """
    found: list[int] = []
    if span := re.fullmatch(r"\s*(?:(\d+)\s*-)?\s*(\d+)\s*", text):
        first, last = span.groups()
        found = list(range(int(last)) if first is None else range(int(first), int(last) + 1))
    elif re.fullmatch(r"\s*(\d+\s*,\s*)+(\d+\s*)?", text):
        found = numbers(text, "--seeds")
    if not found or len(set(found)) < len(found):
        raise ValueError(
            "--seeds: expected how many seeds, or which, such as 10, 0,1,2 or 100-104; got "
            f"{text!r}."
        )
    return found


def command() -> str:
    """The command as it was typed."""
    return shlex.join(["dialgym", *sys.argv[1:]])


@contextmanager
def grid_progress(unit: str = "dialogues") -> Iterator[Callable[[Any], None]]:
    """A bar of units with the time left, and a line for each cell that has ended."""
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn())
    hidden = not console.is_terminal
    with Progress(*columns, console=console, transient=True, disable=hidden) as bar:
        shown = bar.add_task(unit, total=None)

        def report(progress: Any) -> None:
            left = (
                "" if progress.seconds_left is None else f", {duration(progress.seconds_left)} left"
            )
            jobs = f"{progress.jobs_done} of {progress.jobs} jobs"
            bar.update(
                shown,
                description=f"{jobs}{left}",
                total=progress.length,
                completed=progress.done,
            )
            if progress.ended:
                console.print(
                    f"[{jobs}{left}] {line(*progress.ended)}", markup=False, soft_wrap=True
                )

        yield report


def line(job: Any, found: Any) -> str:
    """A job and what came of it."""
    if not isinstance(found, dict):
        return f"{job}: failed: {found.reason}"
    return f"{job}: {job.summary(found)} ({duration(found['seconds'])})"


def duration(seconds: float) -> str:
    """``2 h 05 min``, ``3 min``, ``40 s``."""
    if seconds < 90:
        return f"{seconds:.0f} s"
    minutes = round(seconds / 60)
    return f"{minutes} min" if minutes < 60 else f"{minutes // 60} h {minutes % 60:02d} min"
