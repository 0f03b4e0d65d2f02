"""``dialgym evaluate`` and ``dialgym benchmark``: score policies on ids."""

from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any

import typer

from dialgym.cli.common import (
    Episodes,
    Seeds,
    Set,
    Trust,
    complete_ids,
    complete_policies,
    console,
    numbers,
    progress,
    settings,
    words,
)
from dialgym.errors import one_of
from dialgym.registry import entry_of, list_ids, make_task, suites

RUNS = Path("runs")


def evaluate(
    policy: Annotated[
        str,
        typer.Argument(
            help="A registered name, a run or checkpoint, a language model's folder or hf:NAME.",
            autocompletion=complete_policies,
        ),
    ],
    ids: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="[ID...]",
            help="The environments; by default where the policy was trained, as it was then.",
            show_default=False,
            autocompletion=complete_ids,
        ),
    ] = None,
    episodes: Episodes = 100,
    seeds: Seeds = "0,1,2",
    num_envs: Annotated[int, typer.Option(min=1, help="Parallel dialogues, for an agent.")] = 128,
    actions: Annotated[
        str | None,
        typer.Option(
            metavar="drawn|greedy",
            help="How an agent chooses its actions; by default as it learned, and where that is by "
            "drawing them, both ways.",
            show_default=False,
        ),
    ] = None,
    json: Annotated[
        Path | None, typer.Option(help="Where to write the result too, the first of two.")
    ] = None,
    trust: Trust = False,
    set_: Set = None,
) -> None:
    """Score one policy: returns, success, normalised score, 95 % intervals."""
    from dialgym.experiments import evaluate as run
    from dialgym.experiments.result import DRAWN, GREEDY, results_as_table

    if actions is not None:
        one_of("--actions", actions, (DRAWN, GREEDY), "dialgym evaluate")
    chosen = numbers(seeds)

    def score(likeliest: bool | None) -> Any:
        with progress(policy, len(ids or [policy]) * len(chosen) * episodes) as report:
            return run(
                policy,
                ids or None,
                episodes,
                chosen,
                settings(set_),
                num_envs=num_envs,
                deterministic=likeliest,
                trust=trust,
                report=report,
            )

    results = [score(None if actions is None else actions == GREEDY)]
    if actions is None and results[0].actions == DRAWN:
        results.append(score(True))
    console.print(results_as_table(results, console.width))
    if json:
        results[0].to_json(json)


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
    ids: Annotated[
        str | None,
        typer.Option(
            metavar="ID,ID,...",
            help="The environments; by default that of the newest run, else the suite wordle.",
            show_default=False,
            autocompletion=complete_ids,
        ),
    ] = None,
    suite: Annotated[
        str | None,
        typer.Option(
            metavar="NAME",
            help=f"Environments that belong together: {', '.join(suites())}.",
            autocompletion=lambda: list(suites()),
        ),
    ] = None,
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
    references: Annotated[
        bool,
        typer.Option("--references", help="Compute the registry's reference scores instead."),
    ] = False,
    write: Annotated[
        Path | None,
        typer.Option(help="With --references: the envs_registry.yaml to write them into."),
    ] = None,
    trust: Trust = False,
) -> None:
    """Score several policies side by side: tables, plots, sample games, and all episodes.

    Without arguments it scores what `dialgym train` has trained last, where that was trained.
    """
    if suite and ids:
        raise ValueError("--suite: expected either --ids or --suite, got both")
    if suite:
        one_of("--suite", suite, suites())
    chosen = list(suites()[suite]) if suite else words(ids or "")
    if references:
        return compute_references(chosen or list_ids(), write)
    run = newest_run(RUNS) if policies is None else None
    kwargs = settings(set_)
    if not chosen:
        chosen, kwargs = default_ids(run, kwargs, trust)
    named = parse_policies(policies or ",".join(default_policies(chosen)))
    if run:
        console.print(f"trained: {run}", style="dim")
        named["trained"] = str(run)
    curves = curve or (readable_curves([run]) if run else [])
    return compare(
        named, chosen, episodes, numbers(seeds), out, curves, games, kwargs, trust, html,
        all_named=policies is not None,
    )  # fmt: skip


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
    from dialgym.rollouts.player import opened_where_trained

    _, entry, remembered = opened_where_trained(str(run), trust)
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


def compare(
    policies: dict[str, str],
    ids: Sequence[str],
    episodes: int,
    seeds: Sequence[int],
    out: Path,
    curves: Sequence[Path],
    games: int,
    kwargs: dict[str, Any],
    trust: bool,
    html: Path | None = None,
    all_named: bool = True,
) -> None:
    """Run the benchmark, print its table and write its folder.

    Where the policies were `all_named`, it says which of them an environment does not have.
    """
    from dialgym.experiments import benchmark as run
    from dialgym.experiments.benchmark import opened, ways
    from dialgym.experiments.result import results_as_table

    playing = opened(policies, ids, kwargs, trust)
    rounds = sum(len(ways(policy)) for policy in playing.values())
    with progress("episodes", rounds * len(ids) * len(seeds) * episodes) as report:
        found = run(
            playing,
            ids,
            episodes,
            seeds,
            kwargs,
            games=games,
            curves=curves,
            trust=trust,
            report=report,
        )
    console.print(results_as_table(found.results, console.width))
    for note in found.notes:
        console.print(note, style="yellow", markup=False)
    for name, places in found.absent.items() if all_named else ():
        where = ", ".join(places)
        console.print(f"{name} is left out on {where}: no such policy", style="yellow")
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


def compute_references(ids: Sequence[str], path: Path | None) -> None:
    """Compute the reference scores of the ids' rows; print them, and write them where asked."""
    from dialgym.experiments import references

    rows = references.rows_of(ids)
    scores = {}
    with progress("episodes", 2 * sum(map(references.episodes_of, rows))) as report:
        for row in rows:
            kind = references.scores_name(row)
            found = references.reference_scores(row, report=report)
            scores[row.name, kind] = found
    for (name, kind), values in scores.items():
        typer.echo(f"  {name}:\n{references.scores_line(values, kind)}", nl=False)
    if path:
        references.write_references(path, scores)
