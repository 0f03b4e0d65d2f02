"""``dialgym push``: publish an agent or stored dialogues."""

from pathlib import Path
from typing import Annotated

import typer

from dialgym.cli.common import Trust, console, require_agents


def push(
    source: Annotated[
        str, typer.Argument(metavar="RUN | DATA", help="A run, a saved agent, or a data set.")
    ],
    name: Annotated[
        str, typer.Argument(metavar="hf:NAME | PATH", help="Of the hub, or of a new folder.")
    ],
    scores: Annotated[
        list[Path] | None,
        typer.Option(exists=True, help="What `dialgym evaluate --json` wrote; may be repeated."),
    ] = None,
    private: Annotated[bool, typer.Option("--private", help="Make a new repository private.")] = (
        False
    ),
    trust: Trust = False,
) -> None:
    """Publish an agent or dialogues on the Hugging Face hub, with a card that has the scores.

    `hf:NAME` is then taken wherever a policy or a data set is.
    """
    from dialgym.datasets import load_dataset
    from dialgym.experiments import Result
    from dialgym.rollouts.policies import find_checkpoint

    if find_checkpoint(source) is None and Path(source).exists():
        if scores:
            raise ValueError(f"push: {source!r} is no agent, so that --scores has no place there.")
        where = load_dataset(source, trust=trust).push_to_hub(name, private)
    else:
        results = [Result.from_json(path) for path in scores or ()]
        where = require_agents().push_to_hub(source, name, results, private, trust)
    console.print(where, markup=False, soft_wrap=True, highlight=False)
