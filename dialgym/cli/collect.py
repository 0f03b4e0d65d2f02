"""``dialgym collect``: collect dialogues into a dataset."""

import time
from pathlib import Path
from typing import Annotated

import typer

from dialgym.cli.common import (
    EnvId,
    Param,
    Set,
    Trust,
    complete_policies,
    console,
    progress,
    resumable,
    settings,
)


def collect(
    id: EnvId,
    policy: Annotated[
        str,
        typer.Option(
            help="A registered name or generator, a run or checkpoint, zoo:NAME, a language "
            "model's folder.",
            autocompletion=complete_policies,
        ),
    ],
    out: Annotated[Path, typer.Option(help="Folder of Parquet files; an unfinished one goes on.")],
    episodes: Annotated[
        int, typer.Option("--episodes", "-n", min=1, help="Number of dialogues.")
    ] = 1000,
    workers: Annotated[int, typer.Option(min=0, help="Processes; 0 for this one.")] = 0,
    seed: Annotated[int, typer.Option(min=0, help="Seed of all dialogues.")] = 0,
    param: Param = None,
    num_envs: Annotated[int, typer.Option(min=1, help="Parallel dialogues, for an agent.")] = 128,
    deterministic: Annotated[
        bool, typer.Option("--deterministic", help="An agent takes the likeliest token.")
    ] = False,
    shard_size: Annotated[int, typer.Option(min=1, help="Episodes in a file.")] = 2048,
    trust: Trust = False,
    set_: Set = None,
) -> None:
    """Collect dialogues of a policy; the same seed gives the same dialogues.

    Ctrl-C keeps whole dialogues; the same command resumes. `dialgym data describe` draws them.
    """
    from dialgym.datasets import collect as run

    began = time.perf_counter()
    reports: list[int] = []
    with resumable(), progress(policy, episodes) as advance:

        def report(ended: int) -> None:
            reports.append(ended)
            advance(ended)

        dataset = run(
            id,
            policy,
            episodes,
            seed,
            workers,
            out,
            env_kwargs=settings(set_),
            policy_kwargs=settings(param, "--param"),
            deterministic=deterministic,
            num_envs=num_envs,
            shard_size=shard_size,
            trust=trust,
            report=report,
        )
    seconds = time.perf_counter() - began
    before, fresh = reports[0], sum(reports[1:])  # what was there already is reported first
    console.print(str(dataset.describe()), soft_wrap=True)
    played = f"{fresh:,} episodes in {seconds:.1f} s, {fresh / seconds:,.0f} a second"
    there = f"{before:,} were there already" if before else ""
    how = ", ".join(filter(None, (played if fresh else "", there)))
    stored = f"\n{len(dataset):,} dialogues stored in {out}: {how}"
    console.print(stored, style="dim", soft_wrap=True)
