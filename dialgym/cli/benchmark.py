"""``dialgym benchmark``: play policies on ids, suites and panels."""

import shlex
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any

import typer

from dialgym.cli.common import (
    Episodes,
    Param,
    Seeds,
    Set,
    Trust,
    Workers,
    check_failures,
    check_places,
    complete_ids,
    complete_policies,
    console,
    job_progress,
    numbers,
    parse_seeds,
    parse_workers,
    print_results,
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
        help="The environments.",
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
            help="Registered names, checkpoints or runs, zoo:NAME; by default random ones and the "
            "best scripted ones of the environments, and without --ids the newest run in "
            f"{RUNS}/.",
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
    param: Param = None,
) -> None:
    """Score several policies side by side: tables, plots, sample games, and all episodes.

    Without arguments it scores what `dialgym train` has trained last, where that was trained, and
    without such a run the suite wordle. A -p is of all saved models, or as NAME.KEY=VALUE of one.
    """
    from dialgym.experiments import benchmark as run
    from dialgym.experiments.benchmark import deterministic_options, open_policies, settings_by_name

    newest = newest_run(RUNS) if policies is None else None
    chosen, kwargs = chosen_ids(ids, suite), settings(set_)
    if not chosen:
        chosen, kwargs = default_ids(newest, kwargs, trust)
    named = parse_policies(policies or ",".join(default_policies(chosen)))
    if newest:
        console.print(f"trained: {newest}", style="dim")
        named["trained"] = str(newest)
    curves = curve or (readable_curves([newest]) if newest else [])
    given = settings_by_name(named, settings(param, "--param"))
    playing, several = open_policies(named, chosen, kwargs, trust, given), numbers(seeds)
    rounds = sum(len(deterministic_options(policy)) for policy in playing.values())
    check_places(out / "results.json", html)
    with progress("episodes", rounds * len(chosen) * len(several) * episodes) as report:
        outcome = run(
            playing, chosen, episodes, several, kwargs,
            games=games, curves=curves, trust=trust, report=report,
        )  # fmt: skip
    print_benchmark(outcome, all_named=policies is not None)
    save_benchmark(outcome, out, html)


def chosen_ids(ids: str | None, suite: str | None) -> list[str]:
    """The ids that were asked for, by themselves or as a suite; none for neither."""
    if suite and ids:
        raise ValueError("--suite: expected either --ids or --suite, got both")
    if suite:
        one_of("--suite", suite, suites())
    return list(suites()[suite]) if suite else words(ids or "")


def print_benchmark(outcome: Any, all_named: bool) -> None:
    """Print the table, and which policies were left out.

    Args:
        outcome: of the benchmark.
        all_named: all policies were asked for: it is told which of them environments do not have.
    """
    print_results(outcome.results)
    for note in outcome.notes:
        console.print(note, style="yellow")
    for name, absent in outcome.absent.items() if all_named else ():
        where = ", ".join(absent)
        console.print(f"{name} is left out on {where}: no such policy", style="yellow")


def save_benchmark(outcome: Any, out: Path, html: Path | None) -> None:
    """Write the folder of a benchmark, and a page where one is asked for."""
    try:
        files = ", ".join(path.name for path in outcome.save(out))
    except ImportError as error:  # all but the pictures has been written
        console.print(f"without pictures: {error}", style="yellow")
        files = "results.json, table.md"
    console.print(f"\nin {out}: {files}", style="dim")
    if html:
        from dialgym.experiments.pages import write_report

        write_report(html, outcome)
        console.print(f"open {html}", style="dim")


def readable_curves(runs: Sequence[Path]) -> list[Path]:
    """The runs that have a curve of returns; offline ones have one of losses."""
    from dialgym.experiments.curves import read_curve

    readable = []
    for run in runs:
        try:
            read_curve(run)
        except (FileNotFoundError, ValueError):
            continue
        readable.append(run)
    return readable


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
    from dialgym.io.saved_models import CHECKPOINT

    models = sorted(folder.glob(f"*/{CHECKPOINT}"), key=lambda path: path.stat().st_mtime)
    return models[-1].parent if models else None


