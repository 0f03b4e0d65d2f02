"""``dialgym check-judge``: compare a judge of dialogues with the success that the rules know."""

from pathlib import Path
from typing import Annotated

import typer

from dialgym.cli.check_user import (
    Goals,
    Policies,
    Record,
    Replay,
    Seed,
    given_tapes,
    parse_simulator,
    print_found,
)
from dialgym.cli.common import (
    EnvId,
    Set,
    Trust,
    check_places,
    console,
    progress,
    settings,
    words,
)


def check_judge_command(
    id: EnvId,
    judge: Annotated[
        str,
        typer.Option(
            metavar="NAME",
            help="The judge: lm or openai:MODEL, the name of a reward, MODULE:CLASS, or a mapping, "
            "'{model: MODEL, base_url: URL}'.",
        ),
    ],
    policies: Policies = None,
    episodes: Goals = 100,
    seed: Seed = 0,
    record: Record = None,
    replay: Replay = None,
    threshold: Annotated[
        float | None,
        typer.Option(
            help="Least score that is called a success; by default the middle of the bounds."
        ),
    ] = None,
    repeats: Annotated[
        int, typer.Option(min=1, help="How often each dialogue is judged, with another seed.")
    ] = 2,
    out: Annotated[
        Path | None, typer.Option(metavar="FILE", help="File for all figures, as JSON.")
    ] = None,
    set_: Set = None,
    param: Annotated[
        list[str] | None,
        typer.Option("--param", "-p", metavar="KEY=VALUE", help="A setting of the judge."),
    ] = None,
    trust: Trust = False,
) -> None:
    """Check a judge of dialogues: how far it agrees with the success that the rules know.

    Several policies play the same goals, and the judge scores the dialogues. The exit code is 1
    where it is not shown to agree with the rules beyond chance.
    """
    from dialgym.experiments.judge_check import check_judge, judge_settings

    own = {**settings(param), **given_tapes(record, replay)}
    given = {**judge_settings(parse_simulator(judge, "--judge")), **own}
    chosen = None if policies is None else words(policies)
    check_places(out)
    with progress(judge, (1 + repeats) * episodes * len(chosen or "12")) as advance:
        found = check_judge(
            id,
            given,
            chosen,
            episodes,
            seed,
            settings(set_),
            threshold=threshold,
            repeats=repeats,
            trust=trust,
            report=advance,
        )
    print_found(found)
    if out is not None:
        found.to_json(out)
        console.print(f"all figures are in {out}", soft_wrap=True)
    if not found.tells_success:
        raise typer.Exit(1)
