"""Options, parsing, progress and errors that several commands share."""

import re
import shlex
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from importlib import import_module
from pathlib import Path
from types import ModuleType
from typing import Annotated, Any

import typer
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, TextColumn
from rich.progress import Progress as RichProgress

from dialgym.cli.terminal import visible
from dialgym.errors import did_you_mean
from dialgym.io.files import check_writable, parse_setting
from dialgym.io.model_settings import SPENT, BudgetSpentError, usage_text
from dialgym.io.saved_models import CHECKPOINT, ZOO, zoo_names
from dialgym.io.sigterm import exit_status
from dialgym.optional import check_installed, namesake, require
from dialgym.progress import Progress
from dialgym.registry import add, entries, entry_of, list_ids, make_task

PLAIN: Any = {"highlight": False, "markup": False, "emoji": False}
"""Arguments of a `Console` that prints texts as they are: names of folders, what is said."""
console = Console(**PLAIN)

Set = Annotated[
    list[str] | None,
    typer.Option("--set", "-s", metavar="KEY=VALUE", help="A setting of the environment."),
]
Param = Annotated[
    list[str] | None,
    typer.Option(
        "--param",
        "-p",
        metavar="KEY=VALUE",
        help="A setting of the policy: of a trained one how it speaks, beta, beam, candidates, "
        "temperature, top_p, avoid_repeats ...",
    ),
]
Episodes = Annotated[int, typer.Option("--episodes", "-n", min=1, help="Episodes for each seed.")]
Seeds = Annotated[str, typer.Option(metavar="N,N,...", help="Seeds of the episodes.")]
Workers = Annotated[
    str,
    typer.Option(
        metavar="N|ADDRESS",
        help="Processes of one thread each, 0 for this one alone; or an existing Ray cluster.",
    ),
]
AllowHost = Annotated[
    list[str] | None,
    typer.Option(metavar="NAME", help="A further name by which this machine may be called."),
]
Host = Annotated[
    str,
    typer.Option(help="Address to listen at; 0.0.0.0 for all, by names of --allow-host."),
]
Port = Annotated[int, typer.Option(min=0, max=65535, help="0 for any that is free.")]
Trust = Annotated[
    bool,
    typer.Option(
        "--trust", help="Read pickled models, import what files name: both can run others' code."
    ),
]
OwnEnv = Annotated[
    list[str] | None,
    typer.Option(
        "--env", metavar="MODULE:ID|MODULE:CLASS", help="An environment of your own, to know here."
    ),
]


def add_own(named: Sequence[str] | None) -> None:
    """Add the environments of `OwnEnv` to those that are known, so that files may name them.

    Raises:
        ValueError: there is none.
    """
    for own in named or ():
        add(entry_of(own))


def check_places(*files: Path | None) -> None:
    """Raise an OSError for files that cannot be written, before the work that they are to hold."""
    for file in files:
        if file is not None:
            check_writable(file.parent)


def complete_ids(incomplete: str = "") -> list[str]:
    """Ids for completion, without the leading ``dialgym/`` unless it has been typed.

    In a list those that may follow its last comma.
    """
    before, comma, last = incomplete.rpartition(",")
    ids = list_ids()
    ids = ids if last.startswith("d") else [env_id.rpartition("/")[2] for env_id in ids]
    return [f"{before}{comma}{env_id}" for env_id in ids]


EnvId = Annotated[
    str,
    typer.Argument(
        metavar="ID",
        help="An id (`dialgym list`), or MODULE:CLASS.",
        autocompletion=complete_ids,
    ),
]


def complete_runs() -> list[str]:
    """Folders of finished runs and agents of the zoo, for completion."""
    runs = [str(path.parent) for path in sorted(Path("runs").glob(f"*/{CHECKPOINT}"))]
    return [*runs, *(f"{ZOO}{name}" for name in zoo_names())]


