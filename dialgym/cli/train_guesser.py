"""``dialgym train guesser``: train a guesser of visual dialogue."""

from pathlib import Path
from typing import Annotated

import typer

from dialgym.cli.common import Set, console, require_agents, settings


def train_guesser(
    id: Annotated[str, typer.Argument(metavar="ID", help="An id of visual dialogue.")],
    out: Annotated[Path, typer.Option(help="Folder of the guesser.")],
    policy: Annotated[
        str | None,
        typer.Option(metavar="NAME", help="Who plays dialogues; else those of people are read."),
    ] = None,
    dialogues: Annotated[int, typer.Option(min=2, help="Dialogues to play.")] = 5000,
    epochs: Annotated[int | None, typer.Option(min=1, help="Passes over them.")] = None,
    batch_size: Annotated[int | None, typer.Option(min=1, help="Dialogues of a step.")] = None,
    seed: Annotated[int, typer.Option(min=0, help="Of dialogues, weights and order.")] = 0,
    param: Annotated[
        list[str] | None,
        typer.Option("--param", "-p", metavar="KEY=VALUE", help="A hyperparameter."),
    ] = None,
    device: Annotated[str, typer.Option(help="cpu, cuda or auto.")] = "auto",
    threads: Annotated[int, typer.Option(min=1, help="PyTorch threads.")] = 1,
    set_: Set = None,
) -> None:
    """Train the guesser behind the reward: a network that tells an image from the talk about it.

    Use it with -s guesser=learned:FOLDER. The images are those of the environment's pool, as with
    -s pool=visdial:PATH; the dialogues are those of people there, or played by --policy.
    """
    agents = require_agents()
    given = {"epochs": epochs, "batch_size": batch_size}
    trained = agents.train_guesser(
        id,
        out,
        policy,
        dialogues,
        seed=seed,
        device=device,
        threads=threads,
        env_kwargs=settings(set_),
        **{**settings(param, "--param"), **{k: v for k, v in given.items() if v is not None}},
    )
    found = trained.metrics
    ranks = " ".join(f"{percentile:.3f}" for percentile in found["percentiles"])
    console.print(f"{found['held_out']:,} dialogues about held-out images, after epoch", end=" ")
    console.print(
        f"{found['epoch']}: squared distance {found['distance']:.3f}, of the mean", end=""
    )
    console.print(f" {found['distance_of_mean']:.3f}")
    console.print(f"percentile rank by rounds: {ranks}; seed {seed}; in {out}")
