"""``dialgym train guesser`` and ``dialgym train reward-model``: train models behind rewards."""

from pathlib import Path
from typing import Annotated

import typer

from dialgym.cli.common import Set, console, require_agents, settings

Seed = Annotated[int, typer.Option(min=0, help="Of dialogues, weights, split and order.")]
Param = Annotated[
    list[str] | None,
    typer.Option(
        "--param", "-p", metavar="KEY=VALUE", help="A hyperparameter, such as epochs or batch_size."
    ),
]
Device = Annotated[str, typer.Option(help="cpu, cuda or auto.")]
Threads = Annotated[int, typer.Option(min=1, help="PyTorch threads.")]


def train_guesser(
    id: Annotated[str, typer.Argument(metavar="ID", help="An id of visual dialogue.")],
    out: Annotated[Path, typer.Option(help="Folder of the guesser.")],
    policy: Annotated[
        str | None,
        typer.Option(metavar="NAME", help="Player of dialogues; else those of people are read."),
    ] = None,
    dialogues: Annotated[int, typer.Option(min=2, help="Dialogues to play.")] = 5000,
    seed: Seed = 0,
    param: Param = None,
    device: Device = "auto",
    threads: Threads = 1,
    set_: Set = None,
) -> None:
    """Train the guesser behind the reward: a network that tells an image from the talk about it.

    Use it with -s guesser=learned:FOLDER. The images are those of the environment's pool, as with
    -s pool=visdial:PATH; the dialogues are those of people there, or played by --policy.
    """
    agents = require_agents()
    trained = agents.train_guesser(
        id,
        out,
        policy,
        dialogues,
        seed=seed,
        device=device,
        threads=threads,
        env_kwargs=settings(set_),
        **settings(param, "--param"),
    )
    metrics = trained.metrics
    ranks = " ".join(f"{percentile:.3f}" for percentile in metrics["percentiles"])
    console.print(f"{metrics['held_out']:,} dialogues about held-out images, after epoch", end=" ")
    console.print(
        f"{metrics['epoch']}: squared distance {metrics['distance']:.3f}, of the mean", end=""
    )
    console.print(f" {metrics['distance_of_mean']:.3f}")
    console.print(f"percentile rank by rounds: {ranks}; seed {seed}; in {out}")


def train_reward_model(
    data: Annotated[
        list[str],
        typer.Option(
            "--data",
            "-d",
            metavar="PATH",
            help="Rows (JSONL, CSV ...) of scores or preferences, or stored dialogues; repeatable.",
        ),
    ],
    out: Annotated[Path, typer.Option(help="Folder of the model.")],
    base: Annotated[
        str | None,
        typer.Option(metavar="PATH | hf:NAME", help="A model to begin with; else a small new one."),
    ] = None,
    tokenizer: Annotated[str, typer.Option(help="Of a new one: bpe, bpe:PATH or hf:NAME.")] = "bpe",
    seed: Seed = 0,
    param: Param = None,
    device: Device = "auto",
    bf16: Annotated[bool, typer.Option("--bf16", help="Compute in bfloat16.")] = False,
    threads: Threads = 1,
    checkpoint_every: Annotated[
        int | None, typer.Option(min=0, help="Steps between checkpoints; else once an epoch.")
    ] = None,
    resume: Annotated[bool, typer.Option("--resume", help="Go on from the checkpoint.")] = False,
) -> None:
    """Train a model that scores replies, from scores, preferences or stored rewards.

    The columns are context, reply, score or context, chosen, rejected. The folder is one of
    transformers, with metrics.json beside the weights; the reward `learned` reads it.
    """
    agents = require_agents()
    trained = agents.train_reward_model(
        data,
        out,
        base,
        tokenizer,
        seed=seed,
        device=device,
        bf16=bf16,
        threads=threads,
        checkpoint_every=checkpoint_every,
        resume=resume,
        progress_bar=console.is_terminal,
        **settings(param, "--param"),
    )
    metrics = trained.metrics
    names = [name for name in ("loss", "accuracy", "pearson", "spearman") if name in metrics]
    figures = ", ".join(f"{name} {metrics[name]:.3f}" for name in names)
    console.print(
        f"{metrics['held_out']:,} held out of {metrics['examples'] + metrics['held_out']:,}:"
    )
    console.print(f"{figures}, after epoch {metrics['epoch']}; seed {seed}; in {out}")