def complete_policies(ctx: typer.Context) -> list[str]:
    """Policies for completion: those of the environment, if it has been typed, and trained ones."""
    try:
        from dialgym.rollouts.policies import named_policies

        typed = [word for word in ctx.args if not word.startswith("-")]  # not parsed yet
        entry = entry_of(ctx.params["id"] or typed[0])
        task = make_task(entry, {})
        names = [*named_policies(task, ctx.params.get("as_") or task.parties[0], entry.view)]
    except (LookupError, ValueError, ImportError):
        experts = {entry.row.expert_policy for entry in entries().values()}
        names = ["random", *sorted(name for name in experts if name)]
    return [*names, *complete_runs()]


@contextmanager
def resumable(command: Callable[[], Sequence[str]] | None = None) -> Iterator[None]:
    """Print, if the block is interrupted, the signal and the command that resumes: by default this.

    The same if the budget of a language model is spent.
    """
    try:
        yield
    except (KeyboardInterrupt, BudgetSpentError) as error:
        words = command() if command else ["dialgym", *sys.argv[1:]]
        advice = f"Go on with: {shlex.join(words)}"
        if isinstance(error, BudgetSpentError):
            raise BudgetSpentError(f"{error} {advice}") from None
        raise stopped(error, advice) from None


def stopped(interrupt: KeyboardInterrupt, *more: str) -> typer.Exit:
    """Print what interrupted a command; return its exit."""
    what = str(interrupt) or "interrupted"
    err = Console(stderr=True, soft_wrap=True, **PLAIN)
    for text in (f"\n{what[0].upper()}{what[1:]}.", *more):
        err.print(text)
    return typer.Exit(exit_status(interrupt))


def algorithm_names() -> list[str]:
    """Complete the names of algorithms that `dialgym train` takes."""
    try:
        names: list[str] = import_module("agents.registry").names()
    except ImportError:  # another package of that name, or none
        return []
    return [*names, "guesser", "reward-model"]


def require_agents() -> ModuleType:
    """Import dialgym's own package `agents`; another distribution installs the same name.

    Raises:
        ImportError: it is missing, or what it needs, or what was imported is not dialgym's.
    """
    purpose = "training and loading agents"
    agents = require("agents", "agents", purpose)
    if not getattr(agents, "__dialgym_agents__", False):
        raise ImportError(f"{purpose}: {namesake()}")
    check_installed("agents", purpose, "torch", "stable_baselines3", "sb3_contrib", "safetensors")
    return agents


def print_results(results: Sequence[Any]) -> None:
    """Print the table of some results, and tables of what their tasks measure."""
    from dialgym.experiments.metric_tables import metrics_as_tables
    from dialgym.experiments.result import measured_in, results_as_table

    console.print(results_as_table(results, console.width))
    for table in metrics_as_tables(measured_in(results), console.width):
        console.print(table)


def print_tables(found: Any) -> None:
    """Print the tables and the caption of an analysis, an audit or a check."""
    from dialgym.experiments.tables import rich_table

    for title, (head, *rows) in found.tables():
        console.print(rich_table(head, {title: rows}, "", console.width))
    console.print(found.caption, style="dim", soft_wrap=True)


def complain(message: str) -> None:
    """Print an error in red on one line of the error stream."""
    err = Console(stderr=True, soft_wrap=True, **PLAIN)
    err.print("error:", style="bold red", end=" ")
    err.print(visible(" ".join(message.split())), style="red")


def one_line(
    message: Warning | str,
    category: type[Warning],
    filename: str,
    lineno: int,
    line: str | None = None,
) -> str:
    """Format a warning as one line, which says where it arose unless it is about what was asked."""
    place = "" if issubclass(category, UserWarning) else f" ({filename}:{lineno})"
    return f"warning: {' '.join(str(message).split())}{place}\n"


def known_command(line: str, commands: Mapping[str, str]) -> bool:
    """Return True if a line is a command of the chat; print an error if it is an unknown one."""
    if line not in commands:
        complain(f"no command {line}.{did_you_mean(line, commands)} /help shows all.")
    return line in commands


def show_commands(commands: Mapping[str, str]) -> None:
    """Print the commands of a conversation and what they do."""
    for command, meaning in commands.items():
        console.print(f"{command:8}{meaning}", style="dim")