def benchmark_references(
    ids: Ids = None,
    suite: Suite = None,
    write: Annotated[
        Path | None, typer.Option(exists=True, dir_okay=False, help="An envs_registry.yaml to set.")
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
            measured = references.reference_scores(row, report=report)
            scores[row.name, references.scores_name(row)] = measured
    for (name, kind), values in scores.items():
        typer.echo(f"  {name}:\n{references.scores_line(values, kind)}", nl=False)
    if write:
        references.write_references(write, scores)


# Panels


PanelName = Annotated[
    str,
    typer.Argument(
        metavar="PANEL",
        autocompletion=lambda: [*panels(), "references", "tables"],
        help="Its name; wordle@0.1 is wordle with a tenth of the budgets, and has its own rows.",
    ),
]
TestResults = Annotated[
    Path | None,
    typer.Option(help="Folder of the tests' figures, tables, plots; default OUT/results."),
]
TESTED_BY_DEFAULT = "handcrafted,maskable-ppo,dqn"
"""Learners of a panel with tests, where none are named."""


def benchmark_panel(
    panel: PanelName,
    algorithms: Annotated[
        str | None,
        typer.Option(
            metavar="NAME,NAME,...",
            help="Learners and reference policies of the panel, or algorithms, or names of "
            f"--variants; all of the panel by default, {TESTED_BY_DEFAULT} where it has tests.",
            show_default=False,
        ),
    ] = None,
    envs: Annotated[
        str | None,
        typer.Option(
            metavar="ID,ID,...",
            help="Environments of the panel; with --domains numbers of settings. All by default.",
        ),
    ] = None,
    seeds: Annotated[
        str | None, typer.Option(metavar="N", help="How many, from 0; or which: 0,1,2 or 3-5.")
    ] = None,
    workers: Workers = "1",
    device: Annotated[str, typer.Option(help="Of the trainings alone: cpu, cuda.")] = "cpu",
    out: Annotated[
        Path | None,
        typer.Option(
            help=f"Folder of the runs and rows, which go on from there; default {ROWS}, "
            "runs/pydial where the panel has tests."
        ),
    ] = None,
    domains: Annotated[
        str | None,
        typer.Option(
            metavar="D,D,...",
            help="Of a panel with tests: CR, SFR, LAP; another domain's name, or path/to/Bars.",
        ),
    ] = None,
    tests: Annotated[
        str | None,
        typer.Option(metavar="N,N,...", help="Training dialogues before each test."),
    ] = None,
    episodes: Annotated[
        int | None, typer.Option("--episodes", "-n", help="Dialogues of a test.")
    ] = None,
    variants: Annotated[
        Path | None,
        typer.Option(exists=True, help="YAML: names, each with algorithm and hyperparameters."),
    ] = None,
    results: TestResults = None,
) -> None:
    """Train and score learners by a panel's protocol: a file for each environment and seed.

    Where a panel has tests on the way, as PyDial's benchmark, tables, curves and rankings of them.
    What has been done is not done again; killed at any moment, the same command goes on.
    """
    require_agents()
    from agents.experiments.panel_jobs import jobs_of
    from agents.experiments.pydial_panel import learners_of, pydial_panel, tasks_of_panel
    from agents.experiments.pydial_results import Results
    from agents.experiments.run import run_jobs

    chosen, command = panel_named(panel), ""
    count, cluster = parse_workers(workers)
    tested = chosen.imported_from is not None
    folder = out or (RUNS / str(chosen.imported_from) if tested else ROWS)
    if not tested:
        _refuse_tests(panel, domains, tests, episodes, variants, results)
        names = words(algorithms or "") or [*chosen.references, *chosen.algorithms]
        environments = panel_environments(chosen, envs)
    else:
        learners = learners_of(words(algorithms or TESTED_BY_DEFAULT), variants)
        numbered_envs = numbers(envs, "--envs") if envs else None
        tasks = tasks_of_panel(chosen, words(domains) if domains else None, numbered_envs)
        stages = None if tests is None else numbers(tests, "--tests")
        chosen = pydial_panel(learners, tasks, stages, episodes)
        names, environments = [*learners], list(chosen.environments)
        command = shlex.join(["dialgym", *sys.argv[1:]])
    numbered = parse_seeds(seeds or str(chosen.seeds))
    jobs = jobs_of(chosen, names, environments, numbered, folder, command, device)
    with resumable(), job_progress("dialogues" if tested else "timesteps") as report:
        ended, failures = run_jobs(jobs, count, cluster, report)
    if tested:
        fresh = [ended[job] for job in jobs if job in ended]
        write_tests(Results.of(fresh), results or folder / "results")
    else:
        where = f"rows in {folder / chosen.name}"
        hint = f"{where}: dialgym leaderboard show {panel} --results {folder}"
        console.print(hint, style="dim", soft_wrap=True)
    check_failures(failures)


def _refuse_tests(panel: str, *options: Any) -> None:
    """Raise a ValueError where options of tests are given with a panel that has none."""
    if any(options):
        raise ValueError(
            f"panel {panel!r} has no tests on the way: leave out --domains, --tests, --episodes, "
            "--variants and --results"
        )


def panel_environments(panel: Panel, envs: str | None) -> list[PanelEnvironment]:
    """Environments of a panel by name; all of them for None."""
    if envs is None:
        return list(panel.environments)
    return [panel.environment(name) for name in words(envs) or [envs]]


def benchmark_tables(
    out: Annotated[
        Path, typer.Option(help="Folder of the runs, which may be running still.")
    ] = RUNS / "pydial",
    results: TestResults = None,
) -> None:
    """Write tables and plots of a panel's tests as they are; run nothing."""
    require_agents()
    from agents.experiments.pydial_results import Results

    ended, where = Results.ended(out), results or out / "results"
    write_tests(ended if ended.methods else None, where)


def write_tests(ended: Any, results: Path) -> None:
    """Add figures of jobs that have ended to a folder of tests; write its tables and plots."""
    from agents.experiments.pydial_report import older_in, write_report

    if ended is not None:
        ended.merged_into(results)
    try:
        files = ", ".join(file.name for file in write_report(results))
    except ImportError as error:  # all but the pictures has been written
        console.print(f"without pictures: {error}", style="yellow")
        files = "tables.md"
    console.print(f"in {results}: {files}", style="dim")
    if older := older_in(results):
        console.print(older, style="yellow", soft_wrap=True)
