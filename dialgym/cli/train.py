"""``dialgym train``: train an agent."""

from dataclasses import Field, fields
from functools import cache
from importlib import import_module
from pathlib import Path
from typing import Annotated, Any

import typer
from typer.core import TyperCommand

from dialgym.cli.common import (
    algorithm_names,
    complete_ids,
    require_agents,
    resumable,
    settings,
)
from dialgym.cli.options import PAIRS, command_of, set_parameters

HOME = "agents.training.config"


class TrainCommand(TyperCommand):
    """Reads the table of algorithms for its help only when that is asked for."""

    def format_help(self, ctx: Any, formatter: Any) -> None:
        """Write the help, with the names of all algorithms."""
        for param in self.params:
            if param.name == "algorithm":
                names = ", ".join(algorithm_names())
                param.help = f"{names}; or module:Class of your own."  # type: ignore[attr-defined]
        super().format_help(ctx, formatter)


def train(
    ctx: typer.Context,
    algorithm: Annotated[
        str | None,
        typer.Argument(
            metavar="ALGORITHM",
            help="A name of the table of algorithms, or module:Class of your own.",
            autocompletion=algorithm_names,
        ),
    ] = None,
    id: Annotated[
        str | None,
        typer.Argument(
            metavar="ID",
            help="An id (`dialgym list`), or MODULE:CLASS.",
            autocompletion=complete_ids,
        ),
    ] = None,
    config: Annotated[
        Path | None,
        typer.Option(help="A YAML file of the fields of agents.TrainConfig; options replace them."),
    ] = None,
    resume: Annotated[
        Path | None,
        typer.Option(
            metavar="FOLDER",
            help="Go on with the run in this folder, exactly as if it had not been interrupted.",
        ),
    ] = None,
    **options: Any,
) -> None:
    """Train an agent, by playing or from stored dialogues.

    The run's folder then holds the model, its learning curve and its log. Ctrl-C ends a run with a
    checkpoint, from which --resume FOLDER goes on; it needs no other argument.
    """
    agents = require_agents()
    given = _given(ctx, {"algorithm": algorithm, "env_id": id, **options})
    configured = agents.TrainConfig
    if resume is not None:
        _check_alone(resume, config, given.get("log_dir"))
        given = {"log_dir": resume, **given, "resume": True}
    if resume is not None and (resume / "run.json").is_file():
        chosen = configured.from_run(resume, **given)
    elif config is not None:
        chosen = configured.from_yaml(config, _defaults(), **given)
    elif resume is not None and not given.keys() & {"algorithm", "env_id"}:
        raise FileNotFoundError(
            f"train: there is no run in {str(resume)!r} to resume: it has no run.json. Check the "
            "path; to begin a run there, give an algorithm and an environment too"
        )
    elif not {"algorithm", "env_id"} <= given.keys():
        raise ValueError(
            "train: expected an algorithm and an environment, such as `dialgym train ppo "
            "Wordle-20-v0`, or the folder of a run: --resume FOLDER"
        )
    else:
        chosen = configured(**{**_defaults(), **given})
    with resumable(command=lambda: _resuming(chosen)):
        agents.run_training(chosen)


def _check_alone(resume: Path, config: Path | None, out: Path | None) -> None:
    """Raise ValueError for what a run that goes on in its folder cannot heed."""
    if config is not None:
        raise ValueError(
            f"train: --resume {resume} goes on as the run.json there says; expected no --config, "
            f"got {config}. Leave one out; options such as --timesteps replace fields of both"
        )
    if out is not None and out.resolve() != resume.resolve():
        raise ValueError(
            f"train: --resume {resume} goes on in that folder; expected the same as --out or none, "
            f"got {out}. To go on elsewhere, copy the folder, and resume the copy"
        )


def _resuming(config: Any) -> list[str]:
    """The command that goes on with a run; it names code of one's own, which no file may."""
    named = (config.algorithm, config.env_id)
    own = named if any(":" in str(name) for name in named) else ()
    words = ["dialgym", "train", *map(str, own), "--resume", str(config.folder)]
    return [*words, "--trust"] if config.trust else words


# Options from the fields of TrainConfig


def _option_fields() -> list[Field[Any]]:
    """The fields that have options; none where the package `agents` is missing or another one."""
    try:
        every = fields(import_module(HOME).TrainConfig)
    except ImportError:
        return []
    return [one for one in every if one.metadata["flag"]]


def _given(ctx: typer.Context, values: dict[str, Any]) -> dict[str, Any]:
    """The fields that were set at the command line."""
    flags = {one.name: one.metadata for one in _option_fields()}
    given: dict[str, Any] = {}
    for name, value in values.items():
        source = ctx.get_parameter_source("id" if name == "env_id" else name)
        if source is None or source.name != "COMMANDLINE":
            continue
        if name in flags and flags[name]["takes"] == PAIRS:
            value = settings(value, flags[name]["flag"].partition(",")[0])
        given[name] = int(value) if name == "verbose" else value
    return given


def _defaults() -> dict[str, Any]:
    """Defaults of the command that are others than those of the fields."""
    defaults = {one.name: one.metadata["command_default"] for one in _option_fields()}
    return {name: value for name, value in defaults.items() if value is not None}


set_parameters(train)


@cache
def train_command() -> Any:
    """The command with all of its options, for which the package `agents` is imported."""
    return command_of("train", train, _option_fields(), cls=TrainCommand)
