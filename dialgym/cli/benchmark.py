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
    console,
    numbers,
    progress,
    settings,
    words,
)
from dialgym.registry import list_ids

RUNS = Path("runs")
POLICIES = "random,random-mixture,optimal"
IDS = "Wordle-20-v0,Wordle-200-v0,Wordle-800-v0,Wordle-v0"


def evaluate(
    policy: Annotated[str, typer.Argument(help="A registered name, or a checkpoint or its run.")],
    ids: Annotated[list[str], typer.Argument(metavar="ID...", help="The environments.")],
    episodes: Episodes = 100,
    seeds: Seeds = "0,1,2",
    num_envs: Annotated[int, typer.Option(min=1, help="Parallel dialogues, for an agent.")] = 128,
    sample: Annotated[
        bool, typer.Option("--sample", help="An agent samples instead of taking the likeliest.")
    ] = False,
    json: Annotated[Path | None, typer.Option(help="Where to write the result too.")] = None,
    trust: Trust = False,
    set_: Set = None,
) -> None:
    """Score one policy: returns, success, normalised score, 95 % intervals."""
    from dialgym.benchmark import evaluate as run
    from dialgym.benchmark.report import rich_table

    chosen = numbers(seeds)
    with progress(policy, len(ids) * len(chosen) * episodes) as report:
        result = run(
            policy,
            ids,
            episodes,
            chosen,
            settings(set_),
            num_envs=num_envs,
            deterministic=not sample,
            trust=trust,
            report=report,
        )
    console.print(rich_table([result], console.width))
    if json:
        result.to_json(json)


def benchmark(
    policies: Annotated[
        str | None,
        typer.Option(
            metavar="NAME,NAME=PATH,...",
            help=f"Registered names, and checkpoints or runs; default {POLICIES} and the newest "
            f"run in {RUNS}/.",
            show_default=False,
        ),
    ] = None,
    ids: Annotated[str, typer.Option(metavar="ID,ID,...", help="The environments.")] = IDS,
    episodes: Episodes = 100,
    seeds: Seeds = "0,1,2",
    out: Annotated[Path, typer.Option(help="Folder of the results.")] = RUNS / "benchmark",
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

    Without arguments it scores what `dialgym train` has trained last.
    """
    if references:
        chosen = list_ids() if ids == IDS else words(ids)
        return compute_references(chosen, write)
    run = newest_run(RUNS) if policies is None else None
    named = parse_policies(policies or POLICIES)
    if run:
        console.print(f"trained: {run}", style="dim")
        named["trained"] = str(run)
    curves = curve or ([run] if run else [])
    return compare(
        named, words(ids), episodes, numbers(seeds), out, curves, games, settings(set_), trust
    )


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
) -> None:
    """Run the benchmark, print its table and write its folder."""
    from dialgym.benchmark import benchmark as run
    from dialgym.benchmark.report import rich_table

    with progress("episodes", len(policies) * len(ids) * len(seeds) * episodes) as report:
        found = run(
            policies,
            ids,
            episodes,
            seeds,
            kwargs,
            games=games,
            curves=curves,
            trust=trust,
            report=report,
        )
    console.print(rich_table(found.results, console.width))
    for note in found.notes:
        console.print(note, style="yellow", markup=False)
    try:
        files = ", ".join(path.name for path in found.save(out))
    except ImportError as error:  # all but the pictures has been written
        console.print(f"without pictures: {error}", style="yellow", markup=False)
        files = "results.json, table.md"
    console.print(f"\nin {out}: {files}", style="dim")


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
    from dialgym.benchmark import references

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
