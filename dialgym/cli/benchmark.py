"""``dialgym benchmark``: play policies on ids and suites, panels, PyDial's benchmark."""

import shlex
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any

import typer

from dialgym.cli.common import (
    Episodes,
    Ray,
    Seeds,
    Set,
    Trust,
    Workers,
    check_failures,
    complete_ids,
    complete_policies,
    console,
    job_progress,
    numbers,
    parse_seeds,
    progress,
    require_agents,
    resumable,
    settings,
    words,
)
from dialgym.errors import one_of
from dialgym.experiments.panel import Panel, PanelEnvironment, panel_named, panels
from dialgym.io.files import read_registry
from dialgym.registry import entry_of, list_ids, make_task

RUNS = Path("runs")
ROWS = RUNS / "leaderboard"
"""Folder of the rows of panels."""


def suites() -> Mapping[str, tuple[str, ...]]:
    """Suites: ids that belong together, by name; see envs_registry.yaml."""
    return {name: tuple(ids) for name, ids in read_registry()["suites"].items()}


Ids = Annotated[
    str | None,
    typer.Option(
        metavar="ID,ID,...",
        help="The environments; by default those of the newest run, else the suite wordle.",
        show_default=False,
        autocompletion=complete_ids,
    ),
]
Suite = Annotated[
    str | None,
    typer.Option(
        metavar="NAME",
        help=f"Environments that belong together: {', '.join(suites())}.",
        autocompletion=lambda: list(suites()),
    ),
]


def benchmark(
    policies: Annotated[
        str | None,
        typer.Option(
            metavar="NAME,NAME=PATH,...",
            help="Registered names, and checkpoints or runs; by default random ones and the best "
            f"scripted ones of the environments, and without --ids the newest run in {RUNS}/.",
            show_default=False,
            autocompletion=complete_policies,
        ),
    ] = None,
    ids: Ids = None,
    suite: Suite = None,
    episodes: Episodes = 100,
    seeds: Seeds = "0,1,2",
    out: Annotated[Path, typer.Option(help="Folder of the results.")] = RUNS / "benchmark",
    html: Annotated[
        Path | None, typer.Option(help="Where to write a report to look at in a browser, too.")
    ] = None,
    curve: Annotated[
        list[Path] | None,
        typer.Option(help="A run or CSV file whose learning curve to draw.", show_default=False),
    ] = None,
    games: Annotated[int, typer.Option(min=0, help="Games to show.")] = 3,
    set_: Set = None,
    trust: Trust = False,
) -> None:
    """Score several policies side by side: tables, plots, sample games, and all episodes.

    Without arguments it scores what `dialgym train` has trained last, where that was trained.
    """
    from dialgym.experiments import benchmark as run
    from dialgym.experiments.benchmark import deterministic_options, open_policies

    newest = newest_run(RUNS) if policies is None else None
    chosen, kwargs = chosen_ids(ids, suite), settings(set_)
    if not chosen:
        chosen, kwargs = default_ids(newest, kwargs, trust)
    named = parse_policies(policies or ",".join(default_policies(chosen)))
    if newest:
        console.print(f"trained: {newest}", style="dim")
        named["trained"] = str(newest)
    curves = curve or (readable_curves([newest]) if newest else [])
    playing, several = open_policies(named, chosen, kwargs, trust), numbers(seeds)
    rounds = sum(len(deterministic_options(policy)) for policy in playing.values())
    with progress("episodes", rounds * len(chosen) * len(several) * episodes) as report:
        found = run(
            playing, chosen, episodes, several, kwargs,
            games=games, curves=curves, trust=trust, report=report,
        )  # fmt: skip
    print_benchmark(found, all_named=policies is not None)
    save_benchmark(found, out, html)


def chosen_ids(ids: str | None, suite: str | None) -> list[str]:
    """The ids that were asked for, by themselves or as a suite; none for neither."""
    if suite and ids:
        raise ValueError("--suite: expected either --ids or --suite, got both")
    if suite:
        one_of("--suite", suite, suites())
    return list(suites()[suite]) if suite else words(ids or "")


def print_benchmark(found: Any, all_named: bool) -> None:
    """Print the table, and which policies were left out.

    Args:
        found: of the benchmark.
        all_named: all policies were asked for: it is told which of them environments do not have.
    """
    from dialgym.experiments.result import results_as_table

    console.print(results_as_table(found.results, console.width))
    for note in found.notes:
        console.print(note, style="yellow", markup=False)
    for name, absent in found.absent.items() if all_named else ():
        where = ", ".join(absent)
        console.print(f"{name} is left out on {where}: no such policy", style="yellow")


def save_benchmark(found: Any, out: Path, html: Path | None) -> None:
    """Write the folder of a benchmark, and a page where one is asked for."""
    try:
        files = ", ".join(path.name for path in found.save(out))
    except ImportError as error:  # all but the pictures has been written
        console.print(f"without pictures: {error}", style="yellow", markup=False)
        files = "results.json, table.md"
    console.print(f"\nin {out}: {files}", style="dim")
    if html:
        from dialgym.experiments.pages import write_report

        write_report(html, found)
        console.print(f"open {html}", style="dim")


def readable_curves(runs: Sequence[Path]) -> list[Path]:
    """The runs that have a curve of returns; offline ones have one of losses."""
    from dialgym.experiments.curves import read_curve

    found = []
    for run in runs:
        try:
            read_curve(run)
        except (FileNotFoundError, ValueError):
            continue
        found.append(run)
    return found


