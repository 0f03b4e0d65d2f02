"""``dialgym train``: train an agent."""

from pathlib import Path
from typing import Annotated, Any

import typer
from typer.core import TyperCommand

from dialgym.cli.common import (
    EnvId,
    Set,
    Trust,
    algorithm_names,
    require_agents,
    resumable,
    settings,
)


class TrainCommand(TyperCommand):
    """Reads the table of algorithms for its help only when that is asked for."""

    def format_help(self, ctx: Any, formatter: Any) -> None:
        """Write the help, with the names of all algorithms."""
        for param in self.params:
            if param.name == "algo":
                names = ", ".join(algorithm_names())
                param.help = f"{names}; or module:Class of your own."  # type: ignore[attr-defined]
        super().format_help(ctx, formatter)


def train(
    algo: Annotated[
        str,
        typer.Argument(
            metavar="ALGO",
            help="A name of the table of algorithms, or module:Class of your own.",
            autocompletion=algorithm_names,
        ),
    ],
    id: EnvId,
    timesteps: Annotated[
        int | None,
        typer.Option(min=1, help="Timesteps of training: tokens played, or gradient steps."),
    ] = None,
    dialogues: Annotated[
        int | None,
        typer.Option(min=1, help="Dialogues of training, in place of timesteps."),
    ] = None,
    n_envs: Annotated[
        int | None, typer.Option(min=1, help="Parallel dialogues; by default as configured.")
    ] = None,
    workers: Annotated[int, typer.Option(min=0, help="Processes for the dialogues.")] = 0,
    seed: Annotated[int, typer.Option(min=0, help="Seed of networks and dialogues.")] = 0,
    out: Annotated[
        Path | None, typer.Option(help="Folder of the run; default runs/ALGO-ID-seedN.")
    ] = None,
    config: Annotated[
        Path | None, typer.Option(exists=True, help="A YAML file of hyperparameters.")
    ] = None,
    param: Annotated[
        list[str] | None,
        typer.Option("--param", "-p", metavar="KEY=VALUE", help="A hyperparameter."),
    ] = None,
    device: Annotated[str, typer.Option(help="cpu, cuda or auto.")] = "auto",
    threads: Annotated[
        int, typer.Option(min=1, help="PyTorch threads; one is the fastest for small models.")
    ] = 1,
    eval_freq: Annotated[
        int, typer.Option(min=0, help="Timesteps between evaluations; 0 for none.")
    ] = 0,
    eval_episodes: Annotated[int, typer.Option(min=1, help="Dialogues of one evaluation.")] = 200,
    samples: Annotated[
        int | None,
        typer.Option(min=0, help="Sample dialogues to log at each evaluation; 3 by default."),
    ] = None,
    save_freq: Annotated[
        int, typer.Option(min=0, help="Timesteps between checkpoints; 0 for none.")
    ] = 0,
    wandb: Annotated[bool, typer.Option("--wandb", help="Log to Weights & Biases too.")] = False,
    init_from: Annotated[
        Path | None, typer.Option(exists=True, help="A saved model to begin with.")
    ] = None,
    data: Annotated[
        list[str] | None,
        typer.Option("--data", "-d", metavar="PATH", help="Stored dialogues; may be repeated."),
    ] = None,
    resume: Annotated[
        bool, typer.Option("--resume", help="Go on from the folder's last checkpoint.")
    ] = False,
    force: Annotated[
        bool, typer.Option("--force", help="Remove the run that is in the folder, and begin anew.")
    ] = False,
    final_episodes: Annotated[
        int, typer.Option(min=0, help="Dialogues that the model plays at the end; 0 for none.")
    ] = 100,
    checkpoint_every: Annotated[
        int,
        typer.Option(
            min=0,
            help="From one checkpoint to the next: rollouts; of stock algorithms, 1000 steps.",
        ),
    ] = 10,
    trust: Trust = False,
    verbose: Annotated[bool, typer.Option("--verbose", "-v", help="Print the log table.")] = False,
    set_: Set = None,
) -> None:
    """Train an agent, by playing or from stored dialogues.

    The run's folder then holds the model, its learning curve and its log. Ctrl-C ends a run with a
    checkpoint, from which --resume goes on.
    """
    agents = require_agents()
    with resumable("--resume", "--force"):
        agents.train(
            algo,
            id,
            timesteps,
            n_envs=n_envs,
            workers=workers,
            seed=seed,
            log_dir=out,
            overrides=settings(param, "--param"),
            device=device,
            env_kwargs=settings(set_),
            config=config,
            threads=threads,
            eval_freq=eval_freq,
            eval_episodes=eval_episodes,
            samples=samples,
            save_freq=save_freq,
            wandb=wandb,
            init_from=init_from,
            data=data or None,
            resume=resume,
            checkpoint_every=checkpoint_every,
            trust=trust,
            verbose=int(verbose),
            dialogues=dialogues,
            force=force,
            final_episodes=final_episodes,
        )
