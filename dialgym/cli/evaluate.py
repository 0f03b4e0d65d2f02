"""``dialgym evaluate``: score a policy."""

from pathlib import Path
from typing import Annotated

import typer

from dialgym.cli.common import Episodes, Seeds, Set, console, numbers, progress, settings


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
            report=report,
        )
    console.print(rich_table([result], console.width))
    if json:
        result.to_json(json)
