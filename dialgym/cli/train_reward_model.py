"""``dialgym train reward-model``: train a reward model."""

from pathlib import Path
from typing import Annotated

import typer

from dialgym.cli.common import console, require_agents, settings


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
    epochs: Annotated[
        int | None, typer.Option(min=1, help="Passes over the data, at most.")
    ] = None,
    batch_size: Annotated[int | None, typer.Option(min=1, help="Examples of a step.")] = None,
    seed: Annotated[int, typer.Option(min=0, help="Of weights, split and order.")] = 0,
    param: Annotated[
        list[str] | None,
        typer.Option("--param", "-p", metavar="KEY=VALUE", help="A hyperparameter."),
    ] = None,
    device: Annotated[str, typer.Option(help="cpu, cuda or auto.")] = "auto",
    bf16: Annotated[bool, typer.Option("--bf16", help="Compute in bfloat16.")] = False,
    threads: Annotated[int, typer.Option(min=1, help="PyTorch threads.")] = 1,
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
    given = {"epochs": epochs, "batch_size": batch_size}
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
        **{**settings(param, "--param"), **{k: v for k, v in given.items() if v is not None}},
    )
    found = trained.metrics
    names = [name for name in ("loss", "accuracy", "pearson", "spearman") if name in found]
    figures = ", ".join(f"{name} {found[name]:.3f}" for name in names)
    console.print(f"{found['held_out']:,} held out of {found['examples'] + found['held_out']:,}:")
    console.print(f"{figures}, after epoch {found['epoch']}; seed {seed}; in {out}")