def settings(pairs: Sequence[str] | None, option: str = "--set") -> dict[str, Any]:
    """``["words=50", "hard_mode=true"]`` as a dict, the values read as YAML.

    Raises:
        ValueError: a pair has no ``=``, or its value is no YAML.
    """
    return dict(parse_setting(text, option) for text in pairs or ())


def numbers(text: str, option: str = "--seeds") -> list[int]:
    """``"0,1,2"`` as a list.

    Raises:
        ValueError: a part is no whole number.
    """
    try:
        return [int(part) for part in words(text)]
    except ValueError:
        raise ValueError(
            f"{option}: expected whole numbers separated by commas; got {text!r}."
        ) from None


def words(text: str) -> list[str]:
    """``"a,b"`` as a list, without empty parts."""
    return [part.strip() for part in text.split(",") if part.strip()]


@contextmanager
def progress(what: str, total: int, unit: str = "episodes") -> Iterator[Callable[[int], None]]:
    """Show how much is done while the block runs; yields the function that says how much more.

    Beside it stands what language models behind services were asked.
    """
    before = SPENT.counts()
    with Progress(what, total, unit) as shown:
        yield lambda more: shown.reach(shown.done + more, usage_text(SPENT.since(before)))


# Many trainings


def check_failures(failures: Mapping[Any, str]) -> None:
    """Raise ValueError where jobs have failed, and say why."""
    if failures:
        reasons = "; ".join(f"{cell}: {reason}" for cell, reason in failures.items())
        raise ValueError(
            f"{len(failures)} jobs have failed ({reasons}). The same command tries them again."
        )


def parse_seeds(text: str) -> list[int]:
    """``"3"`` as 0, 1, 2; ``"0,2"`` as 0 and 2; ``"100-102"`` as 100, 101, 102.

    Raises:
        ValueError: it is none of these.
    """
    seeds: list[int] = []
    if span := re.fullmatch(r"\s*(?:(\d+)\s*-)?\s*(\d+)\s*", text):
        first, last = span.groups()
        seeds = list(range(int(last)) if first is None else range(int(first), int(last) + 1))
    elif re.fullmatch(r"\s*(\d+\s*,\s*)+(\d+\s*)?", text):
        seeds = numbers(text, "--seeds")
    if not seeds or len(set(seeds)) < len(seeds):
        raise ValueError(
            "--seeds: expected how many seeds, or which, such as 10, 0,1,2 or 100-104; got "
            f"{text!r}."
        )
    return seeds


@contextmanager
def job_progress(unit: str = "dialogues") -> Iterator[Callable[[Any], None]]:
    """A bar of units with the time left, and a line for each cell that has ended."""
    columns = (TextColumn("{task.description}", markup=False), BarColumn(), MofNCompleteColumn())
    hidden = not console.is_terminal
    with RichProgress(*columns, console=console, transient=True, disable=hidden) as bar:
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
                console.print(f"[{jobs}{left}] {_line(*progress.ended)}", soft_wrap=True)

        yield report


def _line(job: Any, result: Any) -> str:
    """A job and what came of it."""
    if not isinstance(result, dict):
        return f"{job}: failed: {result.reason}"
    return f"{job}: {job.summary(result)} ({duration(result['seconds'])})"


def duration(seconds: float) -> str:
    """``2 h 05 min``, ``3 min``, ``40 s``."""
    if seconds < 90:
        return f"{seconds:.0f} s"
    minutes = round(seconds / 60)
    return f"{minutes} min" if minutes < 60 else f"{minutes // 60} h {minutes % 60:02d} min"


def parse_workers(given: str) -> tuple[int, str | None]:
    """A number of processes, or the address of a Ray cluster in their place.

    Raises:
        ValueError: it is neither.
    """
    if given.isdecimal():
        return int(given), None
    if given in ("auto", "local") or ":" in given:
        return 1, given
    raise ValueError(
        "--workers: expected a number of processes from 0, or a Ray cluster (HOST:6379, auto or "
        f"local); got {given!r}."
    )