def default_ids(
    run: Path | None, kwargs: dict[str, Any], trust: bool
) -> tuple[list[str], dict[str, Any]]:
    """Environments to play: that of a trained run with its settings, else the first suite."""
    if run is None:
        return list(next(iter(suites().values()))), kwargs
    from dialgym.rollouts.player import open_where_trained

    _, entry, remembered = open_where_trained(str(run), trust)
    return [entry.id], {**remembered, **kwargs}


def default_policies(ids: Sequence[str]) -> list[str]:
    """The policies that know nothing, and the best scripted ones, of the environments."""
    names = ["random"]
    for entry in map(entry_of, ids):
        task = make_task(entry, {})
        speakers = task.speakers.get(task.parties[0], {})
        names += ["random-mixture"] if "random-mixture" in speakers else []
        names += [entry.row.expert_policy] if entry.row.expert_policy else []
    return list(dict.fromkeys(names))


def parse_policies(text: str) -> dict[str, str]:
    """``random,ppo=runs/x`` as names and policies; a checkpoint without a name gets its run's.

    Raises:
        ValueError: a name comes twice, or there is none.
    """
    from dialgym.rollouts.policies import policy_name

    parts = [part.partition("=") for part in words(text)]
    named = [
        (name, policy) if equals else (policy_name(name), name) for name, equals, policy in parts
    ]
    if not named or len(dict(named)) < len(named):
        raise ValueError(
            f"--policies: expected distinct names separated by commas; got {text!r}. "
            "Give checkpoints names of their own: NAME=PATH."
        )
    return dict(named)


def newest_run(folder: Path) -> Path | None:
    """The run whose model was written last."""
    from dialgym.rollouts.policies import CHECKPOINT

    models = sorted(folder.glob(f"*/{CHECKPOINT}"), key=lambda path: path.stat().st_mtime)
    return models[-1].parent if models else None


def benchmark_references(
    ids: Ids = None,
    suite: Suite = None,
    write: Annotated[
        Path | None, typer.Option(help="An envs_registry.yaml to write the scores into.")
    ] = None,
) -> None:
    """Compute the registry's reference scores: of random policies, and of experts.

    Without --ids and --suite those of all environments.
    """
    from dialgym.experiments import references

    rows = references.rows_of(chosen_ids(ids, suite) or list_ids())
    scores = {}
    with progress("episodes", 2 * sum(map(references.episodes_of, rows))) as report:
        for row in rows:
            found = references.reference_scores(row, report=report)
            scores[row.name, references.scores_name(row)] = found
    for (name, kind), values in scores.items():
        typer.echo(f"  {name}:\n{references.scores_line(values, kind)}", nl=False)
    if write:
        references.write_references(write, scores)


# Panels


def complete_panels() -> list[str]:
    """Names of panels, for completion."""
    return list(panels())


PanelName = Annotated[
    str,
    typer.Argument(
        metavar="PANEL",
        autocompletion=complete_panels,
        help="Its name; wordle@0.1 is wordle with a tenth of the budgets, and has its own rows.",
    ),
]
Envs = Annotated[
    str | None,
    typer.Option(metavar="ID,ID,...", help="Environments of the panel; all by default."),
]
Out = Annotated[Path, typer.Option(help="Folder of the runs and rows, which go on from there.")]


def benchmark_panel(
    panel: PanelName,
    algorithms: Annotated[
        str | None,
        typer.Option(
            metavar="NAME,NAME,...",
            help="Learners and reference policies of the panel, or algorithms; all of the panel "
            "by default.",
            show_default=False,
        ),
    ] = None,
    envs: Envs = None,
    seeds: Annotated[
        str | None, typer.Option(metavar="N", help="How many, from 0; or which: 0,1,2 or 3-5.")
    ] = None,
    workers: Workers = 1,
    ray: Ray = None,
    out: Out = ROWS,
) -> None:
    """Train and score learners by a panel's protocol: a file for each environment and seed.

    What has been done is not done again; killed at any moment, the same command goes on.
    """
    require_agents()
    from agents.experiments.panel_jobs import jobs_of
    from agents.experiments.run import run_jobs

    chosen = panel_named(panel)
    names = words(algorithms or "") or [*chosen.references, *chosen.algorithms]
    environments = panel_environments(chosen, envs)
    jobs = jobs_of(chosen, names, environments, parse_seeds(seeds or str(chosen.seeds)), out)
    with resumable(), job_progress("timesteps") as report:
        _, failures = run_jobs(jobs, workers, ray, report)
    where = out / chosen.name
    hint = f"rows in {where}: dialgym leaderboard show {panel} --results {out}"
    console.print(hint, style="dim", soft_wrap=True)
    check_failures(failures)


def panel_environments(panel: Panel, envs: str | None) -> list[PanelEnvironment]:
    """Environments of a panel by name; all of them for None."""
    if envs is None:
        return list(panel.environments)
    return [panel.environment(name) for name in words(envs)]


# PyDial's benchmark


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
    out: Annotated[Path, typer.Option(help="Folder of the runs, which go on from there.")] = RUNS
    / "pydial",
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
        command = shlex.join(["dialgym", *sys.argv[1:]])
        jobs = jobs_of(panel, [*learners], panel.environments, parse_seeds(seeds), out, command)
        with resumable(), job_progress() as report:
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
